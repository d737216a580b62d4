"""Detectors of a range that does not fit: overflow, all zero, one-sided data, FP4 alone, subnormal input."""

import numpy as np

from narrowcast.catalog.formats import formats
from narrowcast.insight.case_facts import CaseFacts
from narrowcast.insight.detection import Detection, improvement
from narrowcast.insight.quantized_case import QuantizedCase, ideal_scale, requantize
from narrowcast.quant import Blocks
from narrowcast.quant.quantize import quantize

CLIPPED_SHARE = 0.002
ZEROED_SHARE = 0.9
OVERSIZE = 2.0  # a scale this much above absmax / target
LOST_SHARE = 0.5
ONE_SIDED = 0.05
SUBNORMAL_SHARE = 0.0001
FP4 = ("e2m1", "e1m2")


def overflow(case: QuantizedCase) -> Detection | None:
    """PIT-01: elements clamped to the largest code."""
    facts = case.facts
    count, index = facts.clamped.number, facts.clamped.index(case.shape)
    share = count / max(facts.elements, 1)
    if case.values is None:
        if share < 10 * CLIPPED_SHARE or facts.elements < 64:
            return None
        message = f"{share:.1%} of the codes are the largest or smallest of {case.format}"
        evidence = {"share": share, "count": count, "first_index": index}
        return Detection(
            "PIT-01", message, evidence, {}, {}, severity=share, multiplier=case.multiplier,
            tried="nothing: without the values there is no better scale to compute",
        )  # fmt: skip
    if share < CLIPPED_SHARE:
        return None
    fixed = _rescaled(case)
    if fixed is None or improvement(case, fixed) < 1:
        return None
    value, _, step = case.point(facts.clamped.first)
    limit = float(case.row.max) * step
    return Detection(
        "PIT-01",
        f"{count} of {facts.elements} elements ({share:.1%}) lie beyond {limit:.6g} and were clamped, "
        f"first {value:.6g} at {index}",
        {"count": count, "share": share, "first_index": index, "first_value": value, "limit": limit},
        case.quality.to_json(),
        fixed.quality.to_json(),
        fixed=fixed,
        severity=share,
        fix_detail=_direction(case, fixed),
        multiplier=case.multiplier,
        tried="scale = absmax / max of each block",
    )


def all_zero(case: QuantizedCase) -> Detection | None:
    """PIT-02: nearly everything rounds to zero."""
    facts = case.facts
    zeroed, nonzero = facts.zeroed.number, facts.nonzero
    if case.values is None:
        if zeroed < facts.elements or facts.elements < 64:
            return None
        return Detection(
            "PIT-02", f"all {zeroed} codes stand for 0", {"share": 1.0, "count": zeroed, "first_index": [0] *
            case.codes.ndim}, {}, {}, severity=1.0, multiplier=case.multiplier,
            tried="nothing: without the values there is no better scale to compute",
        )  # fmt: skip
    if not nonzero or zeroed < ZEROED_SHARE * nonzero:
        return None
    oversize = _oversize(case)
    if case.format in FP4 and oversize < OVERSIZE:
        return None  # the format's own limit, PIT-05
    how = "scale = absmax / max of each block"
    fixed = _rescaled(case)
    if fixed is None or improvement(case, fixed) < 1 or oversize < OVERSIZE:
        fixed, how = _per_row(case), "one scale per row"
    if fixed is None or improvement(case, fixed) < 1:
        return None
    index = facts.zeroed.index(case.shape)
    value, _, step = case.point(facts.zeroed.first)
    share = zeroed / nonzero
    return Detection(
        "PIT-02",
        f"{zeroed} of {nonzero} non-zero elements ({share:.1%}) became 0: the scale is {step:.6g}, "
        f"the first is {value:.6g} at {index}",
        {"count": zeroed, "share": share, "first_index": index, "first_value": value, "scale": step},
        case.quality.to_json(),
        fixed.quality.to_json(),
        fixed=fixed,
        severity=share,
        fix_detail=_direction(case, fixed),
        multiplier=case.multiplier,
        tried=how,
    )


def one_sided(case: QuantizedCase) -> Detection | None:
    """PIT-03: a signed format without zero point for data on one side."""
    if case.values is None or case.format not in ("s8", "s4"):
        return None
    if case.offset is not None and np.any(case.offset):
        return None
    facts = case.facts
    if facts.finite < 16:
        return None
    low, high, largest = facts.minimum, facts.maximum, facts.absmax
    if not largest or (low < 0 < high and min(-low, high) >= ONE_SIDED * largest) or low == high:
        return None
    u8 = "u8" if case.format == "s8" else "u4"
    rows = case.scale.size > 1 and case.scale.size == case.codes[..., :1].size
    blocks = Blocks((1, None)) if rows else Blocks()
    q = quantize(case.values, u8, blocks, symmetric=False, nonfinite="saturate")
    fixed = QuantizedCase(values=case.values, codes=q.codes, format=u8, scale=q.scale, offset=q.offset)
    if improvement(case, fixed) < 2:
        return None
    side = "positive" if high > -low else "negative"
    index = [int(i) for i in np.unravel_index(facts.largest, case.shape)]
    return Detection(
        "PIT-03",
        f"the values run from {low:.6g} to {high:.6g}, all but {side}, and use {facts.codes_used} of "
        f"{1 << case.row.bits} codes",
        {"minimum": low, "maximum": high, "codes_used": facts.codes_used, "first_index": index},
        case.quality.to_json(),
        fixed.quality.to_json(),
        fixed=fixed,
        severity=0.6,
        fix_detail=f"Offset {np.asarray(q.offset).reshape(-1)[0]} of {u8}.",
        tried=f"{u8} with scale and offset from minimum and maximum",
    )


