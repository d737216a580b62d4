"""A quantized tensor under examination: values, codes, parameters, and how good the result is."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from narrowcast.catalog.formats import formats
from narrowcast.errors import FormatError, ShapeError
from narrowcast.quant import QTensor, decode, unpack
from narrowcast.quant.quantize import quantize
from narrowcast.quant.scales import denominator_of
from narrowcast.schema import Format

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Quality:
    """What a quantization did to the finite values.

    Attributes:
        sqnr_db: 10 log10(sum x^2 / sum (real - x)^2); infinite when exact, NaN without a signal.
        lost: sum of abs(real - x) over sum of abs(x).
        saturated: share of elements clamped to the largest code.
        flushed: share of the non-zero elements that became zero.
        bad: elements whose result is not finite though the value is.
    """

    sqnr_db: float
    lost: float
    saturated: float
    flushed: float
    bad: int

    def __str__(self) -> str:
        level = "exact" if self.sqnr_db == math.inf else f"{self.sqnr_db:.1f} dB"
        text = (
            f"{level}, {self.lost:.1%} of the magnitude lost, {self.saturated:.2%} clamped, {self.flushed:.1%} zeroed"
        )
        return f"{text}, {self.bad} not finite" if self.bad else text

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form; infinities and NaN as strings."""
        return {k: v if not isinstance(v, float) or math.isfinite(v) else str(v) for k, v in asdict(self).items()}


@dataclass(frozen=True, eq=False, kw_only=True)
class QuantizedCase:
    """What is known of one quantization; absent parts are None.

    Attributes:
        values: the original, float32 or float64.
        codes: unpacked bit patterns.
        format: of the codes.
        scale: real = (code - offset) * scale, as stored (its dtype counts).
        offset: integers.
        multiplier: whether the caller gave multipliers; then ``scale`` is their reciprocal.
        blocks: elements per scale on each axis, None to take it from the shapes.
        scale_codes: E8M0 bytes of MX scales.
        columns: columns that hold results.
        arithmetic: format in which the operation works.
        given_scale: whether the scale was given rather than computed.
    """

    values: Array | None
    codes: Array
    format: str
    scale: Array
    offset: Array | None = None
    multiplier: bool = False
    blocks: tuple[int, ...] | None = None
    scale_codes: Array | None = None
    columns: int | None = None
    arithmetic: str = "fp32"
    packed: bool = False
    given_scale: bool = False
    given_codes: bool = False

    @property
    def row(self) -> Format:
        """The format's row."""
        return formats[self.format]

    @cached_property
    def target(self) -> float:
        """What a block's absolute maximum maps to."""
        return denominator_of(self.row, "qmax")

    @cached_property
    def code_values(self) -> Array:
        """Values of the codes."""
        return decode(self.codes, self.format).astype(np.float64)

    @cached_property
    def step(self) -> Array:
        """The scale of every element."""
        return expand(self.scale.astype(np.float64), self.codes.shape, self.blocks)

    @cached_property
    def real(self) -> Array:
        """What the codes stand for."""
        offset = 0.0 if self.offset is None else expand(self.offset.astype(np.float64), self.codes.shape, self.blocks)
        with np.errstate(invalid="ignore", over="ignore"):
            return np.asarray((self.code_values - offset) * self.step)

    @cached_property
    def wide(self) -> Array:
        """The values in float64; only with values."""
        assert self.values is not None
        return self.values.astype(np.float64)

    @cached_property
    def matching(self) -> Array:
        """``real`` over the columns that have a value."""
        return self.real if self.columns is None else self.real[..., : self.columns]

    @cached_property
    def quality(self) -> Quality:
        """How good the result is; only with values."""
        return quality(self.wide, self.matching, self.clamped)

    @cached_property
    def clamped(self) -> Array:
        """Elements beyond the largest code, clamped to it; without values, elements that have such a code."""
        top, bottom = float(self.row.max), float(self.row.min)
        values = self.code_values if self.columns is None else self.code_values[..., : self.columns]
        extreme = (values >= top) | ((values <= bottom) & (bottom < 0))
        if self.values is None:
            return np.asarray(extreme)
        step = self.step if self.columns is None else self.step[..., : self.columns]
        with np.errstate(invalid="ignore"):
            gap = _last_gap(self.row) / 2
            beyond = np.abs(self.matching - self.wide) > gap * step * (1 + 1e-6)
        return np.asarray(extreme & beyond & np.isfinite(self.wide))

    def with_codes(self, codes: Array, **changes: Any) -> Self:
        """Return a copy with other codes or parameters."""
        return replace(self, codes=codes, **changes)


