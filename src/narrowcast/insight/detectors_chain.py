"""Detectors of what happens over several steps: lost updates, error growth, double rounding."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from narrowcast.catalog.formats import formats
from narrowcast.insight.case_facts import QualityTally
from narrowcast.insight.detection import Array, Detection
from narrowcast.insight.quantized_case import SAMPLE
from narrowcast.insight.slabs import Count, sample_places, slabs
from narrowcast.quant import Cast
from narrowcast.quant.scales import denominator_of, scale_of

STAGNANT_SHARE = 0.5
GROWTH_DB = 1.0
UPDATES = 64  # equal ones, to see how far they get


@dataclass(frozen=True)
class ChainStep:
    """One cast of a chain.

    Attributes:
        to: format.
        rounding: mode, None for the format's default.
        scale: divisor before the cast, multiplied back after it; None: the original's absmax / target for
            formats of at most 8 bits, 1 for others.
    """

    to: str
    rounding: str | None = None
    scale: float | None = None

    def apply(self, values: Array) -> Array:
        """Cast and come back; the step has its scale."""
        assert self.scale is not None
        row = formats[self.to]
        cast = Cast(None, row.name, self.rounding, True, "keep" if row.nan_code is not None else "zero")
        with np.errstate(over="ignore", under="ignore"):
            return np.asarray(cast.round_to(np.asarray(values / self.scale)), np.float64) * self.scale


def chain_of(steps: Sequence[Any]) -> tuple[ChainStep, ...]:
    """Build steps from format names or :class:`ChainStep`."""
    found = [s if isinstance(s, ChainStep) else ChainStep(str(s)) for s in steps]
    return tuple(ChainStep(formats[s.to].name, s.rounding, s.scale) for s in found)


def with_scales(values: Array, steps: Sequence[ChainStep]) -> tuple[ChainStep, ...]:
    """Give every step its scale.

    Steps take it from the original values: from what reaches them, the last step of a chain and the same step alone
    would have scales a little apart, and every result would differ for that reason.
    """
    largest = 0.0
    if any(s.scale is None and formats[s.to].bits <= 8 for s in steps):
        for slab in slabs(values.shape):
            part = np.abs(np.asarray(values[slab.where], np.float64))
            largest = max(largest, float(part[np.isfinite(part)].max(initial=0.0)))
    found = []
    for step in steps:
        row, scale = formats[step.to], step.scale
        if scale is None:
            narrow = row.bits <= 8
            scale = float(scale_of(np.asarray(largest), denominator_of(row, "qmax"))) if narrow else 1.0
        found.append(replace(step, scale=scale))
    return tuple(found)


def run_chain(values: Array, steps: Sequence[ChainStep]) -> list[Array]:
    """Give the values before the first step and after every step."""
    found = [values]
    for step in steps:
        found.append(step.apply(found[-1]))
    return found


def chain(values: Array, steps: Sequence[ChainStep]) -> Detection | None:
    """PIT-07 where the noise grows, USR-07 where only codes near ties change."""
    steps = [s for s in steps if formats[s.to].name != "fp32"]
    if len(steps) < 2:
        return None
    chained, direct = with_scales(values, steps), with_scales(values, steps[-1:])
    tallies, merged, different, size = [QualityTally() for _ in steps], QualityTally(), Count(), 0
    for slab in slabs(values.shape):
        x = np.asarray(values[slab.where], np.float64)
        after, once = run_chain(x, chained)[1:], run_chain(x, direct)[-1]
        for tally, now in zip(tallies, after, strict=True):
            tally.add(x, now)
        merged.add(x, once)
        different.add((after[-1] != once) & np.isfinite(x), slab)
        size += x.size
    if different.first is None:
        return None
    last, count = steps[-1], different.number
    levels = [tally.quality() for tally in tallies]
    growth = _loss(merged.quality().sqnr_db, levels[-1].sqnr_db)
    index = different.index(values.shape)
    first = np.asarray(values[tuple(index)], np.float64)
    names = " -> ".join(s.to for s in steps)
    evidence = {
        "steps": [{"to": s.to, "sqnr_db": _number(q.sqnr_db)} for s, q in zip(steps, levels, strict=True)],
        "count": count,
        "first_index": index,
        "growth_db": growth,
    }
    shown = (
        f"first {first:.9g} at {index}: {run_chain(first, chained)[-1]:.6g} through the chain, "
        f"{run_chain(first, direct)[-1]:.6g} in one step"
    )
    coarse, detail = any(formats[s.to].bits <= 8 for s in steps[:-1]), ""
    if growth >= GROWTH_DB or coarse:
        message = f"{names} loses {growth:.1f} dB more than one cast to {last.to}; {shown}"
        pitfall, severity = "PIT-07", min(1.0, growth / 20)
    else:
        message = f"{count} of {size} codes of {names} differ from one cast to {last.to}; {shown}"
        odd = _different_with_odd(values, steps, direct)
        evidence["different_with_round_to_odd"] = odd
        detail = f"Here {odd} would still differ with ro."
        pitfall, severity = "USR-07", count / size
    some = np.asarray(values[np.unravel_index(sample_places(size, SAMPLE), values.shape)], np.float64)
    return Detection(
        pitfall,
        message,
        evidence,
        {"differ_from_one_cast": count, **levels[-1].to_json()},
        {"differ_from_one_cast": 0, **merged.quality().to_json()},
        severity=severity,
        place="chain",
        fix_detail=detail,
        tried=f"one cast to {last.to}",
        shown=(some, run_chain(some, chained)[-1], run_chain(some, direct)[-1]),
    )


def _different_with_odd(values: Array, steps: Sequence[ChainStep], direct: Sequence[ChainStep]) -> int:
    """Count what still differs from one cast when all steps but the last round to odd."""
    odd = with_scales(values, [*(replace(s, rounding="ro") for s in steps[:-1]), steps[-1]])
    count = Count()
    for slab in slabs(values.shape):
        x = np.asarray(values[slab.where], np.float64)
        count.add((run_chain(x, odd)[-1] != run_chain(x, direct)[-1]) & np.isfinite(x), slab)
    return count.number


def stagnation(values: Array, updates: Array, name: str = "bf16") -> Detection | None:
    """PIT-04: updates that the format's step swallows."""
    row = formats[name]
    cast = Cast(None, row.name, None, True, "keep")
    lost, total = Count(), 0
    for slab in slabs(values.shape):
        now, step, moved = _one_update(cast, values, updates, slab.where)
        real = (step != 0) & np.isfinite(step) & np.isfinite(now)
        lost.add(real & (moved == now), slab)
        total += int(np.count_nonzero(real))
    count = lost.number
    if not total or count < STAGNANT_SHARE * total:
        return None
    tallies, ways = (QualityTally(), QualityTally()), (_Way(), _Way())
    for slab in slabs(values.shape):
        ends = _many_updates(cast, values, updates, slab.where)
        for tally, way, end in zip(tallies, ways, ends[2:], strict=True):
            tally.add(ends[1], end)
            way.add(ends[0], ends[1], end)
    slow, fast = (way.share for way in ways)
    index = lost.index(values.shape)
    first, update, result = (float(a) for a in _one_update(cast, values, updates, tuple(index)))
    places = np.unravel_index(sample_places(values.size, SAMPLE), values.shape)
    return Detection(
        "PIT-04",
        f"{count} of {total} updates ({count / total:.0%}) change nothing in {row.name}, first at {index}: "
        f"{first:.6g} + {update:.3g} = {result:.6g}",
        {"count": count, "share": count / total, "first_index": index, "format": row.name},
        {"after_updates": UPDATES, "progress": slow, **tallies[0].quality().to_json()},
        {"after_updates": UPDATES, "progress": fast, **tallies[1].quality().to_json()},
        severity=count / total,
        place="updates",
        fix_detail=f"After {UPDATES} equal updates, {row.name} has gone {slow:.0%} of the way, "
        f"fp32 cast at the end {fast:.0%}.",
        tried=f"accumulated {UPDATES} updates in fp32, then one cast",
        shown=_many_updates(cast, values, updates, places)[1:],
    )


