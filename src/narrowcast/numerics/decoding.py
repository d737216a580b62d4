"""Codes to values; exact, every format's value fits the array type it decodes to."""

from functools import cache

import numpy as np

from narrowcast.numerics.unpacking import Array
from narrowcast.schema import FloatFormat, Format, IntFormat, Magnitudes

_CANONICAL_NAN = np.uint32(0x7FC00000)


def decode(codes: Array, fmt: Format) -> Array:
    """Return the values of codes.

    Args:
        codes: flat array of ``fmt.code_dtype``.
        fmt: the format.

    Returns:
        float32 values; for integers above 16 bits the matching NumPy integers, which float32 could not hold.
    """
    if fmt.bits <= 16:
        return decode_table(fmt)[codes]
    if isinstance(fmt, IntFormat):
        return codes.view(f"{'int' if fmt.signed else 'uint'}{fmt.bits}")
    raw = codes if fmt.bits == 32 else codes << np.uint32(32 - fmt.bits)
    return raw.view(np.float32)


@cache
def decode_table(fmt: Format) -> Array:
    """Values of every code of a format of at most 16 bits, read-only."""
    codes = np.arange(1 << fmt.bits, dtype=np.int64)
    if isinstance(fmt, IntFormat):
        table = np.where(codes > fmt.max, codes - (1 << fmt.bits), codes).astype(np.float32)
    else:
        assert isinstance(fmt, Magnitudes)
        table = _magnitude_table(fmt)
    table.flags.writeable = False
    return table


def _magnitude_table(fmt: Magnitudes) -> Array:
    table = np.zeros(1 << fmt.bits, dtype=np.float32)
    table.view(np.uint32)[:] = _CANONICAL_NAN
    ranks = np.arange(fmt.overflow_rank)
    if isinstance(fmt, FloatFormat):
        codes = ranks
    else:
        codes = np.array([fmt.rank_to_code(int(r)) for r in ranks])
    bases = np.array(fmt.base_ranks)
    index = np.searchsorted(bases, ranks, side="right") - 1
    binade = np.maximum(index, 0)
    fraction_bits = np.array([b.fraction_bits for b in fmt.binades])[binade]
    exponent = np.array([b.exponent for b in fmt.binades])[binade] - fraction_bits
    steps = np.where(index >= 0, (1 << fraction_bits) + ranks - bases[binade], ranks)
    exponent = np.where(index >= 0, exponent, fmt.subnormal_exponent)
    values = np.ldexp(steps.astype(np.float64), exponent).astype(np.float32)
    table[codes] = values
    if fmt.inf_code is not None:
        table[fmt.inf_code] = np.inf
    if fmt.signed:
        negative = codes | fmt.sign_bit
        keep = slice(None) if fmt.has_negative_zero else slice(1, None)
        table[negative[keep]] = -values[keep]
        if fmt.inf_code is not None:
            table[fmt.inf_code | fmt.sign_bit] = -np.inf
    return table
