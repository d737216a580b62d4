"""The rules once more, one scalar at a time on the signed real line. Slow; the vectorised oracle is checked by it."""

from bisect import bisect_right
from fractions import Fraction

from tests.oracle.grids import INTEGERS, Grid, grid, integer_range


def reference(value: Fraction, name: str, mode: str, *, saturate: bool, negative_zero: bool = False) -> int:
    """Return the code of a finite value. `negative_zero` tells -0 from 0."""
    if name in INTEGERS:
        return reference_integer(value, name, mode, saturate=saturate)
    g = grid(name)
    negative = value < 0 or (value == 0 and negative_zero)
    if name == "e8m0" and (negative or value == 0):
        return 0xFF
    place = nearest_place(abs(value), negative, g, mode)
    if name == "e8m0":
        if place < 1:
            return 0x00
        if place >= 256:
            return 0xFE if saturate else 0xFF
        return place - 1
    if place >= len(g.values) - 1:
        if not saturate and g.infinity is None and g.nan is not None:
            return g.nan
        code = g.max_code if saturate or g.infinity is None else g.infinity
    else:
        code = g.codes[place]
    if negative and (code or g.negative_zero):
        code += g.sign_bit
    return code


def nearest_place(size: Fraction, negative: bool, g: Grid, mode: str) -> int:
    """Return the index in the grid that a magnitude rounds to; anything beyond the grid gives its last index."""
    at = bisect_right(g.values, size) - 1
    if at < 0:
        return 0
    if at >= len(g.values) - 1:
        return len(g.values) - 1
    if g.values[at] == size:
        return at
    low, high = (-g.values[at + 1], -g.values[at]) if negative else (g.values[at], g.values[at + 1])
    x = -size if negative else size
    toward = {
        "rd": low,
        "ru": high,
        "rz": min(low, high, key=abs),
    }.get(mode)
    if toward is None:
        if mode == "ro":
            chosen = at if g.codes[at] % 2 else at + 1
            return chosen
        if x - low != high - x:
            toward = low if x - low < high - x else high
        elif mode == "rna" or g.name == "e8m0":
            toward = max(low, high, key=abs)
        else:
            return at if g.codes[at] % 2 == 0 else at + 1
    return at if abs(toward) == g.values[at] else at + 1


def round_integer(value: Fraction, mode: str) -> int:
    floor = value.numerator // value.denominator
    part = value - floor
    if part == 0:
        return floor
    if mode == "rd":
        return floor
    if mode == "ru":
        return floor + 1
    if mode == "rz":
        return floor if value > 0 else floor + 1
    if mode == "ro":
        return floor if floor % 2 else floor + 1
    if part != Fraction(1, 2):
        return floor if part < Fraction(1, 2) else floor + 1
    if mode == "rna":
        return floor + 1 if value > 0 else floor
    return floor if floor % 2 == 0 else floor + 1


def reference_integer(value: Fraction, name: str, mode: str, *, saturate: bool) -> int:
    bits, _ = INTEGERS[name]
    least, greatest = integer_range(name)
    result = round_integer(value, mode)
    if saturate:
        result = max(least, min(greatest, result))
    return result % 2**bits


def reference_hybrid(bits: int, source: str, *, saturate: bool, compare: str = "ge") -> int:
    """Return the HiF8 code of a finite fp32 or fp16 bit pattern under `rh`, with fractions of an ulp.

    The discarded part and the threshold are both cut to the same number of bits, then compared as fractions.
    """
    width, bias, window, sign_at = {"fp32": (23, 127, 14, 31), "fp16": (10, 15, 2, 15)}[source]
    negative = bool(bits >> sign_at & 1)
    exponent_field = bits >> width & (2 ** (sign_at - width) - 1)
    fraction = bits % 2**width
    if exponent_field:
        size = (1 + Fraction(fraction, 2**width)) * Fraction(2) ** (exponent_field - bias)
    else:
        size = Fraction(fraction, 2**width) * Fraction(2) ** (1 - bias)
    low = bits % 2**window if source == "fp32" else 2 * (bits % 2) + 1
    threshold = Fraction(low, 2**window)

    g = grid("hif8")
    if size < Fraction(2) ** -23:
        return 0x00
    at = len(g.values) - 1 if size >= 2**16 else min(bisect_right(g.values, size) - 1, len(g.values) - 1)
    if at < len(g.values) - 1:
        below, above = g.values[at], g.values[at + 1]
        discarded = (size - below) / (above - below)
        if at == 0:
            discarded = size / above  # in [1/2, 1): the leading one of the significand is the first bit
        cut = Fraction(int(discarded * 2**window), 2**window)
        if Fraction(1, 8) <= size < 16:
            up = discarded >= Fraction(1, 2)
        elif compare == "gt":
            up = cut > threshold
        elif compare == "ge-nonzero":
            up = cut >= threshold and discarded > 0
        else:
            up = cut >= threshold
        at += up
    code = g.codes[at]
    if code == 0x6F and saturate:
        code = 0x6E
    return code | 0x80 if negative and code else code
