"""Accept what users pass as values and codes, and say clearly what is not accepted."""

from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from narrowcast.errors import FormatError, ShapeError
from narrowcast.numerics import SOURCE_DTYPES, source_name
from narrowcast.schema import Format

Array = npt.NDArray[Any]

_SMALL_FLOATS = frozenset(
    name for name in dir(ml_dtypes) if name.startswith("float") and hasattr(getattr(ml_dtypes, name), "dtype")
)


def first_index(mask: Array) -> tuple[int, ...]:
    """Index of the first true element."""
    return tuple(int(i) for i in np.unravel_index(int(np.argmax(mask)), mask.shape))


def as_values(values: npt.ArrayLike) -> Array:
    """Return an array of a source dtype; 8-bit and smaller floats are widened to float32, exactly."""
    array = np.asarray(values)
    if source_name(array.dtype) is not None:
        return array
    if array.dtype.name in _SMALL_FLOATS:
        return array.astype(np.float32)
    legal = ", ".join(SOURCE_DTYPES)
    raise FormatError(
        f"values of dtype {array.dtype} cannot be converted (accepted: {legal}, and the ml_dtypes floats).",
        hint="Convert them first, e.g. with .astype(np.float32).",
    )


def as_codes(codes: npt.ArrayLike, fmt: Format) -> Array:
    """Return an array of ``fmt.code_dtype``, after checking that every code exists."""
    array = np.asarray(codes)
    if array.dtype == fmt.code_dtype and fmt.bits == fmt.code_bits:
        return array
    if fmt.ml_dtype is not None and array.dtype.name == fmt.ml_dtype:
        return array.astype(array.dtype.newbyteorder("="), copy=False).view(fmt.code_dtype)
    if isinstance(codes, list | tuple) and array.size == 0:
        return array.astype(fmt.code_dtype)
    if array.dtype.kind not in "iu" or array.dtype.name in ("int4", "uint4"):
        raise FormatError(
            f"codes of {fmt.name} are unsigned integers ({fmt.code_dtype}), one per element; got dtype {array.dtype}.",
            hint="Pass the bit patterns, e.g. array.view(np.uint8).",
        )
    if array.size and (array.min() < 0 or array.max() > fmt.code_mask):
        bad = (array < 0) | (array > fmt.code_mask)
        first = first_index(bad)
        raise FormatError(
            f"code {int(array[first])} at index {list(first)} is outside 0..{fmt.code_mask} "
            f"({fmt.name}, {fmt.bits} bits).",
            hint=f'Codes are bit patterns; encode(values, "{fmt.name}") makes them from values.',
        )
    return array.astype(fmt.code_dtype, copy=False)


def check_out(out: Array | None, shape: tuple[int, ...], dtype: str) -> None:
    """Refuse an ``out`` array that cannot hold the result."""
    if out is None:
        return
    if not isinstance(out, np.ndarray) or out.shape != shape or out.dtype != dtype:
        got = f"{out.dtype} {out.shape}" if isinstance(out, np.ndarray) else type(out).__name__
        raise ShapeError(f"out must be a {dtype} array of shape {shape}; got {got}.")
    if not out.flags.writeable:
        raise ShapeError("out is read-only.", hint="Pass a writable array, or omit out.")
