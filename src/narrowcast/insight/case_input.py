"""What a caller knows of a quantization, brought into one form."""

from typing import Any

import numpy as np
import numpy.typing as npt

from narrowcast.catalog.formats import formats
from narrowcast.errors import FormatError, ShapeError
from narrowcast.insight.quantized_case import QuantizedCase, requantize
from narrowcast.insight.slabs import Array, Spread
from narrowcast.quant import QTensor, decode, unpack
from narrowcast.quant.quantize import quantize
from narrowcast.schema import Format


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
    x = None if values is None else _numbers(values)
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
        if columns is not None or packed:
            raise FormatError(f"{'packed' if packed else 'columns'} describes codes, and none are given.")
        return _quantized(x, row, parameters, offsets, multiplier is not None, arithmetic)
    array = _unpacked(np.asarray(codes), row, x) if packed else _patterns(np.asarray(codes), row)
    if x is not None and array.shape != x.shape:
        if array.ndim and array.ndim == x.ndim and array.shape[:-1] == x.shape[:-1] and array.shape[-1] > x.shape[-1]:
            if columns not in (None, x.shape[-1]):
                raise ShapeError(f"columns is {columns}, and the values have {x.shape[-1]}.")
            columns = x.shape[-1]
        else:
            raise ShapeError(f"codes have shape {array.shape}, values {x.shape}.")
    x = _cut(x, array, columns)
    found = parameters if parameters is not None else np.ones((), np.float32)
    Spread.of(found, array.shape)
    if offsets is not None:
        Spread.of(offsets, array.shape)
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


def _cut(x: Array | None, codes: Array, columns: int | None) -> Array | None:
    """The values of the columns that hold results."""
    if columns is None:
        return x
    last = codes.shape[-1] if codes.ndim else 0
    if not 1 <= columns <= last:
        raise ShapeError(f"columns is {columns}; the codes have {last}.")
    return x if x is None else x[..., :columns]


def _unpacked(packed: Array, row: Format, x: Array | None) -> Array:
    if not row.packs:
        raise FormatError(f"{row.name} codes are not packed: one byte holds two codes of a 4-bit format.")
    if packed.dtype.itemsize != 1:
        if packed.dtype.kind not in "iu" or (packed.size and not 0 <= packed.min() <= packed.max() <= 0xFF):
            raise FormatError(f"packed codes are bytes; got {packed.dtype}.")
        packed = packed.astype(np.uint8)
    return unpack(packed.view(np.uint8), row.name, None if x is None or not x.ndim else x.shape[-1])


def _of_qtensor(x: Array | None, q: QTensor, to: str | None, columns: int | None, arithmetic: str) -> QuantizedCase:
    if to is not None and formats[to].name != q.format:
        raise FormatError(f"to is {to}, and the QTensor holds {q.format}.")
    if x is not None and x.shape != q.codes.shape:
        raise ShapeError(f"the QTensor has shape {q.codes.shape}, values {x.shape}.")
    x = _cut(x, q.codes, columns)
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
    if scale is None and row.bits >= 16 and not row.is_integer:
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


def _numbers(values: npt.ArrayLike) -> Array:
    """Values as they are: slabs of them are widened where they are needed."""
    array = np.asarray(values)
    if array.dtype.kind in "iufb" or array.dtype.name in formats:
        return array
    try:
        if array.dtype.kind == "O":
            return array.astype(np.float64)
    except (TypeError, ValueError):
        pass
    raise FormatError(f"values are {array.dtype}; give numbers.")


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
        codes = array.astype(row.code_dtype)  # keeps the low bits
        if row.bits < 8 * codes.dtype.itemsize:
            codes &= codes.dtype.type(row.code_mask)
        return codes
    if array.dtype.kind == "u":
        if array.size and int(array.max()) > row.code_mask:
            raise FormatError(f"code {int(array.max())} does not fit in the {row.bits} bits of {row.name}.")
        return array.astype(row.code_dtype, copy=False)
    if array.dtype.name == row.ml_dtype or array.dtype.itemsize * 8 == row.bits:
        return array.view(row.code_dtype)
    raise FormatError(
        f"codes are {array.dtype}; {row.name} codes are {row.code_dtype}.",
        hint="Give bit patterns or signed integers; numbers before quantization are the values.",
    )
