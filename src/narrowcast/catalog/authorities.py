"""Authorities: whom a result believes, and for which chips each of them speaks."""

from dataclasses import dataclass

from narrowcast.catalog import Catalog


@dataclass(frozen=True, kw_only=True)
class AuthorityRow:
    """One source of behaviour with the chips it describes."""

    name: str
    follows: str
    chips: tuple[str, ...]
    source: str


ROWS: tuple[AuthorityRow, ...] = (
    AuthorityRow(
        name="device",
        follows="best evidence of the chip: seed documents and vendor API pages; the vendor page decides a conflict",
        chips=("3510", "2201"),
        source="seed; asc-devkit",
    ),
    AuthorityRow(name="seed", follows="the seed documents, literally", chips=("3510", "2201"), source="seed"),
    AuthorityRow(
        name="pto-isa",
        follows="the public tile library, per chip, and its CPU simulator",
        chips=("3510", "2201", "kirinx90", "cpu-sim"),
        source="pto-isa",
    ),
    AuthorityRow(name="pto-spec", follows="the executable ISA specification", chips=("3510",), source="pto-spec"),
)

CHIP_ALIASES = {
    "a5": "3510",
    "950": "3510",
    "ascend950": "3510",
    "dav_3510": "3510",
    "a2a3": "2201",
    "dav_2201": "2201",
    "910b": "2201",
    "x90": "kirinx90",
    "cpu": "cpu-sim",
}

CHIPS = ("3510", "2201", "kirinx90", "cpu-sim")

authorities: Catalog[AuthorityRow] = Catalog("authority", {row.name: row for row in ROWS}, {})
chips: Catalog[str] = Catalog("chip", {c: c for c in CHIPS}, CHIP_ALIASES)
