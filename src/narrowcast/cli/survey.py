"""``narrowcast survey``: what each format would do to each tensor of a checkpoint."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from narrowcast.cli.terminal import Column, examples, note_left_out, print_json, print_table, progress
from narrowcast.insight.picking import PickRule

if TYPE_CHECKING:
    from narrowcast.insight.survey import Survey

RULE = PickRule()
DETAIL_LIMIT = 24  # tensors; above it one line each reads better

EPILOG = examples(
    "narrowcast survey model.safetensors",
    "narrowcast survey model.safetensors --formats hif8,e4m3,s8 --html report.html",
    "narrowcast survey model.safetensors --brief --min-sqnr 30",
    "narrowcast survey model.safetensors --json > survey.json",
    after="How a format is applied: one float32 scale per tensor, absmax / target (hif8 15, e4m3 448, e5m2 57344, "
    "e2m1 6, s8 127, s4 7; fp16 and bf16 unscaled), the format's default rounding, saturating. With --no-scale the "
    f"values are cast as they are.\n\nHow it picks: {RULE.sentence}",
)


def survey(
    model: Annotated[Path, typer.Argument(help="A .safetensors file.", metavar="MODEL")],
    formats: Annotated[
        str, typer.Option(help="Formats to try, comma-separated; on a tie the first wins.", metavar="A,B,...")
    ] = "hif8,e4m3,e5m2,s8,e2m1,s4",
    html: Annotated[
        Path | None, typer.Option(help="Also write one self-contained page with plots.", metavar="FILE")
    ] = None,
    min_sqnr: Annotated[
        float, typer.Option(help="Least SQNR in dB of a format that may be picked.")
    ] = RULE.min_sqnr_db,
    scale: Annotated[
        bool, typer.Option("--scale/--no-scale", help="Scale each tensor to the format, or cast it as it is.")
    ] = True,
    detail: Annotated[
        bool | None,
        typer.Option(
            "--detail/--brief",
            help=f"One line per tensor and format, or one per tensor; detail up to {DETAIL_LIMIT} tensors by default.",
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON, complete and in full precision.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing --html file.")] = False,
) -> None:
    """Survey a checkpoint: per tensor and format SQNR, errors, saturation, underflow, and the format to pick."""
    from contextlib import nullcontext

    from narrowcast.storage import atomic_output

    rule = PickRule(min_sqnr_db=min_sqnr)
    names = [name.strip() for name in formats.split(",") if name.strip()]
    with atomic_output(html, force) if html is not None else nullcontext() as page:
        result = _run(model, names, scale, rule)
        if page is not None:
            from narrowcast.report.survey_page import survey_page

            page.write(survey_page(result).encode())
    if json:
        from narrowcast.report.survey_json import survey_document

        print_json(survey_document(result))
    else:
        _print(result, len(result.surveyed) <= DETAIL_LIMIT if detail is None else detail)
    if html is not None:
        typer.echo(f"report: {html}", err=json)


def _run(model: Path, names: list[str], scale: bool, rule: PickRule) -> "Survey":
    from narrowcast.insight.survey import survey_file
    from narrowcast.storage import open_safetensors

    with open_safetensors(model) as file:
        total = sum(file.info(name).elements for name in file.names if file.info(name).stored.is_float)
    seen = 0
    with progress(f"surveying {model.name}", total) as advance:

        def tick(done: int, total: int, name: str) -> None:
            nonlocal seen
            advance(done - seen)
            seen = done

        return survey_file(model, names, scaled=scale, rule=rule, progress=tick)


def _print(result: "Survey", detail: bool) -> None:
    from narrowcast.report import figures

    left_out = _print_detail(result) if detail else _print_brief(result)
    print()
    _print_totals(result)
    stored = sum(t.nbytes for t in result.tensors)
    picked = sum(t.picked_bytes for t in result.tensors)
    how = "one scale per tensor, absmax / target" if result.scaled else "unscaled cast"
    print(f"\nas picked: {figures.size(picked)} of {figures.size(stored)}; {how}; saturating.")
    print(f"pick (*): {result.rule.sentence}")
    note_left_out(left_out, "--json and --html have all")


def _print_detail(result: "Survey") -> tuple[str, ...]:
    from narrowcast.report import figures

    columns = [
        Column("tensor"),
        Column("type", drop=6),
        Column("shape", drop=5),
        Column("absmax", right=True, drop=7),
        Column("format"),
        Column("SQNR\ndB", right=True),
        Column("max\nerror", right=True, drop=1),
        Column("satu-\nrated", right=True, drop=2),
        Column("flushed\nto zero", right=True, drop=3),
        Column("sub-\nnormal", right=True, drop=4),
    ]
    rows: list[list[str]] = []
    for t in result.tensors:
        head = [t.name, t.dtype, "x".join(map(str, t.shape)) or "scalar", figures.real(t.absmax) if t.stats else ""]
        if not t.stats:
            rows.append([*head, "-", "", "", "", "", ""])
        for s in t.stats:
            mark = " *" if s.format == t.pick else ""
            cells = [s.format + mark, figures.decibel(s.sqnr_db), figures.real(s.max_error)]
            cells += [figures.percent(s.saturated), figures.percent(s.flushed)]
            cells.append("-" if s.subnormal is None else figures.percent(s.subnormal))
            rows.append([*head, *cells])
            head = [""] * len(head)
    left_out = print_table(columns, rows)
    print()
    print_table([Column("tensor"), Column("pick"), Column("why", wrap=True, minimum=30)], _picks(result))
    return left_out


def _print_brief(result: "Survey") -> tuple[str, ...]:
    from narrowcast.report import figures

    columns = [Column("tensor"), Column("type", drop=3), Column("shape", drop=2)]
    columns += [Column(f"{name}\ndB", right=True) for name in result.formats]
    columns += [Column("pick"), Column("why", wrap=True, minimum=60, drop=4)]
    rows = []
    for t, (_, pick, why) in zip(result.tensors, _picks(result), strict=True):
        levels = {s.format: figures.decibel(s.sqnr_db) for s in t.stats}
        shape = "x".join(map(str, t.shape)) or "scalar"
        rows.append([t.name, t.dtype, shape, *(levels.get(name, "-") for name in result.formats), pick, why])
    return print_table(columns, rows)


def _picks(result: "Survey") -> list[list[str]]:
    return [[t.name, t.pick or f"keep {t.dtype}", t.reason] for t in result.tensors]


def _print_totals(result: "Survey") -> None:
    from narrowcast.report import figures

    columns = [
        Column("all tensors"),
        Column("scaled to", right=True, drop=2),
        Column("rounding", drop=1),
        Column("SQNR dB", right=True),
        Column("max error", right=True, drop=3),
        Column("saturated", right=True, drop=4),
        Column("flushed", right=True, drop=5),
        Column("subnormal", right=True, drop=6),
        Column("picked", right=True),
    ]
    rows = []
    for name in result.formats:
        total = result.total(name)
        if total is None:
            continue
        target = result.targets[name]
        rows.append(
            [
                name,
                "unscaled" if target is None else f"{target:g}",
                result.roundings[name],
                figures.decibel(total.sqnr_db),
                figures.real(total.max_error),
                figures.percent(total.saturated),
                figures.percent(total.flushed),
                "-" if total.subnormal is None else figures.percent(total.subnormal),
                str(sum(1 for t in result.tensors if t.pick == name)),
            ]
        )
    print_table(columns, rows)
