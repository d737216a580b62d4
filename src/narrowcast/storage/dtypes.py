"""The element types of the safetensors format and the NumPy arrays that carry them."""

from dataclasses import dataclass

import ml_dtypes
import numpy as np

from narrowcast.errors import CheckpointError


@dataclass(frozen=True)
class StoredType:
    """One dtype string of the safetensors format.

    Attributes:
        name: the string in the header.
        bits: bits per logical element.
        array: NumPy dtype of what is read and written; ``uint8`` bytes for types below one byte.
        is_float: whether the elements are real floating-point numbers.
    """

    name: str
    bits: int
    array: np.dtype[np.generic]
    is_float: bool = False

    @property
    def packed(self) -> bool:
        """Tell whether several elements share a byte, so that the array holds raw bytes."""
        return self.bits < 8


def _rows() -> dict[str, StoredType]:
    # The format is little endian, whatever the host is.
    plain = {
        "BOOL": "?",
        "U8": "u1",
        "I8": "i1",
        "I16": "<i2",
        "U16": "<u2",
        "I32": "<i4",
        "U32": "<u4",
        "I64": "<i8",
        "U64": "<u8",
    }
    rows = [StoredType(name, np.dtype(code).itemsize * 8, np.dtype(code)) for name, code in plain.items()]
    floats: list[tuple[str, type | str]] = [
        ("F16", "<f2"),
        ("F32", "<f4"),
        ("F64", "<f8"),
        ("BF16", ml_dtypes.bfloat16),
        ("F8_E4M3", ml_dtypes.float8_e4m3fn),
        ("F8_E5M2", ml_dtypes.float8_e5m2),
        ("F8_E4M3FNUZ", ml_dtypes.float8_e4m3fnuz),
        ("F8_E5M2FNUZ", ml_dtypes.float8_e5m2fnuz),
    ]
    rows += [StoredType(name, np.dtype(code).itemsize * 8, np.dtype(code), True) for name, code in floats]
    rows += [
        StoredType("F8_E8M0", 8, np.dtype(ml_dtypes.float8_e8m0fnu)),
        StoredType("C64", 64, np.dtype("<c8")),
        StoredType("F4", 4, np.dtype("u1")),
        StoredType("F6_E2M3", 6, np.dtype("u1")),
        StoredType("F6_E3M2", 6, np.dtype("u1")),
    ]
    return {row.name: row for row in rows}


STORED_TYPES = _rows()


def stored_type(name: str) -> StoredType:
    """Look up a dtype string of the safetensors format.

    Args:
        name: the string, for instance ``"BF16"``.

    Returns:
        Its row.

    Raises:
        CheckpointError: no such dtype string.

    Example:
        >>> stored_type("BF16").bits
        16
    """
    row = STORED_TYPES.get(name)
    if row is None:
        raise CheckpointError(
            f"{name!r} is not a safetensors dtype.", hint=f"Known: {', '.join(sorted(STORED_TYPES))}."
        )
    return row


def stored_name(array: np.ndarray[tuple[int, ...], np.dtype[np.generic]]) -> str:
    """Find the dtype string under which an array of this dtype is stored.

    Raises:
        CheckpointError: the format has no such element type.

    Example:
        >>> stored_name(np.zeros(2, np.float16))
        'F16'
    """
    dtype = array.dtype.newbyteorder("<") if array.dtype.kind in "iufc" else array.dtype
    for row in STORED_TYPES.values():
        if not row.packed and row.array == dtype:
            return row.name
    raise CheckpointError(
        f"safetensors has no element type for NumPy dtype {array.dtype}.",
        hint="Store the codes as uint8 and the format's name in the metadata.",
    )
