"""A diagnosis as one self-contained page, for someone who has never seen one."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from narrowcast.catalog.formats import formats
from narrowcast.insight.detection import Detection
from narrowcast.insight.diagnosis import Diagnosis
from narrowcast.insight.quantized_case import QuantizedCase
from narrowcast.insight.statistics import BINADES, LOWEST_EXPONENT, piece
from narrowcast.quant import decode
from narrowcast.report import figures
from narrowcast.report.environment import plotly_script, render
from narrowcast.report.scatter import scatter
from narrowcast.version import VERSION

Array = npt.NDArray[Any]

BINS = 160
OUTLIERS_BEYOND = 99.9  # percent of the magnitudes
MARGIN = 0.02  # of the span, so that a bar at the end is whole
SHOWN_SPAN = 4.0  # the histogram ends at this many times the largest code

MEASURES = {
    "sqnr_db": "signal to noise, dB",
    "lost": "share of the magnitude lost",
    "saturated": "share clamped",
    "flushed": "share turned into zero",
    "bad": "results not finite",
    "off_by_half": "share off by more than half",
    "not_finite": "NaN and infinite elements",
    "subnormal": "subnormal values",
    "columns": "columns read",
    "dummy_nonzero": "dummy elements that are not 0",
    "row_sum_error": "error of a row's sum",
    "differ_from_one_cast": "codes that differ from one cast",
    "progress": "share of the way the updates went",
}
_SHARES = ("lost", "saturated", "flushed", "off_by_half", "progress")


def diagnosis_page(diagnosis: Diagnosis, name: str) -> str:
    """Render a diagnosis as one HTML page that loads nothing from elsewhere.

    Args:
        diagnosis: the result of :func:`narrowcast.insight.diagnosis.examine`.
        name: what was examined.

    Returns:
        The page's text.
    """
    case = diagnosis.case if diagnosis.case is not None and diagnosis.case.values is not None else None
    fixed = next((d.fixed for d in diagnosis.detections if d.fixed is not None and d.fixed.values is not None), None)
    return render(
        "diagnosis.html.j2",
        version=VERSION,
        name=name,
        verdict=_verdict(diagnosis),
        case=case,
        cards=_cards(diagnosis, case),
        findings=[_finding(d, case) for d in diagnosis.detections],
        data={"before": None if case is None else _curves(case), "after": None if fixed is None else _curves(fixed)},
        first=diagnosis.detections[0] if diagnosis.detections else None,
        plotly=plotly_script(),
        figures=figures,
    )


def _verdict(diagnosis: Diagnosis) -> str:
    if not diagnosis.detections:
        return "Nothing wrong was found."
    first = diagnosis.detections[0]
    more = len(diagnosis.detections) - 1
    return f"{_sentence(first.row.name)}: {first.row.symptom}." + (f" And {more} more." if more else "")


def _cards(diagnosis: Diagnosis, case: QuantizedCase | None) -> list[tuple[str, str, str]]:
    many = len(diagnosis.detections)
    cards = [(str(many), "finding" if many == 1 else "findings", "the most telling first")]
    if case is not None:
        q = case.quality
        shape = "×".join(map(str, case.codes.shape))
        cards += [
            (f"{figures.decibel(q.sqnr_db)} dB", "signal to noise", "higher is better; 6 dB is one bit"),
            (figures.percent(q.saturated), "clamped", "beyond the largest code"),
            (figures.percent(q.flushed), "turned into zero", "too small for the smallest code"),
            (case.format, "format", f"{formats[case.format].bits} bits, {shape} elements"),
        ]
        most = diagnosis.percentiles.get(OUTLIERS_BEYOND)
        if most:
            times = case.facts.absmax / most
            cards.append(
                (f"{times:.3g} ×", "outliers", f"the largest against the {OUTLIERS_BEYOND:g}% below {most:.3g}")
            )
    elif diagnosis.chain:
        cards.append((" → ".join(s.to for s in diagnosis.chain), "chain", "casts in order"))
    return cards


def _finding(detection: Detection, case: QuantizedCase | None) -> dict[str, Any]:
    shared = [k for k in detection.before if k in detection.after]
    rows = [
        (
            MEASURES.get(k, k.replace("_", " ")),
            _shown(k, detection.before[k]),
            _shown(k, detection.after[k]),
            _better(k, detection.before[k], detection.after[k]),
        )
        for k in shared
    ]
    return {
        "row": detection.row,
        "title": _sentence(detection.row.name),
        "cause": _sentence(detection.row.cause),
        "message": detection.message,
        "fix": detection.fix,
        "tried": detection.tried,
        "evidence": ", ".join(
            f"{k.replace('_', ' ')} {_plain(v)}" for k, v in detection.evidence.items() if k != "steps"
        ),
        "measures": [r for r in rows if r[1] != r[2]] or rows[:1],
        "plots": _plots(detection, case),
    }


def _plots(detection: Detection, case: QuantizedCase | None) -> list[tuple[str, str]]:
    shown = detection.shown
    if shown is None and detection.fixed is not None and case is not None and detection.fixed.values is not None:
        wanted, after = detection.fixed.sample()
        before = case.sample()[1] if case.shape == detection.fixed.shape else np.full(wanted.shape, np.nan)
        shown = (wanted, before, after)
    if shown is None:
        return []
    wanted, before, after = (np.asarray(a, np.float64).reshape(-1) for a in shown)
    finite = wanted[np.isfinite(wanted)]
    if not finite.size:
        return []
    limits = _limits(finite, before)
    name = detection.row.name
    return [
        ("before", scatter(wanted, before, limits, f"{name}: results against values, before the fix")),
        ("with the fix", scatter(wanted, after, limits, f"{name}: results against values, with the fix")),
    ]


def _limits(values: Array, before: Array) -> tuple[float, float]:
    """The bulk of the values and of what they became, so that one outlier does not hide the rest."""
    low, high = np.quantile(values, [0.002, 0.998])
    real = before[np.isfinite(before)]
    if real.size:
        low2, high2 = np.quantile(real, [0.01, 0.99])
        reach = 2 * max(abs(low), abs(high))
        low, high = min(low, max(low2, -reach)), max(high, min(high2, reach))
    return (float(low), float(high)) if high > low else (float(low) - 1, float(high) + 1)


def _curves(case: QuantizedCase) -> dict[str, Any]:
    """Histogram in steps of the scale, and what happens at each magnitude."""
    offset = 0.0 if case.offset is None else float(np.mean(case.offset))
    values = (
        decode(np.arange(case.row.code_mask + 1, dtype=case.row.code_dtype), case.format)
        if case.row.bits <= 8
        else None
    )
    grid = [] if values is None else [float(v) for v in np.unique(values[np.isfinite(values)])]
    top, bottom = float(case.row.max), float(case.row.min)
    smallest = 0.5 if case.row.is_integer else float(min((v for v in grid if v > 0), default=0.0)) / 2
    low, high = 0.0, 0.0
    for scaled in _scaled(case, offset):
        low, high = min(low, float(scaled.min(initial=0.0))), max(high, float(scaled.max(initial=0.0)))
    low, high = max(low, -SHOWN_SPAN * max(abs(bottom), 1)), min(high, SHOWN_SPAN * top)
    low, high = low - MARGIN * (high - low), high + MARGIN * (high - low)
    if not high > low:
        low, high = low - 1, high + 1
    edges, counts = np.linspace(low, high, BINS + 1), np.zeros(BINS, np.int64)
    for scaled in _scaled(case, offset):
        counts += np.histogram(np.clip(scaled, low, high), bins=BINS, range=(low, high))[0]
    return {
        "format": case.format,
        "scale": float(np.nanmedian(case.scale.astype(np.float64))),
        "many": case.scale.size,
        "edges": [_digits(e) for e in edges],
        "counts": counts.tolist(),
        "grid": [v for v in grid if low <= v <= high],
        "top": top,
        "bottom": bottom,
        "zero": [offset - smallest, offset + smallest],
        "binades": _binades(case),
    }


def _scaled(case: QuantizedCase, offset: float) -> Iterator[Array]:
    """Finite values in steps of their scales, slab by slab."""
    for part in case.parts():
        with np.errstate(all="ignore"):
            scaled = np.asarray(part.x / part.step) + offset
        yield scaled[np.isfinite(scaled)]


def _binades(case: QuantizedCase) -> dict[str, list[Any]]:
    kept, zeroed, clamped = (np.zeros(BINADES, np.int64) for _ in range(3))
    signal, noise = np.zeros(BINADES), np.zeros(BINADES)
    for part in case.parts():
        good = part.finite & np.isfinite(part.real)
        x, real, beyond = part.x[good], part.real[good], part.clamped[good]
        places = piece(x).binade
        gone = (real == 0) & (x != 0)
        for count, mask in ((kept, ~gone & ~beyond), (zeroed, gone), (clamped, beyond & ~gone)):
            count += np.bincount(places[mask], minlength=BINADES)
        with np.errstate(over="ignore"):
            signal += np.bincount(places, weights=np.square(x), minlength=BINADES)
            noise += np.bincount(places, weights=np.square(real - x), minlength=BINADES)
    used = np.flatnonzero(kept + zeroed + clamped)
    used = used[used > 0]
    return {
        "e": (used + LOWEST_EXPONENT).tolist(),
        "kept": kept[used].tolist(),
        "zeroed": zeroed[used].tolist(),
        "clamped": clamped[used].tolist(),
        "error": [_digits(math.sqrt(n / s)) if s else None for n, s in zip(noise[used], signal[used], strict=True)],
    }


def _digits(value: float) -> float:
    return float(f"{value:.5g}")


def _sentence(text: str) -> str:
    """Start with a capital and leave the rest, names of formats among it, alone."""
    return text[:1].upper() + text[1:]


def _better(key: str, before: Any, after: Any) -> bool:
    """Whether the fix improved a measure: more is better for two of them, less for the others."""
    try:
        old, new = float(before), float(after)
    except (TypeError, ValueError):
        return False
    return new > old if key in ("sqnr_db", "progress") else new < old


def _shown(key: str, value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.2%}" if key in _SHARES else f"{value:.4g}"
    return str(value)


def _plain(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
