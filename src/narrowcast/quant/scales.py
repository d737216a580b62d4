"""Scales from data: absolute maximum, percentile, least squared error."""

from collections.abc import Callable

import numpy as np

from narrowcast import kernels
from narrowcast.errors import FormatError, unknown_name
from narrowcast.quant.arrays import Array, first_index
from narrowcast.quant.blocks import Blocks
from narrowcast.schema import Format, IntFormat

METHODS = ("absmax", "percentile", "mse")
DENOMINATORS = ("qmax", "half-range")

ZERO_BLOCK_SCALE = np.float32(2.0**-23)
"""Scale of an all-zero block: finite and harmless (msmodelslim and compressed-tensors use the same)."""

_SMALLEST = np.float32(2.0**-149)
_MSE_FRACTIONS = np.linspace(1.0, 0.3, 71, dtype=np.float32)


def denominator_of(row: Format, convention: str) -> float:
    """What an absolute maximum maps to."""
    if convention not in DENOMINATORS:
        raise unknown_name("denominator convention", convention, DENOMINATORS)
    if not isinstance(row, IntFormat):
        return row.scale_target or float(row.max)
    return float(row.max) if convention == "qmax" else (row.max - row.min) / 2


def absmax(array: Array, blocks: Blocks, nonfinite: str) -> Array:
    """Largest finite magnitude of each block, float32 (float64 for float64 input).

    Raises:
        FormatError: non-finite values under ``nonfinite="error"``, with their number and the first index.
    """
    rows = blocks.rows(array) if array.dtype == np.float32 else None
    if rows is not None:
        largest, has_nan, has_infinity = kernels.absmax_rows(rows)
        if has_nan or has_infinity:
            _refuse_nonfinite(array, nonfinite)
        return largest.reshape(blocks.grid(array.shape))
    dtype = _wide_enough(array)
    result = np.zeros(blocks.grid(array.shape), dtype=dtype)
    for elements, where in blocks.slabs(array.shape):
        part = array[elements]
        if part.size == 0:
            continue
        high, low = _extremes(part.astype(dtype, copy=False), blocks)
        found = np.maximum(high, -low)
        if not np.isfinite(found).all():
            _refuse_nonfinite(array, nonfinite)
            clean = part.astype(dtype)
            clean[~np.isfinite(clean)] = 0
            high, low = _extremes(clean, blocks)
            found = np.maximum(high, -low)
        result[where] = np.maximum(result[where], found) if not blocks.shape else found
    return result


def _wide_enough(array: Array) -> str:
    """fp32 holds fp32, fp16, bf16 and integers up to 16 bits."""
    return "float64" if array.dtype.name in ("float64", "int32", "uint32", "int64", "uint64") else "float32"


def _extremes(part: Array, blocks: Blocks) -> tuple[Array, Array]:
    return blocks.reduce(part, np.maximum), blocks.reduce(part, np.minimum)


def _refuse_nonfinite(array: Array, policy: str) -> None:
    if policy != "error":
        return
    bad = ~np.isfinite(array)
    first = first_index(bad)
    raise FormatError(
        f"{int(bad.sum())} non-finite values, first {array[first]} at index {list(first)}: quantize needs a policy.",
        hint='Pass nonfinite="saturate" (inf to the largest value, NaN to 0) or nonfinite="keep".',
    )


def scale_of(maximum: Array, denominator: float) -> Array:
    """``maximum / denominator`` in fp32, never zero: 2**-23 for an all-zero block; infinite beyond fp32."""
    wide = maximum / maximum.dtype.type(denominator)
    with np.errstate(under="ignore", over="ignore"):
        scale = np.maximum(np.asarray(wide, dtype=np.float32), _SMALLEST)
    return np.where(maximum == 0, ZERO_BLOCK_SCALE, scale)


def asymmetric_parameters(array: Array, blocks: Blocks, row: IntFormat) -> tuple[Array, Array]:
    """Scale and offset of each block from ``min(0, minimum)`` and ``max(0, maximum)``.

    Formula: ``scale = (max - min) / (qmax - qmin)``, ``offset = rint(-min / scale) + qmin``.
    """
    grid, dtype = blocks.grid(array.shape), _wide_enough(array)
    high, low = np.zeros(grid, dtype), np.zeros(grid, dtype)
    for elements, where in blocks.slabs(array.shape):
        part = array[elements].astype(dtype)
        if part.size == 0:
            continue
        part[~np.isfinite(part)] = 0
        top, bottom = _extremes(part, blocks)
        high[where] = np.maximum(high[where], top)
        low[where] = np.minimum(low[where], bottom)
    with np.errstate(over="ignore"):
        span = high - low
    if np.isinf(span).any():
        span = high.astype(np.float64) - low.astype(np.float64)
    scale = scale_of(span, float(row.max - row.min))
    offset = np.rint(-low / scale) + row.min
    return scale, np.clip(offset, row.min, row.max).astype(np.int32)


def percentile_absmax(array: Array, blocks: Blocks, percentile: float) -> Array:
    """Percentile of the finite magnitudes of each block, linear between ranks."""
    if not 0 < percentile <= 100:
        raise FormatError(f"percentile {percentile} is outside (0, 100].")
    dtype = _wide_enough(array)
    result = np.zeros(blocks.grid(array.shape), dtype)
    for index in np.ndindex(result.shape):
        part = array[_element_slices(index, blocks, array.shape)]
        magnitude = np.abs(part[np.isfinite(part)].astype(dtype))
        result[index] = np.percentile(magnitude, percentile) if magnitude.size else 0.0
    return result


def _element_slices(index: tuple[int, ...], blocks: Blocks, shape: tuple[int, ...]) -> tuple[slice, ...]:
    if not blocks.shape:
        return tuple(slice(None) for _ in shape)
    return tuple(slice(i * b, (i + 1) * b) for i, b in zip(index, blocks.sizes(shape), strict=True))


def search_mse(array: Array, blocks: Blocks, start: Array, values: Callable[[Array, Array], Array]) -> Array:
    """Scale of least squared error per block, over 71 fractions (1.00 to 0.30) of ``start``.

    Args:
        array: the data.
        blocks: which elements share a scale.
        start: scales to shrink from.
        values: maps (slab, scales) to rounded quotients as float32.
    """
    grid = start.shape
    best_error = np.full(grid, np.inf)
    best = start.copy()
    for fraction in _MSE_FRACTIONS:
        candidate = np.maximum(start * fraction, _SMALLEST)
        error = np.zeros(grid)
        for elements, where in blocks.slabs(array.shape):
            part = array[elements]
            back = values(part, candidate[where]) * blocks.expand(candidate[where], part.shape)
            difference = np.subtract(part, back, where=np.isfinite(part), out=np.zeros(part.shape))
            squared = np.square(difference)
            total = blocks.reduce(squared, np.add)
            error[where] = error[where] + total if not blocks.shape else total
        better = error < best_error
        best_error = np.where(better, error, best_error)
        best = np.where(better, candidate, best)
    return best
