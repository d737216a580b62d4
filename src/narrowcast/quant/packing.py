"""Two 4-bit codes per byte, even element in the low nibble."""

import numpy.typing as npt

from narrowcast import kernels
from narrowcast.catalog.formats import formats
from narrowcast.errors import FormatError, ShapeError
from narrowcast.quant.arrays import Array, as_codes
from narrowcast.schema import Format


def _packed_format(format: str) -> Format:
    row = formats[format]
    if not row.packs:
        raise FormatError(f"{row.name} codes have {row.bits} bits; only 4-bit codes share a byte.")
    return row


def pack(codes: npt.ArrayLike, format: str) -> Array:
    """Pack 4-bit codes along the last axis, two per byte, even element in the low nibble.

    Args:
        codes: codes below 16, any shape with at least one axis.
        format: ``e2m1``, ``e1m2``, ``s4`` or ``u4``.

    Returns:
        uint8 array; an odd last axis gets a zero high nibble in its last byte.

    Raises:
        FormatError: a format that is not 4 bits wide, or a code above 15.
        ShapeError: a 0-d array.

    Source: pto-isa:tcvt test data; pto-spec:ADR-0033.

    Example:
        >>> pack([10, 2, 3, 14], "s4").tolist()
        [42, 227]
    """
    row = _packed_format(format)
    array = as_codes(codes, row)
    if array.ndim == 0:
        raise ShapeError("pack needs at least one axis; got a single code.")
    return kernels.pack(array)


def unpack(packed: npt.ArrayLike, format: str, count: int | None = None) -> Array:
    """Unpack bytes into 4-bit codes along the last axis; the inverse of :func:`pack`.

    Args:
        packed: uint8 array.
        format: ``e2m1``, ``e1m2``, ``s4`` or ``u4``.
        count: codes along the last axis; default twice the bytes.

    Returns:
        uint8 array of codes.

    Raises:
        FormatError: a format that is not 4 bits wide.
        ShapeError: a count the bytes cannot hold, or that leaves a byte unused.

    Source: pto-isa:tcvt test data; pto-spec:ADR-0033.

    Example:
        >>> unpack([42, 227], "s4", 3).tolist()
        [10, 2, 3]
    """
    _packed_format(format)
    array = as_codes(packed, formats["u8"])
    if array.ndim == 0:
        raise ShapeError("unpack needs at least one axis; got a single byte.")
    size = array.shape[-1]
    if count is None:
        count = 2 * size
    if (count + 1) // 2 != size:
        raise ShapeError(f"last axis: {count} codes need {(count + 1) // 2} bytes; got {size}.")
    return kernels.unpack(array, count)
