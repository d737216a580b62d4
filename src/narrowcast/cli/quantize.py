"""``narrowcast quantize``: the weights of a checkpoint in one format."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from narrowcast.cli.terminal import Column, examples, note_left_out, print_json, print_table, progress

if TYPE_CHECKING:
    from narrowcast.checkpoint import QuantizedFile

EPILOG = examples(
    "narrowcast quantize model.safetensors --to hif8 -o model.hif8.safetensors",
    "narrowcast quantize model.safetensors --to s4 -o small.safetensors --keep 'lm_head.*' --keep 'embed*'",
    "narrowcast quantize model.safetensors --to e4m3 -o unscaled.safetensors --no-scale --json",
    after="What it does: one float32 scale per tensor, absmax / target (hif8 15, e4m3 448, e5m2 57344, e2m1 6, s8 127, "
    "s4 7); code = round(x / scale), saturated; real = code value * scale. Codes keep the tensor's name and NAME.scale "
    "holds the scale; format, rounding, saturation, blocks and version are in the file's metadata.\n\n"
    "What it keeps: tensors with fewer than two dimensions (biases, norms), scales and offsets of other tensors, "
    "integers, and what is narrow already. --all quantizes every F64, F32, F16 and BF16 tensor.",
)


def quantize(
    model: Annotated[Path, typer.Argument(help="A .safetensors file.", metavar="MODEL")],
    output: Annotated[Path, typer.Option("-o", "--output", help="The file to write.", metavar="FILE")],
    to: Annotated[str | None, typer.Option("--to", help="hif8, e4m3, e5m2, s8, s4 or e2m1.", metavar="FORMAT")] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Quantize 1-D tensors (biases, norms), scalars and scales, too.")
    ] = False,
    keep: Annotated[
        list[str] | None, typer.Option(help="Copy tensors of this name unchanged; * and ? match.", metavar="PATTERN")
    ] = None,
    scale: Annotated[
        bool, typer.Option("--scale/--no-scale", help="One scale per tensor, or cast the values as they are.")
    ] = True,
    nonfinite: Annotated[
        str, typer.Option(help="NaN and infinity: error, saturate (NaN to 0), or keep NaN.", metavar="POLICY")
    ] = "error",
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing output.")] = False,
) -> None:
    """Quantize the weights of a checkpoint to one format, streaming tensor by tensor."""
    if to is None:
        raise typer.BadParameter("name the format: --to hif8, e4m3, e5m2, s8, s4 or e2m1", param_hint="--to")
    result = _run(model, output, to, scale, everything, keep or [], nonfinite, force)
    if json:
        from narrowcast.report.quantized_json import quantized_document

        print_json(quantized_document(result))
    else:
        _print(result)


def _run(
    model: Path,
    output: Path,
    to: str,
    scale: bool,
    everything: bool,
    keep: list[str],
    nonfinite: str,
    force: bool,
) -> "QuantizedFile":
    from narrowcast.checkpoint import quantize_file
    from narrowcast.storage import open_safetensors

    with open_safetensors(model) as file:
        total = sum(file.info(name).elements for name in file.names)
    seen = 0
    with progress(f"quantizing {model.name}", total) as advance:

        def tick(done: int, total: int, name: str) -> None:
            nonlocal seen
            advance(done - seen)
            seen = done

        return quantize_file(
            model,
            output,
            to,
            scaled=scale,
            everything=everything,
            keep=keep,
            nonfinite=nonfinite,
            force=force,
            progress=tick,
        )


def _print(result: "QuantizedFile") -> None:
    from narrowcast.report import figures

    columns = [
        Column("tensor"),
        Column("shape", drop=4),
        Column("from", drop=3),
        Column("stored"),
        Column("scale", right=True, drop=2),
        Column("SQNR dB", right=True),
        Column("max error", right=True, drop=1),
        Column("saturated", right=True, drop=5),
        Column("flushed", right=True, drop=6),
    ]
    rows = []
    for t in result.quantized:
        shape = "x".join(map(str, t.shape)) or "scalar"
        cells = [t.name, shape, t.dtype, t.stored, f"{t.scale:.6g}", figures.decibel(t.sqnr_db)]
        rows.append([*cells, figures.real(t.max_error), figures.percent(t.saturated), figures.percent(t.flushed)])
    left_out = print_table(columns, rows) if rows else ()
    if result.kept:
        print()
        print_table(
            [Column("kept as stored"), Column("type"), Column("why", wrap=True)],
            [[t.name, t.dtype, t.kept or ""] for t in result.kept],
        )
    level = "" if not rows else f", SQNR {figures.decibel(result.sqnr_db)} dB together"
    how = "one scale per tensor" if result.scaled else "unscaled"
    print(
        f"\n{len(rows)} tensors to {result.format} ({how}, rounding {result.rounding}, saturating){level}; "
        f"{len(result.kept)} kept."
    )
    if not rows:
        print("nothing was quantized; --all includes 1-D tensors.")
    print(
        f"{result.output}: {figures.size(result.output_bytes)}, was {figures.size(result.source_bytes)} "
        f"({result.source_bytes / max(result.output_bytes, 1):.2f}x)"
    )
    note_left_out(left_out, "--json has all")
