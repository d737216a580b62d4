"""``narrowcast show casts``: the conversions of the chips."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from narrowcast.cli.terminal import Column, examples, note_left_out, print_json, print_table
from narrowcast.errors import UnsupportedCastError

if TYPE_CHECKING:
    from narrowcast.catalog.casts import CastRow

CHIPS = ("3510", "2201")
SHORT = "Show the conversions of the chips and their modes."
EPILOG = examples(
    "narrowcast show casts",
    "narrowcast show casts --chip 2201",
    "narrowcast show casts --format hif8 --json",
    after="Modes: none is CAST_NONE, or an interface without modes. "
    "Interfaces: basic (Cast on memory), reg (register Cast with traits), c-api (one function per pair). "
    "Saturation: exact (cannot overflow), never (keeps infinity), float (CTRL[60], CTRL[48]), integer "
    "(CTRL[60], CTRL[59]), ctrl48, always. JSON is one object per interface, chip, source and target; keys: "
    "interface chip source target modes also_accepts saturation sat_trait parts scaled merges emulated "
    "provenance reference note.",
)


def casts(
    format: Annotated[
        str | None, typer.Option("--format", metavar="FORMAT", help="Only conversions from or to this format.")
    ] = None,
    chip: Annotated[str | None, typer.Option("--chip", metavar="3510|2201", help="Only this chip.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show the conversions a chip has, their rounding modes and what decides saturation."""
    from narrowcast.catalog import casts as catalog
    from narrowcast.catalog.authorities import chips
    from narrowcast.catalog.formats import formats as known

    name = known[format].name if format is not None else None
    wanted = chips[chip] if chip is not None else None
    if wanted not in (None, *CHIPS):
        listed = ", ".join(CHIPS)
        raise UnsupportedCastError(f"there is no table of conversions for chip {wanted} (there is: {listed}).")
    rows = [r for r in catalog.rows(chip=wanted) if name in (None, r.source, r.target)]
    if json:
        print_json([_cast_json(row) for row in rows])
        return
    if not rows:
        where = f"chip {wanted}" if wanted else "either chip"
        print(f"no conversion from or to {name or 'any format'} on {where}")
        return
    _print_casts(rows)


def _print_casts(rows: list["CastRow"]) -> None:
    merged: dict[tuple[str, str], list[CastRow]] = {}
    for row in rows:
        merged.setdefault((row.source, row.target), []).append(row)
    chips = [chip for chip in CHIPS if any(row.chip == chip for row in rows)]
    columns = [
        Column("from"),
        Column("to"),
        *(Column(f"modes on {chip}", wrap=True, minimum=20) for chip in chips),
        Column("saturation", drop=1),
        Column("interfaces", drop=2),
        Column("provenance", drop=4),
        Column("reference", wrap=True, minimum=24, drop=3),
        Column("note", wrap=True, minimum=24, drop=5),
    ]
    cells = []
    for (source, target), group in merged.items():
        first = group[0]
        interfaces = " ".join(dict.fromkeys(row.interface for row in group))
        note = first.note if first.emulated else f"not emulated. {first.note}".rstrip()
        cells.append(
            [
                source,
                target,
                *(_modes([row for row in group if row.chip == chip]) for chip in chips),
                first.saturation.value,
                interfaces,
                ", ".join(dict.fromkeys(row.provenance.value for row in group)),
                "; ".join(dict.fromkeys(part for row in group for part in row.reference.split("; "))),
                note,
            ]
        )
    left_out = print_table(columns, cells)
    note_left_out(left_out, "--json has all")


def _modes(rows: list["CastRow"]) -> str:
    """Modes of one pair on one chip; by interface where the interfaces differ."""
    if not rows:
        return "-"
    texts: dict[str, list[str]] = {}
    for row in rows:
        text = "mode ignored" if row.scaled else " ".join(sorted(row.modes, key=mode_order))
        texts.setdefault(text, []).append(row.interface)
    if len(texts) == 1:
        return next(iter(texts))
    return "; ".join(f"{'/'.join(names)}: {text}" for text, names in texts.items())


def mode_order(mode: str) -> int:
    """Place a mode in the catalog's order, ``none`` last."""
    return ("rn", "rna", "rd", "ru", "rz", "ro", "rh", "none").index(mode)


def _cast_json(row: "CastRow") -> dict[str, Any]:
    return {
        "interface": row.interface,
        "chip": row.chip,
        "source": row.source,
        "target": row.target,
        "modes": list(row.modes),
        "also_accepts": list(row.also_accepts),
        "saturation": row.saturation.value,
        "sat_trait": row.sat_trait,
        "parts": row.parts,
        "scaled": row.scaled,
        "merges": row.merges,
        "emulated": row.emulated,
        "provenance": row.provenance.value,
        "reference": row.reference,
        "note": row.note,
    }
