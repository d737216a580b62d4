"""``narrowcast diagnose``: what is wrong with a quantized tensor, and what the fix does."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from narrowcast.cli.terminal import FINDINGS, examples, line, print_json

if TYPE_CHECKING:
    from narrowcast.insight.detection import Detection
    from narrowcast.kernels import Summary

EPILOG = examples(
    "narrowcast diagnose x.npy --to s8",
    "narrowcast diagnose x.npy --codes q.npy --scale scale.npy --to s8 --html report.html",
    "narrowcast diagnose model.safetensors:layer.weight --to e2m1",
    "narrowcast diagnose x.npy --chain bf16,e4m3",
    "narrowcast diagnose chain.yaml",
    after="Conventions: real = (code - offset) * scale; with --multiplier, code = round(x * multiplier). Fixes are "
    "worded for the one you pass. Exit code 0 when nothing is wrong, 1 with findings.",
)
ARRAY = "FILE or NUMBER"


def diagnose(
    path: Annotated[str, typer.Argument(help=".npy, model.safetensors:TENSOR, or a case in .yaml.", metavar="PATH")],
    to: Annotated[str | None, typer.Option(help="Format of the codes, or to quantize to.", metavar="FORMAT")] = None,
    codes: Annotated[str | None, typer.Option(help="Codes (.npy).", metavar="FILE")] = None,
    scale: Annotated[str | None, typer.Option(help="Scales as stored.", metavar=ARRAY)] = None,
    multiplier: Annotated[str | None, typer.Option(help="Multipliers instead of scales.", metavar=ARRAY)] = None,
    offset: Annotated[str | None, typer.Option(help="Zero points.", metavar=ARRAY)] = None,
    columns: Annotated[int | None, typer.Option(help="Columns that hold results, where rows are padded.")] = None,
    packed: Annotated[bool, typer.Option("--packed", help="Codes are bytes of two 4-bit codes.")] = False,
    arithmetic: Annotated[str, typer.Option(help="Format in which the operation works.", metavar="FORMAT")] = "fp32",
    scale_format: Annotated[str | None, typer.Option(help="fp16 if scales are stored so.", metavar="FORMAT")] = None,
    chain: Annotated[str | None, typer.Option(help="Formats the values pass through.", metavar="A,B,...")] = None,
    updates: Annotated[str | None, typer.Option(help="What is added step by step (gradients).", metavar="FILE")] = None,
    html: Annotated[Path | None, typer.Option(help="Also write one self-contained page.", metavar="FILE")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing --html file.")] = False,
) -> None:
    """Diagnose a tensor: pitfalls with their evidence, the fix, and what the fix does to it."""
    from contextlib import nullcontext

    from narrowcast.insight.diagnosis import examine
    from narrowcast.storage import atomic_output

    case = _case(
        path,
        {"codes": codes, "scale": scale, "multiplier": multiplier, "offset": offset, "updates": updates},
        {
            "to": to,
            "columns": columns,
            "packed": packed or None,
            "arithmetic": None if arithmetic == "fp32" else arithmetic,
            "scale_format": scale_format,
            "chain": [name.strip() for name in chain.split(",")] if chain else None,
        },
    )
    with atomic_output(html, force=force) if html is not None else nullcontext() as file:
        found = examine(**case)
        if file is not None:
            from narrowcast.report.diagnosis_page import diagnosis_page

            file.write(diagnosis_page(found, path).encode())
    if json:
        quality = None if found.case is None or found.case.values is None else found.case.quality.to_json()
        print_json(
            {
                "path": path,
                "values": found.statistics(),
                "quality": quality,
                "findings": [f.to_json() for f in found.findings],
            }
        )
    else:
        if found.summary is not None:
            _print_summary(found.summary)
        if found.percentiles:
            line("", "magnitudes: " + ", ".join(f"{q:g}% {value:.6g}" for q, value in found.percentiles.items()))
        if found.case is not None and found.case.values is not None:
            line("now", f"{found.case.format}: {found.case.quality}")
            print()
        for detection in found.detections:
            _print(detection)
        many = len(found.detections)
        print(f"{many} finding{'s' * (many != 1)}." if many else "Nothing wrong.")
    if html is not None and not json:
        line("wrote", str(html))
    if found.detections:
        raise typer.Exit(FINDINGS)


def _case(path: str, arrays: dict[str, str | None], settings: dict[str, Any]) -> dict[str, Any]:
    if Path(path).suffix.lower() in (".yaml", ".yml", ".json"):
        from narrowcast.insight.diagnosis_file import read_case

        given = [name for name, value in {**arrays, **settings}.items() if value is not None]
        if given:
            raise typer.BadParameter(f"{path} is a whole case: write {', '.join(given)} into it")
        return read_case(path)
    from narrowcast.storage.arrays import load_array

    case: dict[str, Any] = {"x": load_array(path)}
    for name, text in arrays.items():
        if text is not None:
            try:
                case[name] = float(text)
            except ValueError:
                case[name] = load_array(text)
    return case | {name: value for name, value in settings.items() if value is not None}


def _print_summary(summary: "Summary") -> None:
    bad = [(summary.nans, "NaN"), (summary.infinities, "infinite"), (summary.subnormals, "subnormal in fp32")]
    line(
        "values",
        f"{summary.elements:,} from {summary.minimum:.6g} to {summary.maximum:.6g}, mean {summary.mean:.3g}, RMS "
        f"{summary.rms:.6g}, {summary.zeros:,} zeros" + "".join(f", {count:,} {what}" for count, what in bad if count),
    )


def _print(detection: "Detection") -> None:
    finding = detection.finding()
    print(f"{finding.rule}  {detection.row.name}  [{finding.source}]")
    line("found", detection.message)
    line("cause", detection.row.cause)
    line("fix", finding.fix)
    if detection.tried:
        line("tried", detection.tried)
    shared = [
        key for key in detection.before if key in detection.after and detection.before[key] != detection.after[key]
    ]
    for key in shared:
        line("", f"{key:22} {_short(detection.before[key]):>12} -> {_short(detection.after[key])}")
    print()


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
