"""A survey as one self-contained HTML page: sortable tables, plots, no network."""

import math
from pathlib import PurePath
from typing import Any

from narrowcast.insight.survey import Binade, FormatStats, Survey, TensorSurvey
from narrowcast.report import figures
from narrowcast.report.sparkbars import sparkbars
from narrowcast.report.survey_json import number, stats_row

DETAILED_TENSORS = 200
"""Tensors that get their own plots; the page of a large checkpoint stays small."""


def survey_page(survey: Survey) -> str:
    """Render a survey as one HTML page that loads nothing from elsewhere.

    Args:
        survey: the result of :func:`narrowcast.insight.survey.survey_file`.

    Returns:
        The page's text. Plotly's script is embedded once, for the two large plots.
    """
    import jinja2
    import plotly.offline

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("narrowcast.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.policies["json.dumps_kwargs"] = {"sort_keys": False, "separators": (",", ":")}
    detailed = _detailed(survey)
    page = environment.get_template("survey.html.j2").render(
        survey=survey,
        title=PurePath(survey.path).name,
        figures=figures,
        cards=_cards(survey),
        totals=[_total_row(survey, total) for name in survey.formats if (total := survey.total(name))],
        tensors=[_tensor_row(survey, t) for t in survey.tensors],
        detailed=len(detailed),
        data=_plot_data(survey, detailed),
        plotly=plotly.offline.get_plotlyjs(),
    )
    return str(page)


def _cards(survey: Survey) -> list[tuple[str, str, str]]:
    """Collect the figures to see first: value, label, remark."""
    stored = sum(t.nbytes for t in survey.tensors)
    picked = sum(t.picked_bytes for t in survey.tensors)
    changed = [t for t in survey.tensors if t.pick]
    kept = len(survey.tensors) - len(changed)
    broken = [t for t in survey.tensors if t.nans or t.infinities]
    chosen: dict[str, int] = {}
    for t in changed:
        chosen[t.pick or ""] = chosen.get(t.pick or "", 0) + 1
    parts = ", ".join(f"{name} ×{n}" for name, n in sorted(chosen.items(), key=lambda item: -item[1]))
    share = f"{100 * picked / stored:.0f}% of {figures.size(stored)}" if stored else "empty"
    signal = sum(t.stats[0].signal for t in changed)
    noise = sum(next(s.noise for s in t.stats if s.format == t.pick) for t in changed)
    quality = 10 * math.log10(signal / noise) if signal and noise else (math.inf if signal else math.nan)
    elements = sum(t.elements for t in survey.tensors)
    cards = [
        (figures.size(picked), "with every pick applied", share),
        (str(len(changed)), "tensors to quantize", parts or "no format qualifies"),
        (
            f"{figures.decibel(quality)} dB" if changed else "–",
            "SQNR of the picks",
            "signal and noise summed over them",
        ),
        (str(kept), "tensors kept as stored", "1-D, not floating point, or nothing qualifies"),
        (figures.count(elements), "elements", f"in {len(survey.tensors)} tensors"),
    ]
    if broken:
        names = ", ".join(t.name for t in broken[:3]) + (" and more" if len(broken) > 3 else "")
        cards.append((str(len(broken)), "tensors with NaN or infinity", names))
    return cards


def _total_row(survey: Survey, total: FormatStats) -> dict[str, Any]:
    target = survey.targets[total.format]
    return {
        "stats": total,
        "row": stats_row(total),
        "target": "unscaled" if target is None else f"{target:g}",
        "rounding": survey.roundings[total.format],
        "picked": sum(1 for t in survey.tensors if t.pick == total.format),
    }


def _tensor_row(survey: Survey, tensor: TensorSurvey) -> dict[str, Any]:
    by_format = {s.format: s for s in tensor.stats}
    best = max((s.sqnr_db for s in tensor.stats if not math.isnan(s.sqnr_db)), default=math.nan)
    return {
        "tensor": tensor,
        "shape": "×".join(map(str, tensor.shape)) or "scalar",
        "spark": _distribution(tensor),
        "stats": [by_format.get(name) for name in survey.formats],
        "best": best,
    }


def _distribution(tensor: TensorSurvey) -> str:
    if not tensor.stats or not tensor.stats[0].binades:
        return ""
    binades = tensor.stats[0].binades
    top = binades[-1].exponent
    low = max(binades[0].exponent, top - 23)
    counts = {b.exponent: b.count for b in binades}
    label = f"elements by magnitude, 2^{low} to 2^{top + 1}"
    return sparkbars([counts.get(e, 0) for e in range(low, top + 1)], label, width=120)


def _detailed(survey: Survey) -> list[TensorSurvey]:
    """Choose the tensors with their own plots: the largest ones, in file order."""
    largest = sorted(survey.surveyed, key=lambda t: -t.elements)[:DETAILED_TENSORS]
    names = {t.name for t in largest}
    return [t for t in survey.surveyed if t.name in names]


def _plot_data(survey: Survey, detailed: list[TensorSurvey]) -> dict[str, Any]:
    whole = {name: total for name in survey.formats if (total := survey.total(name))}
    views = [{"name": "", "formats": {name: _curves(s) for name, s in whole.items()}}]
    views += [{"name": t.name, "formats": {s.format: _curves(s) for s in t.stats}} for t in detailed]
    return {
        "formats": list(survey.formats),
        "grids": {name: [number(v) for v in grid] for name, grid in survey.grids.items()},
        "views": views,
    }


def _curves(stats: FormatStats) -> dict[str, Any]:
    """Give the plots of one view: exponent, count and relative RMS error per binade, and the code counts."""
    return {
        "scale": number(stats.scale),
        "e": [b.exponent for b in stats.binades],
        "n": [b.count for b in stats.binades],
        "r": [_ratio(b) for b in stats.binades],
        "c": list(stats.code_counts),
    }


def _ratio(binade: Binade) -> float | None:
    """Give the RMS error relative to the RMS value, in four digits."""
    ratio = math.sqrt(binade.noise / binade.signal) if binade.signal else math.nan
    return float(f"{ratio:.4g}") if math.isfinite(ratio) else None
