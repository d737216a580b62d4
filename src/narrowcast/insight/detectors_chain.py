"""Detectors of what happens over several steps: lost updates, error growth, double rounding."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from narrowcast.catalog.formats import formats
from narrowcast.insight.detection import Array, Detection, first_index
from narrowcast.insight.quantized_case import quality
from narrowcast.quant import Cast
from narrowcast.quant.scales import denominator_of, scale_of

STAGNANT_SHARE = 0.5
GROWTH_DB = 1.0


@dataclass(frozen=True)
class ChainStep:
    """One cast of a chain.

    Attributes:
        to: format.
        rounding: mode, None for the format's default.
        scale: divisor before the cast, multiplied back after it; None: absmax / target for integers and floats of
            at most 8 bits, 1 otherwise.
    """

    to: str
    rounding: str | None = None
    scale: float | None = None

    def apply(self, values: Array) -> Array:
        """Cast and come back."""
        row = formats[self.to]
        scale = self.scale
        if scale is None:
            scale = 1.0
            if row.bits <= 8:
                finite = np.abs(values[np.isfinite(values)])
                scale = float(scale_of(np.asarray(finite.max(initial=0.0), np.float32), denominator_of(row, "qmax")))
        cast = Cast(None, row.name, self.rounding, True, "keep" if row.nan_code is not None else "zero")
        with np.errstate(over="ignore", under="ignore"):
            return np.asarray(cast.round_to(np.asarray(values / scale)), np.float64) * scale


def chain_of(steps: Sequence[Any]) -> tuple[ChainStep, ...]:
    """Build steps from format names or :class:`ChainStep`."""
    found = [s if isinstance(s, ChainStep) else ChainStep(str(s)) for s in steps]
    return tuple(ChainStep(formats[s.to].name, s.rounding, s.scale) for s in found)


def run_chain(values: Array, steps: Sequence[ChainStep]) -> list[Array]:
    """Give the values after every step."""
    found, now = [], values.astype(np.float64)
    for step in steps:
        now = step.apply(now)
        found.append(now)
    return found


def chain(values: Array, steps: Sequence[ChainStep]) -> Detection | None:
    """PIT-07 where the noise grows, USR-07 where only codes near ties change."""
    steps = [s for s in steps if formats[s.to].name != "fp32"]
    if len(steps) < 2:
        return None
    after = run_chain(values, steps)
    last = steps[-1]
    direct = run_chain(values, [last])[0]
    wide = values.astype(np.float64)
    merged, chained = quality(wide, direct), quality(wide, after[-1])
    different = (after[-1] != direct) & np.isfinite(wide)
    if not different.any():
        return None
    growth = _loss(merged.sqnr_db, chained.sqnr_db)
    index = first_index(different)
    at = tuple(index)
    levels = [{"to": s.to, "sqnr_db": _number(quality(wide, v).sqnr_db)} for s, v in zip(steps, after, strict=True)]
    names = " -> ".join(s.to for s in steps)
    evidence = {"steps": levels, "count": int(different.sum()), "first_index": index, "growth_db": growth}
    shown = f"first {wide[at]:.9g} at {index}: {after[-1][at]:.6g} through the chain, {direct[at]:.6g} in one step"
    coarse = any(formats[s.to].bits <= 8 for s in steps[:-1])
    if growth >= GROWTH_DB or coarse:
        message = f"{names} loses {growth:.1f} dB more than one cast to {last.to}; {shown}"
        pitfall, tried, severity = "PIT-07", f"one cast to {last.to}", min(1.0, growth / 20)
        better = direct
    else:
        message = f"{int(different.sum())} of {wide.size} codes of {names} differ from one cast to {last.to}; {shown}"
        odd = [ChainStep(s.to, "ro", s.scale) for s in steps[:-1]] + [last]
        repaired = run_chain(values, odd)[-1]
        evidence["different_with_round_to_odd"] = int(((repaired != direct) & np.isfinite(wide)).sum())
        pitfall, tried, severity = "USR-07", f"one cast to {last.to}", float(different.mean())
        better = direct
    return Detection(
        pitfall,
        message,
        evidence,
        {"differ_from_one_cast": int(different.sum()), **chained.to_json()},
        {"differ_from_one_cast": 0, **quality(wide, better).to_json()},
        severity=severity,
        place="chain",
        tried=tried,
        shown=(wide, after[-1], better),
    )


def stagnation(values: Array, updates: Array, name: str = "bf16") -> Detection | None:
    """PIT-04: updates that the format's step swallows."""
    row = formats[name]
    cast = Cast(None, row.name, None, True, "keep")
    now = np.asarray(cast.round_to(values.astype(np.float32)), np.float64)
    wide = updates.astype(np.float64)
    moved = np.asarray(cast.round_to((now + wide).astype(np.float32)), np.float64)
    real = (wide != 0) & np.isfinite(wide) & np.isfinite(now)
    lost = real & (moved == now)
    count, total = int(lost.sum()), int(real.sum())
    if not total or count < STAGNANT_SHARE * total:
        return None
    steps = 64
    slow, fast = now.copy(), now.astype(np.float64)
    for _ in range(steps):
        slow = np.asarray(cast.round_to((slow + wide).astype(np.float32)), np.float64)
        fast = (fast.astype(np.float32) + wide.astype(np.float32)).astype(np.float64)
    fast = np.asarray(cast.round_to(fast.astype(np.float32)), np.float64)
    wanted = now + steps * wide
    index = first_index(lost)
    at = tuple(index)
    return Detection(
        "PIT-04",
        f"{count} of {total} updates ({count / total:.0%}) change nothing in {row.name}, first at {index}: "
        f"{now[at]:.6g} + {wide[at]:.3g} = {moved[at]:.6g}",
        {"count": count, "share": count / total, "first_index": index, "format": row.name},
        {"after_updates": steps, "progress": _progress(now, slow, wanted), **quality(wanted, slow).to_json()},
        {"after_updates": steps, "progress": _progress(now, fast, wanted), **quality(wanted, fast).to_json()},
        severity=count / total,
        place="updates",
        fix_detail=f"After {steps} equal updates, {row.name} has gone {_progress(now, slow, wanted):.0%} of the way, "
        f"fp32 cast at the end {_progress(now, fast, wanted):.0%}.",
        tried=f"accumulated {steps} updates in fp32, then one cast",
        shown=(wanted, slow, fast),
    )


def _progress(start: Array, end: Array, wanted: Array) -> float:
    """Share of the intended movement that happened."""
    intended = float(np.abs(wanted - start).sum())
    return float((np.sign(wanted - start) * (end - start)).sum()) / intended if intended else 1.0


def _loss(better: float, worse: float) -> float:
    if math.isinf(better):
        return 200.0 if not math.isinf(worse) else 0.0
    return better - worse


def _number(value: float) -> float | str:
    return value if math.isfinite(value) else str(value)
