"""Operand pairs of the Cube and how it accumulates."""

from dataclasses import dataclass

from narrowcast.schema import Claim, Provenance, SwitchRow


@dataclass(frozen=True, kw_only=True)
class CubePair:
    """Operand formats that may be mixed freely, and their accumulator."""

    formats: tuple[str, ...]
    mixed: bool
    accumulator: str
    scaled: bool  # E8M0 scales per 32 along K
    k_step: int  # K consumed a cycle
    chips: tuple[str, ...]
    source: str


ROWS: tuple[CubePair, ...] = (
    CubePair(
        formats=("s8",),
        mixed=False,
        accumulator="s32",
        scaled=False,
        k_step=32,
        chips=("3510", "2201"),
        source="asc-devkit:Mmad",
    ),
    CubePair(
        formats=("fp16",),
        mixed=False,
        accumulator="fp32",
        scaled=False,
        k_step=16,
        chips=("3510", "2201"),
        source="asc-devkit:Mmad",
    ),
    CubePair(
        formats=("bf16",),
        mixed=False,
        accumulator="fp32",
        scaled=False,
        k_step=16,
        chips=("3510", "2201"),
        source="asc-devkit:Mmad",
    ),
    CubePair(
        formats=("fp32",),
        mixed=False,
        accumulator="fp32",
        scaled=False,
        k_step=1,
        chips=("3510", "2201"),
        source="asc-devkit:Mmad",
    ),
    CubePair(
        formats=("hif8",),
        mixed=False,
        accumulator="fp32",
        scaled=False,
        k_step=32,
        chips=("3510",),
        source="asc-devkit:Mmad",
    ),
    CubePair(
        formats=("e4m3", "e5m2"),
        mixed=True,
        accumulator="fp32",
        scaled=False,
        k_step=32,
        chips=("3510",),
        source="asc-devkit:Mmad",
    ),
    CubePair(
        formats=("e4m3", "e5m2"),
        mixed=True,
        accumulator="fp32",
        scaled=True,
        k_step=32,
        chips=("3510",),
        source="asc-devkit:MmadMx",
    ),
    CubePair(
        formats=("e2m1", "e1m2"),
        mixed=True,
        accumulator="fp32",
        scaled=True,
        k_step=64,
        chips=("3510",),
        source="asc-devkit:MmadMx; seed:4#11",
    ),
)

_SILENT = "no source says; asc-devkit goldens sum in float64, pto-isa:cpu-sim adds product by product"

SWITCHES: tuple[SwitchRow, ...] = (
    SwitchRow(
        name="cube_accumulation",
        question="In which order and width does the Cube accumulate FP32?",
        claims=tuple(
            Claim(value=value, means=means, provenance=Provenance.ASSUMED, source=_SILENT)
            for value, means in (
                ("fp32-sequential", "one exact product at a time, rounded into the accumulator"),
                ("fp32-k16", "exact dot products of 16, each rounded into the accumulator"),
                ("fp32-k32", "exact dot products of 32"),
                ("fp32-k64", "exact dot products of 64"),
                ("fp64", "a float64 sum, rounded once"),
                ("exact", "the exact sum, rounded once"),
                ("blas", "NumPy's float32 product, whatever its order"),
            )
        ),
        defaults={"device": "fp32-sequential"},
        conflict=False,
        example="2^24 + 1 + 1: 16777216 sequentially, 16777218 in one dot product",
    ),
)
