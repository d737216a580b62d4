"""Inputs that can tell a kernel from the specification: every upper half of an fp32, and each decision threshold."""

from functools import cache

import numpy as np

from narrowcast import numerics
from narrowcast.catalog.formats import formats
from narrowcast.schema import Format, IntFormat

LOW_HALVES = (0x0000, 0x0001, 0x7FFF, 0x8000, 0x8001, 0xFFFF)


@cache
def upper_halves(step: int = 1) -> np.ndarray:
    """Every ``step``-th upper half of an fp32 with the low halves around its ties, and random low halves."""
    upper = np.arange(0, 1 << 16, step, dtype=np.uint32) << np.uint32(16)
    random = np.random.default_rng(2).integers(0, 1 << 16, upper.size).astype(np.uint32)
    bits = np.concatenate([upper | np.uint32(low) for low in LOW_HALVES] + [upper | random])
    return bits.view(np.float32)


@cache
def thresholds(name: str) -> np.ndarray:
    """Values and midpoints of a format of at most 16 bits, of both signs, each with its fp32 neighbours."""
    fmt = formats[name]
    values = numerics.decode_table(fmt).astype(np.float64)
    values = np.unique(np.abs(values[np.isfinite(values)]))
    beyond = np.array([1.0, 1.25, 1.5, 2.0]) * values[-1]
    points = np.concatenate([values, (values[1:] + values[:-1]) / 2, beyond])
    with np.errstate(over="ignore"):
        exact = points.astype(np.float32)
    around = np.concatenate([np.nextafter(exact, np.float32(-np.inf)), exact, np.nextafter(exact, np.float32(np.inf))])
    return np.concatenate([around, -around])


def without_nan(values: np.ndarray) -> np.ndarray:
    """Drop the NaN."""
    return values[~np.isnan(values)]


def holds_values(fmt: Format) -> bool:
    """Whether float32 holds every value, so that ``round_to`` exists."""
    return not (isinstance(fmt, IntFormat) and fmt.bits > 16)


def bits_of(values: np.ndarray) -> np.ndarray:
    """View float32 as bits, so that NaN and the sign of zero count."""
    return values.view(f"uint{8 * values.itemsize}")
