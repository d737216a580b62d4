"""Conversions a chip has. One row for each interface, chip, source and target.

Three interfaces reach the vector core's converter: the Basic ``Cast`` on memory (``basic``), the register
``Cast`` with its traits (``reg``), and the C-API functions, whose rows are in ``capi``. A pair that has no row
does not exist on that chip.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from functools import cache

from narrowcast.catalog import capi
from narrowcast.schema import Provenance


class Saturation(Enum):
    """What decides whether an out-of-range value is clamped."""

    EXACT = "exact"  # every source value has a code
    NEVER = "never"  # rounds, cannot leave the range, or goes to fp32: infinity stays
    FLOAT = "float"  # CTRL[60] ? CTRL[48] == 0 : the instruction's own choice
    INTEGER = "integer"  # CTRL[60] ? CTRL[59] == 0 : the instruction's own choice
    CTRL48 = "ctrl48"  # CTRL[48] == 0, whatever CTRL[60] says
    ALWAYS = "always"


@dataclass(frozen=True, kw_only=True)
class CastRow:
    """One conversion.

    ``modes`` are short rounding names and ``none`` (CAST_NONE); ``parts`` is how many layouts select a part of
    the wider register; ``sat_trait`` whether the instruction has a saturation choice of its own;
    ``also_accepts`` are modes that the implementation takes and the published table omits.
    """

    interface: str
    chip: str
    source: str
    target: str
    modes: tuple[str, ...]
    saturation: Saturation
    reference: str
    provenance: Provenance = Provenance.DOCUMENTED
    parts: int = 1
    sat_trait: bool = True
    also_accepts: tuple[str, ...] = ()
    scaled: bool = False  # takes the scale of SetDeqScale, and ignores the mode
    merges: bool = False  # software emulates merging with the old destination
    emulated: bool = True
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class IntegralRow:
    """A function that rounds to an integer and keeps the floating-point type."""

    name: str
    rounding: str
    title: str
    types: dict[str, tuple[str, ...]]  # chip -> formats
    reference: str
    provenance: Provenance = Provenance.DOCUMENTED


MODE_LETTERS = {"R": "rn", "A": "rna", "F": "rd", "C": "ru", "Z": "rz", "O": "ro", "H": "rh", "N": "none"}
UNEMULATED = ("complex32", "complex64", "double")

_MEM = "asc-devkit:Memory Cast"
_REG = "asc-devkit:Reg Cast"

# Source, target, modes on 3510, modes on 2201; "-" where the pair is missing, "*" where the mode is ignored.
_BASIC: tuple[tuple[str, str, str, str], ...] = (
    ("s4", "s16", "N", "-"),
    ("s4", "fp16", "N", "N"),
    ("s4", "bf16", "N", "-"),
    ("s8", "s16", "N", "-"),
    ("s8", "fp16", "N", "N"),
    ("s8", "s32", "N", "-"),
    ("u8", "u16", "N", "-"),
    ("u8", "fp16", "N", "N"),
    ("u8", "u32", "N", "-"),
    ("e2m1", "bf16", "N", "-"),
    ("e1m2", "bf16", "N", "-"),
    ("hif8", "fp16", "N", "-"),
    ("hif8", "fp32", "N", "-"),
    ("e5m2", "fp32", "N", "-"),
    ("e4m3", "fp32", "N", "-"),
    ("s16", "s4", "N", "-"),
    ("s16", "u8", "N", "-"),
    ("s16", "fp16", "RFCAZ", "RFCAZN"),
    ("s16", "s32", "N", "-"),
    ("s16", "u32", "N", "-"),
    ("s16", "fp32", "N", "N"),
    ("u16", "u8", "N", "-"),
    ("u16", "u32", "N", "-"),
    ("fp16", "s4", "RFCAZ", "RFCAZN"),
    ("fp16", "s8", "RFCAZ", "RFCAZN"),
    ("fp16", "u8", "RFCAZ", "RFCAZN"),
    ("fp16", "hif8", "AH", "-"),
    ("fp16", "s16", "RFCAZ", "RFCAZ"),
    ("fp16", "bf16", "RFCAZ", "-"),
    ("fp16", "s32", "RFCAZ", "RFCAZ"),
    ("fp16", "fp32", "N", "N"),
    ("bf16", "e2m1", "RFCAZ", "-"),
    ("bf16", "e1m2", "RFCAZ", "-"),
    ("bf16", "fp16", "RFCAZ", "-"),
    ("bf16", "s32", "RFCAZ", "RFCAZ"),
    ("bf16", "fp32", "N", "N"),
    ("s32", "u8", "N", "-"),
    ("s32", "s16", "N", "N"),
    ("s32", "u16", "N", "-"),
    ("s32", "fp16", "*", "*"),
    ("s32", "fp32", "RFCAZ", "RFCAZN"),
    ("s32", "s64", "N", "N"),
    ("u32", "u8", "N", "-"),
    ("u32", "s16", "N", "-"),
    ("u32", "u16", "N", "-"),
    ("fp32", "hif8", "AH", "-"),
    ("fp32", "e5m2", "R", "-"),
    ("fp32", "e4m3", "R", "-"),
    ("fp32", "s16", "RFCAZ", "RFCAZ"),
    ("fp32", "fp16", "RFCAZON", "RFCAZON"),
    ("fp32", "bf16", "RFCAZ", "RFCAZ"),
    ("fp32", "s32", "RFCAZ", "RFCAZ"),
    ("fp32", "fp32", "RFCAZ", "RFCAZ"),
    ("fp32", "s64", "RFCAZ", "RFCAZ"),
    ("complex32", "complex64", "N", "-"),
    ("s64", "s32", "N", "N"),
    ("s64", "fp32", "RFCAZ", "RFCAZ"),
    ("s64", "double", "RFCAZ", "-"),
    ("double", "bf16", "RFCAZ", "-"),
    ("double", "s32", "Z", "-"),
    ("double", "fp32", "RFCAZ", "-"),
    ("double", "s64", "Z", "-"),
    ("complex64", "complex32", "RFCAZON", "-"),
    ("complex64", "complex64", "RFCAZ", "-"),
)

# The page's table of register casts omits fp16 -> fp32; its implementation and the C API have it.
_ONLY_IN_IMPLEMENTATION = ("fp16", "fp32")

# Source, target, layouts ("-": one), whether the trait has a saturation choice, modes ("-": no rounding).
_REGISTER: tuple[tuple[str, str, str, bool, str], ...] = (
    ("fp16", "s4", "0123", True, "RAFCZ"),
    ("fp16", "s8", "01", True, "RAFCZ"),
    ("fp16", "u8", "01", True, "RAFCZ"),
    ("fp16", "s16", "-", True, "RAFCZ"),
    ("fp16", "s32", "01", False, "RAFCZ"),
    ("bf16", "s32", "01", True, "RAFCZ"),
    ("fp32", "s16", "01", True, "RAFCZ"),
    ("fp32", "s32", "-", True, "RAFCZ"),
    ("fp32", "s64", "01", True, "RAFCZ"),
    ("hif8", "fp16", "01", False, "-"),
    ("hif8", "fp32", "0123", False, "-"),
    ("e4m3", "fp32", "0123", False, "-"),
    ("e5m2", "fp32", "0123", False, "-"),
    ("e8m0", "bf16", "01", False, "-"),
    ("e2m1", "bf16", "0123", False, "-"),
    ("e1m2", "bf16", "0123", False, "-"),
    ("fp16", "hif8", "01", True, "AH"),
    ("fp16", "bf16", "-", False, "RAFCZ"),
    ("bf16", "fp16", "-", True, "RAFCZ"),
    ("bf16", "e2m1", "0123", False, "RAFCZ"),
    ("bf16", "e1m2", "0123", False, "RAFCZ"),
    ("bf16", "e8m0", "01", False, "-"),
    ("bf16", "fp32", "01", False, "-"),
    ("fp16", "fp32", "01", False, "-"),
    ("fp32", "hif8", "0123", True, "AH"),
    ("fp32", "e4m3", "0123", True, "R"),
    ("fp32", "e5m2", "0123", True, "R"),
    ("fp32", "fp16", "01", True, "ORAFCZ"),
    ("fp32", "bf16", "01", True, "RAFCZ"),
    ("s4", "fp16", "0123", False, "-"),
    ("s4", "bf16", "0123", False, "-"),
    ("s8", "fp16", "01", False, "-"),
    ("u8", "fp16", "01", False, "-"),
    ("s16", "fp16", "-", False, "RAFCZ"),
    ("s16", "fp32", "01", False, "-"),
    ("s32", "fp32", "-", False, "RAFCZ"),
    ("s64", "fp32", "01", False, "RAFCZ"),
    ("s4", "s16", "0123", False, "-"),
    ("s8", "s16", "01", False, "-"),
    ("s8", "s32", "0123", False, "-"),
    ("u8", "u16", "01", False, "-"),
    ("u8", "u32", "0123", False, "-"),
    ("s16", "s4", "0123", True, "-"),
    ("s16", "u8", "01", True, "-"),
    ("s16", "s32", "01", False, "-"),
    ("s16", "u32", "01", False, "-"),
    ("u16", "u8", "01", True, "-"),
    ("u16", "u32", "01", False, "-"),
    ("s32", "u8", "0123", True, "-"),
    ("s32", "s16", "01", True, "-"),
    ("s32", "u16", "01", True, "-"),
    ("s32", "s64", "01", False, "-"),
    ("u32", "u8", "0123", True, "-"),
    ("u32", "s16", "01", True, "-"),
    ("u32", "u16", "01", True, "-"),
    ("s64", "s32", "01", True, "-"),
)

_EXACT = frozenset(
    (source, target)
    for source, targets in {
        "s4": "s16 fp16 bf16",
        "s8": "s16 s32 fp16",
        "u8": "u16 u32 fp16",
        "s16": "s32 fp32",
        "u16": "u32",
        "s32": "s64",
        "e2m1": "bf16",
        "e1m2": "bf16",
        "e8m0": "bf16",
        "hif8": "fp32",
        "e4m3": "fp32",
        "e5m2": "fp32",
        "fp16": "fp32",
        "bf16": "fp32",
    }.items()
    for target in targets.split()
)
_CTRL48 = frozenset({("fp16", "bf16"), ("hif8", "fp16")})
_ALWAYS = frozenset({("bf16", "e2m1"), ("bf16", "e1m2"), ("bf16", "e8m0"), ("s16", "u32")})
_INTEGERS = ("s4", "u4", "s8", "u8", "s16", "u16", "s32", "u32", "s64")

# CAST_NONE acts as rint where the implementation converts it; the 3510 column of the table omits these.
_NONE_IS_RINT = frozenset({("fp16", "s4"), ("fp16", "s8"), ("fp16", "u8"), ("s16", "fp16"), ("s32", "fp32")})

_SEED_SECTIONS: dict[tuple[str, str], str] = {
    ("fp32", "fp16"): "3.1",
    ("fp32", "bf16"): "3.1",
    ("fp16", "fp32"): "3.2",
    ("bf16", "fp32"): "3.2",
}

_NOTES: dict[tuple[str, str], str] = {
    ("s32", "fp16"): "src * 2^-17 * scale * 2^17 in fp32, then rint; the scale is SetDeqScale's.",
    ("fp32", "fp32"): "Rounds to an integer that stays fp32.",
    ("bf16", "e8m0"): "Software: keeps the exponent field, so the sign is dropped and 1.99 is 1. "
    "The device overwrites the source register; the model does not.",
    ("e8m0", "bf16"): "Software: the code is shifted into the exponent field. "
    "The device overwrites the source register; the model does not.",
}


def saturation_of(source: str, target: str) -> Saturation:
    """What decides the saturation of a pair, the same on every interface."""
    pair = (source, target)
    if pair in _EXACT:
        return Saturation.EXACT
    if pair in _CTRL48:
        return Saturation.CTRL48
    if pair in _ALWAYS:
        return Saturation.ALWAYS
    if target in _INTEGERS:
        return Saturation.INTEGER
    if target == "fp32" or (source in _INTEGERS and pair != ("s32", "fp16")):
        return Saturation.NEVER
    return Saturation.FLOAT


def modes_of(letters: str) -> tuple[str, ...]:
    """Spell out a string of mode letters."""
    if letters == "*":
        return tuple(MODE_LETTERS.values())
    return ("none",) if letters == "-" else tuple(MODE_LETTERS[c] for c in letters)


def reference_of(source: str, target: str, vendor: str) -> str:
    """Where a pair is stated: the seed's section if it lists the pair, and the vendor's page."""
    section = _SEED_SECTIONS.get((source, target)) or capi.seed_section(source, target)
    return f"seed {section}; {vendor}" if section else vendor


def _basic_rows() -> Iterator[CastRow]:
    for source, target, *columns in _BASIC:
        pair = (source, target)
        for chip, letters in zip(("3510", "2201"), columns, strict=True):
            if letters == "-":
                continue
            yield CastRow(
                interface="basic",
                chip=chip,
                source=source,
                target=target,
                modes=modes_of(letters),
                saturation=saturation_of(source, target),
                reference=reference_of(source, target, _MEM),
                also_accepts=("none",) if pair in _NONE_IS_RINT and "N" not in letters else (),
                scaled=letters == "*",
                emulated=not set(pair) & set(UNEMULATED),
                note=_NOTES.get(pair, ""),
            )


def _register_rows() -> Iterator[CastRow]:
    for source, target, layouts, sat_trait, letters in _REGISTER:
        pair = (source, target)
        software = "e8m0" in pair or pair == _ONLY_IN_IMPLEMENTATION
        yield CastRow(
            interface="reg",
            chip="3510",
            source=source,
            target=target,
            modes=modes_of(letters),
            saturation=saturation_of(source, target),
            reference=reference_of(source, target, f"{_REG} implementation" if software else _REG),
            provenance=Provenance.IMPLEMENTATION_DEFINED if software else Provenance.DOCUMENTED,
            parts=1 if layouts == "-" else len(layouts),
            sat_trait=sat_trait,
            merges=not {"s4", "e2m1", "e1m2"} & set(pair),
            note=_NOTES.get(pair, ""),
        )


def _capi_rows() -> Iterator[CastRow]:
    for row in capi.ROWS:
        for chip in row.chips:
            yield CastRow(
                interface="c-api",
                chip=chip,
                source=row.source,
                target=row.target,
                modes=row.modes or ("none",),
                saturation=saturation_of(row.source, row.target),
                reference=row.reference,
                provenance=row.provenance,
                parts=row.positions if chip == "3510" else 1,
                sat_trait=row.has_sat and chip == "3510",
            )


ROWS: tuple[CastRow, ...] = (*_basic_rows(), *_register_rows(), *_capi_rows())

_BOTH = ("3510", "2201")
_SCALAR = {"3510": ("fp16", "bf16", "fp32"), "2201": ("fp16", "fp32")}
_TRUNC = "seed 3.4; asc-devkit:C-API asc_{}; asc-devkit:Truncate"

INTEGRAL_ROWS: tuple[IntegralRow, ...] = (
    IntegralRow(name="ceil", rounding="ru", title="up", types=_SCALAR, reference=_TRUNC.format("ceil")),
    IntegralRow(name="floor", rounding="rd", title="down", types=_SCALAR, reference=_TRUNC.format("floor")),
    IntegralRow(
        name="round", rounding="rna", title="nearest, ties away", types=_SCALAR, reference=_TRUNC.format("round")
    ),
    IntegralRow(
        name="rint", rounding="rn", title="nearest, ties to even", types=_SCALAR, reference=_TRUNC.format("rint")
    ),
    IntegralRow(name="trunc", rounding="rz", title="toward zero", types=_SCALAR, reference=_TRUNC.format("trunc")),
    IntegralRow(
        name="round_half_even",
        rounding="rn",
        title="nearest, ties to even (the high-level Round)",
        types=dict.fromkeys(_BOTH, ("fp16", "fp32")),
        reference="asc-devkit:high-level Round, constraints",
    ),
)
integrals: dict[str, IntegralRow] = {row.name: row for row in INTEGRAL_ROWS}


@cache
def _index() -> dict[tuple[str, str, str, str], CastRow]:
    return {(row.interface, row.chip, row.source, row.target): row for row in ROWS}


def find(interface: str, chip: str, source: str, target: str) -> CastRow | None:
    """Return the row of a conversion, None where it does not exist."""
    return _index().get((interface, chip, source, target))


def rows(
    *, interface: str | None = None, chip: str | None = None, source: str | None = None, target: str | None = None
) -> tuple[CastRow, ...]:
    """Return the rows that match every given key, in catalog order."""
    return tuple(
        row
        for row in ROWS
        if interface in (None, row.interface)
        and chip in (None, row.chip)
        and source in (None, row.source)
        and target in (None, row.target)
    )
