"""What every code means."""

from fractions import Fraction

import numpy as np

from tests.oracle.grids import INTEGERS, grid


def decode_special(name: str, code: int) -> Fraction | int | str:
    """Return the value of a code: a number, or one of "-0", "inf", "-inf", "nan"."""
    if name in INTEGERS:
        bits, signed = INTEGERS[name]
        return code - 2**bits if signed and code >= 2 ** (bits - 1) else code
    g = grid(name)
    if name == "e8m0":
        return "nan" if code == 0xFF else g.values[code + 1]
    negative, magnitude = bool(code & g.sign_bit), code & ~g.sign_bit
    if name == "hif8" and code == 0x80:
        return "nan"
    if magnitude == g.infinity:
        return "-inf" if negative else "inf"
    place = dict(zip(g.codes[:-1], g.values[:-1], strict=True))
    if magnitude not in place:
        return "nan"
    if negative and magnitude == 0:
        return "-0"
    return -place[magnitude] if negative else place[magnitude]


def decode_all(name: str) -> np.ndarray:
    """Return the float32 value of every code of a format of at most 19 bits, in code order."""
    if name in INTEGERS:
        count = 2 ** INTEGERS[name][0]
        return np.array([decode_special(name, c) for c in range(count)], np.float32)
    g = grid(name)
    out = np.full(2**g.bits, np.nan, np.float32)
    for code, value in zip(g.codes[:-1], g.values[:-1], strict=True):
        if code < 0:
            continue  # below the range of e8m0
        out[code] = np.float32(float(value))  # exact: every value has at most 11 significant bits
        if g.sign_bit and not (code == 0 and not g.negative_zero):
            out[code | g.sign_bit] = -out[code]
    if g.infinity is not None:
        out[g.infinity] = np.inf
        out[g.infinity | g.sign_bit] = -np.inf
    return out
