"""Error statistics of one tensor under one format, accumulated piece by piece.

Nothing here holds more than one piece: sums, counts, a histogram over the codes and one over the powers of
two of the magnitude are all that is kept.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from narrowcast.kernels import Summary, summarize
from narrowcast.schema import Format, IntFormat, Magnitudes, Rounding

Array = np.ndarray[tuple[int, ...], np.dtype[Any]]

LOWEST_EXPONENT = -160  # covers float32 subnormals (2^-149); float64 beyond is counted in the last bin
HIGHEST_EXPONENT = 128
BINADES = HIGHEST_EXPONENT - LOWEST_EXPONENT + 1


@dataclass(frozen=True)
class Piece:
    """One piece of a tensor: the finite values and what every format needs to know about them.

    Attributes:
        values: float32 (float64 for fp64 sources) without NaN and infinities.
        binade: index of each value's power of two; zeros are in bin 0, which counts nothing else.
    """

    values: Array
    binade: Array

    @cached_property
    def wide(self) -> Array:
        """Give the values in float64, where squares and differences are accurate."""
        return self.values.astype(np.float64)


def piece(values: Array) -> Piece:
    """Prepare finite values for :meth:`FormatTally.add`."""
    _, exponent = np.frexp(values)  # values = m * 2^exponent with 0.5 <= |m| < 1
    binade = np.clip(exponent.astype(np.intp) - 1 - LOWEST_EXPONENT, 1, BINADES - 1)
    binade[values == 0] = 0
    return Piece(values, binade)


class TensorTally:
    """Sums and counts of a tensor that no format changes."""

    def __init__(self) -> None:
        self.elements = 0
        self.nans = 0
        self.infinities = 0
        self.zeros = 0
        self.absmax = 0.0
        self.signal = 0.0
        self.binade_count = np.zeros(BINADES, np.int64)
        self.binade_signal = np.zeros(BINADES)

    @property
    def finite(self) -> int:
        """Elements that are neither NaN nor infinite."""
        return self.elements - self.nans - self.infinities

    def read(self, values: Array) -> None:
        """Count one chunk as stored: what a scale needs, at memory speed."""
        found = summarize(values) if values.dtype == np.float32 else _summarize_wide(values)
        self.elements += found.elements
        self.nans += found.nans
        self.infinities += found.infinities
        self.zeros += found.zeros
        self.signal += found.total_square
        self.absmax = max(self.absmax, found.absmax)

    def add(self, part: Piece) -> None:
        """Count one piece of finite values by power of two.

        The one-pass kernel counts by exponent field too, but all subnormals in one bin and without the energy of each
        bin, which the errors are compared with.
        """
        with np.errstate(over="ignore"):  # float64 beyond 1e154: the sums are infinite, and the figures say so
            square = part.wide * part.wide
        self.binade_count += np.bincount(part.binade, minlength=BINADES)
        self.binade_signal += np.bincount(part.binade, weights=square, minlength=BINADES)


def _summarize_wide(values: Array) -> Summary:
    """Summarize float64 values, which the kernel would have to round to fp32."""
    good = values[np.isfinite(values)]
    nans = int(np.count_nonzero(np.isnan(values)))
    with np.errstate(over="ignore"):
        total, square = float(good.sum()), float(np.square(good).sum())
    return Summary(
        elements=values.size,
        total=total,
        total_square=square,
        minimum=float(good.min(initial=np.inf)),
        maximum=float(good.max(initial=-np.inf)),
        zeros=int(np.count_nonzero(good == 0)),
        subnormals=int(np.count_nonzero((good != 0) & (np.abs(good) < np.finfo(np.float64).smallest_normal))),
        nans=nans,
        infinities=values.size - good.size - nans,
    )


class Grid:
    """The codes of a format in ascending order of value, and which of them are zero or subnormal.

    Args:
        fmt: a format of at most 16 bits.
        decode: codes -> float32 values.
    """

    def __init__(self, fmt: Format, decode: Callable[[Array], Array]) -> None:
        self.format = fmt
        codes = np.arange(fmt.code_mask + 1, dtype=fmt.code_dtype)
        self.values: Array = decode(codes).astype(np.float32)
        self.small = fmt.bits <= 8
        finite = np.flatnonzero(np.isfinite(self.values))
        # -0 sorts before +0 so that the two halves mirror each other.
        order = np.lexsort((~np.signbit(self.values[finite]), self.values[finite]))
        self.ascending: Array = finite[order]
        self.zero_codes: Array = np.flatnonzero(self.values == 0)
        normal = fmt.min_normal
        magnitude = np.abs(self.values)
        self.subnormal_codes: Array | None = (
            None
            if normal is None or fmt.min_subnormal is None
            else np.flatnonzero((magnitude > 0) & (magnitude < normal))
        )

    @cached_property
    def limits(self) -> tuple[float, float, bool, bool]:
        """Give the lowest and highest value that may round to a finite code, and whether each itself does."""
        fmt = self.format
        if isinstance(fmt, IntFormat):
            spacing, last, first = 1.0, int(fmt.max), int(fmt.min)
        else:
            assert isinstance(fmt, Magnitudes)
            top = fmt.binades[-1]
            spacing = 2.0 ** (top.exponent - top.fraction_bits)
            last = first = fmt.overflow_rank - 1
        # A tie leaves the grid, unless ties go to even and the last finite value is the even one.
        even = fmt.default_rounding is Rounding.RN
        return fmt.min - spacing / 2, fmt.max + spacing / 2, even and first % 2 == 0, even and last % 2 == 0

    def count_overflow(self, scaled: Array) -> int:
        """Count the values that round beyond the largest finite code and are clamped to it."""
        if not scaled.size:
            return 0
        low, high, low_stays, high_stays = self.limits
        if low < scaled.min() and scaled.max() < high:
            return 0
        above = scaled > high if high_stays else scaled >= high
        below = scaled < low if low_stays else scaled <= low
        return int(np.count_nonzero(above)) + int(np.count_nonzero(below))


class FormatTally:
    """Sums and counts of one tensor under one format: encode(x / scale), decode, multiply by the scale.

    Args:
        grid: the format's codes.
        encode: float values -> codes, saturating, in the format's default rounding.
        scale: real = code value * scale; 1.0 for an unscaled cast.
    """

    def __init__(self, grid: Grid, encode: Callable[[Array], Array], scale: float) -> None:
        self.grid = grid
        self.encode = encode
        self.scale = np.float32(scale)
        self.noise = 0.0
        self.max_error = 0.0
        self.saturated = 0
        self.code_count = np.zeros(self.grid.values.size, np.int64)
        self.binade_noise = np.zeros(BINADES)

    def scaled(self, values: Array) -> Array:
        """Divide by the scale, in the values' own precision."""
        if self.scale == 1:
            return values
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            quotient: Array = values / self.scale.astype(values.dtype)
        return quotient

    def add(self, part: Piece) -> None:
        """Encode and count one piece."""
        scaled = self.scaled(part.values)
        self.count(part, scaled, self.encode(scaled))

    def count(self, part: Piece, scaled: Array, codes: Array) -> None:
        """Count one piece whose codes are known."""
        real = np.take(self.grid.values, codes)
        with np.errstate(over="ignore", under="ignore"):  # float64 beyond 1e154: infinite sums, and figures say so
            if self.scale != 1:
                real *= self.scale
            error = part.wide - real
            self.max_error = max(self.max_error, float(error.max(initial=0.0)), -float(error.min(initial=0.0)))
            error *= error
        noise = np.bincount(part.binade, weights=error, minlength=BINADES)
        self.binade_noise += noise
        self.noise += float(noise.sum())
        self.code_count += np.bincount(codes, minlength=self.code_count.size)
        self.saturated += self.grid.count_overflow(scaled)

    @property
    def zeros(self) -> int:
        """Count the codes that decode to zero."""
        return int(self.code_count[self.grid.zero_codes].sum())

    @property
    def subnormals(self) -> int | None:
        """Count the codes of subnormal values, None where the format has none."""
        codes = self.grid.subnormal_codes
        return None if codes is None else int(self.code_count[codes].sum())


def decibels(signal: float, noise: float) -> float:
    """Compute 10 log10(signal / noise): infinite when nothing is lost, NaN when there is no signal."""
    if noise == 0:
        return math.inf if signal > 0 else math.nan
    return 10 * math.log10(signal / noise) if signal > 0 else -math.inf
