"""Detectors of data or parameters that are read wrongly: scales, nibbles, axes, signs, NaN, dummy columns."""

import numpy as np

from narrowcast.insight.detection import Array, Detection, improvement
from narrowcast.insight.quantized_case import QuantizedCase, ideal_scale, requantize
from narrowcast.insight.slabs import Count
from narrowcast.quant.arrays import first_index

CLEAR_GAIN_DB = 10.0
GOOD_DB = 10.0
SCALE_ERROR = 0.01


def tail_garbage(case: QuantizedCase) -> Detection | None:
    """PIT-08: columns beyond N that are not zero."""
    if case.columns is None or case.columns >= case.codes.shape[-1]:
        return None
    nonzero, size = Count(), 0
    sums = np.zeros(case.codes.shape[:-1])
    for part in case.tail():
        nonzero.add(part.real != 0, part.slab)
        size += part.real.size
        with np.errstate(invalid="ignore", over="ignore"):
            sums[part.where[:-1]] += part.real.sum(axis=-1)
    count = nonzero.number
    if not count:
        return None
    padded = case.codes.shape[-1]
    inside = nonzero.index((*case.codes.shape[:-1], padded - case.columns))
    index = [*inside[:-1], inside[-1] + case.columns]
    trimmed = case.with_codes(case.codes[..., : case.columns], columns=None) if case.scale.size == 1 else None
    rows = {"row_sum_error": float(np.abs(sums).max())}
    return Detection(
        "PIT-08",
        f"N is {case.columns}, rows hold {padded} columns, and {count} of the {padded - case.columns} x "
        f"{size // (padded - case.columns)} dummy elements are not 0, first at {index}",
        {"count": count, "columns": case.columns, "stored_columns": padded, "first_index": index,
         "multiple_of_c0": case.columns % 16 == 0},
        {"columns": padded, "dummy_nonzero": count, **rows},
        {"columns": case.columns, "dummy_nonzero": 0, "row_sum_error": 0.0,
         **(trimmed.quality.to_json() if trimmed is not None and trimmed.values is not None else {})},
        fixed=trimmed,
        severity=1.0,
        fix_detail=f"Pad N from {case.columns} to {-(-case.columns // 16) * 16} and read {case.columns} columns.",
        tried=f"read the first {case.columns} columns only",
    )  # fmt: skip


def zero_scale(case: QuantizedCase) -> Detection | None:
    """USR-01: scales that are zero, negative or not finite."""
    scale = case.scale.astype(np.float64)
    bad = ~(np.isfinite(scale) & (scale > 0))
    if not bad.any() or case.scale_codes is not None or _from_underflow(case):
        return None
    index = list(first_index(np.atleast_1d(bad)))
    value = float(np.atleast_1d(scale)[tuple(index)])
    fixed = None
    if case.values is not None and case.whole:
        repaired = np.where(bad, ideal_scale(case), scale).astype(np.float32)
        codes = requantize(case.values, case.row, repaired, case.offset, blocks=case.blocks, repair=True)
        fixed = case.with_codes(codes, scale=repaired)
    return Detection(
        "USR-01",
        f"{int(bad.sum())} of {scale.size} scales are not positive and finite, first {value} at {index}",
        {"count": int(bad.sum()), "first_index": index, "first_value": str(value)},
        _quality(case),
        _quality(fixed),
        fixed=fixed,
        severity=1.0,
        place="scale",
        multiplier=case.multiplier,
        tried="2**-23 for all-zero blocks, absmax / max for the others",
    )


def scale_underflow(case: QuantizedCase) -> Detection | None:
    """USR-02: an fp16 scale that has lost its bits."""
    if not _from_underflow(case):
        return None
    ideal = ideal_scale(case).astype(np.float64)
    stored = case.scale.astype(np.float64)
    wrong = _lost_bits(stored, ideal)
    index = list(first_index(np.atleast_1d(wrong)))
    at = tuple(index)
    assert case.values is not None
    scale = ideal.astype(np.float32)
    codes = requantize(case.values, case.row, scale, case.offset, blocks=case.blocks, repair=True)
    fixed = case.with_codes(codes, scale=scale)
    return Detection(
        "USR-02",
        f"{int(wrong.sum())} of {stored.size} fp16 scales lie below 2**-14, first {np.atleast_1d(stored)[at]:.3g} at "
        f"{index} where the data needs {np.atleast_1d(ideal)[at]:.6g}",
        {"count": int(wrong.sum()), "first_index": index, "stored": float(np.atleast_1d(stored)[at]),
         "needed": float(np.atleast_1d(ideal)[at])},
        _quality(case),
        _quality(fixed),
        fixed=fixed,
        severity=1.0,
        place="scale",
        multiplier=case.multiplier,
        tried="scale = absmax / max in fp32",
    )  # fmt: skip


def _from_underflow(case: QuantizedCase) -> bool:
    if case.values is None or case.scale.dtype != np.float16 or case.multiplier or case.scale_codes is not None:
        return False
    if not case.whole:
        return False
    return bool(_lost_bits(case.scale.astype(np.float64), ideal_scale(case).astype(np.float64)).any())


def _lost_bits(stored: Array, ideal: Array) -> Array:
    """Scales below fp16's normal range that differ from what the data needs by more than rounding."""
    needed = (ideal != 2.0**-23) & (ideal < 2.0**-14)  # 2**-23 stands for a block of zeros
    return np.asarray(needed & (stored < 2.0**-14) & (np.abs(stored - ideal) > SCALE_ERROR * ideal))


