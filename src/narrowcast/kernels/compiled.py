"""Steps of the compiled module: which kernel serves a source and a rule."""

from types import ModuleType
from typing import cast

import numpy as np

from narrowcast.kernels.arrays import Array, Step
from narrowcast.kernels.library import threads
from narrowcast.kernels.tables import (
    Rule,
    codes14,
    codes_of_patterns,
    fits_index14,
    limits,
    values14,
    values_of_codes,
)
from narrowcast.schema import IntFormat, Magnitudes

_ROUNDINGS = {"rn": 0, "rna": 1, "rd": 2, "ru": 3, "rz": 4, "ro": 5}
_COMPARES = {"ge": 0, "gt": 1, "ge-nonzero": 2}
_MINIFLOATS = {"e4m3": 0, "e5m2": 1, "e2m1": 2}
_INFINITY = 0x7F800000


def encode_step(native: ModuleType, source: str, rule: Rule) -> Step | None:
    """Choose the kernel that encodes ``source`` (a dtype name) under ``rule``; None where there is none."""
    if source == "float32":
        return _encode_fp32(native, rule)
    if source in ("float16", "bfloat16", "int16", "uint16"):
        return _encode_16bit(native, source, rule)
    return None


def _encode_fp32(native: ModuleType, rule: Rule) -> Step | None:
    target = rule.format
    if rule.rounding == "rh":
        table, compare = codes14(_nearest(rule)), _COMPARES[rule.hybrid_compare]
        return lambda src, dst: cast(int, native.encode_hybrid(src, table, dst, compare, threads(src.size)))
    if _arithmetic(native, rule) and rule.target != "e2m1":
        kind, ends, nan_above = _MINIFLOATS[rule.target], limits(rule), _nan_above(rule)
        return lambda src, dst: cast(
            int, native.encode_minifloat(src, dst, kind, ends.over, ends.nan, nan_above, threads(src.size))
        )
    if fits_index14(rule):
        table = codes14(rule)
        return lambda src, dst: cast(int, native.encode_table14(src, table, dst, threads(src.size)))
    if rule.target in ("bf16", "fp16") and rule.overflow == "after-rounding":
        kernel = native.encode_bf16 if rule.target == "bf16" else native.encode_fp16
        mode, ends = _ROUNDINGS[rule.rounding], limits(rule)
        return lambda src, dst: cast(int, kernel(src, dst, mode, ends.over, ends.nan, threads(src.size)))
    if isinstance(target, IntFormat) and target.bits <= 32:
        return _encode_integer(native, rule, target)
    return None


def _encode_integer(native: ModuleType, rule: Rule, target: IntFormat) -> Step:
    kernel = getattr(native, f"encode_integer{target.code_bits}")
    mode, saturate, mask = _ROUNDINGS[rule.rounding], rule.saturate, target.code_mask
    high, low = target.max, -target.min
    return lambda src, dst: cast(int, kernel(src, dst, mode, saturate, high, low, mask, threads(src.size)))


def _encode_16bit(native: ModuleType, source: str, rule: Rule) -> Step | None:
    kernels = {8: native.map16_to8, 16: native.map16_to16}
    kernel = kernels.get(rule.format.code_bits)
    if kernel is None:
        return None
    table = codes_of_patterns(source, rule)

    def step(src: Array, dst: Array) -> int:
        kernel(src.view(np.uint16), table, dst, threads(src.size))
        return 0

    return step


def _nearest(rule: Rule) -> Rule:
    """What hybrid rounding becomes once the magnitude lies on the grid."""
    return Rule(rule.target, "rna", rule.saturate, rule.nan)


def _arithmetic(native: ModuleType, rule: Rule) -> bool:
    """Whether the arithmetic minifloat kernels serve the rule, and are the fast way."""
    if rule.target not in _MINIFLOATS or rule.rounding != "rn" or rule.overflow != "after-rounding":
        return False
    # Overflow and NaN leave through one door when overflow is NaN, so they must have one code.
    ends = limits(rule)
    same = ends.over != rule.format.nan_code or ends.over == ends.nan
    return same and native.level() != "v2"


def _nan_above(rule: Rule) -> int:
    """Largest fp32 bits that the rule does not turn into NaN."""
    target = rule.format
    if limits(rule).over != target.nan_code:
        return _INFINITY
    assert isinstance(target, Magnitudes)
    top = target.overflow_rank - 1
    # The largest code is even, so the tie above it still rounds down to it.
    tie = target.max + (target.max - target.rank_value(top - 1)) / 2
    return int(np.float32(tie).view(np.uint32))


def decode_step(native: ModuleType, name: str) -> Step | None:
    """Choose the kernel that decodes a format."""
    if name in ("fp16", "bf16"):
        kernel = native.decode_fp16 if name == "fp16" else native.decode_bf16

        def halves(src: Array, dst: Array) -> int:
            kernel(src, dst, threads(src.size))
            return 0

        return halves
    from narrowcast.catalog.formats import formats

    if formats[name].bits > 8:
        return None
    table = values_of_codes(name)

    def step(src: Array, dst: Array) -> int:
        native.decode_table8(src, table, dst, threads(src.size))
        return 0

    return step


def round_step(native: ModuleType, source: str, rule: Rule) -> Step | None:
    """Choose the kernel that rounds fp32 to the values of a format in one pass."""
    if source != "float32":
        return None
    if rule.rounding == "rh" or (rule.target, rule.rounding) == ("hif8", "rna"):
        return _round_hif8(native, rule)
    if _arithmetic(native, rule):
        kind, ends, nan_above = _MINIFLOATS[rule.target], limits(rule), _nan_above(rule)
        return lambda src, dst: cast(
            int, native.round_minifloat(src, dst, kind, ends.over_bits, ends.nan_bits, nan_above, threads(src.size))
        )
    if fits_index14(rule):
        table = values14(rule)
        return lambda src, dst: cast(int, native.round_table14(src, table, dst, threads(src.size)))
    return None


def _round_hif8(native: ModuleType, rule: Rule) -> Step | None:
    if rule.overflow == "before-rounding":
        return None
    ends = limits(rule)
    if rule.rounding == "rh":
        compare = _COMPARES[rule.hybrid_compare]
        return lambda src, dst: cast(
            int, native.round_hybrid(src, dst, compare, ends.over_bits, ends.nan_bits, threads(src.size))
        )
    return lambda src, dst: cast(
        int, native.round_hif8(src, dst, ends.over_bits, ends.nan_bits, threads(src.size))
    )
