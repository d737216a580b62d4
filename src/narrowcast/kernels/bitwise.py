"""Work on blocks in NumPy's integer arithmetic, for the conversions that the kernels also do in integers.

Each function mirrors the compiled kernel of the same job and is compared with the specification by the same tests.
"""

from collections.abc import Callable

import numpy as np

from narrowcast.kernels.arrays import SEEN_NAN, Array, Room, Work
from narrowcast.kernels.tables import Limits, Rule
from narrowcast.schema import IntFormat

ABS = np.uint32(0x7FFFFFFF)
INFINITY = np.uint32(0x7F800000)
_SIGN = np.uint32(0x80000000)
_HIDDEN = np.uint32(1 << 23)
_ONE = np.uint32(1)


def look_up(table: Array, index: Array, out: Array) -> None:
    """Write ``table[index]``; the index is in range, and ``wrap`` is the mode that checks least."""
    np.take(table, index, out=out, mode="wrap")


def has_nan(bits: Array) -> int:
    """Report NaN among fp32 bits. Signed, they exceed infinity or, with the sign, lie between -infinity and -1."""
    if bits.view(np.int32).max() > int(INFINITY) or bits.max() > int(INFINITY | _SIGN):
        return SEEN_NAN
    return 0


def index14(bits: Array, room: Room) -> Array:
    """14-bit index of each fp32: the upper bits, and whether any bit below them is set."""
    below = np.uint32((1 << 18) - 1)
    low = np.bitwise_and(bits, below, out=room.words(0, bits.size))
    low += below
    low |= bits
    index = room.indices(bits.size)
    np.right_shift(low, np.uint32(18), out=index, casting="unsafe")
    return index


def round_shift(v: Array, shift: Array | np.uint32, negative: Array, mode: str) -> Array:
    """Divide by ``2**shift`` and round in any mode but rn; ``negative`` is all ones for negative values, else 0."""
    below = (_ONE << shift) - _ONE
    match mode:
        case "rna":
            v = v + (below >> _ONE) + _ONE
        case "rd":
            v = v + (below & negative)
        case "ru":
            v = v + (below & ~negative)
        case "ro":
            v = v | ((v & below) + below)  # the sum reaches the last kept bit when a discarded one is set
    return np.right_shift(v, shift)


def _negative(bits: Array) -> Array:
    return (bits.view(np.int32) >> np.int32(31)).view(np.uint32)


def to_half(rule: Rule, ends: Limits) -> Work:
    """Encode fp32 as fp16 or bf16 in any mode but rn, which ml_dtypes and NumPy have, and the hybrid."""
    mode = rule.rounding
    fraction_bits, min_exponent = (10, 113) if rule.target == "fp16" else (7, 1)

    def work(src: Array, dst: Array, room: Room) -> int:
        bits = src.view(np.uint32)
        magnitude = np.bitwise_and(bits, ABS, out=room.words(0, bits.size))
        negative = _negative(bits) if mode in ("rd", "ru") else magnitude
        if min_exponent == 1:
            code = round_shift(magnitude, np.uint32(16), negative, mode)
        else:
            exponent = np.minimum(magnitude & INFINITY, np.uint32(min_exponent << 23))
            v = magnitude - exponent
            v += _HIDDEN
            if mode in ("rd", "ru", "ro"):  # only these can tell zero and subnormal fp32 from each other
                np.copyto(v, magnitude, where=magnitude < _HIDDEN)
            exponent >>= np.uint32(23)
            shift = np.subtract(np.uint32(23 - fraction_bits + min_exponent), exponent, out=exponent)
            np.minimum(shift, np.uint32(31), out=shift)
            code = round_shift(v, shift, negative, mode)
        np.minimum(code, np.uint32(ends.over), out=code)
        sign = np.right_shift(bits, np.uint32(16), out=room.words(1, bits.size))
        sign &= np.uint32(0x8000)
        code |= sign
        np.copyto(dst, code, casting="unsafe")
        if not has_nan(bits):
            return 0
        np.copyto(dst, np.uint16(ends.nan), where=magnitude > INFINITY)
        return SEEN_NAN

    return work