def swapped_nibbles(case: QuantizedCase) -> Detection | None:
    """USR-03: pairs of 4-bit codes in the other order."""
    if case.values is None or not case.given_codes or case.row.bits != 4 or case.codes.shape[-1] % 2:
        return None
    pairs = case.codes.reshape(*case.codes.shape[:-1], -1, 2)
    fixed = case.with_codes(np.ascontiguousarray(pairs[..., ::-1]).reshape(case.codes.shape))
    return _read_otherwise(case, fixed, "USR-03", "with the nibbles swapped", "the other element of each byte first")


def wrong_axis(case: QuantizedCase) -> Detection | None:
    """USR-04: a vector of scales along the other axis of a square matrix."""
    square = case.codes.ndim == 2 and case.codes.shape[0] == case.codes.shape[1]
    if case.values is None or not square or case.scale.size != case.codes.shape[0] or case.scale.size < 2:
        return None
    along_rows = case.scale.ndim < 2 or case.scale.shape[0] > 1
    other = case.scale.reshape(1, -1) if along_rows else case.scale.reshape(-1, 1)
    fixed = case.with_codes(case.codes, scale=other)
    now, then = ("rows", "columns") if along_rows else ("columns", "rows")
    found = _read_otherwise(
        case, fixed, "USR-04", f"with the scales along {then} instead of {now}", f"scales along {then}"
    )
    return found


def sign_mixed_up(case: QuantizedCase) -> Detection | None:
    """USR-06: codes of the other signedness."""
    other = {"s8": "u8", "u8": "s8", "s4": "u4", "u4": "s4"}.get(case.format)
    if case.values is None or other is None or not case.given_codes:
        return None
    half = 1 << (case.row.bits - 1)
    candidates = [
        (case.with_codes(case.codes, format=other), f"read as {other}"),
        (case.with_codes(case.codes ^ np.asarray(half, case.codes.dtype)), "with the top bit flipped (offset by half)"),
    ]
    best, how = max(candidates, key=lambda c: improvement(case, c[0]))
    return _read_otherwise(case, best, "USR-06", how, how)


def reciprocal_scale(case: QuantizedCase) -> Detection | None:
    """USR-08: the factor used the wrong way round."""
    if case.values is None or not case.given_codes or not case.given_scale or case.scale_codes is not None:
        return None
    with np.errstate(divide="ignore", over="ignore"):
        fixed = case.with_codes(case.codes, scale=(1 / case.scale.astype(np.float32)).astype(np.float32))
    name = "multiplier" if case.multiplier else "scale"
    return _read_otherwise(case, fixed, "USR-08", f"with the reciprocal of the {name}", f"1 / {name}")


def not_finite(case: QuantizedCase) -> Detection | None:
    """USR-05: NaN or infinity in the input, the scales or the result."""
    facts = case.facts
    nan_scale = np.zeros(0, np.bool_) if case.scale_codes is None else case.scale_codes == 0xFF
    if nan_scale.any():
        where, what, size = "scale", "E8M0 scale codes are 0xFF (NaN)", nan_scale.size
        count, index = int(np.count_nonzero(nan_scale)), list(first_index(nan_scale))
        rows = int(np.any(nan_scale.reshape(-1, nan_scale.shape[-1]), axis=-1).sum()) if nan_scale.ndim else 1
    elif facts.bad_values.number or facts.bad_codes.number:
        if facts.bad_values.number:
            where, what, found = "input", "input values are NaN or infinite", facts.bad_values
        else:
            where, what, found = "codes", "codes are NaN or infinite", facts.bad_codes
        count, index, rows, size = found.number, found.index(case.shape), found.rows, facts.elements
    else:
        return None
    fixed = None
    if case.values is not None and case.whole:
        scale = ideal_scale(case)
        codes = requantize(case.values, case.row, scale, case.offset, blocks=case.blocks, repair=True)
        fixed = case.with_codes(codes, scale=scale, scale_codes=None)
    return Detection(
        "USR-05",
        f"{count} of {size} {what}, in {rows} rows, first at {index}",
        {"count": count, "rows": rows, "first_index": index, "where": where},
        {"not_finite": count, **_quality(case)},
        {"not_finite": 0, **_quality(fixed)},
        fixed=fixed,
        severity=1.0,
        place=where,
        tried="NaN and infinity replaced by 0, then quantized again",
    )


def _read_otherwise(case: QuantizedCase, fixed: QuantizedCase, pitfall: str, how: str, tried: str) -> Detection | None:
    """Report another reading of the same bytes where it fits the values and the present one does not."""
    gain, after = improvement(case, fixed), fixed.quality
    if gain < CLEAR_GAIN_DB or not after.sqnr_db >= GOOD_DB:
        return None
    wrong = Count()
    for now, then in zip(case.parts(), fixed.parts(), strict=True):
        with np.errstate(invalid="ignore"):
            wrong.add(np.abs(now.real - now.x) > np.abs(then.real - now.x), now.slab)
    index = wrong.index(case.shape)
    value, read, would_be = *case.point(wrong.first)[:2], fixed.point(wrong.first)[1]
    return Detection(
        pitfall,
        f"{how} the codes fit the values, as they are they do not: first at {index}, where {value:.6g} is "
        f"read as {read:.6g} and would be {would_be:.6g}",
        {"first_index": index, "gain_db": gain, "count": wrong.number},
        case.quality.to_json(),
        after.to_json(),
        fixed=fixed,
        severity=1.0,
        place="scale" if pitfall in ("USR-04", "USR-08") else "codes",
        multiplier=case.multiplier,
        tried=tried,
    )


def _quality(case: QuantizedCase | None) -> dict[str, object]:
    return {} if case is None or case.values is None else case.quality.to_json()


__all__ = [
    "not_finite",
    "reciprocal_scale",
    "scale_underflow",
    "sign_mixed_up",
    "swapped_nibbles",
    "tail_garbage",
    "wrong_axis",
    "zero_scale",
]
