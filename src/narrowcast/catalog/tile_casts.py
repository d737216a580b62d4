"""TCVT: which pairs each chip has, and what a call that names no saturation gets."""

from dataclasses import dataclass

from narrowcast.schema import Provenance


@dataclass(frozen=True, kw_only=True)
class TileCastRow:
    """One pair of one chip. ``fixed`` is the rounding that the pair has whatever the call says."""

    chip: str
    source: str
    target: str
    saturates: bool = True
    fixed: str | None = None
    torch_aligned: bool = False
    reference: str = "pto-isa:TCVT"
    provenance: Provenance = Provenance.DOCUMENTED


_3510 = {
    "fp32": "fp16 fp32 bf16 s16 s32 s64 e4m3 e5m2 hif8",
    "fp16": "fp32 s32 s16 s8 u8 hif8",
    "bf16": "fp32 s32 fp16 e1m2 e2m1",
    "s16": "u8 fp16 fp32 u32 s32",
    "s32": "fp32 s16 u16 s64 u8",
    "s64": "fp32 s32",
    "u8": "fp16 u16",
    "s8": "fp16 s16 s32",
    "u32": "u8 u16 s16",
    "e4m3": "fp32",
    "e5m2": "fp32",
    "hif8": "fp32",
    "e1m2": "bf16",
    "e2m1": "bf16",
}
_2201 = {
    "fp32": "fp16 fp32 bf16 s16 s32 s64",
    "fp16": "fp32 s32 s16 s8 u8 s4",
    "bf16": "fp32 s32",
    "s16": "fp16 fp32",
    "s32": "fp32 s16 s64 fp16",
    "s64": "fp32 s32",
    "u8": "fp16",
    "s8": "fp16",
    "s4": "fp16",
}
_FIXED = {
    ("fp32", "hif8"): "rna",
    ("fp16", "hif8"): "rna",
    ("fp32", "e4m3"): "rn",
    ("fp32", "e5m2"): "rn",
    ("s32", "fp16"): "rn",
}
_WRAPS = frozenset({("fp16", "u8"), ("fp16", "s8"), ("fp16", "s16"), ("fp32", "s16"), ("s64", "s32"), ("s32", "s16")})
_TORCH = frozenset({("fp16", "s8"), ("fp16", "s16"), ("fp32", "s16")})


def _rows(chip: str, pairs: dict[str, str]) -> tuple[TileCastRow, ...]:
    return tuple(
        TileCastRow(
            chip=chip,
            source=source,
            target=target,
            saturates=(source, target) not in _WRAPS,
            fixed=_FIXED.get((source, target)),
            torch_aligned=(source, target) in _TORCH,
        )
        for source, targets in pairs.items()
        for target in targets.split()
    )


ROWS: tuple[TileCastRow, ...] = (*_rows("3510", _3510), *_rows("2201", _2201))
_BY_KEY = {(row.chip, row.source, row.target): row for row in ROWS}


def find(chip: str, source: str, target: str) -> TileCastRow | None:
    """Return the row of a pair, None when the chip does not have it."""
    return _BY_KEY.get((chip, source, target))


def targets(chip: str, source: str) -> tuple[str, ...]:
    """Return what a chip converts a format to."""
    return tuple(row.target for row in ROWS if (row.chip, row.source) == (chip, source))
