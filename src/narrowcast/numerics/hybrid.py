"""HiF8 hybrid rounding: the source's own low bits are the threshold for its discarded bits.

The rule is published bit by bit (asc-devkit, Reg Cast, float and half to hifloat8_t): near 1.0 it is ties-away;
farther out the leading discarded bits are compared with the lowest bits of the same operand. It is
deterministic, and neither idempotent nor monotone.
"""

import numpy as np
import numpy.typing as npt

from narrowcast.numerics.unpacking import Array, bit_length, bits_of
from narrowcast.schema import Magnitudes

COMPARES: tuple[str, ...] = ("ge", "gt", "ge-nonzero")
"""Readings of the comparison; see the catalog row ``hif8_hybrid_compare``."""

_NEAR_ONE = 3  # abs(E) up to which hybrid is ties-away


def hybrid_ranks(
    values: Array, nearest: npt.NDArray[np.int64], target: Magnitudes, compare: str
) -> npt.NDArray[np.int64]:
    """Round fp32 or fp16 magnitudes to HiF8 ranks.

    Args:
        values: flat float32 or float16 array.
        nearest: ranks rounded to nearest, ties away, for the lanes close to 1.0.
        target: the hif8 row.
        compare: one of ``COMPARES``.

    Returns:
        Ranks; at or above ``target.overflow_rank`` the result is infinite.
    """
    fraction_bits, window = (23, 14) if values.dtype.name == "float32" else (10, 2)
    raw = bits_of(values)
    exponent, fraction = _normalise(raw, fraction_bits)
    low = raw & np.uint32((1 << 14) - 1)
    # The half rule has a two-bit threshold: the operand's last bit followed by a constant 1.
    threshold = low if fraction_bits == 23 else ((raw & np.uint32(1)) << np.uint32(1)) | np.uint32(1)

    limit = target.max_exponent
    kept_bits = np.zeros(exponent.shape, dtype=np.int64)
    for binade in target.binades:
        kept_bits[exponent == binade.exponent] = binade.fraction_bits
    first = target.binades[0].exponent
    half_way = exponent == first - 1  # the hidden bit itself is the leading discarded bit
    significand = fraction | np.uint32(1 << fraction_bits)
    discarded_width = fraction_bits - kept_bits + half_way
    shift = (discarded_width - window).astype(np.uint32)
    leading = (significand >> shift) & np.uint32((1 << window) - 1)

    bases = np.array([0, 0, *target.base_ranks], dtype=np.int64)
    base = bases[np.clip(exponent - first + 2, 0, len(bases) - 1)]
    below = base + (fraction >> (fraction_bits - kept_bits).astype(np.uint32)).astype(np.int64)
    below = np.where(half_way, 0, below)
    ranks = below + _compare(leading, threshold, compare)
    ranks = np.where(np.abs(exponent) <= _NEAR_ONE, nearest, ranks)
    ranks = np.where(exponent < first - 1, 0, ranks)
    return np.where(exponent > limit, target.overflow_rank, ranks)


def _normalise(raw: Array, fraction_bits: int) -> tuple[npt.NDArray[np.int64], Array]:
    """Exponent and fraction with subnormals shifted up to a leading 1; the exponent of zero is very low."""
    exponent_mask = (1 << (8 if fraction_bits == 23 else 5)) - 1
    field = ((raw >> np.uint32(fraction_bits)) & np.uint32(exponent_mask)).astype(np.int64)
    fraction = raw & np.uint32((1 << fraction_bits) - 1)
    shift = fraction_bits + 1 - bit_length(fraction.astype(np.uint64))
    subnormal = field == 0
    shifted = (fraction.astype(np.uint64) << shift.astype(np.uint64)).astype(np.uint32)
    normalised = np.where(subnormal, shifted & np.uint32((1 << fraction_bits) - 1), fraction)
    bias = exponent_mask >> 1
    exponent = np.where(subnormal, 1 - bias - shift, field - bias)
    return np.where(subnormal & (fraction == 0), -10_000, exponent), normalised


def _compare(leading: Array, threshold: Array, compare: str) -> npt.NDArray[np.bool_]:
    if compare == "gt":
        return leading > threshold
    at_least: npt.NDArray[np.bool_] = leading >= threshold
    return at_least & (leading != 0) if compare == "ge-nonzero" else at_least
