"""Rounding to an integer that stays in its floating-point type, at speed."""

from functools import cache
from typing import Any

import numpy as np

from narrowcast import numerics
from narrowcast.schema import Rounding
from narrowcast.vector.arrays import Array

_CHUNK = 1 << 16


def round_to_integral(values: Array, rounding: str) -> Array:
    """Round fp32, fp16 or bf16 values of any shape; inf, NaN and the sign of zero are kept.

    16-bit types look results up in a table of all 65,536; fp32 goes through the specification in chunks that
    stay in cache.
    """
    flat = np.ascontiguousarray(values, dtype=values.dtype.newbyteorder("=")).reshape(-1)
    if flat.dtype.itemsize == 2:
        result = _table(flat.dtype, rounding)[flat.view(np.uint16)]
    else:
        result = np.empty_like(flat)
        for start in range(0, flat.size, _CHUNK):
            part = slice(start, start + _CHUNK)
            result[part] = numerics.round_to_integral(flat[part], Rounding(rounding))
    return result.reshape(values.shape)


@cache
def _table(dtype: np.dtype[Any], rounding: str) -> Array:
    codes = np.arange(1 << 16, dtype=np.uint16)
    table = numerics.round_to_integral(codes.view(dtype), Rounding(rounding))
    table.flags.writeable = False
    return table
