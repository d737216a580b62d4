"""Everything about an array that one pass can tell: sums, extremes, counts, and a histogram of exponents."""

import math
from dataclasses import dataclass

import numpy as np

from narrowcast.kernels.arrays import BLOCK, Array
from narrowcast.kernels.library import native, threads

EXPONENTS = 256
BIAS = 127
_SMALLEST_NORMAL = np.float32(2.0**-126)


@dataclass(frozen=True, eq=False)
class Summary:
    """An fp32 array in numbers; NaN and infinities are counted and left out of everything else.

    Attributes:
        elements: all of them.
        total, total_square: sums in float64.
        minimum, maximum: of the finite values; infinities the wrong way round where there is none.
        zeros, subnormals, nans, infinities: counts.
        exponents: int64[256] by fp32 exponent field (0: zeros and subnormals, 255: infinities and NaN), or None.
    """

    elements: int
    total: float
    total_square: float
    minimum: float
    maximum: float
    zeros: int
    subnormals: int
    nans: int
    infinities: int
    exponents: Array | None = None

    @property
    def finite(self) -> int:
        """Elements that are neither NaN nor infinite."""
        return self.elements - self.nans - self.infinities

    @property
    def mean(self) -> float:
        """Mean of the finite values, 0 without any."""
        return self.total / self.finite if self.finite else 0.0

    @property
    def rms(self) -> float:
        """Root mean square."""
        return math.sqrt(self.total_square / self.finite) if self.finite else 0.0

    @property
    def deviation(self) -> float:
        """Standard deviation about the mean."""
        if not self.finite:
            return 0.0
        return math.sqrt(max(0.0, self.total_square / self.finite - self.mean**2))

    @property
    def absmax(self) -> float:
        """Largest finite magnitude, 0 without any."""
        return max(abs(self.minimum), abs(self.maximum)) if self.finite else 0.0


def summarize(values: Array, exponents: bool = False) -> Summary:
    """Read an array once.

    Args:
        values: float32, float16 or bfloat16 array of any shape; 16-bit ones are widened piece by piece.
        exponents: also count the values by exponent field.

    Returns:
        A :class:`Summary`. The sums are the same for any number of threads.

    Example:
        >>> s = summarize(np.float32([1.0, -2.0, 0.0, np.nan]))
        >>> s.minimum, s.maximum, s.zeros, s.nans, s.total_square
        (-2.0, 1.0, 1, 1, 5.0)
    """
    module = native()
    whole = module is not None and values.dtype == np.float32 and values.flags.c_contiguous and values.dtype.isnative
    flat = values.reshape(-1)
    step = flat.size if whole else BLOCK
    reals, counts = np.zeros(4), np.zeros(4, np.int64)
    reals[2:] = np.inf, -np.inf
    histogram = np.zeros(EXPONENTS if exponents else 0, np.int64)
    part_reals, part_counts = np.empty(4), np.empty(4, np.int64)
    for start in range(0, flat.size, max(step, 1)):
        part = np.ascontiguousarray(flat[start : start + step], dtype=np.float32)
        if module is not None:
            module.summarize(part, part_reals, part_counts, histogram, threads(part.size))
        else:
            _summarize(part, part_reals, part_counts, histogram)
        reals[:2] += part_reals[:2]
        reals[2] = min(reals[2], part_reals[2])
        reals[3] = max(reals[3], part_reals[3])
        counts += part_counts
    total, square, low, high = reals.tolist()
    zeros, subnormals, nans, infinities = (int(c) for c in counts)
    found = histogram if exponents else None
    return Summary(flat.size, total, square, low, high, zeros, subnormals, nans, infinities, found)


def _summarize(part: Array, reals: Array, counts: Array, histogram: Array) -> None:
    magnitude = np.abs(part)
    finite = np.isfinite(part)
    nans = int(np.count_nonzero(np.isnan(part)))
    bad = part.size - int(np.count_nonzero(finite))
    if histogram.size:
        histogram += np.bincount((part.view(np.uint32) >> np.uint32(23)) & np.uint32(0xFF), minlength=EXPONENTS)
    if bad:
        part, magnitude = part[finite], magnitude[finite]
    wide = part.astype(np.float64)
    zeros = int(np.count_nonzero(part == 0))
    small = int(np.count_nonzero(magnitude < _SMALLEST_NORMAL)) - zeros
    reals[:2] = wide.sum(), np.square(wide).sum()
    reals[2:] = part.min(initial=np.inf), part.max(initial=-np.inf)
    counts[:] = zeros, small, nans, bad - nans