def expand(per_block: Array, shape: tuple[int, ...], blocks: Sequence[int] | None = None) -> Array:
    """Repeat per-block parameters over an array of ``shape``.

    Raises:
        ShapeError: parameters that fit neither one block, nor rows, columns or blocks.
    """
    if per_block.size == 1:
        return np.broadcast_to(per_block.reshape(()), shape)
    if per_block.shape == shape:
        return per_block
    if per_block.ndim == 1 and len(shape) >= 2:
        if per_block.size == shape[-2]:
            per_block = per_block[:, None]
        elif per_block.size == shape[-1]:
            per_block = per_block[None, :]
    if per_block.ndim < len(shape):
        per_block = per_block.reshape((1,) * (len(shape) - per_block.ndim) + per_block.shape)
    for axis, n in enumerate(shape):
        have = per_block.shape[axis] if axis < per_block.ndim else 0
        if have in (1, n):
            continue
        size = blocks[axis] if blocks is not None else n // have if have and n % have == 0 else 0
        if not size or -(-n // size) != have:
            raise ShapeError(
                f"parameters of shape {per_block.shape} fit no blocks of codes of shape {shape}.",
                hint="Use one parameter, [M, 1] for rows, [1, N] for columns, or one per block.",
            )
        per_block = np.repeat(per_block, size, axis=axis).take(np.arange(n), axis=axis)
    return np.broadcast_to(per_block, shape)


def quality(values: Array, real: Array, clamped: Array | None = None) -> Quality:
    """Measure results against values; elements without a finite value are left out."""
    finite = np.isfinite(values)
    good = finite & np.isfinite(real)
    error = np.where(good, real - np.where(finite, values, 0), 0.0)
    kept = np.where(good, values, 0.0)
    signal, noise = float(np.square(kept).sum()), float(np.square(error).sum())
    magnitude = float(np.abs(kept).sum())
    sqnr = (
        (math.inf if signal else math.nan) if noise == 0 else (10 * math.log10(signal / noise) if signal else -math.inf)
    )
    count, nonzero = int(finite.sum()), finite & (values != 0)
    return Quality(
        sqnr_db=sqnr,
        lost=float(np.abs(error).sum()) / magnitude if magnitude else 0.0,
        saturated=float(clamped.sum()) / count if clamped is not None and count else 0.0,
        flushed=float((nonzero & (real == 0)).sum()) / max(int(nonzero.sum()), 1),
        bad=int((finite & ~np.isfinite(real)).sum()),
    )


def _last_gap(row: Format) -> float:
    """Distance between the two largest values."""
    if row.is_integer:
        return 1.0
    codes = np.arange(row.code_mask + 1, dtype=row.code_dtype)
    values = decode(codes, row.name)
    top = np.unique(values[np.isfinite(values)])[-2:]
    return float(top[1] - top[0])


def build_case(
    values: npt.ArrayLike | None = None,
    quantized: Any = None,
    *,
    codes: npt.ArrayLike | None = None,
    scale: npt.ArrayLike | None = None,
    multiplier: npt.ArrayLike | None = None,
    offset: npt.ArrayLike | None = None,
    to: str | None = None,
    columns: int | None = None,
    packed: bool = False,
    arithmetic: str = "fp32",
    scale_format: str | None = None,
) -> QuantizedCase:
    """Bring what a caller has into one form; without codes the values are quantized here.

    Raises:
        FormatError: nothing to examine, or parts that contradict each other.
        ShapeError: codes and values of different shapes.
    """
    x = None if values is None else _floats(values)
    arithmetic = formats[arithmetic].name
    if scale is not None and multiplier is not None:
        raise FormatError("both a scale and a multiplier: they are reciprocal, give the one the call takes.")
    if isinstance(quantized, QTensor):
        if codes is not None or scale is not None or multiplier is not None:
            raise FormatError("a QTensor brings its own codes and scales; leave codes, scale and multiplier out.")
        return _of_qtensor(x, quantized, to, columns, arithmetic)
    if quantized is not None:
        codes = quantized if codes is None else codes
    if to is None:
        raise FormatError("no format: say what the codes are, or what to quantize to (to=...).")
    row = formats[to]
    parameters = _scales(scale, multiplier, scale_format)
    offsets = None if offset is None else np.asarray(offset)
    if codes is None:
        if x is None:
            raise FormatError("nothing to examine: give values, codes or both.")
        return _quantized(x, row, parameters, offsets, multiplier is not None, arithmetic)
    array = np.asarray(codes)
    if packed:
        count = None if x is None else x.shape[-1]
        array = unpack(array.view(np.uint8), row.name, count) if array.ndim else array
    array = _patterns(array, row)
    if x is not None and array.shape != x.shape:
        if array.ndim == x.ndim and array.shape[:-1] == x.shape[:-1] and array.shape[-1] > x.shape[-1]:
            columns = x.shape[-1]
        else:
            raise ShapeError(f"codes have shape {array.shape}, values {x.shape}.")
    if columns is not None and not 1 <= columns <= array.shape[-1]:
        raise ShapeError(f"columns is {columns}; the codes have {array.shape[-1]}.")
    found = parameters if parameters is not None else np.ones((), np.float32)
    expand(found, array.shape)
    return QuantizedCase(
        values=x,
        codes=array,
        format=row.name,
        scale=found,
        offset=offsets,
        multiplier=multiplier is not None,
        columns=columns,
        arithmetic=arithmetic,
        packed=packed or row.packs,
        given_scale=parameters is not None,
        given_codes=True,
    )


def _of_qtensor(x: Array | None, q: QTensor, to: str | None, columns: int | None, arithmetic: str) -> QuantizedCase:
    if to is not None and formats[to].name != q.format:
        raise FormatError(f"to is {to}, and the QTensor holds {q.format}.")
    if x is not None and x.shape != q.codes.shape:
        raise ShapeError(f"the QTensor has shape {q.codes.shape}, values {x.shape}.")
    mx = q.scale_format == "e8m0"
    scale = decode(q.scale, "e8m0") if mx else q.scale
    return QuantizedCase(
        values=x,
        codes=q.codes,
        format=q.format,
        scale=np.asarray(scale),
        offset=q.offset,
        blocks=q.blocks.sizes(q.codes.shape),
        scale_codes=q.scale if mx else None,
        columns=columns,
        arithmetic=arithmetic,
        packed=formats[q.format].packs,
        given_scale=True,
        given_codes=True,
    )


def _quantized(
    x: Array, row: Format, scale: Array | None, offset: Array | None, multiplier: bool, arithmetic: str
) -> QuantizedCase:
    """Quantize as the package does; a scale that quantize refuses is kept for the detectors."""
    if scale is None and row.bits == 16 and not row.is_integer:
        scale = np.ones((), np.float32)
        given = False
    else:
        given = scale is not None
    if scale is None:
        q = quantize(x, row.name, nonfinite="saturate", offset=offset)
        scale, codes, offset = q.scale, q.codes, q.offset
    else:
        codes = requantize(x, row, scale, offset)
    return QuantizedCase(
        values=x,
        codes=codes,
        format=row.name,
        scale=np.asarray(scale),
        offset=offset,
        multiplier=multiplier,
        arithmetic=arithmetic,
        packed=row.packs,
        given_scale=given,
    )


def requantize(x: Array, row: Format, scale: Array, offset: Array | None = None) -> Array:
    """Divide, round and clamp with parameters taken as they are, zero and NaN included."""
    from narrowcast.quant import Cast

    step = expand(scale.astype(x.dtype), x.shape)
    with np.errstate(all="ignore"):
        quotient = np.asarray(x / step)
    if offset is not None:
        with np.errstate(all="ignore"):
            quotient = np.rint(quotient) + expand(np.asarray(offset, x.dtype), x.shape)
    return np.asarray(Cast(None, row.name, None, True, "keep" if row.nan_code is not None else "zero")(quotient))


def _floats(values: npt.ArrayLike) -> Array:
    array = np.asarray(values)
    if array.dtype.kind in "iu":
        return array.astype(np.float64 if array.dtype.itemsize > 2 else np.float32)
    if array.dtype == np.float64:
        return array
    try:
        return array.astype(np.float32)
    except (TypeError, ValueError):
        raise FormatError(f"values are {array.dtype}; give numbers.") from None


def _scales(scale: Any, multiplier: Any, scale_format: str | None) -> Array | None:
    given = scale if scale is not None else multiplier
    if given is None:
        return None
    array = np.asarray(given)
    if array.dtype.kind in "iu":
        array = array.astype(np.float32)
    if scale_format is not None and formats[scale_format].name == "fp16":
        with np.errstate(over="ignore", under="ignore"):
            array = array.astype(np.float16)
    elif array.dtype == np.float64:
        array = array.astype(np.float32)
    if multiplier is not None:
        with np.errstate(divide="ignore"):
            array = (1 / array.astype(np.float32)).astype(np.float32)
    return array


def _patterns(array: Array, row: Format) -> Array:
    """Codes as bit patterns, from signed integers or ml_dtypes as well."""
    if array.dtype.kind == "i":
        low, high = -(1 << (row.bits - 1)), row.code_mask
        if array.size and not low <= int(array.min()) <= int(array.max()) <= high:
            raise FormatError(
                f"codes {int(array.min())}..{int(array.max())} do not fit in the {row.bits} bits of {row.name}."
            )
        return (array.astype(np.int64) & row.code_mask).astype(row.code_dtype)
    if array.dtype.kind == "u":
        if array.size and int(array.max()) > row.code_mask:
            raise FormatError(f"code {int(array.max())} does not fit in the {row.bits} bits of {row.name}.")
        return array.astype(row.code_dtype)
    if array.dtype.name == row.ml_dtype or array.dtype.itemsize * 8 == row.bits:
        return array.view(row.code_dtype)
    raise FormatError(f"codes are {array.dtype}; {row.name} codes are {row.code_dtype}.")
