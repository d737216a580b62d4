"""What a vector cast's parameters must satisfy, apart from the conversion matrix, and the constraints of seed 5.2."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from narrowcast.catalog import casts
from narrowcast.catalog.fixpipe_modes import fixpipe_modes
from narrowcast.catalog.formats import formats
from narrowcast.operation import Effect, Rule, rule

if TYPE_CHECKING:
    from narrowcast.vector.operation import VectorCast

PACKED_BITS = 4


def is_packed(name: str) -> bool:
    """Whether two elements of a format share a byte."""
    return name in formats and formats[name].bits == PACKED_BITS


@rule(
    "VEC-02",
    states="s32 -> fp16 takes a scale, an fp16 number; no other cast does.",
    cause="the instruction multiplies by the DEQSCALE register, which SetDeqScale(half) sets",
    effect=Effect.WRONG_RESULT,
    fix="Pass deq_scale= for s32 -> fp16 only, e.g. deq_scale=1.0.",
    source="asc-devkit:SetDeqScale; asc-devkit:Memory Cast",
)
def scale_given(op: "VectorCast") -> Iterator[str]:
    scaled = (op.source, op.target) == ("s32", "fp16")
    if scaled and op.deq_scale is None:
        yield "s32 -> fp16 without deq_scale"
    if not scaled and op.deq_scale is not None:
        yield f"{op.source} -> {op.target} with deq_scale {op.deq_scale}"


@rule(
    "VEC-03",
    states="A count is not negative.",
    cause="it counts elements",
    effect=Effect.UNAVAILABLE,
    fix="Pass the number of elements to convert.",
    source="asc-devkit:Memory Cast",
)
def count_not_negative(op: "VectorCast") -> Iterator[str]:
    if op.count is not None and op.count < 0:
        yield f"count {op.count}"


@rule(
    "VEC-04",
    states="Casts from and to 4-bit types convert an even number of elements.",
    cause="two elements share a byte",
    effect=Effect.WRONG_RESULT,
    fix="Pad to an even number, or pass an even count.",
    source="asc-devkit:Memory Cast; seed 5.2 #3",
)
def count_even(op: "VectorCast") -> Iterator[str]:
    if op.count is not None and op.count % 2 and (is_packed(op.source) or is_packed(op.target)):
        yield f"{op.source} -> {op.target} of {op.count} elements"


@rule(
    "VEC-06",
    states="Only 4-bit results can be packed.",
    cause="wider elements fill their bytes",
    effect=Effect.UNAVAILABLE,
    fix="Omit packed=True.",
    source="asc-devkit:built-in data types",
)
def packs(op: "VectorCast") -> Iterator[str]:
    if op.packed and not is_packed(op.target):
        yield f"packed {op.target}"


CAST_RULES: tuple[Rule["VectorCast"], ...] = (scale_given, count_not_negative, count_even, packs)


# The eight constraints of seed 5.2 that concern a cast. They look at its surroundings as well: the chip, what the
# numbers are for, how the mask was built. (The first, on DataCopy, is in ``checks.operations``.)

NEW_TYPES = ("hif8", "e4m3", "e5m2", "e2m1", "e1m2", "e8m0")
FP4 = ("e2m1", "e1m2")
_EXACT_TO_FP32 = ("fp16", "bf16", "e4m3", "e5m2", "hif8")
PURPOSES = ("inference", "training")


@dataclass(frozen=True, kw_only=True)
class CastUse:
    """A cast and what the program says around it; None where it does not say.

    Args:
        source: source format, None when the call takes any.
        target: target format.
        mode: rounding mode or ``none``.
        chip: the chip.
        purpose: ``inference`` or ``training``.
        mask_format: format that the predicate mask was built for.
        count: elements.
        stored_bytes: bytes that the program gives the 4-bit side.
        after_matmul: the source is the result of a matrix product that the Fixpipe could convert.
        scale: whether an e8m0 side is an MX scale.
    """

    source: str | None
    target: str
    mode: str | None = None
    chip: str = "3510"
    purpose: str | None = None
    mask_format: str | None = None
    count: int | None = None
    stored_bytes: int | None = None
    after_matmul: bool = False
    scale: bool = False

    @property
    def formats(self) -> tuple[str, ...]:
        """Both sides."""
        return (self.target,) if self.source is None else (self.source, self.target)


@rule(
    "VEC-12",
    states="FP8, FP4, HiF8 and E8M0 exist on chip 3510 only.",
    cause="chip 2201 has none of these types",
    effect=Effect.UNAVAILABLE,
    fix="Guard the code with #if (__NPU_ARCH__ == 3510), or use fp16, bf16 or s8 there.",
    source="seed:5.2#2",
)
def types_of_the_chip(use: CastUse) -> Iterator[str]:
    missing = [name for name in use.formats if name in NEW_TYPES] if use.chip == "2201" else []
    if missing:
        yield f"{' and '.join(missing)} on chip {use.chip}"


@rule(
    "VEC-13",
    states="FP4 is packed: a byte holds two elements.",
    cause="8 bits store two FP4 values, and one conversion gives both",
    effect=Effect.MISPLACED_DATA,
    fix="Give ceil(count / 2) bytes, and unpack (even element in the low nibble) before using single elements.",
    source="seed:5.2#3",
)
def fp4_is_packed(use: CastUse) -> Iterator[str]:
    if use.stored_bytes is None or use.count is None or not set(use.formats) & set(FP4):
        return
    needed = -(-use.count // 2)
    if use.stored_bytes != needed:
        name = next(f for f in use.formats if f in FP4)
        yield f"{use.count} {name} elements in {use.stored_bytes} B; they take {needed} B"


@rule(
    "VEC-14",
    states="E8M0 is an MX scale and nothing else.",
    cause="it has an exponent and no fraction, so every value is a power of two",
    effect=Effect.LOST_ACCURACY,
    fix="Use e8m0 for the scales of an MX matrix product, and e4m3, e5m2 or hif8 for data.",
    source="seed:5.2#4",
)
def e8m0_is_a_scale(use: CastUse) -> Iterator[str]:
    if "e8m0" in use.formats and not use.scale:
        yield f"{use.source or 'values'} -> {use.target} takes e8m0 for data"


@rule(
    "VEC-15",
    states="Dequantization to FP32 has no rounding mode: CAST_NONE.",
    cause="every value of the narrow type is an fp32 value",
    effect=Effect.UNAVAILABLE,
    fix="Cast(dst, src, CAST_NONE, count).",
    source="seed:5.2#5",
)
def widening_is_exact(use: CastUse) -> Iterator[str]:
    if use.source in _EXACT_TO_FP32 and use.target == "fp32" and use.mode not in (None, "none"):
        yield f"{use.source} -> fp32 with rounding mode {use.mode}"


@rule(
    "VEC-16",
    states="INT8 conversion needs a predicate mask of the source's width.",
    cause="INT8 and FP16 lanes differ in width, and the mask selects lanes of the source",
    effect=Effect.WRONG_RESULT,
    fix="Build the mask for the source's element width (fp16 for Half2Int8).",
    source="seed:5.2#6; asc-devkit:MaskReg",
)
def mask_has_the_sources_width(use: CastUse) -> Iterator[str]:
    if use.mask_format is None or use.source is None or not set(use.formats) & {"s8", "u8"}:
        return
    mask, source = formats[use.mask_format], formats[use.source]
    if mask.bits != source.bits:
        yield f"mask for {mask.name} ({mask.bits} bits) on a cast from {source.name} ({source.bits} bits)"


@rule(
    "VEC-17",
    states="What the Fixpipe can convert on the way out of the Cube is not converted on the vector core.",
    cause="a vector conversion takes VALU cycles; the Fixpipe converts at no extra time",
    effect=Effect.SLOWER,
    fix="Quantize in the Fixpipe (mode of the same pair); narrowcast plan shows both costs.",
    source="seed:5.2#7",
)
def fixpipe_first(use: CastUse) -> Iterator[str]:
    if use.after_matmul:
        mode = next(
            (m for m in fixpipe_modes.values() if m.accumulator == use.source and use.target in m.targets), None
        )
        if mode is not None and use.source != use.target:
            yield f"{use.source} -> {use.target} of a matrix product on the vector core; the Fixpipe has {mode.name}"


@rule(
    "VEC-18",
    states="The rounding mode fits the purpose: rn for training.",
    cause="modes differ in bias, and biased errors add up over the steps of training",
    effect=Effect.LOST_ACCURACY,
    fix="Use rn / CAST_RINT in training (the seed uses rz in inference: measure it with narrowcast advise rounding).",
    source="seed:5.2#8",
)
def mode_fits_the_purpose(use: CastUse) -> Iterator[str]:
    if use.purpose != "training" or use.mode in (None, "none", "rn") or use.source is None:
        return
    rows = [row for row in casts.rows(chip=use.chip, source=use.source, target=use.target) if "rn" in row.modes]
    if rows:
        yield f"{use.source} -> {use.target} rounds {use.mode} in training"


USE_RULES: tuple[Rule[CastUse], ...] = (
    types_of_the_chip,
    fp4_is_packed,
    e8m0_is_a_scale,
    widening_is_exact,
    mask_has_the_sources_width,
    fixpipe_first,
    mode_fits_the_purpose,
)
