"""Rounding to an integer that stays in its floating-point type, at speed."""

from functools import cache
from typing import Any

import numpy as np

from narrowcast import numerics
from narrowcast.catalog.formats import formats
from narrowcast.schema import Rounding
from narrowcast.vector.arrays import Array

_CHUNK = 1 << 16


def round_to_integral(values: Array, rounding: str, *, saturate: bool = False, positive_zero: bool = False) -> Array:
    """Round fp32, fp16 or bf16 values of any shape to integers of the same type.

    16-bit types look results up in a table of all 65,536; fp32 goes through the specification in chunks that
    stay in cache.

    Args:
        values: float32, float16 or bfloat16 array.
        rounding: short mode name.
        saturate: turn infinity into the largest finite value and NaN into 0; otherwise both stay.
        positive_zero: give +0 for every zero; otherwise a zero has the source's sign.
    """
    flat = np.ascontiguousarray(values, dtype=values.dtype.newbyteorder("=")).reshape(-1)
    if flat.dtype.itemsize == 2:
        result = np.take(_table(flat.dtype, rounding, saturate, positive_zero), flat.view(np.uint16))
    else:
        result = np.empty_like(flat)
        for start in range(0, flat.size, _CHUNK):
            part = slice(start, start + _CHUNK)
            result[part] = _rounded(flat[part], rounding, saturate, positive_zero)
    return result.reshape(values.shape)


@cache
def _table(dtype: np.dtype[Any], rounding: str, saturate: bool, positive_zero: bool) -> Array:
    every = np.arange(1 << 16, dtype=np.uint16).view(dtype)
    table = _rounded(every, rounding, saturate, positive_zero)
    table.flags.writeable = False
    return table


def _rounded(values: Array, rounding: str, saturate: bool, positive_zero: bool) -> Array:
    result = numerics.round_to_integral(values, Rounding(rounding))
    if saturate:
        largest = formats[values.dtype.name].max
        result[np.isnan(result)] = 0
        result[np.isposinf(result)] = largest
        result[np.isneginf(result)] = -largest
    if positive_zero:
        result[result == 0] = 0
    return result
