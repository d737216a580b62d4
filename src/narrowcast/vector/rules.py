"""What a vector cast's parameters must satisfy, apart from the conversion matrix."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

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
