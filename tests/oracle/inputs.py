"""Inputs chosen by structure: where a decision is made, one and two ulps beside it, and the edges of the source."""

from fractions import Fraction
from functools import cache

import numpy as np

from tests.oracle.grids import INTEGERS, grid, integer_range
from tests.oracle.sources import DTYPES, FLOAT_SOURCES, first_key, infinity_key, join, split

SEED = 0x950
EVERY = 40_000  # grids up to this size give all their decision points, larger ones a sample of that many


def decision_points(name: str, rng: np.random.Generator) -> list[Fraction]:
    """Return magnitudes at which some mode changes its mind: grid values and midpoints between them."""
    if name in INTEGERS:
        least, greatest = integer_range(name)
        top = max(-least, greatest) + 3
        steps = range(top) if top <= EVERY else [*range(40), *range(top - 40, top), *_sample(rng, top)]
        points = [Fraction(2 * k + h, 2) for k in steps for h in (0, 1)]
        return points + [Fraction(2) ** e + d for e in range(8, 70, 3) for d in (0, Fraction(1, 2))]
    values = grid(name).values
    count = len(values) - 1
    steps = range(count) if count <= EVERY else [*range(40), *range(count - 40, count), *_sample(rng, count)]
    points = []
    for i in steps:
        points += [values[i], (values[i] + values[i + 1]) / 2]
    top = values[-1]
    return [*points, values[0] / 2, values[0] * 3 / 4, top, top * 5 / 4, top * 3 / 2, top * 2]


def _sample(rng: np.random.Generator, below: int) -> list[int]:
    return np.unique(rng.integers(0, min(below, 2**62), EVERY)).tolist()


def special_keys(kind: str) -> list[int]:
    """Return zero, the subnormal edges, the largest finite value, infinity and NaN of several payloads."""
    _, fraction_bits = FLOAT_SOURCES[kind]
    infinity, normal = infinity_key(kind), 1 << fraction_bits
    quiet = infinity | 1 << (fraction_bits - 1)
    edges = [0, 1, 2, 3, normal - 2, normal - 1, normal, normal + 1, infinity - 2, infinity - 1, infinity]
    return [*edges, infinity + 1, quiet - 1, quiet, quiet + 1, infinity + normal - 1]


@cache
def structured(name: str, kind: str, *, at_least: int = 100_000, ulps: int = 2) -> np.ndarray:
    """Return a read-only array of `kind` for a target format: every decision point with its neighbours, both signs,
    special values, then random bit patterns and random values of the format's own range up to `at_least`."""
    rng = np.random.default_rng(SEED)
    top = infinity_key(kind)
    centres = np.array([min(first_key(p, kind, strict=False), top) for p in decision_points(name, rng)], np.int64)
    keys = (centres[:, None] + np.arange(-ulps, ulps + 1)).reshape(-1)
    keys = np.unique(keys[(keys >= 0) & (keys <= top)])
    if keys.size > 4 * EVERY:
        keys = np.sort(rng.choice(keys, 4 * EVERY, replace=False))
    keys = np.concatenate([keys, special_keys(kind)])
    values = np.concatenate([join(keys, np.full(keys.shape, sign), kind) for sign in (False, True)])
    missing = max(at_least - values.size, 1000)
    values = np.concatenate([values, spread(name, kind, missing, rng)])
    values.setflags(write=False)
    return values


def spread(name: str, kind: str, count: int, rng: np.random.Generator) -> np.ndarray:
    """Return `count` values: a third any bit pattern, the rest log-uniform over a little more than the range."""
    anything = count // 3
    top = infinity_key(kind)
    keys = rng.integers(0, top + 1, anything, dtype=np.uint64)
    if name in INTEGERS:
        low, high = Fraction(1, 8), Fraction(max(map(abs, integer_range(name)))) * 4
    else:
        values = grid(name).values
        low, high = (values[0] or values[1]) / 4, values[-1] * 4
    first, last = (min(first_key(v, kind, strict=False), top - 1) for v in (low, high))
    near = rng.integers(first, last + 1, count - anything, dtype=np.uint64)
    keys = np.concatenate([keys, near])
    return join(keys, rng.integers(0, 2, keys.size).astype(bool), kind)


def finite(values: np.ndarray) -> np.ndarray:
    """Return the finite values, judged on bits: a signalling NaN would raise in a conversion."""
    parts = split(values)
    return values[~(parts.nan | parts.infinite)]


def without_nan(values: np.ndarray) -> np.ndarray:
    """Return the values that are not NaN, judged on bits."""
    return values[~split(values).nan]


def every(kind: str) -> np.ndarray:
    """Return every bit pattern of a 16-bit source."""
    return np.arange(2**16, dtype=np.uint16).view(DTYPES[kind])


@cache
def integers(dtype: str) -> np.ndarray:
    """Return integers of a dtype: all of them up to 16 bits, else edges of every power of two and a sample."""
    info = np.iinfo(dtype)
    if info.bits <= 16:
        return np.arange(info.min, info.max + 1).astype(dtype)
    rng = np.random.default_rng(SEED)
    near = {s * (2**e + d) for e in range(info.bits + 1) for d in range(-3, 4) for s in (1, -1)}
    # ties of every significand width up to 24 bits
    near |= {
        s * ((2**w + k) * 2**e + 2 ** (e - 1) + d)
        for w in (1, 2, 3, 7, 10, 23)
        for e in range(1, info.bits)
        for k in (0, 1)
        for d in (-1, 0, 1)
        for s in (1, -1)
    }
    edges = np.array(sorted(v for v in near if info.min <= v <= info.max), dtype)
    small = np.arange(max(info.min, -1000), 70_000).astype(dtype)
    any_bits = rng.integers(info.min, info.max, 20_000, dtype=dtype, endpoint=True)
    shifted = any_bits[:10_000] >> rng.integers(0, info.bits - 1, 10_000).astype(dtype)
    return np.concatenate([edges, small, any_bits, shifted])
