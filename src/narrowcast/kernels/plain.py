"""Steps in NumPy: the same tables, integer arithmetic, and what ml_dtypes converts faster than either."""

import ml_dtypes
import numpy as np

from narrowcast import numerics
from narrowcast.catalog.formats import formats
from narrowcast.kernels import bitwise
from narrowcast.kernels.arrays import SEEN_NAN, Array, Room, Step, Work, in_blocks
from narrowcast.kernels.tables import (
    Rule,
    codes14,
    codes_of_patterns,
    fits_index14,
    limits,
    values14,
    values_of_codes,
)
from narrowcast.schema import IntFormat

_SHORT = ("float16", "bfloat16", "int16", "uint16", "int8", "uint8")
_HALVES = ("bf16", "fp16")


def encode_step(source: str, rule: Rule) -> Step:
    """Choose how NumPy encodes a source under a rule; the specification itself where nothing is faster."""
    target = rule.format
    if source == "float32":
        work = _from_fp32(rule)
        if work is not None:
            return in_blocks(work)
    if source in _SHORT:
        return in_blocks(_by_pattern(codes_of_patterns(source, rule)))
    if isinstance(target, IntFormat) and np.dtype(source).kind in "iu":
        return in_blocks(bitwise.between_integers(target, rule.saturate))
    return in_blocks(_by_specification(source, rule))


def _from_fp32(rule: Rule) -> Work | None:
    target = rule.format
    if fits_index14(rule):
        return _by_index14(codes14(rule))
    if rule.rounding == "rh":
        return bitwise.to_hybrid(rule, codes14(nearest(rule)))
    if rule.target in _HALVES and rule.overflow == "after-rounding":
        if rule.rounding == "rn":
            return _to_nearest_half(rule)
        return bitwise.to_half(rule, limits(rule))
    if isinstance(target, IntFormat) and target.bits <= 32 and rule.saturate and rule.rounding != "ro":
        return bitwise.to_integer(rule, target)
    return None


def nearest(rule: Rule) -> Rule:
    """What hybrid rounding becomes once the magnitude lies on the grid."""
    return Rule(rule.target, "rna", rule.saturate, rule.nan)


def _by_specification(source: str, rule: Rule) -> Work:
    def work(src: Array, dst: Array, room: Room) -> int:
        values = src.view(ml_dtypes.bfloat16) if source == "bfloat16" else src
        dst[...] = rule.apply(values)
        return SEEN_NAN if values.dtype.kind == "f" and np.isnan(values).any() else 0

    return work


def _by_pattern(table: Array) -> Work:
    def work(src: Array, dst: Array, room: Room) -> int:
        index = room.indices(src.size)
        np.copyto(index, src.view(f"uint{8 * src.itemsize}"), casting="unsafe")
        bitwise.look_up(table, index, dst)
        return 0

    return work


def _by_index14(table: Array) -> Work:
    def work(src: Array, dst: Array, room: Room) -> int:
        bits = src.view(np.uint32)
        seen = bitwise.has_nan(bits)  # before the lookup, which may write over the source
        bitwise.look_up(table, bitwise.index14(bits, room), dst)
        return seen

    return work


def _to_nearest_half(rule: Rule) -> Work:
    """Let ml_dtypes or NumPy round to nearest even, then replace what they make of infinity and NaN."""
    ends = limits(rule)
    infinity, dtype = (0x7F80, ml_dtypes.bfloat16) if rule.target == "bf16" else (0x7C00, np.float16)

    def work(src: Array, dst: Array, room: Room) -> int:
        np.copyto(dst.view(dtype), src, casting="unsafe")
        # Infinities and NaN have the largest codes of their sign: two reductions settle the common case.
        if dst.view(np.int16).max() < infinity and dst.max() < infinity + 0x8000:
            return 0
        magnitude = dst & np.uint16(0x7FFF)
        nan = magnitude > infinity
        np.copyto(dst, np.uint16(ends.over) | (dst & np.uint16(0x8000)), where=magnitude == infinity)
        np.copyto(dst, np.uint16(ends.nan), where=nan)
        return SEEN_NAN if nan.any() else 0

    return work


def decode_step(name: str) -> Step:
    """Choose how NumPy decodes a format."""
    target = formats[name]
    if name == "bf16":
        return in_blocks(_from_bf16)
    if target.bits > 16:
        return in_blocks(_decode_wide(name))
    return in_blocks(_by_pattern(values_of_codes(name) if target.bits <= 8 else numerics.decode_table(target)))


def _decode_wide(name: str) -> Work:
    target = formats[name]

    def work(src: Array, dst: Array, room: Room) -> int:
        dst[...] = numerics.decode(src, target)
        return 0

    return work


def _from_bf16(src: Array, dst: Array, room: Room) -> int:
    np.copyto(dst, src.view(ml_dtypes.bfloat16))
    if src.view(np.int16).max() > 0x7F80 or src.max() > 0xFF80:
        np.copyto(dst, np.float32(np.nan), where=np.isnan(dst))
    return 0


def round_step(source: str, rule: Rule) -> Step | None:
    """Choose how NumPy rounds fp32 to a format's values in one lookup; None where codes come first."""
    if source != "float32":
        return None
    if fits_index14(rule):
        return in_blocks(_by_index14(values14(rule)))
    if rule.rounding == "rh":
        return in_blocks(bitwise.to_hybrid(rule, values14(nearest(rule))))
    return None
