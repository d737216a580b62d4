"""Steps of the compiled module: which kernel serves a source and a rule."""

from types import ModuleType
from typing import cast

import numpy as np

from narrowcast.catalog.formats import formats
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
from narrowcast.schema import IntFormat

_ROUNDINGS = {"rn": 0, "rna": 1, "rd": 2, "ru": 3, "rz": 4, "ro": 5}
_COMPARES = {"ge": 0, "gt": 1, "ge-nonzero": 2}
# Targets with an arithmetic kernel, and the one mode it rounds in.
_FLOAT8 = {("e4m3", "rn"): 0, ("e5m2", "rn"): 1, ("hif8", "rna"): 2, ("e2m1", "rn"): 3}


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
        compare, ends = _COMPARES[rule.hybrid_compare], limits(rule)
        return lambda src, dst: cast(
            int, native.encode_hybrid(src, dst, compare, ends.over, ends.nan, threads(src.size))
        )
    kind = _float8(rule)
    if kind is not None and rule.target != "e2m1":
        ends, over_is_nan = limits(rule), limits(rule).over == target.nan_code
        return lambda src, dst: cast(
            int, native.encode_float8(src, dst, kind, ends.over, ends.nan, over_is_nan, threads(src.size))
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


def _float8(rule: Rule) -> int | None:
    """Number of the arithmetic kernel that serves the rule."""
    # Before rounding, the largest value's upper half overflows; a table knows.
    if rule.overflow == "before-rounding":
        return None
    return _FLOAT8.get((rule.target, rule.rounding))


def decode_step(native: ModuleType, name: str) -> Step | None:
    """Choose the kernel that decodes a format."""
    if name in ("fp16", "bf16"):
        kernel = native.decode_fp16 if name == "fp16" else native.decode_bf16

        def halves(src: Array, dst: Array) -> int:
            kernel(src, dst, threads(src.size))
            return 0

        return halves
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
    if rule.rounding == "rh":
        compare, ends = _COMPARES[rule.hybrid_compare], limits(rule)
        return lambda src, dst: cast(
            int, native.round_hybrid(src, dst, compare, ends.over_bits, ends.nan_bits, threads(src.size))
        )
    kind = _float8(rule)
    if kind is not None:
        ends = limits(rule)
        return lambda src, dst: cast(
            int, native.round_float8(src, dst, kind, ends.over_bits, ends.nan_bits, threads(src.size))
        )
    if fits_index14(rule):
        table = values14(rule)
        return lambda src, dst: cast(int, native.round_table14(src, table, dst, threads(src.size)))
    return None