def to_hybrid(rule: Rule, table: Array) -> Work:
    """Encode or round fp32 to hif8 by the hybrid rule: put the magnitude on the grid, then look it up."""
    low = np.uint32(0x3FFF)

    def up_of(fraction: Array, threshold: Array) -> Array:
        if rule.hybrid_compare == "gt":
            return np.greater(fraction, threshold)
        up = np.greater_equal(fraction, threshold)
        return up if rule.hybrid_compare == "ge" else np.logical_and(up, fraction)

    smallest, underflow, overflow = np.uint32(0x34800000), np.uint32(0x34000000), np.uint32(0x47800000)
    nan = table[-1]

    def work(src: Array, dst: Array, room: Room) -> int:
        bits = src.view(np.uint32)
        # 2**16 stands for everything above it.
        a = np.bitwise_and(bits, ABS, out=room.words(1, bits.size))
        np.minimum(a, overflow, out=a)
        exponent = (a >> np.uint32(23)).view(np.int32)
        exponent -= np.int32(127)
        size = np.abs(exponent)
        beyond = (size > 3).astype(np.uint32)  # bits dropped beyond 20
        beyond += size > 7
        beyond += exponent < -15
        threshold = a & low
        unit = np.left_shift(np.uint32(1 << 20), beyond, out=room.words(2, bits.size))
        # Near 1.0 the tie goes away: up when the first discarded bit is set.
        field = np.right_shift(a, beyond + np.uint32(6), out=room.words(3, bits.size))
        near = beyond == 0
        up = up_of(field & low, threshold)
        up &= ~near
        up |= near & (field.view(np.int32) & np.int32(1 << 13) != 0)
        on_grid = a + unit * up
        unit -= _ONE
        on_grid &= ~unit
        # At 2**-23 the hidden bit is the first discarded one; below there is nothing.
        tiny = a < smallest
        if tiny.any():
            first = ((a >> np.uint32(10)) & np.uint32(0x1FFF)) | np.uint32(0x2000)
            on_grid = np.where(tiny, smallest * (up_of(first, threshold) & (a >= underflow)), on_grid)
        on_grid |= bits & _SIGN
        lanes = bits & ABS > INFINITY if has_nan(bits) else None  # before the lookup, which may write over the source
        look_up(table, index14(on_grid, room), dst)
        if lanes is None:
            return 0
        np.copyto(dst, nan, where=lanes)
        return SEEN_NAN

    return work


def to_integer(rule: Rule, target: IntFormat) -> Work:
    """Round and clamp fp32 in float64, which holds every fp32, its half, and every 32-bit integer."""
    whole: dict[str, Callable[[Array], Array]] = {
        "rn": np.rint,
        "rd": np.floor,
        "ru": np.ceil,
        "rz": np.trunc,
        "rna": lambda x: np.trunc(x + np.copysign(0.5, x)),
    }
    integral = whole[rule.rounding]

    def work(src: Array, dst: Array, room: Room) -> int:
        seen = has_nan(src.view(np.uint32))
        wide = src.astype(np.float64)
        if seen:
            np.copyto(wide, 0.0, where=np.isnan(wide))
        rounded = integral(wide)
        np.clip(rounded, target.min, target.max, out=rounded)
        codes = rounded.astype(np.int64)
        if target.bits < target.code_bits:
            codes &= target.code_mask
        np.copyto(dst, codes, casting="unsafe")
        return seen

    return work


def between_integers(target: IntFormat, saturate: bool) -> Work:
    """Clamp or cut integers to another integer format."""

    def work(src: Array, dst: Array, room: Room) -> int:
        codes = src
        if saturate:
            range_of = np.iinfo(src.dtype)
            codes = np.clip(src, max(target.min, range_of.min), min(target.max, range_of.max))
        np.copyto(dst, codes, casting="unsafe")
        if target.bits < target.code_bits:
            dst &= dst.dtype.type(target.code_mask)
        return 0

    return work


def odd_fp32(values: Array) -> Array:
    """Round float64 to fp32, inexact ones to the neighbour with an odd last bit.

    Rounding that again, to a format whose grid is at least two bits coarser, gives what one rounding gives.
    """
    single = values.astype(np.float32)
    back = single.astype(np.float64)
    inexact = back != values
    bits = single.view(np.uint32)
    size = np.abs(values)
    bits -= inexact & (np.abs(back, out=back) > size)
    bits |= inexact
    # From 2**128 up there is no exponent left: the infinity stays.
    if size.max() >= 2.0**128 or np.isnan(single).any():
        np.copyto(single, np.copysign(np.float32(np.inf), values), where=size >= 2.0**128)
        np.copyto(single, np.float32(np.nan), where=np.isnan(values))
    return single