def _one_update(cast: Cast, values: Array, updates: Array, where: Any) -> tuple[Array, Array, Array]:
    """Stored value, update, and stored sum."""
    now = np.asarray(cast.round_to(np.asarray(values[where], np.float32)), np.float64)
    step = np.asarray(updates[where], np.float64)
    return now, step, np.asarray(cast.round_to((now + step).astype(np.float32)), np.float64)


def _many_updates(cast: Cast, values: Array, updates: Array, where: Any) -> tuple[Array, Array, Array, Array]:
    """Start, what the updates ought to reach, what the format reaches, and what fp32 with one cast reaches."""
    start, step, _ = _one_update(cast, values, updates, where)
    slow, fast = start, start.astype(np.float32)
    for _ in range(UPDATES):
        slow = np.asarray(cast.round_to((slow + step).astype(np.float32)), np.float64)
        fast = fast + step.astype(np.float32)
    return start, start + UPDATES * step, slow, np.asarray(cast.round_to(fast), np.float64)


class _Way:
    """Share of the intended movement that happened."""

    def __init__(self) -> None:
        self.intended = self.gone = 0.0

    def add(self, start: Array, wanted: Array, end: Array) -> None:
        good = np.isfinite(wanted) & np.isfinite(end)
        ahead = (wanted - start)[good]
        self.intended += float(np.abs(ahead).sum())
        self.gone += float((np.sign(ahead) * (end - start)[good]).sum())

    @property
    def share(self) -> float:
        return self.gone / self.intended if self.intended else 1.0


def _loss(better: float, worse: float) -> float:
    if math.isinf(better):
        return 200.0 if not math.isinf(worse) else 0.0
    return better - worse


def _number(value: float) -> float | str:
    return value if math.isfinite(value) else str(value)
