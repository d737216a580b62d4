"""Exact percentiles of a tensor of any size, without sorting or copying it."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from narrowcast.errors import FormatError
from narrowcast.insight.slabs import Array, slabs

DIGIT = 16  # bits of a key that one pass counts
SHOWN = (50.0, 99.0, 99.9, 99.99)


def percentiles(values: npt.ArrayLike, q: Sequence[float] = SHOWN, *, magnitude: bool = False) -> Array:
    """Compute exact percentiles of the finite values.

    Formula: with the ``n`` finite values in order, percentile ``q`` lies at place ``(n - 1) * q / 100`` and is
    interpolated between its two neighbours, as in ``numpy.percentile``.

    The bits of a float, read as an integer, have its order. So a count of their upper 16 bits says which values hold
    the places asked for, and another count of the next 16 bits, among those values only, says more: two passes over
    fp32, fp16 and bf16, four over anything wider, and memory for the counts. These passes come on top of the one that
    :func:`narrowcast.kernels.summarize` makes.

    Args:
        values: float or integer array of any shape.
        q: percentages, 0 to 100.
        magnitude: of the absolute values.

    Returns:
        float64 array, one for each ``q``; NaN where no value is finite.

    Raises:
        FormatError: a percentage outside 0..100; values that are not numbers.

    Example:
        >>> percentiles(np.float32([-4, 1, 2, 3, np.nan]), [0, 50, 100]), percentiles([-4, 1, 2], [100], magnitude=True)
        (array([-4. ,  1.5,  3. ]), array([4.]))
    """
    array = np.asarray(values)
    wanted = np.asarray(q, np.float64).reshape(-1)
    if not ((wanted >= 0) & (wanted <= 100)).all():
        raise FormatError(f"percentages are {list(q)}; they lie between 0 and 100.")
    if array.dtype.kind not in "iuf" and array.dtype.name != "bfloat16":
        raise FormatError(f"values are {array.dtype}; give numbers.")
    keys = _Keys(array, magnitude)
    counts = keys.digits([0], 0)[0]
    finite = int(counts.sum())
    if not finite:
        return np.full(wanted.shape, np.nan)
    place = (finite - 1) * wanted / 100
    below = np.floor(place).astype(np.int64)
    ranks = sorted({*below.tolist(), *np.minimum(below + 1, finite - 1).tolist()})
    found = _select(keys, counts, ranks)
    low = np.asarray([found[r] for r in below.tolist()])
    high = np.asarray([found[r] for r in np.minimum(below + 1, finite - 1).tolist()])
    return np.asarray(low + (high - low) * (place - below))


def _select(keys: "_Keys", counts: Array, ranks: Sequence[int]) -> dict[int, float]:
    """Values at places of the sorted array: each level of digits narrows every place down."""
    state = {rank: (0, rank) for rank in ranks}  # upper bits of the key, place among the keys that share them
    histograms = {0: counts}
    for level in range(keys.bits // DIGIT):
        if level:
            prefixes = sorted({prefix for prefix, _ in state.values()})
            histograms = dict(zip(prefixes, keys.digits(prefixes, level), strict=True))
        for rank, (prefix, place) in state.items():
            cumulated = np.cumsum(histograms[prefix])
            digit = int(np.searchsorted(cumulated, place, side="right"))
            before = int(cumulated[digit - 1]) if digit else 0
            state[rank] = ((prefix << DIGIT) | digit, place - before)
    return {rank: keys.value(prefix) for rank, (prefix, _) in state.items()}


class _Keys:
    """Finite values as unsigned integers of the same order, slab by slab."""

    def __init__(self, array: Array, magnitude: bool) -> None:
        narrow = array.dtype.itemsize <= 2 or array.dtype == np.float32
        self.array = array
        self.magnitude = magnitude
        self.bits = 32 if narrow else 64
        self.real: type[np.floating[Any]] = np.float32 if narrow else np.float64
        self.key: type[np.unsignedinteger[Any]] = np.uint32 if narrow else np.uint64
        self.sign = 1 << (self.bits - 1)

    def parts(self) -> Iterator[Array]:
        for slab in slabs(self.array.shape):
            part = np.ascontiguousarray(self.array[slab.where], self.real).reshape(-1)
            good = np.isfinite(part)
            bits = (part if good.all() else part[good]).view(self.key)
            sign = self.key(self.sign)
            if self.magnitude:
                yield bits & ~sign
            else:
                yield np.where(bits & sign, ~bits, bits | sign)

    def digits(self, prefixes: Sequence[int], level: int) -> Array:
        """Count the digit of ``level`` among the keys with each prefix (ascending)."""
        shift = self.key(self.bits - DIGIT * (level + 1))
        size = 1 << DIGIT
        counts = np.zeros((len(prefixes), size), np.int64)
        known = np.asarray(prefixes, self.key)
        for keys in self.parts():
            upper = keys >> shift
            if level:
                prefix = upper >> self.key(DIGIT)
                row = np.minimum(np.searchsorted(known, prefix), known.size - 1)
                match = known[row] == prefix
                place = row[match] * size + (upper[match] & self.key(size - 1)).astype(np.intp)
            else:
                place = upper.astype(np.intp)
            counts += np.bincount(place, minlength=counts.size).reshape(counts.shape)
        return counts

    def value(self, key: int) -> float:
        """Give the value of a key."""
        mask = (self.sign << 1) - 1
        bits = key if self.magnitude else key ^ self.sign if key & self.sign else ~key & mask
        return float(np.asarray(bits, self.key).view(self.real))
