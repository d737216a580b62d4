"""TCVT as the tile library's CPU simulator computes it, including what no chip would do.

Everything goes through C++ doubles and casts; out-of-range casts are undefined there and are given here as x86
compiles them.
"""

from functools import cache

import numpy as np
import numpy.typing as npt

from narrowcast.catalog.formats import formats
from narrowcast.errors import UnsupportedCastError
from narrowcast.quant import Cast, decode
from narrowcast.schema import FloatFormat, Format, IntFormat
from narrowcast.tile.types import Array

_FLOATS = ("fp32", "fp16", "bf16")
_FP4 = ("e2m1", "e1m2")
_FP8 = ("e4m3", "e5m2", "hif8")
# What the simulator believes the ranges of its packed types are; e1m2 really ends at 1.75.
_LIMITS = {"s4": (-8.0, 7.0), "e2m1": (-6.0, 6.0), "e1m2": (-4.0, 3.5)}
_INDEFINITE32 = -(1 << 31)

Doubles = npt.NDArray[np.float64]


def convert(values: Array, source: str, target: str, mode: str, saturate: bool) -> Array:
    """Return target codes.

    Args:
        values: numbers (or codes of an FP4 source).
        source: source format.
        target: target format.
        mode: short rounding name or ``none``; it matters for float -> integer and FP4 only.
        saturate: clamp to the intersection of both ranges first; NaN then becomes the upper limit.

    Raises:
        UnsupportedCastError: a pair the simulator's headers have no branch for.
    """
    src, dst = formats[source], formats[target]
    for row in (src, dst):
        if row.name not in _FLOATS + _FP4 + _FP8 and not row.is_integer:
            raise _not_emulated(f"of {row.name}")
    if source in _FP8 or target in _FP8:
        return _eight_bits(values, src, dst, saturate)
    if source in _FP4:
        wide = decode(values, source).astype(np.float64)
        wide = np.where(wide == 0.0, 0.0, wide)  # its decoder has no -0
    else:
        with np.errstate(invalid="ignore"):
            wide = values.astype(np.float64)
        if saturate:
            wide = _narrow(_clamp(wide, src, dst), src)
    if source in _FP4 and target in _FP4:
        return values.astype(np.uint8)
    if target == "s4":
        rounded = _integral(wide, mode) if source in _FLOATS else wide
        return _clamped(rounded, -8.0, 7.0).astype(np.int8).view(np.uint8) & np.uint8(15)
    if source in _FLOATS and target in _FP4:
        assert isinstance(dst, FloatFormat)
        return _truncate(_integral(wide, mode), dst)
    if source in _FP4 and target in _FLOATS:
        return _to_float(_integral(wide, mode), target)
    if isinstance(dst, IntFormat):
        if source in _FLOATS:
            return _to_integer(_integral(wide, mode), dst)
        exact = values.astype(np.int64) if not saturate else wide.astype(np.int64)
        return exact.astype(np.uint64).astype(dst.code_dtype)
    return _to_float(wide, target)


def _not_emulated(what: str) -> UnsupportedCastError:
    return UnsupportedCastError(
        f"the simulator's TCVT {what} is not emulated (integers and {', '.join(_FLOATS + _FP4 + _FP8)} are).",
        hint="Choose chip 3510.",
        source="pto-isa:cpu/TCvt.hpp",
    )


def _eight_bits(values: Array, src: Format, dst: Format, saturate: bool) -> Array:
    """FP8: the constructor truncates and wraps, the decoder knows neither infinity nor NaN. HiF8: the nearest value."""
    if saturate:
        raise _not_emulated(f"{src.name} -> {dst.name} with saturation")
    if src.name in _FLOATS and dst.name in _FP8:
        with np.errstate(invalid="ignore"):
            wide = values.astype(np.float64)
        return _truncate(wide, dst) if isinstance(dst, FloatFormat) else _nearest_hif8(wide)
    if dst.name in _FLOATS and src.name == "hif8":
        return _to_float(_hif8_values()[values.view(np.uint8)], dst.name)
    if dst.name in _FLOATS and isinstance(src, FloatFormat) and src.name in _FP8:
        codes = values.view(np.uint8)
        field = (codes >> src.fraction_bits) & ((1 << src.exponent_bits) - 1)
        fraction = (codes & ((1 << src.fraction_bits) - 1)).astype(np.float64)
        step = 2.0**-src.fraction_bits
        wide = np.where(field > 0, 1.0 + fraction * step, fraction * step)
        wide = np.ldexp(wide, np.maximum(field.astype(np.int64), 1) - src.bias)
        return _to_float(np.where(codes >> 7 & (wide != 0), -wide, wide), dst.name)
    raise _not_emulated(f"{src.name} -> {dst.name}")


_HIF8_NAN, _HIF8_TOP = 0xEF, 0x6E  # it writes NaN as -infinity, and +infinity as 32768


