"""``narrowcast show rounding``: the modes, and what each does to the same values."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from narrowcast.cli.show_casts import CHIPS, mode_order
from narrowcast.cli.terminal import Column, examples, line, note_left_out, print_json, print_table

if TYPE_CHECKING:
    from narrowcast.schema import Format, RoundingRow

SHORT = "Show the modes, with every vendor's name and number."
EPILOG = examples(
    "narrowcast show rounding",
    "narrowcast show rounding --format hif8     what each mode does to the same values",
    after="D is the discarded part in units of the last kept place. JSON keys: mode title rule use ascendc "
    "ascendc_ordinal pto_ordinal spec_rmode vcvt targets aliases provenance source; with --format also examples.",
)


def rounding(
    format: Annotated[
        str | None, typer.Option("--format", metavar="FORMAT", help="Also show what each mode does in this format.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show rounding modes: the rule, and every vendor's name and number for it."""
    from narrowcast.catalog.formats import formats as catalog
    from narrowcast.catalog.rounding import ROWS

    row = catalog[format] if format is not None else None
    samples = _samples(row) if row is not None else []
    if json:
        print_json([_rounding_json(r, samples) for r in ROWS])
        return
    columns = [
        Column("mode"),
        Column("meaning", wrap=True, minimum=20),
        Column("rule", wrap=True, minimum=26),
        Column("Ascend C", drop=1),
        Column("no.", right=True, drop=1),
        Column("PTO no.", right=True, drop=3),
        Column("vcvt", drop=4),
        Column("spec", drop=5),
        Column("targets", wrap=True, minimum=22, drop=6),
        Column("use", wrap=True, minimum=20, drop=7),
        Column("provenance", drop=8),
        Column("aliases", wrap=True, minimum=30, drop=9),
    ]
    left_out = print_table(columns, [_rounding_cells(r) for r in ROWS])
    if row is not None:
        _print_samples(row, samples)
        _print_chip_modes(row.name)
    note_left_out(left_out, "--json has all")


def _rounding_cells(row: "RoundingRow") -> list[str]:
    numbers = ["-" if n is None else str(n) for n in (row.ascendc_ordinal, row.pto_ordinal)]
    names = [row.ascendc or "-", *numbers, row.vcvt or "-", row.spec_rmode or "-"]
    return [
        row.rounding.value,
        row.title,
        row.rule,
        *names,
        row.targets,
        row.use,
        row.provenance.value,
        ", ".join(row.aliases),
    ]


def _rounding_json(row: "RoundingRow", samples: list[tuple[str, dict[str, str]]]) -> dict[str, Any]:
    form = {
        "mode": row.rounding.value,
        "title": row.title,
        "rule": row.rule,
        "use": row.use,
        "ascendc": row.ascendc,
        "ascendc_ordinal": row.ascendc_ordinal,
        "pto_ordinal": row.pto_ordinal,
        "spec_rmode": row.spec_rmode,
        "vcvt": row.vcvt,
        "targets": row.targets,
        "aliases": list(row.aliases),
        "provenance": row.provenance.value,
        "source": row.source,
    }
    shown = {value: results[row.rounding.value] for value, results in samples if row.rounding.value in results}
    return {**form, "examples": shown} if samples else form


def _samples(row: "Format") -> list[tuple[str, dict[str, str]]]:
    from narrowcast.insight.examples import rounding_examples

    return rounding_examples(row)


def _print_samples(row: "Format", samples: list[tuple[str, dict[str, str]]]) -> None:
    modes = list(dict.fromkeys(mode for _, results in samples for mode in results))
    print(f"\nthe same values in {row.name}, mode by mode (* the format's default)\n")
    columns = [Column("mode"), *(Column(value, right=True) for value, _ in samples)]
    rows = []
    for mode in modes:
        mark = " *" if mode == row.default_rounding.value else ""
        rows.append([mode + mark, *(results.get(mode, "-") for _, results in samples)])
    print_table(columns, rows)


def _print_chip_modes(name: str) -> None:
    from narrowcast.catalog import casts

    found: dict[str, dict[str, str]] = {}
    for row in casts.rows(target=name):
        modes = "mode ignored" if row.scaled else " ".join(sorted(row.modes, key=mode_order))
        found.setdefault(row.chip, {}).setdefault(row.source, modes)
    print()
    for chip in CHIPS:
        pairs = [f"{source:6} -> {name}: {modes}" for source, modes in found.get(chip, {}).items()]
        for i, text in enumerate(pairs or [f"no conversion to {name}"]):
            line("" if i else f"on {chip}", text)
