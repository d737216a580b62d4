"""One scale for each row: integer quantization and absolute maxima."""

import numpy as np

from narrowcast.kernels.arrays import BLOCK, SEEN_NAN, Array
from narrowcast.kernels.library import native, threads
from narrowcast.schema import IntFormat

SEEN_INF = 2

_BOUND = 2.0**24  # no code lies beyond, and int32 holds it with any offset added


def quantize_rows(
    values: Array, scale: Array, target: IntFormat, offset: Array | None = None, out: Array | None = None
) -> Array:
    """Quantize each row by its own scale.

    Formula: ``q = clamp(rint(x / scale) + offset, min, max)``, a true division, ties to even. A NaN quotient counts
    as 0.

    Args:
        values: float32[rows, columns].
        scale: float32[rows].
        target: an integer format of at most 8 bits.
        offset: int32[rows], magnitudes below 2**23; None for 0.
        out: uint8 array of the same shape.

    Returns:
        uint8 codes (two's complement).
    """
    rows = values.shape[0]
    if out is None:
        out = np.empty(values.shape, dtype=np.uint8)
    if values.size == 0:
        return out
    scale = np.ascontiguousarray(scale, dtype=np.float32)
    shift = np.zeros(rows, dtype=np.int32) if offset is None else np.ascontiguousarray(offset, dtype=np.int32)
    module = native()
    for some in _row_blocks(values, whole=module is not None and _flat(values) and _flat(out)):
        part = np.ascontiguousarray(values[some], dtype=np.float32)
        into = out[some] if out.flags.c_contiguous else np.empty(part.shape, dtype=np.uint8)
        if module is None:
            for columns in _column_blocks(part):
                into[:, columns] = _quantize(part[:, columns], scale[some], shift[some], target)
        else:
            bounds = (int(target.min), int(target.max), target.code_mask)
            flat = part.reshape(-1), into.reshape(-1)
            module.quantize_rows(*flat, scale[some], shift[some], *bounds, threads(part.size))
        if not out.flags.c_contiguous:
            out[some] = into
    return out


def _quantize(part: Array, scale: Array, offset: Array, target: IntFormat) -> Array:
    with np.errstate(all="ignore"):
        quotient = part / scale[:, None]
    np.rint(quotient, out=quotient)
    np.nan_to_num(quotient, copy=False, nan=0.0, posinf=_BOUND, neginf=-_BOUND)
    np.clip(quotient, -_BOUND, _BOUND, out=quotient)
    whole = quotient.astype(np.int32)
    whole += offset[:, None]
    np.clip(whole, target.min, target.max, out=whole)
    whole &= target.code_mask
    return whole.astype(np.uint8)


_CODES = {"int8": 0, "uint8": 1, "int16": 2}


def dequantize_rows(codes: Array, scale: Array, offset: Array, out: Array | None = None) -> Array:
    """Turn each row of integer codes into fp32 by its own scale and offset.

    Formula: ``fp32(fp32(code - offset) * scale)``: the subtraction and the multiplication are rounded, ties to even.

    Args:
        codes: int8, uint8 or int16 [rows, columns]; other integers of at most 24 bits take NumPy's path.
        scale: float32[rows].
        offset: float32[rows].
        out: float32 array of the same shape.

    Returns:
        float32 values.
    """
    if out is None:
        out = np.empty(codes.shape, dtype=np.float32)
    if codes.size == 0:
        return out
    scale = np.ascontiguousarray(scale, dtype=np.float32)
    offset = np.ascontiguousarray(offset, dtype=np.float32)
    module = native() if codes.dtype.name in _CODES else None
    for some in _row_blocks(codes, whole=module is not None and _flat(codes) and _flat(out)):
        direct = _flat(out[some])
        into = out[some] if direct else np.empty(codes[some].shape, dtype=np.float32)
        if module is None:
            with np.errstate(all="ignore"):
                for columns in _column_blocks(into):
                    part = into[:, columns]
                    np.subtract(codes[some, columns].astype(np.float32), offset[some, None], out=part)
                    np.multiply(part, scale[some, None], out=part)
        else:
            part = np.ascontiguousarray(codes[some], dtype=codes.dtype.newbyteorder("="))
            kind = _CODES[codes.dtype.name]
            raw = part.reshape(-1).view(np.uint8)
            module.dequantize_rows(raw, into.reshape(-1), kind, scale[some], offset[some], threads(part.size))
        if not direct:
            out[some] = into
    return out