@cache
def _hif8_values() -> Doubles:
    """What the simulator reads in each code: for exponents 0 and 1 its fraction begins two bits and one bit too low."""
    values = decode(np.arange(256, dtype=np.uint8), "hif8").astype(np.float64)
    codes = np.arange(8)
    values[0x08:0x10] = 1.0 + codes / 32
    values[0x10:0x20] = 2.0 * (1.0 + np.arange(16) / 16)
    values[0x88:0xA0] = -values[0x08:0x20]
    values.setflags(write=False)
    return values


def _nearest_hif8(values: Doubles) -> Array:
    """Return the code of the nearest value as the simulator reads it; a tie goes to the lower of the two."""
    table = _hif8_values()
    finite = np.flatnonzero(np.isfinite(table))
    order = finite[np.argsort(table[finite], kind="stable")]
    grid = table[order]
    inside = np.clip(values, grid[0], grid[-1])
    below = np.clip(np.searchsorted(grid, inside, side="right") - 1, 0, grid.size - 2)
    upper = grid[below + 1] - inside < inside - grid[below]
    codes = order[below + upper]
    codes = np.where(np.isnan(values) | np.isneginf(values), _HIF8_NAN, codes)
    return np.where(np.isposinf(values), _HIF8_TOP, codes).astype(np.uint8)


def _clamped(values: Doubles, low: float, high: float) -> Doubles:
    """C++ ``max(low, min(high, v))``: NaN becomes ``high``."""
    return np.where(values < high, np.where(values > low, values, low), high)


def _limits(row: Format) -> tuple[float, float]:
    return _LIMITS.get(row.name, (float(row.min), float(row.max)))


def _clamp(values: Doubles, src: Format, dst: Format) -> Doubles:
    (a, b), (c, d) = _limits(src), _limits(dst)
    return _clamped(values, max(a, c), min(b, d))


def _narrow(values: Doubles, src: Format) -> Doubles:
    """Back to the source type, where 2147483647 becomes 2147483648.0f."""
    if src.name == "fp32":
        return values.astype(np.float32).astype(np.float64)
    if src.name in ("fp16", "bf16"):
        codes = Cast(None, src.name, "rn", saturate=False)(values)
        return decode(codes, src.name).astype(np.float64)
    return np.trunc(values)


def _integral(values: Doubles, mode: str) -> Doubles:
    """Round to an integer; ``ro`` is nearest with ties to odd here, and ``none`` leaves the value."""
    with np.errstate(invalid="ignore"):
        match mode:
            case "rn":
                return np.rint(values)
            case "rna":
                whole = np.trunc(values)
                return whole + np.where(np.abs(values - whole) >= 0.5, np.sign(values), 0.0)
            case "rd":
                return np.floor(values)
            case "ru":
                return np.ceil(values)
            case "rz":
                return np.trunc(values)
            case "ro":
                low = np.floor(values)
                part = values - low
                odd = np.fmod(low, 2.0) != 0.0
                up = (part > 0.5) | ((part == 0.5) & ~odd)
                # A NaN or infinite part compares false both ways and counts as a tie at an indefinite integer.
                return np.where(np.isfinite(values), low + up, values)
            case _:
                return values


def _to_integer(values: Doubles, dst: IntFormat) -> Array:
    """Cast to an integer as x86 does: through 32 bits (u8 and u32 through 64), then the low bits."""
    bits = 64 if dst.name in ("u8", "u32", "s64") else 32
    limit = 2.0 ** (bits - 1)
    with np.errstate(invalid="ignore"):
        whole = np.trunc(values)
        fits = (whole >= -limit) & (whole < limit)
    indefinite = -(1 << (bits - 1))
    integers = np.where(fits, np.where(fits, whole, 0.0).astype(np.int64), indefinite)
    return integers.astype(np.uint64).astype(dst.code_dtype)


def _to_float(values: Doubles, target: str) -> Array:
    return Cast(None, target, "rn", saturate=False)(values)


def _truncate(values: Doubles, dst: FloatFormat) -> Array:
    """The simulator's packed-type constructor: cut the fraction, wrap the exponent; zero loses its sign."""
    raw = np.ascontiguousarray(values).view(np.uint64)
    field = ((raw >> np.uint64(52)) & np.uint64(0x7FF)).astype(np.int64)
    fraction = (raw & np.uint64((1 << 52) - 1)).astype(np.int64) >> (52 - dst.fraction_bits)
    exponent = field + dst.bias - 1023
    below = np.clip(1 - exponent, 0, 63)
    if dst.name != "e2m1":
        # C++ does not define a shift by 64 and more. As compiled, these types shift by the low six bits, so that far
        # below the range codes come back; e2m1 gives 0.
        below = (1 - exponent) & 63
    fraction = np.where(exponent < 0, (fraction | (1 << dst.fraction_bits)) >> below, fraction)
    exponent = np.where(exponent < 0, 0, exponent)
    codes = ((exponent & ((1 << dst.exponent_bits) - 1)) << dst.fraction_bits) | (
        fraction & ((1 << dst.fraction_bits) - 1)
    )
    codes |= (raw >> np.uint64(63)).astype(np.int64) << (dst.bits - 1)
    return np.where((values == 0.0) | (field == 0), 0, codes).astype(np.uint8)
