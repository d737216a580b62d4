"""Casts to integers, in exact integer arithmetic on significand and exponent."""

import numpy as np

from tests.oracle.grids import INTEGERS, integer_range
from tests.oracle.sources import FLOAT_SOURCES, Split

U = np.uint64
ALL = U(2**64 - 1)


def integer_codes(parts: Split, name: str, mode: str, *, saturate: bool) -> np.ndarray:
    """Return the low bits of the rounded integer, or of the clamped one. Infinity gives the limit in both."""
    low_bits, magnitude, too_big = rounded(parts, mode)
    bits, _ = INTEGERS[name]
    least, greatest = integer_range(name)
    mask = U(2**bits - 1)
    wrapped = np.where(parts.negative, U(0) - low_bits, low_bits) & mask
    above = ~parts.negative & (too_big | (magnitude > U(greatest)))
    below = parts.negative & (too_big | (magnitude > U(-least)))
    if not saturate:
        above &= parts.infinite
        below &= parts.infinite
    codes = np.where(above, U(greatest), np.where(below, U(least % 2**64) & mask, wrapped))
    codes[parts.nan] = 0
    return codes.astype(np.int64)


def rounded(parts: Split, mode: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the rounded magnitude modulo 2**64, the same clipped to 64 bits, and where it needs more."""
    if parts.kind == "int":
        return parts.key, parts.key, np.zeros(parts.key.shape, bool)
    exponent_bits, fraction_bits = FLOAT_SOURCES[parts.kind]
    field = (parts.key >> U(fraction_bits)).astype(np.int64)
    fraction = parts.key & U(2**fraction_bits - 1)
    significand = np.where(field > 0, fraction | U(2**fraction_bits), fraction)
    exponent = np.maximum(field, 1) - (2 ** (exponent_bits - 1) - 1) - fraction_bits

    left = np.clip(exponent, 0, 63).astype(np.uint64)
    shifted = np.where(exponent > 63, U(0), significand << left)
    too_big = parts.infinite | (exponent > 63 - fraction_bits)

    right = np.clip(-exponent, 1, 62).astype(np.uint64)  # beyond 62 the value is a tiny nonzero, as at 62
    whole, rest = significand >> right, significand & ((U(1) << right) - U(1))
    half = U(1) << (right - U(1))
    odd = (whole & U(1)) == 1
    inexact = rest != 0
    up = {
        "rn": (rest > half) | ((rest == half) & odd),
        "rna": rest >= half,
        "rd": inexact & parts.negative,
        "ru": inexact & ~parts.negative,
        "rz": np.zeros(rest.shape, bool),
        "ro": inexact & ~odd,
    }[mode]
    low_bits = np.where(exponent >= 0, shifted, whole + up.astype(np.uint64))
    return low_bits, np.where(too_big, ALL, low_bits), too_big
