"""Encode, decode and round arrays of any shape: the best step for the source and the rule, over all elements."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import ml_dtypes
import numpy as np

from narrowcast.kernels import bitwise, compiled, plain
from narrowcast.kernels.arrays import SEEN_NAN, Array, Room, Step, Work, carrier, elementwise, in_blocks
from narrowcast.kernels.checks import holds_nan, nan_error
from narrowcast.kernels.library import native
from narrowcast.kernels.tables import Rule
from narrowcast.schema import Format, IntFormat, Rounding

_STEPS = 256  # distinct casts kept ready
_NIBBLES = (np.dtype(ml_dtypes.int4), np.dtype(ml_dtypes.uint4))


def _through_fp32(source: str, rule: Rule) -> bool:
    """Whether a wide source may be rounded to odd fp32 first: the target's grid is far coarser than fp32's."""
    if source not in ("float64", "int32", "uint32") or rule.rounding == "rh" or rule.overflow == "ieee":
        return False
    target = rule.format
    if isinstance(target, IntFormat):
        return source == "float64" and target.bits <= 16 and rule.saturate
    return target.bits <= 19


@lru_cache(maxsize=_STEPS)
def _encode_step(source: str, rule: Rule) -> Step:
    if _through_fp32(source, rule):
        return in_blocks(_odd_first(_encode_step("float32", rule)))
    module = native()
    step = None if module is None else compiled.encode_step(module, source, rule)
    return step or plain.encode_step(source, rule)


@lru_cache(maxsize=_STEPS)
def _decode_step(name: str) -> Step:
    module = native()
    step = None if module is None else compiled.decode_step(module, name)
    return step or plain.decode_step(name)


def _odd_first(step: Step) -> Work:
    def work(src: Array, dst: Array, room: Room) -> int:
        return step(bitwise.odd_fp32(src.astype(np.float64, copy=False)), dst)

    return work


@lru_cache(maxsize=_STEPS)
def _round_step(source: str, rule: Rule) -> Step:
    if _through_fp32(source, rule):
        return in_blocks(_odd_first(_round_step("float32", rule)))
    module = native()
    step = plain.round_step(source, rule) if module is None else compiled.round_step(module, source, rule)
    if step is not None:
        return step
    encode, decode, dtype = _encode_step(source, rule), _decode_step(rule.target), np.dtype(rule.format.code_dtype)

    def work(src: Array, dst: Array, room: Room) -> int:
        codes = np.empty(src.size, dtype=dtype)
        seen = encode(src, codes)
        decode(codes, dst)
        return seen

    return in_blocks(work)


def _value_dtype(fmt: Format) -> str:
    if isinstance(fmt, IntFormat) and fmt.bits > 16:
        return f"{'int' if fmt.signed else 'uint'}{fmt.bits}"
    return "float32"


@dataclass(frozen=True)
class _Plan:
    """What one source dtype and one rule come to, resolved once."""

    step: Step
    rule: Rule
    refuses_nan: bool
    reports_nan: bool  # a table of 16-bit patterns does not

    def run(self, values: Array, out: Array) -> None:
        if self.refuses_nan and not self.reports_nan and holds_nan(values):
            raise nan_error(values, self.rule)
        if elementwise(carrier(values), out, self.step) & SEEN_NAN and self.refuses_nan:
            raise nan_error(values, self.rule)


@lru_cache(maxsize=_STEPS)
def _encode_plan(dtype: np.dtype[Any], rule: Rule) -> _Plan:
    return _Plan(_encode_step(dtype.name, rule), rule, rule.refuses_nan, dtype.itemsize != 2)


@lru_cache(maxsize=_STEPS)
def _round_plan(dtype: np.dtype[Any], rule: Rule) -> _Plan:
    return _Plan(_round_step(dtype.name, rule), rule, rule.refuses_nan, dtype.itemsize != 2)


def _widened(values: Array) -> Array:
    """Give 4-bit integers a byte each: NumPy's iterator does not know them."""
    return values.astype(np.int8) if values.dtype in _NIBBLES else values


def encode(
    values: Array,
    target: Format,
    rounding: Rounding,
    *,
    saturate: bool,
    nan: str,
    hybrid_compare: str = "ge",
    overflow: str = "after-rounding",
    out: Array | None = None,
) -> Array:
    """Round values to a format and return their codes; see :func:`narrowcast.numerics.encode` for the rule.

    Args:
        values: array of any shape, strides and byte order, of a source dtype.
        target: the format.
        rounding: the mode.
        saturate: whether overflow gives the largest finite value.
        nan: ``"keep"``, ``"zero"`` or ``"error"``.
        hybrid_compare: ``"ge"``, ``"gt"`` or ``"ge-nonzero"``.
        overflow: one of :data:`narrowcast.numerics.OVERFLOW_RULES`.
        out: array of the same shape and ``target.code_dtype``.

    Returns:
        ``out``, or a new array.

    Raises:
        FormatError: a NaN the rule refuses.
    """
    rule = Rule(target.name, rounding.value, saturate, nan, hybrid_compare, overflow)
    values = _widened(values)
    if out is None:
        out = np.empty(values.shape, dtype=target.code_dtype)
    _encode_plan(values.dtype, rule).run(values, out)
    return out


def round_to(
    values: Array,
    target: Format,
    rounding: Rounding,
    *,
    saturate: bool,
    nan: str,
    hybrid_compare: str = "ge",
    overflow: str = "after-rounding",
    out: Array | None = None,
) -> Array:
    """Round values to a format and return them as float32; the arguments of :func:`encode`."""
    rule = Rule(target.name, rounding.value, saturate, nan, hybrid_compare, overflow)
    values = _widened(values)
    if out is None:
        out = np.empty(values.shape, dtype=np.float32)
    _round_plan(values.dtype, rule).run(values, out)
    return out


def decode(codes: Array, fmt: Format, out: Array | None = None) -> Array:
    """Return the values of codes: float32, or the integers themselves above 16 bits.

    Args:
        codes: array of ``fmt.code_dtype``, any shape, strides and byte order.
        fmt: the format.
        out: array of the same shape for the values.
    """
    if out is None:
        out = np.empty(codes.shape, dtype=_value_dtype(fmt))
    elementwise(codes, out, _decode_step(fmt.name))
    return out
