"""Source arrays as signs and ordered integers: the magnitude's bit pattern grows with the magnitude."""

from dataclasses import dataclass
from fractions import Fraction

import ml_dtypes
import numpy as np

# dtype name: exponent bits, fraction bits
FLOAT_SOURCES = {"float16": (5, 10), "bfloat16": (8, 7), "float32": (8, 23), "float64": (11, 52)}
DTYPES = {
    "float16": np.dtype(np.float16),
    "bfloat16": np.dtype(ml_dtypes.bfloat16),
    "float32": np.dtype(np.float32),
    "float64": np.dtype(np.float64),
}


@dataclass(frozen=True)
class Split:
    kind: str  # a name of FLOAT_SOURCES, or "int"
    negative: np.ndarray  # bool
    key: np.ndarray  # uint64: magnitude bits, or the magnitude itself for integers
    nan: np.ndarray
    infinite: np.ndarray


def split(values: np.ndarray) -> Split:
    """Split a flat array into sign, magnitude key and classes."""
    if values.dtype.kind in "iu":
        negative = values < 0
        with np.errstate(over="ignore"):
            key = np.where(negative, np.uint64(0) - values.astype(np.uint64), values.astype(np.uint64))
        none = np.zeros(values.shape, bool)
        return Split("int", negative, key, none, none)
    kind = values.dtype.name
    exponent_bits, fraction_bits = FLOAT_SOURCES[kind]
    width = 1 + exponent_bits + fraction_bits
    bits = values.view(f"u{width // 8}").astype(np.uint64)
    key = bits & np.uint64(2 ** (width - 1) - 1)
    top = np.uint64((2**exponent_bits - 1) << fraction_bits)
    return Split(kind, bits >= np.uint64(2 ** (width - 1)), key, key > top, key == top)


def infinity_key(kind: str) -> int:
    exponent_bits, fraction_bits = FLOAT_SOURCES[kind]
    return (2**exponent_bits - 1) << fraction_bits


def first_key(threshold: Fraction, kind: str, *, strict: bool) -> int:
    """Return the least key whose value is >= threshold (> threshold when strict)."""
    if kind == "int":
        whole = -(-threshold.numerator // threshold.denominator)
        return whole + 1 if strict and whole == threshold else whole
    # every threshold of a format is a multiple of a power of two
    return first_key_scaled(threshold.numerator, threshold.denominator.bit_length() - 1, kind, strict=strict)


def first_key_scaled(numerator: int, scale: int, kind: str, *, strict: bool) -> int:
    """Return the least key of a float source whose value is >= (or >) numerator * 2**-scale."""
    exponent_bits, fraction_bits = FLOAT_SOURCES[kind]
    # in units of the source's least subnormal, where subnormal keys are the value itself
    scale += 2 - 2 ** (exponent_bits - 1) - fraction_bits
    whole = numerator >> scale if scale >= 0 else numerator << -scale
    drop = max(whole.bit_length() - 1 - fraction_bits, 0)
    key = (drop << fraction_bits) + (whole >> drop)  # the carry of a full significand lands in the exponent
    inexact = whole & ((1 << drop) - 1) or (scale > 0 and numerator & ((1 << scale) - 1))
    return key + 1 if inexact or strict else key


def value_of(key: int, kind: str) -> Fraction:
    """Return the magnitude a key stands for."""
    if kind == "int":
        return Fraction(key)
    exponent_bits, fraction_bits = FLOAT_SOURCES[kind]
    unit = Fraction(2) ** (2 - 2 ** (exponent_bits - 1) - fraction_bits)
    exponent, fraction = divmod(key, 2**fraction_bits)
    if exponent == 0:
        return fraction * unit
    return (2**fraction_bits + fraction) * Fraction(2) ** (exponent - 1) * unit


def join(key: np.ndarray, negative: np.ndarray, kind: str) -> np.ndarray:
    """Return the source array with these magnitudes and signs."""
    exponent_bits, fraction_bits = FLOAT_SOURCES[kind]
    width = 1 + exponent_bits + fraction_bits
    bits = key.astype(np.uint64) | (negative.astype(np.uint64) << np.uint64(width - 1))
    return bits.astype(f"u{width // 8}").view(DTYPES[kind])
