"""Split source values into sign, integer significand and exponent, without loss."""

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

# fp64 is a source only: Python floats arrive as such and are rounded once from their own 53 bits.
SOURCE_DTYPES: dict[str, str] = {
    "float64": "fp64",
    "float32": "fp32",
    "float16": "fp16",
    "bfloat16": "bf16",
    "int8": "s8",
    "uint8": "u8",
    "int16": "s16",
    "uint16": "u16",
    "int32": "s32",
    "uint32": "u32",
    "int64": "s64",
    "uint64": "u64",
    "int4": "s4",
    "uint4": "u4",
}
"""NumPy dtype name of an array of values -> format name."""

_FLOAT_FIELDS = {  # dtype name: bits, fraction bits, bias
    "float64": (64, 52, 1023),
    "float32": (32, 23, 127),
    "float16": (16, 10, 15),
    "bfloat16": (16, 7, 127),
}


@cache
def source_name(dtype: np.dtype[Any]) -> str | None:
    """Name the format of an array of values, None when the dtype is no source."""
    return SOURCE_DTYPES.get(dtype.name)


_BELOW_ALL = -10_000


@dataclass(frozen=True)
class Unpacked:
    """``(-1)**negative * significand * 2**exponent`` for every finite element."""

    negative: npt.NDArray[np.bool_]
    significand: npt.NDArray[np.uint64]
    exponent: npt.NDArray[np.int64]
    nan: npt.NDArray[np.bool_]
    infinite: npt.NDArray[np.bool_]

    @property
    def top(self) -> npt.NDArray[np.int64]:
        """floor(log2(magnitude)), and far below every format where the significand is 0."""
        length = bit_length(self.significand)
        return np.where(length > 0, length - 1 + self.exponent, _BELOW_ALL)


def bit_length(x: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
    """Number of significant bits of each element."""
    high = (x >> np.uint64(32)).astype(np.float64)
    low = (x & np.uint64(0xFFFFFFFF)).astype(np.float64)
    # Each half has at most 32 bits, so float64 holds it and frexp is exact.
    return np.where(high > 0, np.frexp(high)[1] + 32, np.frexp(low)[1]).astype(np.int64)


def unpack(values: Array) -> Unpacked:
    """Take floats (fp64, fp32, fp16, bf16) or integers apart."""
    name = values.dtype.name
    if name in _FLOAT_FIELDS:
        return _unpack_float(values, *_FLOAT_FIELDS[name])
    if name in ("int4", "uint4"):
        values = values.astype(np.int8)
    return _unpack_integer(values)


def _unpack_float(values: Array, bits: int, fraction_bits: int, bias: int) -> Unpacked:
    raw = values.view(f"uint{bits}").astype(np.uint64)
    fraction = raw & np.uint64((1 << fraction_bits) - 1)
    exponent_mask = (1 << (bits - 1 - fraction_bits)) - 1
    field = ((raw >> np.uint64(fraction_bits)) & np.uint64(exponent_mask)).astype(np.int64)
    special = field == exponent_mask
    hidden = np.where(field > 0, np.uint64(1 << fraction_bits), np.uint64(0))
    return Unpacked(
        negative=(raw >> np.uint64(bits - 1)) != 0,
        significand=fraction | hidden,
        exponent=np.maximum(field, 1) - bias - fraction_bits,
        nan=special & (fraction != 0),
        infinite=special & (fraction == 0),
    )


def _unpack_integer(values: Array) -> Unpacked:
    negative = values < 0
    wide = values.astype(np.uint64)  # modular, so negating gives the magnitude even of the lowest integer
    none = np.zeros(values.shape, dtype=np.bool_)
    return Unpacked(
        negative=negative,
        significand=np.where(negative, np.uint64(0) - wide, wide),
        exponent=np.zeros(values.shape, dtype=np.int64),
        nan=none,
        infinite=none,
    )


def bits_of(values: Array) -> npt.NDArray[np.uint32]:
    """Raw bits of fp32 or fp16 values, in 32-bit lanes."""
    width = {"float32": "uint32", "float16": "uint16"}[values.dtype.name]
    return values.view(width).astype(np.uint32)