def multiply_rows(
    values: Array, multiplier: Array, target: IntFormat, offset: Array | None = None, out: Array | None = None
) -> Array:
    """Quantize each row by its own multiplier.

    Formula: ``q = clamp(rint(fp32(fp32(x * multiplier) + offset)), min, max)``, ties to even; NaN gives 0.

    Args:
        values: float32[rows, columns].
        multiplier: float32[rows].
        target: an integer format of at most 8 bits.
        offset: float32[rows]; None for no addition.
        out: uint8 array of the same shape.

    Returns:
        uint8 codes (two's complement).
    """
    if out is None:
        out = np.empty(values.shape, dtype=np.uint8)
    if values.size == 0:
        return out
    multiplier = np.ascontiguousarray(multiplier, dtype=np.float32)
    # +0 where there is no offset: it changes no code, because -0 and +0 have the same one.
    shift = np.zeros(values.shape[0], dtype=np.float32) if offset is None else np.ascontiguousarray(offset, np.float32)
    module = native()
    for some in _row_blocks(values, whole=module is not None and _flat(values) and _flat(out)):
        part = np.ascontiguousarray(values[some], dtype=np.float32)
        direct = _flat(out[some])
        into = out[some] if direct else np.empty(part.shape, dtype=np.uint8)
        if module is None:
            for columns in _column_blocks(part):
                into[:, columns] = _multiplied(part[:, columns], multiplier[some], shift[some], target)
        else:
            bounds = (int(target.min), int(target.max), target.code_mask)
            flat = part.reshape(-1), into.reshape(-1)
            module.multiply_rows(*flat, multiplier[some], shift[some], *bounds, threads(part.size))
        if not direct:
            out[some] = into
    return out


def _multiplied(part: Array, multiplier: Array, offset: Array, target: IntFormat) -> Array:
    with np.errstate(all="ignore"):
        real = part * multiplier[:, None]
        real += offset[:, None]
    np.nan_to_num(real, copy=False, nan=0.0, posinf=_BOUND, neginf=-_BOUND)
    np.rint(real, out=real)
    np.clip(real, target.min, target.max, out=real)
    return (real.astype(np.int32) & target.code_mask).astype(np.uint8)


def absmax_rows(values: Array) -> tuple[Array, bool, bool]:
    """Largest finite magnitude of each row, and whether any NaN and any infinity was met.

    Args:
        values: float32[rows, columns].

    Returns:
        float32[rows] (0 for a row without finite elements), has NaN, has infinity.
    """
    largest = np.zeros(values.shape[0], dtype=np.float32)
    seen = 0
    if values.size == 0:
        return largest, False, False
    module = native()
    for some in _row_blocks(values, whole=module is not None and _flat(values)):
        part = np.ascontiguousarray(values[some], dtype=np.float32)
        if module is not None:
            seen |= module.absmax_rows(part.reshape(-1), largest[some], threads(part.size))
            continue
        for columns in _column_blocks(part):
            magnitude = np.abs(part[:, columns])
            finite = np.isfinite(magnitude)
            if not finite.all():
                nan = np.isnan(magnitude)
                seen |= (SEEN_NAN if nan.any() else 0) | (SEEN_INF if (~finite & ~nan).any() else 0)
                magnitude[~finite] = 0.0
            largest[some] = np.maximum(largest[some], magnitude.max(axis=1))
    return largest, bool(seen & SEEN_NAN), bool(seen & SEEN_INF)


def _flat(values: Array) -> bool:
    return bool(values.flags.c_contiguous) and bool(values.dtype.isnative)


def _row_blocks(values: Array, whole: bool) -> list[slice]:
    """Rows that go through one buffer: all of them where no buffer is needed."""
    rows, columns = values.shape
    step = rows if whole else max(1, BLOCK // max(1, columns))
    return [slice(at, min(at + step, rows)) for at in range(0, rows, step)]


def _column_blocks(part: Array) -> list[slice]:
    """Columns that NumPy handles at once, so that its temporaries for one long row stay small."""
    rows, columns = part.shape
    step = max(1, BLOCK // max(1, rows))
    return [slice(at, at + step) for at in range(0, columns, step)]
