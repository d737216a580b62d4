"""Steps in NumPy: the same tables, and the few conversions NumPy and ml_dtypes do faster than a table.

They run on blocks that stay in the cache, so a chain of whole-array operations costs little more than one.
"""

from collections.abc import Callable

import ml_dtypes
import numpy as np

from narrowcast import numerics
from narrowcast.catalog.formats import formats
from narrowcast.kernels.arrays import SEEN_NAN, Array, Step, in_blocks
from narrowcast.kernels.tables import (
    Rule,
    codes14,
    codes_of_patterns,
    fits_index14,
    index14,
    limits,
    values14,
    values_of_codes,
)
from narrowcast.schema import IntFormat

_ABS = np.uint32(0x7FFFFFFF)
_INFINITY = np.uint32(0x7F800000)


def encode_step(source: str, rule: Rule) -> Step:
    """Choose how NumPy encodes a source under a rule; the specification itself where nothing is faster."""
    if source == "float32":
        if fits_index14(rule):
            return in_blocks(_by_index14(codes14(rule)))
        if rule.rounding == "rn" and rule.overflow == "after-rounding" and rule.target in ("bf16", "fp16"):
            return in_blocks(_to_half(rule))
        if rule.target == "bf16" and rule.overflow == "after-rounding":
            return in_blocks(_to_bf16(rule))
        if isinstance(rule.format, IntFormat) and rule.format.bits <= 32 and rule.saturate and rule.rounding != "ro":
            return in_blocks(_to_integer(rule, rule.format))
    if source in ("float16", "bfloat16", "int16", "uint16", "int8", "uint8"):
        return in_blocks(_by_pattern(codes_of_patterns(source, rule)))
    return in_blocks(_by_specification(source, rule))


def _by_specification(source: str, rule: Rule) -> Callable[[Array, Array], int]:
    def work(src: Array, dst: Array) -> int:
        values = src.view(ml_dtypes.bfloat16) if source == "bfloat16" else src
        dst[...] = rule.apply(values)
        return SEEN_NAN if values.dtype.kind == "f" and np.isnan(values).any() else 0

    return work


def _by_pattern(table: Array) -> Callable[[Array, Array], int]:
    def work(src: Array, dst: Array) -> int:
        np.take(table, src.view(f"uint{8 * src.itemsize}"), out=dst, mode="clip")
        return 0

    return work


def _by_index14(table: Array) -> Callable[[Array, Array], int]:
    def work(src: Array, dst: Array) -> int:
        bits = src.view(np.uint32)
        np.take(table, index14(bits), out=dst, mode="clip")
        return _seen(bits)

    return work


def _seen(bits: Array) -> int:
    return SEEN_NAN if (bits & _ABS).max(initial=0) > _INFINITY else 0


def _to_half(rule: Rule) -> Callable[[Array, Array], int]:
    """Let ml_dtypes or NumPy round to nearest even, then replace what they make of infinity and NaN."""
    ends = limits(rule)
    dtype = np.dtype(ml_dtypes.bfloat16 if rule.target == "bf16" else np.float16)
    infinity = {"bf16": 0x7F80, "fp16": 0x7C00}[rule.target]

    def work(src: Array, dst: Array) -> int:
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            dst[...] = src.astype(dtype).view(np.uint16)
        # One reduction settles the common case: infinities and NaN have the largest codes of their sign.
        if (dst & np.uint16(0x7FFF)).max(initial=0) < infinity:
            return 0
        magnitude = dst & np.uint16(0x7FFF)
        np.copyto(dst, np.uint16(ends.over) | (dst & np.uint16(0x8000)), where=magnitude == infinity)
        nan = magnitude > infinity
        np.copyto(dst, np.uint16(ends.nan), where=nan)
        return SEEN_NAN if nan.any() else 0

    return work


def _to_bf16(rule: Rule) -> Callable[[Array, Array], int]:
    ends = limits(rule)
    low = np.uint32(0xFFFF)

    def up(bits: Array, magnitude: Array) -> Array:
        match rule.rounding:
            case "rna":
                return (magnitude + np.uint32(0x8000)) >> np.uint32(16)
            case "ro":
                return (((magnitude & low) + low) | magnitude) >> np.uint32(16)
            case "rz":
                return magnitude >> np.uint32(16)
            case mode:
                negative = (bits >> np.uint32(31)) * low
                return (magnitude + (negative if mode == "rd" else low - negative)) >> np.uint32(16)

    def work(src: Array, dst: Array) -> int:
        bits = src.view(np.uint32)
        magnitude = bits & _ABS
        code = np.minimum(up(bits, magnitude), np.uint32(ends.over))
        code |= (bits >> np.uint32(16)) & np.uint32(0x8000)
        nan = magnitude > _INFINITY
        np.copyto(code, np.uint32(ends.nan), where=nan)
        dst[...] = code
        return SEEN_NAN if nan.any() else 0

    return work


def _to_integer(rule: Rule, target: IntFormat) -> Callable[[Array, Array], int]:
    """Round and clamp in float64, which holds every fp32, its half, and every 32-bit integer."""

    def integral(x: Array) -> Array:
        match rule.rounding:
            case "rna":
                return np.trunc(x + np.copysign(0.5, x))
            case mode:
                return {"rn": np.rint, "rd": np.floor, "ru": np.ceil, "rz": np.trunc}[mode](x)

    def work(src: Array, dst: Array) -> int:
        wide = src.astype(np.float64)
        nan = np.isnan(wide)
        np.copyto(wide, 0.0, where=nan)
        whole = np.clip(integral(wide), target.min, target.max).astype(np.int64)
        dst[...] = whole & target.code_mask
        return SEEN_NAN if nan.any() else 0

    return work


def decode_step(name: str) -> Step:
    """Choose how NumPy decodes a format."""
    target = formats[name]
    if name == "bf16":
        return in_blocks(_from_bf16)
    if target.bits > 16:
        return in_blocks(_decode_wide(name))
    table = values_of_codes(name) if target.bits <= 8 else numerics.decode_table(target)
    return in_blocks(_by_pattern(table))


def _decode_wide(name: str) -> Callable[[Array, Array], int]:
    target = formats[name]

    def work(src: Array, dst: Array) -> int:
        dst[...] = numerics.decode(src, target)
        return 0

    return work


def _from_bf16(src: Array, dst: Array) -> int:
    bits = dst.view(np.uint32)
    np.left_shift(src, np.uint32(16), out=bits, dtype=np.uint32)
    if (src & np.uint16(0x7FFF)).max(initial=0) > 0x7F80:
        np.copyto(dst, np.float32(np.nan), where=np.isnan(dst))
    return 0


def round_step(source: str, rule: Rule) -> Step | None:
    """Choose how NumPy rounds fp32 to a format's values in one lookup; None where codes come first."""
    if source == "float32" and fits_index14(rule):
        return in_blocks(_by_index14(values14(rule)))
    return None
