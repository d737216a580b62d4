"""Everything the detectors count in a quantized tensor, from one pass over its slabs."""

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from narrowcast.catalog.formats import formats
from narrowcast.insight.slabs import Array, Count, RowCount

if TYPE_CHECKING:
    from narrowcast.insight.quantized_case import QuantizedCase

HALF = 0.5
COUNTED_BITS = 8


@dataclass(frozen=True)
class Quality:
    """What a quantization did to the finite values.

    Attributes:
        sqnr_db: 10 log10(sum x^2 / sum (real - x)^2); infinite when exact, NaN without a signal.
        lost: sum of abs(real - x) over sum of abs(x).
        saturated: share of elements clamped to the largest code.
        flushed: share of the non-zero elements that became zero.
        bad: elements whose result is not finite though the value is.
    """

    sqnr_db: float
    lost: float
    saturated: float
    flushed: float
    bad: int

    def __str__(self) -> str:
        level = "exact" if self.sqnr_db == math.inf else f"{self.sqnr_db:.1f} dB"
        text = (
            f"{level}, {self.lost:.1%} of the magnitude lost, {self.saturated:.2%} clamped, {self.flushed:.1%} zeroed"
        )
        return f"{text}, {self.bad} not finite" if self.bad else text

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form; infinities and NaN as strings."""
        return {k: v if not isinstance(v, float) or math.isfinite(v) else str(v) for k, v in asdict(self).items()}


class QualityTally:
    """Sums of results against values; elements without a finite value are left out."""

    def __init__(self) -> None:
        self.finite = self.nonzero = self.bad = self.flushed = 0
        self.signal = self.noise = self.magnitude = self.error = 0.0

    def add(self, x: Array, real: Array) -> None:
        """Add float64 values and what they became."""
        finite, good = np.isfinite(x), np.isfinite(real)
        nonzero = finite & (x != 0)
        self.finite += int(np.count_nonzero(finite))
        self.nonzero += int(np.count_nonzero(nonzero))
        self.bad += int(np.count_nonzero(finite & ~good))
        self.flushed += int(np.count_nonzero(nonzero & (real == 0)))
        good &= finite
        if not good.all():
            x, real = x[good], real[good]
        with np.errstate(over="ignore"):  # float64 beyond 1e154: infinite sums, and the figures say so
            error = real - x
            self.error += float(np.abs(error).sum())
            self.magnitude += float(np.abs(x).sum())
            self.noise += float(np.square(error).sum())
            self.signal += float(np.square(x).sum())

    def quality(self, clamped: int = 0) -> Quality:
        """Give the measures."""
        if self.noise == 0:
            sqnr = math.inf if self.signal else math.nan
        elif math.isinf(self.noise) or not self.signal:
            sqnr = -math.inf
        else:
            sqnr = 10 * math.log10(self.signal / self.noise)
        return Quality(
            sqnr_db=sqnr,
            lost=self.error / self.magnitude if self.magnitude else 0.0,
            saturated=clamped / self.finite if self.finite else 0.0,
            flushed=self.flushed / max(self.nonzero, 1),
            bad=self.bad,
        )


@dataclass(frozen=True, eq=False)
class CaseFacts:
    """Counts over the elements that have a value (over all codes where no values are known).

    Attributes:
        elements, finite, nonzero: of the values.
        quality: None without values.
        clamped: elements beyond the largest code, clamped to it; without values, elements that have such a code.
        zeroed: non-zero elements that became zero; without values, codes that stand for zero.
        half_off: elements off by more than half.
        bad_values, bad_codes: NaN and infinities.
        subnormal: values subnormal in the case's arithmetic format.
        minimum, maximum: of the finite values.
        largest: the first element of the largest magnitude.
        codes_used: different codes, None above 8 bits.
    """

    elements: int
    finite: int
    nonzero: int
    quality: Quality | None
    clamped: Count
    zeroed: Count
    half_off: Count
    bad_values: RowCount
    bad_codes: RowCount
    subnormal: Count
    minimum: float
    maximum: float
    largest: int
    codes_used: int | None

    @property
    def absmax(self) -> float:
        """Largest finite magnitude."""
        return max(-self.minimum, self.maximum) if self.finite else 0.0


def facts_of(case: "QuantizedCase") -> CaseFacts:
    """Count everything once."""
    columns = case.shape[-1] if case.shape else 1
    clamped, zeroed, half_off, subnormal = Count(), Count(), Count(), Count()
    bad_values, bad_codes = RowCount(columns), RowCount(columns)
    tally = QualityTally()
    smallest = formats[case.arithmetic].min_normal or 0.0
    low, high, largest, size = math.inf, -math.inf, 0, 0
    counted = case.row.bits <= COUNTED_BITS
    used = np.zeros(case.row.code_mask + 1 if counted else 0, np.bool_)
    for part in case.parts():
        slab, real = part.slab, part.real
        size += part.codes.size
        clamped.add(part.clamped, slab)
        bad_codes.add(~np.isfinite(real) & np.isfinite(part.step), slab)
        if counted:
            used[part.codes] = True
        if case.values is None:
            zeroed.add(real == 0, slab)
            continue
        x, finite, nonzero = part.x, part.finite, part.nonzero
        tally.add(x, real)
        zeroed.add(nonzero & (real == 0), slab)
        bad_values.add(~finite, slab)
        magnitude = np.abs(x)
        with np.errstate(invalid="ignore", over="ignore"):
            half_off.add(nonzero & (np.abs(real - x) > HALF * magnitude), slab)
        if smallest:
            subnormal.add(nonzero & (magnitude < smallest), slab)
        seen = x if finite.all() else x[finite]
        below, above = float(seen.min(initial=np.inf)), float(seen.max(initial=-np.inf))
        if max(-below, above) > max(-low, high):
            largest = slab.start + int(np.argmax(np.where(finite, magnitude, -1)))
        low, high = min(low, below), max(high, above)
    return CaseFacts(
        elements=size,
        finite=tally.finite,
        nonzero=tally.nonzero,
        quality=None if case.values is None else tally.quality(clamped.number),
        clamped=clamped,
        zeroed=zeroed,
        half_off=half_off,
        bad_values=bad_values,
        bad_codes=bad_codes,
        subnormal=subnormal,
        minimum=low,
        maximum=high,
        largest=largest,
        codes_used=int(np.count_nonzero(used)) if counted else None,
    )
