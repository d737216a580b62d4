"""Scales from data, then codes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from narrowcast import kernels
from narrowcast.catalog.formats import formats
from narrowcast.catalog.rounding import rounding as resolve_rounding
from narrowcast.errors import FormatError, ShapeError, unknown_name
from narrowcast.quant.arrays import Array, as_values, first_index
from narrowcast.quant.blocks import Blocks
from narrowcast.quant.cast import Cast, RoundingLike
from narrowcast.quant.qtensor import QTensor, Record
from narrowcast.quant.scales import (
    METHODS,
    absmax,
    asymmetric_parameters,
    denominator_of,
    percentile_absmax,
    scale_of,
    search_mse,
)
from narrowcast.schema import Format, IntFormat, Rounding

NONFINITE_POLICIES = ("error", "saturate", "keep")


def quantize(
    x: npt.ArrayLike,
    format: str,
    blocks: Blocks | Sequence[int | None] = Blocks.per_tensor,
    scale: npt.ArrayLike | None = None,
    offset: npt.ArrayLike | None = None,
    *,
    symmetric: bool | None = None,
    method: str = "absmax",
    percentile: float = 99.99,
    denominator: str = "qmax",
    rounding: RoundingLike = None,
    saturate: bool = True,
    nonfinite: str = "error",
) -> QTensor:
    """Quantize an array: one scale per block, one code per element.

    Formula: ``code = round(x / scale) + offset``, saturated; ``real = (code - offset) * scale``. The division is
    a division (not a multiplication by a reciprocal), in fp32 for fp32, fp16 and bf16 input.

    Args:
        x: float or integer array of any shape.
        format: target format name or alias.
        blocks: which elements share a scale: ``Blocks.per_tensor``, ``Blocks.per_row``, ``Blocks((1, 32))`` or just
            the shape, ``(1, 32)``.
        scale: float32 scales, positive and finite, broadcastable to ``blocks.grid(x.shape)``; None: from the data.
        offset: integers in the format's range (integer formats only); None: 0, or from the data when asymmetric.
        symmetric: False takes scale and offset from each block's minimum and maximum (integer formats only);
            None is False for unsigned integers, True elsewhere.
        method: ``absmax``, ``percentile`` (of the magnitudes) or ``mse`` (least squared error over fractions of
            the absmax scale).
        percentile: for ``method="percentile"``.
        denominator: what an integer's absolute maximum maps to: ``qmax`` (127, 7) or ``half-range`` (127.5, 7.5).
        rounding: mode, None for the format's default.
        saturate: whether codes clamp; the default.
        nonfinite: ``error``; ``saturate`` (inf to the largest value, NaN to 0) or ``keep`` (NaN kept where the
            format has one). Non-finite values never enter a scale.

    Returns:
        A :class:`QTensor`; an all-zero block has scale 2**-23.

    Raises:
        FormatError: non-finite input without a policy; a scale that is not positive and finite; an offset for a
            floating-point format.
        ShapeError: scale or offset that do not fit the blocks.

    Source: seed:TDEQUANT (q = round(x / scale) + offset); msmodelslim and compressed-tensors for the denominators.

    Example:
        >>> quantize(np.float32([[1.0, -2.0], [0.0, 0.0]]), "s8", Blocks.per_row).codes.tolist()
        [[64, 129], [0, 0]]
    """
    row = formats[format]
    array = as_values(x)
    blocks = Blocks.of(blocks)
    _check(method, METHODS, "scale method")
    _check(nonfinite, NONFINITE_POLICIES, "non-finite policy")
    mode = row.default_rounding if rounding is None else resolve_rounding(rounding)
    if symmetric is None:
        symmetric = row.signed or scale is not None
    _check_family(row, symmetric, offset)
    _check_method(method, symmetric, scale is not None)
    extremes = absmax(array, blocks, nonfinite)
    if symmetric and scale is None and not row.signed:
        _check_no_negative(array, row)
    target = denominator_of(row, denominator)
    offsets: Array | None = None
    if scale is not None:
        scales = _given_scale(scale, blocks.grid(array.shape))
    elif not symmetric:
        assert isinstance(row, IntFormat)
        scales, offsets = asymmetric_parameters(array, blocks, row)
    elif method == "percentile":
        scales = scale_of(percentile_absmax(array, blocks, percentile), target)
    else:
        scales = scale_of(extremes, target)
    _check_scales(scales, extremes)
    if offset is not None:
        assert isinstance(row, IntFormat)
        offsets = _given_offset(offset, blocks.grid(array.shape), row)
    encoder = _Encoder(row, blocks, Cast(None, row.name, mode, saturate, _nan_policy(row, nonfinite)))
    if method == "mse" and scale is None:
        scales = search_mse(array, blocks, scales, lambda part, s: encoder.values(part, s))
    codes = encoder.fused(array, scales, offsets)
    if codes is None:
        codes = np.empty(array.shape, dtype=row.code_dtype)
        for elements, where in blocks.slabs(array.shape):
            offset_here = None if offsets is None else offsets[where]
            codes[elements] = encoder.codes(array[elements], scales[where], offset_here)
    record = Record(
        rule=f"{method if scale is None else 'given scale'}, {'symmetric' if offsets is None else 'asymmetric'}",
        rounding=mode.value,
        saturate=saturate,
        nonfinite=nonfinite,
        scale_from=method if scale is None else "given",
        denominator=target if scale is None and symmetric else None,
    )
    return QTensor(codes, row.name, scales, offsets, blocks, record)


@dataclass(frozen=True)
class _Encoder:
    """Codes of one slab: divide over the blocks, cast, add the offset."""

    row: Format
    blocks: Blocks
    cast: Cast

    def scaled(self, part: Array, scale: Array) -> Array:
        wide = part if part.dtype == np.float64 else part.astype(_compute_dtype(part), copy=False)
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            quotient: Array = np.asarray(wide / self.blocks.expand(scale, part.shape).astype(wide.dtype, copy=False))
        return quotient

    def values(self, part: Array, scale: Array) -> Array:
        return self.cast.round_to(self.scaled(part, scale))

    def codes(self, part: Array, scale: Array, offset: Array | None) -> Array:
        quotient = self.scaled(part, scale)
        if offset is None:
            return self.cast(quotient)
        assert isinstance(self.row, IntFormat)
        wide = Cast(None, "s32", self.cast.mode, True, self.cast.nan)(quotient).view(np.int32).astype(np.int64)
        return self.cast(wide + self.blocks.expand(offset, part.shape).astype(np.int64))

    def fused(self, array: Array, scale: Array, offset: Array | None) -> Array | None:
        """Divide, round, offset and clamp in one kernel, None where there is none for this cast."""
        small = isinstance(self.row, IntFormat) and self.row.bits <= 8
        plain = self.cast.mode is Rounding.RN and self.cast.saturate and self.cast.nan == "zero"
        rows = self.blocks.rows(array) if small and plain and array.dtype == np.float32 else None
        if rows is None:
            return None
        assert isinstance(self.row, IntFormat)
        offsets = None if offset is None else offset.reshape(-1)
        return kernels.quantize_rows(rows, scale.reshape(-1), self.row, offsets).reshape(array.shape)


def _compute_dtype(part: Array) -> str:
    """fp32 holds fp32, fp16, bf16 and integers up to 16 bits; wider integers divide in fp64."""
    return "float64" if part.dtype.kind in "iu" and part.dtype.itemsize > 2 else "float32"


def _check(value: str, legal: tuple[str, ...], kind: str) -> None:
    if value not in legal:
        raise unknown_name(kind, value, legal)


def _check_family(row: Format, symmetric: bool, offset: Any) -> None:
    if isinstance(row, IntFormat) and row.bits <= 16:
        return
    if isinstance(row, IntFormat) or row.name == "e8m0":
        raise FormatError(
            f"{row.name} is no target of quantize.", hint="Use an integer of at most 16 bits, or a float format."
        )
    if not symmetric or offset is not None:
        raise FormatError(
            f"{row.name} takes no offset: only integer formats have a zero point.",
            hint="Leave symmetric and offset at their defaults.",
        )


def _check_method(method: str, symmetric: bool, given: bool) -> None:
    if method != "absmax" and (given or not symmetric):
        what = "a given scale" if given else "asymmetric quantization"
        raise FormatError(f"method {method!r} does not apply to {what}.", hint="Leave method at its default.")


def _check_scales(scales: Array, extremes: Array) -> None:
    beyond = np.isinf(scales)
    if beyond.any():
        first = first_index(beyond)
        raise FormatError(
            f"block {list(first)} has values up to {float(extremes[first]):g}: its scale would be beyond fp32.",
            hint="Multiply the data by a power of two first, and the result by its inverse.",
        )


def _check_no_negative(array: Array, row: Format) -> None:
    negative = array < 0
    if negative.any():
        first = first_index(negative)
        raise FormatError(
            f"{row.name} is unsigned: {int(negative.sum())} negative values, first {array[first]} at index "
            f"{list(first)}, would all become 0.",
            hint="Leave symmetric=None (scale and offset from minimum and maximum), or use a signed format.",
            source="seed:5.4",
        )


def _nan_policy(row: Format, nonfinite: str) -> str:
    return "keep" if nonfinite == "keep" and row.nan_code is not None else "zero"


def _given_scale(scale: npt.ArrayLike, grid: tuple[int, ...]) -> Array:
    array = _fit(np.asarray(scale, dtype=np.float32), grid, "scale")
    bad = ~(np.isfinite(array) & (array > 0))
    if bad.any():
        first = first_index(bad)
        raise FormatError(
            f"scale {array[first]} at block {list(first)}: a scale is positive and finite in fp32.",
            hint="An all-zero block takes 2**-23.",
        )
    return array


def _given_offset(offset: npt.ArrayLike, grid: tuple[int, ...], row: IntFormat) -> Array:
    array = np.asarray(offset)
    if array.dtype.kind == "f" and np.array_equal(array, np.rint(array)):
        array = array.astype(np.int64)
    if array.dtype.kind not in "iu" or (array.size and (array.min() < row.min or array.max() > row.max)):
        got = f"{array.dtype} {np.asarray(offset).reshape(-1)[:4].tolist()}"
        raise FormatError(f"offsets for {row.name} are integers in {row.min}..{row.max}; got {got}.")
    return _fit(array.astype(np.int32), grid, "offset")


def _fit(array: Array, grid: tuple[int, ...], name: str) -> Array:
    if array.ndim == 1 and len(grid) > 1 and array.size == np.prod(grid):
        array = array.reshape(grid)
    try:
        return np.broadcast_to(array, grid).copy()
    except ValueError:
        raise ShapeError(f"{name} has shape {array.shape}; these blocks need {grid}, or one value.") from None