def fp4_alone(case: QuantizedCase) -> Detection | None:
    """PIT-05: FP4 loses more than half of the magnitude, or of most elements."""
    if case.values is None or case.format not in FP4 or case.scale_codes is not None:
        return None
    facts = case.facts
    if not facts.nonzero or _oversize(case) >= OVERSIZE:
        return None
    share = _half_off(facts)
    if case.quality.lost <= LOST_SHARE and share <= LOST_SHARE:
        return None
    fixed = _with_mx_scales(case)
    then = _half_off(fixed.facts)
    if then > share - 0.2 and fixed.quality.lost > case.quality.lost - 0.2:
        return None
    index = facts.half_off.index(case.shape)
    return Detection(
        "PIT-05",
        f"{case.quality.lost:.0%} of the magnitude is lost, and {share:.0%} of the elements are off by more than half, "
        f"first {case.point(facts.half_off.first)[0]:.6g} at {index}",
        {"lost": case.quality.lost, "share": share, "first_index": index},
        {"off_by_half": share, **case.quality.to_json()},
        {"off_by_half": then, **fixed.quality.to_json()},
        fixed=fixed,
        severity=max(case.quality.lost, share),
        tried="MX scales by the OCP rule, one per 32 elements of a row",
    )


def _with_mx_scales(case: QuantizedCase) -> QuantizedCase:
    from narrowcast.mx import quantize as mx_quantize

    values = case.values
    assert values is not None
    if case.facts.bad_values.number or values.dtype.name not in ("float32", "float16", "bfloat16"):
        with np.errstate(over="ignore"):
            values = values.astype(np.float32)
        values[~np.isfinite(values)] = 0
    q = mx_quantize(values, case.format)
    return QuantizedCase(
        values=case.values,
        codes=q.codes,
        format=case.format,
        scale=np.exp2(q.scale.astype(np.float64) - 127),
        blocks=q.blocks.sizes(q.codes.shape),
        scale_codes=q.scale,
    )


def subnormal_input(case: QuantizedCase) -> Detection | None:
    """PIT-06: values below the smallest normal of the format in which the operation works."""
    facts = case.facts
    count = facts.subnormal.number
    if case.values is None or not count or count < SUBNORMAL_SHARE * facts.elements:
        return None
    smallest = formats[case.arithmetic].min_normal or 0.0
    fixed, changed = None, 0
    if case.scale_codes is None and case.whole:
        codes = requantize(
            case.values, case.row, case.scale, case.offset, blocks=case.blocks, flush_below=float(smallest)
        )
        fixed = case.with_codes(codes)
        changed = int(np.count_nonzero(codes != case.codes))
    index = facts.subnormal.index(case.shape)
    return Detection(
        "PIT-06",
        f"{count} of {facts.elements} values are subnormal in {case.arithmetic} (below {smallest:.3g}), first "
        f"{case.point(facts.subnormal.first)[0]:.3g} at {index}",
        {"count": count, "share": count / facts.elements, "first_index": index, "arithmetic": case.arithmetic,
         "codes_changed_by_flushing": changed},
        {"subnormal": count, **case.quality.to_json()},
        {"subnormal": 0, **(case if fixed is None else fixed).quality.to_json()},
        fixed=fixed,
        severity=min(1.0, count / facts.elements * 10),
        tried=f"flushed to zero before the cast; {changed} codes change",
    )  # fmt: skip


def _half_off(facts: CaseFacts) -> float:
    """Share of the non-zero elements whose error exceeds half of them."""
    return facts.half_off.number / facts.nonzero if facts.nonzero else 0.0


def _oversize(case: QuantizedCase) -> float:
    """How far the scale lies above absmax / target, as a ratio."""
    ideal = case.facts.absmax / case.target
    largest = float(np.nanmax(case.scale.astype(np.float64), initial=0.0))
    return largest / ideal if ideal else 1.0


def _rescaled(case: QuantizedCase) -> QuantizedCase | None:
    """The same blocks with scale = absmax / target."""
    if case.values is None or case.scale_codes is not None or not case.whole:
        return None
    scale = ideal_scale(case)
    codes = requantize(case.values, case.row, scale, case.offset, blocks=case.blocks, repair=True)
    return case.with_codes(codes, scale=scale)


def _per_row(case: QuantizedCase) -> QuantizedCase | None:
    if case.values is None or case.codes.ndim < 2 or case.scale_codes is not None or not case.whole:
        return None
    q = quantize(case.values, case.format, Blocks.per_row, nonfinite="saturate")
    return case.with_codes(q.codes, scale=q.scale, offset=q.offset, blocks=None)


def _direction(case: QuantizedCase, fixed: QuantizedCase) -> str:
    """Say from what to what, in the caller's own parameter."""
    old, new = (float(np.median(c.scale.astype(np.float64))) for c in (case, fixed))
    if not (old > 0 and new > 0 and np.isfinite(old)):
        return ""
    if case.multiplier:
        old, new = 1 / old, 1 / new
    name = "multiplier" if case.multiplier else "scale"
    verb = "Raise" if new > old else "Lower"
    many = "" if case.scale.size == 1 and fixed.scale.size == 1 else "median "
    return f"{verb} the {many}{name} from {old:.6g} to {new:.6g} (x {new / old:.3g})."
