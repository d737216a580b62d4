"""A survey as plain data, for ``--json`` and for the page."""

import math
from typing import Any

from narrowcast.insight.survey import FormatStats, Survey, TensorSurvey

SCHEMA = "narrowcast.survey/1"


def survey_document(survey: Survey) -> dict[str, Any]:
    """Turn a survey into JSON-ready data; infinite SQNR (exact) and undefined values become null.

    Args:
        survey: the result of :func:`narrowcast.insight.survey.survey_file`.

    Returns:
        A dictionary of strings, numbers, lists and null only.
    """
    return {
        "schema": SCHEMA,
        "version": survey.version,
        "path": survey.path,
        "bytes": survey.size,
        "application": {
            "scaling": "per-tensor absmax / target" if survey.scaled else "none (unscaled cast)",
            "targets": survey.targets,
            "rounding": survey.roundings,
            "saturate": True,
        },
        "rule": {
            "sentence": survey.rule.sentence,
            "min_sqnr_db": survey.rule.min_sqnr_db,
            "max_saturated": survey.rule.max_saturated,
            "max_flushed": survey.rule.max_flushed,
            "level_db": survey.rule.level_db,
        },
        "picked_bytes": sum(t.picked_bytes for t in survey.tensors),
        "totals": {name: stats_row(total) for name in survey.formats if (total := survey.total(name))},
        "tensors": [tensor_row(t) for t in survey.tensors],
    }


def tensor_row(tensor: TensorSurvey) -> dict[str, Any]:
    """Describe one tensor."""
    return {
        "name": tensor.name,
        "dtype": tensor.dtype,
        "shape": list(tensor.shape),
        "elements": tensor.elements,
        "bytes": tensor.nbytes,
        "nan": tensor.nans,
        "infinite": tensor.infinities,
        "zeros": tensor.zeros,
        "absmax": tensor.absmax,
        "rms": number(tensor.rms),
        "formats": {s.format: stats_row(s) for s in tensor.stats},
        "pick": tensor.pick,
        "reason": tensor.reason,
        "skipped": tensor.skipped,
    }


def stats_row(stats: FormatStats) -> dict[str, Any]:
    """Describe one format's statistics; ``exact`` says why ``sqnr_db`` may be null."""
    return {
        "bits": stats.bits,
        "scale": number(stats.scale),
        "sqnr_db": number(stats.sqnr_db),
        "exact": stats.noise == 0,
        "max_error": number(stats.max_error),
        "saturated_percent": 100 * stats.saturated,
        "flushed_percent": 100 * stats.flushed,
        "subnormal_percent": None if stats.subnormal is None else 100 * stats.subnormal,
    }


def number(value: float) -> float | None:
    """Give a finite number, or None for what JSON has no word for."""
    return value if math.isfinite(value) else None
