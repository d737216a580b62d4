"""Between arrays and formats: what a source array holds, and which array type a result comes in."""

from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from narrowcast.catalog.casts import UNEMULATED
from narrowcast.catalog.formats import formats
from narrowcast.errors import FormatError, ShapeError, UnsupportedCastError
from narrowcast.quant import decode
from narrowcast.quant.arrays import as_codes, first_index
from narrowcast.schema import Format

Array = npt.NDArray[Any]

_BY_DTYPE = {row.ml_dtype: row.name for row in (formats[name] for name in formats) if row.ml_dtype}
_NOT_EMULATED = {"float64": "double", "complex64": "complex64", "complex128": "complex64"}
_NATIVE = ("fp32", "fp16", "bf16")


def dtype_of(fmt: Format) -> np.dtype[Any]:
    """Return the array type of a format's values: NumPy's or ml_dtypes', uint8 codes where neither has one."""
    if fmt.ml_dtype is None:
        return np.dtype(fmt.code_dtype)
    home = np if hasattr(np, fmt.ml_dtype) else ml_dtypes
    dtype: np.dtype[Any] = np.dtype(getattr(home, fmt.ml_dtype))
    return dtype


def source_format(array: Array, source: str | None) -> str:
    """Name the format an array holds."""
    if source is not None:
        return source if source in UNEMULATED else formats[source].name
    name = array.dtype.name
    if name in _NOT_EMULATED:
        raise UnsupportedCastError(
            f"the array holds {name} ({_NOT_EMULATED[name]} on the chip); no operation on it is emulated.",
            hint='Convert it first, e.g. with .astype(np.float32), or name the source: source="fp32".',
            source="asc-devkit:Memory Cast",
        )
    if name not in _BY_DTYPE:
        raise FormatError(f"dtype {array.dtype} is no format of the chip.", hint='Name it, e.g. source="hif8".')
    return _BY_DTYPE[name]


def source_values(array: Array, fmt: Format) -> Array:
    """Return values in an array type that a cast takes: the format's own where it is a source type.

    An array of another type is read as codes if it holds unsigned integers, and as values otherwise; values must
    be exact in the format.
    """
    own = dtype_of(fmt)
    if array.dtype == own and (fmt.name in _NATIVE or (fmt.is_integer and fmt.bits > 4)):
        return array
    is_codes = array.dtype == own or array.dtype.kind == "u"
    if is_codes and fmt.name not in _NATIVE and not (fmt.is_integer and fmt.bits > 4):
        values = decode(as_codes(array, fmt), fmt.name)
        return values.astype(np.int8) if fmt.is_integer else values
    return _exact(array, fmt)


def _exact(array: Array, fmt: Format) -> Array:
    if fmt.name not in _NATIVE and not fmt.is_integer:
        raise FormatError(
            f"{fmt.name} input is an array of codes ({fmt.code_dtype}) or of its own type; got {array.dtype}.",
            hint=f'Encode it first: narrowcast.encode(values, "{fmt.name}").',
        )
    if fmt.is_integer:
        carrier = np.dtype(np.int8) if fmt.bits == 4 else dtype_of(fmt)
        if array.dtype.kind not in "iub":
            raise FormatError(f"{fmt.name} input holds integers; got dtype {array.dtype}.")
        wrong = (array < fmt.min) | (array > fmt.max)
        converted = array.astype(carrier)
    else:
        with np.errstate(over="ignore", invalid="ignore"):
            converted = array.astype(dtype_of(fmt))
            back = converted.astype(array.dtype)
            wrong = (back != array) & ~((back != back) & (array != array))
    if np.any(wrong):
        first = first_index(wrong)
        raise FormatError(
            f"{array[first]} at index {list(first)} is no {fmt.name} value.",
            hint="Round it first, or pass an array of the type you mean.",
        )
    return converted


def check_destination(out: Array | None, shape: tuple[int, ...], dtype: np.dtype[Any], *, at_least: bool) -> None:
    """Refuse an ``out`` array of another type, of another shape, or (count mode) with too few elements."""
    if out is None:
        return
    if not isinstance(out, np.ndarray) or out.dtype != dtype:
        got = out.dtype if isinstance(out, np.ndarray) else type(out).__name__
        raise ShapeError(f"out must be a {dtype} array; got {got}.")
    if not out.flags.writeable:
        raise ShapeError("out is read-only.", hint="Pass a writable array, or omit out.")
    if at_least and out.size < shape[0]:
        raise ShapeError(f"out has {out.size} elements; count asks for {shape[0]}.")
    if not at_least and out.shape != shape:
        raise ShapeError(f"out has shape {out.shape}; the result has {shape}.")
