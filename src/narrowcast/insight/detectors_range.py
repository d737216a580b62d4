"""Detectors of a range that does not fit: overflow, all zero, one-sided data, FP4 alone, subnormal input."""

from collections.abc import Callable
from itertools import pairwise

import numpy as np

from narrowcast.catalog.formats import formats
from narrowcast.insight.detection import Array, Detection, first_index, improvement
from narrowcast.insight.quantized_case import QuantizedCase, expand, requantize
from narrowcast.quant import Blocks, flush_subnormals
from narrowcast.quant.quantize import quantize
from narrowcast.quant.scales import scale_of

CLIPPED_SHARE = 0.002
ZEROED_SHARE = 0.9
OVERSIZE = 2.0  # a scale this much above absmax / target
LOST_SHARE = 0.5
ONE_SIDED = 0.05
SUBNORMAL_SHARE = 0.0001
FP4 = ("e2m1", "e1m2")


def overflow(case: QuantizedCase) -> Detection | None:
    """PIT-01: elements clamped to the largest code."""
    clamped = case.clamped
    share = float(clamped.sum()) / max(clamped.size, 1)
    if case.values is None:
        if share < 10 * CLIPPED_SHARE or clamped.size < 64:
            return None
        message = f"{share:.1%} of the codes are the largest or smallest of {case.format}"
        evidence = {"share": share, "count": int(clamped.sum()), "first_index": first_index(clamped)}
        return Detection(
            "PIT-01", message, evidence, {}, {}, severity=share, multiplier=case.multiplier,
            tried="nothing: without the values there is no better scale to compute",
        )  # fmt: skip
    if share < CLIPPED_SHARE:
        return None
    fixed = _rescaled(case)
    if fixed is None or improvement(case, fixed) < 1:
        return None
    index = first_index(clamped)
    limit = float(case.row.max) * float(case.step[tuple(index)])
    value = float(case.wide[tuple(index)])
    return Detection(
        "PIT-01",
        f"{int(clamped.sum())} of {clamped.size} elements ({share:.1%}) lie beyond {limit:.6g} and were clamped, "
        f"first {value:.6g} at {index}",
        {"count": int(clamped.sum()), "share": share, "first_index": index, "first_value": value, "limit": limit},
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
    if case.values is None:
        codes = case.real
        share = float((codes == 0).mean()) if codes.size else 0.0
        if share < 1 or codes.size < 64:
            return None
        return Detection(
            "PIT-02", f"all {codes.size} codes stand for 0", {"share": share, "count": codes.size, "first_index": [0] *
            codes.ndim}, {}, {}, severity=share, multiplier=case.multiplier,
            tried="nothing: without the values there is no better scale to compute",
        )  # fmt: skip
    zeroed = np.isfinite(case.wide) & (case.wide != 0) & (case.matching == 0)
    nonzero = int((np.isfinite(case.wide) & (case.wide != 0)).sum())
    if not nonzero or zeroed.sum() < ZEROED_SHARE * nonzero:
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
    index = first_index(zeroed)
    step = float(case.step[tuple(index)])
    value = float(case.wide[tuple(index)])
    share = float(zeroed.sum()) / nonzero
    return Detection(
        "PIT-02",
        f"{int(zeroed.sum())} of {nonzero} non-zero elements ({share:.1%}) became 0: the scale is {step:.6g}, "
        f"the first is {value:.6g} at {index}",
        {"count": int(zeroed.sum()), "share": share, "first_index": index, "first_value": value, "scale": step},
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
    finite = case.wide[np.isfinite(case.wide)]
    if finite.size < 16:
        return None
    low, high = float(finite.min()), float(finite.max())
    largest = max(abs(low), abs(high))
    if not largest or (low < 0 < high and min(-low, high) >= ONE_SIDED * largest) or low == high:
        return None
    u8 = "u8" if case.format == "s8" else "u4"
    rows = case.scale.size > 1 and case.scale.size == case.codes[..., :1].size
    blocks = Blocks((1, None)) if rows else Blocks()
    q = quantize(np.where(np.isfinite(case.values), case.values, 0), u8, blocks, symmetric=False)
    fixed = QuantizedCase(
        values=case.values, codes=q.codes, format=u8, scale=q.scale, offset=q.offset, columns=case.columns
    )
    if improvement(case, fixed) < 2:
        return None
    used = np.unique(case.codes).size
    side = "positive" if high > -low else "negative"
    index = first_index(np.abs(case.wide) == largest)
    return Detection(
        "PIT-03",
        f"the values run from {low:.6g} to {high:.6g}, all but {side}, and use {used} of {1 << case.row.bits} codes",
        {"minimum": low, "maximum": high, "codes_used": used, "first_index": index},
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
    nonzero = np.isfinite(case.wide) & (case.wide != 0)
    if not nonzero.any() or _oversize(case) >= OVERSIZE:
        return None
    share = _half_off(case)
    if case.quality.lost <= LOST_SHARE and share <= LOST_SHARE:
        return None
    from narrowcast.mx import quantize as mx_quantize

    q = mx_quantize(np.where(np.isfinite(case.values), case.values, 0).astype(np.float32), case.format)
    step = expand(np.exp2(q.scale.astype(np.float64) - 127), q.codes.shape, q.blocks.sizes(q.codes.shape))
    fixed = QuantizedCase(
        values=case.values, codes=q.codes, format=case.format, scale=step, scale_codes=q.scale, arithmetic="fp32"
    )
    then = _half_off(fixed)
    if then > share - 0.2 and fixed.quality.lost > case.quality.lost - 0.2:
        return None
    index = first_index(nonzero & (np.abs(case.matching - case.wide) > LOST_SHARE * np.abs(case.wide)))
    return Detection(
        "PIT-05",
        f"{case.quality.lost:.0%} of the magnitude is lost, and {share:.0%} of the elements are off by more than half, "
        f"first {float(case.wide[tuple(index)]):.6g} at {index}",
        {"lost": case.quality.lost, "share": share, "first_index": index},
        {"off_by_half": share, **case.quality.to_json()},
        {"off_by_half": then, **fixed.quality.to_json()},
        fixed=fixed,
        severity=max(case.quality.lost, share),
        tried="MX scales by the OCP rule, one per 32 elements of a row",
    )


def subnormal_input(case: QuantizedCase) -> Detection | None:
    """PIT-06: values below the smallest normal of the format in which the operation works."""
    if case.values is None:
        return None
    row = formats[case.arithmetic]
    smallest = row.min_normal
    if smallest is None:
        return None
    small = (case.wide != 0) & (np.abs(case.wide) < smallest)
    count = int(small.sum())
    if not count or count < SUBNORMAL_SHARE * small.size:
        return None
    flushed = np.where(small, 0, case.wide)
    if case.arithmetic in ("fp32", "fp16"):
        flushed = flush_subnormals(
            case.values.astype(np.float32 if case.arithmetic == "fp32" else np.float16), case.arithmetic
        )
    codes = requantize(np.asarray(flushed, case.values.dtype), case.row, case.scale, case.offset)
    fixed = case.with_codes(codes) if case.scale_codes is None else None
    index = first_index(small)
    changed = 0 if fixed is None else int((codes != case.codes).sum())
    return Detection(
        "PIT-06",
        f"{count} of {small.size} values are subnormal in {case.arithmetic} (below {smallest:.3g}), first "
        f"{float(case.wide[tuple(index)]):.3g} at {index}",
        {"count": count, "share": count / small.size, "first_index": index, "arithmetic": case.arithmetic,
         "codes_changed_by_flushing": changed},
        {"subnormal": count, **case.quality.to_json()},
        {"subnormal": 0, **(case if fixed is None else fixed).quality.to_json()},
        fixed=fixed,
        severity=min(1.0, count / small.size * 10),
        tried=f"flushed to zero before the cast; {changed} codes change",
    )  # fmt: skip


def _half_off(case: QuantizedCase) -> float:
    """Share of the non-zero elements whose error exceeds half of them."""
    nonzero = np.isfinite(case.wide) & (case.wide != 0)
    off = np.abs(case.matching - case.wide)[nonzero] > LOST_SHARE * np.abs(case.wide[nonzero])
    return float(off.mean()) if off.size else 0.0


def _oversize(case: QuantizedCase) -> float:
    """How far the scale lies above absmax / target, as a ratio."""
    finite = case.wide[np.isfinite(case.wide)]
    ideal = float(np.abs(finite).max(initial=0.0)) / case.target
    largest = float(np.nanmax(case.step, initial=0.0))
    return largest / ideal if ideal else 1.0


def block_reduce(values: Array, scale: Array, shape: tuple[int, ...], reduce: Callable[[Array], float]) -> Array:
    """Reduce the elements that share a scale, in the scale's own shape."""
    index = expand(np.arange(scale.size).reshape(scale.shape), shape).reshape(-1)
    order = np.argsort(index, kind="stable")
    bounds = np.searchsorted(index[order], np.arange(scale.size + 1))
    flat = values.reshape(-1)[order]
    return np.array([reduce(flat[a:b]) for a, b in pairwise(bounds)]).reshape(scale.shape)


def _rescaled(case: QuantizedCase) -> QuantizedCase | None:
    """The same blocks with scale = absmax / target."""
    if case.values is None or case.scale_codes is not None or case.matching.shape != case.codes.shape:
        return None
    scale = ideal_scale(case)
    offset = None if case.offset is None else case.offset
    codes = requantize(np.where(np.isfinite(case.values), case.values, 0), case.row, scale, offset)
    return case.with_codes(codes, scale=scale)


def ideal_scale(case: QuantizedCase) -> Array:
    """absmax / target of every block."""
    magnitude = np.abs(np.where(np.isfinite(case.wide), case.wide, 0))
    if case.scale.size == 1:
        largest = np.asarray(magnitude.max(initial=0.0)).reshape(case.scale.shape)
    else:
        largest = block_reduce(magnitude, case.scale, case.codes.shape, lambda part: float(part.max(initial=0.0)))
    return np.asarray(scale_of(largest.astype(np.float32), case.target))


def _per_row(case: QuantizedCase) -> QuantizedCase | None:
    if case.values is None or case.codes.ndim < 2 or case.scale_codes is not None:
        return None
    q = quantize(np.where(np.isfinite(case.values), case.values, 0), case.format, Blocks.per_row)
    return case.with_codes(q.codes, scale=q.scale, offset=None)


def _direction(case: QuantizedCase, fixed: QuantizedCase) -> str:
    """Say from what to what, in the caller's own parameter."""
    old, new = float(np.median(case.step)), float(np.median(fixed.step))
    if not (old > 0 and new > 0 and np.isfinite(old)):
        return ""
    if case.multiplier:
        old, new = 1 / old, 1 / new
    name = "multiplier" if case.multiplier else "scale"
    verb = "Raise" if new > old else "Lower"
    many = "" if case.scale.size == 1 and fixed.scale.size == 1 else "median "
    return f"{verb} the {many}{name} from {old:.6g} to {new:.6g} (x {new / old:.3g})."
