"""Integer arithmetic on the bit fields of non-negative fp32 numbers: what the scale rules are made of."""

from dataclasses import dataclass

import numpy as np

from narrowcast.numerics.unpacking import Array, bit_length
from narrowcast.schema import Format, IntFormat, Magnitudes

INFINITY = np.uint32(0x7F800000)
FRACTION_BITS = 23
FRACTION = np.uint32((1 << FRACTION_BITS) - 1)
BIAS = 127


@dataclass(frozen=True)
class Element:
    """The facts of an element format that scale rules use.

    For integers they are those of the element OCP defines: MXINT8 runs to 127 / 64 = 1.984375.
    """

    name: str
    emax: int  # exponent of the largest value
    max_fraction: int  # fraction of the largest value, as an fp32 fraction field
    fraction_bits: int

    @property
    def max_bits(self) -> int:
        """The largest value as fp32 bits."""
        return ((self.emax + BIAS) << FRACTION_BITS) | self.max_fraction

    @classmethod
    def of(cls, row: Format) -> "Element":
        """Read them off a format row."""
        bits = int(np.float32(row.max).view(np.uint32))
        emax = (bits >> FRACTION_BITS) - BIAS
        if isinstance(row, IntFormat):
            return cls(row.name, emax - row.mx_fraction_bits, bits & int(FRACTION), row.bits - 2)
        assert isinstance(row, Magnitudes)
        return cls(row.name, emax, bits & int(FRACTION), row.binades[-1].fraction_bits)


def magnitude_bits(values: Array) -> Array:
    """Bits of ``abs(value)`` widened to fp32, exactly: the order of these integers is the order of the magnitudes.

    A NaN lies above infinity.

    Args:
        values: float32, float16 or bfloat16 array.

    Returns:
        uint32 array of the same shape.
    """
    name = values.dtype.name
    if name == "float32":
        return values.view(np.uint32) & np.uint32(0x7FFFFFFF)
    raw = values.view(np.uint16) & np.uint16(0x7FFF)
    if name == "bfloat16":
        return raw.astype(np.uint32) << np.uint32(16)
    return _widen_half(raw)


def _widen_half(raw: Array) -> Array:
    wide = raw.astype(np.uint32)
    field = wide >> np.uint32(10)
    normal = (wide << np.uint32(13)) + np.uint32((BIAS - 15) << FRACTION_BITS)
    # A subnormal half is fraction * 2**-24: normalise it.
    length = bit_length(wide.astype(np.uint64))
    shift = np.clip(24 - length, 0, 31).astype(np.uint32)
    exponent = np.clip(length - 1 - 24 + BIAS, 0, 254).astype(np.uint32)
    small = (exponent << np.uint32(FRACTION_BITS)) | ((wide << shift) & FRACTION)
    small = np.where(wide == 0, np.uint32(0), small)
    special = INFINITY | ((wide & np.uint32(0x3FF)) << np.uint32(13))
    return np.where(field == 0, small, np.where(field == 31, special, normal)).astype(np.uint32)


def exponent_field(bits: Array) -> Array:
    """Return the biased exponent field, int32."""
    return (bits >> np.uint32(FRACTION_BITS)).astype(np.int32)


def split(bits: Array) -> tuple[Array, Array]:
    """Return floor(log2) and the 23 fraction bits below the leading one, subnormals normalised; 0 gives -150."""
    exponent = exponent_field(bits) - BIAS
    fraction = bits & FRACTION
    subnormal = bits <= FRACTION
    if subnormal.any():
        length = bit_length(bits.astype(np.uint64))
        shift = np.clip(24 - length, 0, 31).astype(np.uint32)
        exponent = np.where(subnormal, length - 150, exponent).astype(np.int32)
        fraction = np.where(subnormal, (bits << shift) & FRACTION, fraction)
    return exponent, fraction


def product(bits: Array, factor: int) -> Array:
    """Multiply by a constant and round to nearest even, subnormal results included.

    Args:
        bits: finite fp32 bits.
        factor: fp32 bits of a normal constant.

    Returns:
        fp32 bits of the product.
    """
    field = exponent_field(bits)
    hidden = np.where(field > 0, np.uint64(1 << FRACTION_BITS), np.uint64(0))
    significand = (bits & FRACTION).astype(np.uint64) | hidden
    whole = significand * np.uint64((factor & int(FRACTION)) | (1 << FRACTION_BITS))
    unit = np.maximum(field, 1).astype(np.int64) - 150 + (factor >> FRACTION_BITS) - 150
    top = bit_length(whole) - 1 + unit
    spacing = np.maximum(top - FRACTION_BITS, -149)
    shift = np.clip(spacing - unit, 1, 63).astype(np.uint64)
    kept = whole >> shift
    rest = whole & ((np.uint64(1) << shift) - np.uint64(1))
    half = np.uint64(1) << (shift - np.uint64(1))
    kept += (rest > half) | ((rest == half) & ((kept & np.uint64(1)) == np.uint64(1)))
    # A carry out of the fraction bumps the exponent by itself.
    rounded: Array = (((spacing + 149).astype(np.uint64) << np.uint64(FRACTION_BITS)) + kept).astype(np.uint32)
    return rounded


def round_to_bf16(bits: Array) -> Array:
    """Round fp32 bits of either sign to the nearest bf16, ties to even; infinity stays, a NaN is cut.

    Returns:
        fp32 bits with a zero low half.
    """
    odd = (bits >> np.uint32(16)) & np.uint32(1)
    special = (bits & np.uint32(0x7FFFFFFF)) >= INFINITY
    rounded: Array = np.where(special, bits, bits + (np.uint32(0x7FFF) + odd)) & np.uint32(0xFFFF0000)
    return rounded


def truncate_to_bf16(bits: Array) -> Array:
    """Drop the low half of fp32 bits."""
    return bits & np.uint32(0xFFFF0000)
