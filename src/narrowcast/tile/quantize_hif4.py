"""TQUANT to HiF4, as chip A6 of the tile library computes it; no operand type of the 950.

64 elements share an E6M2 scale; each 8 of them a bit, each 4 another, that double it; elements are E1M2. Every
product is rounded to bf16 on the way, which is what tells this from the format's own reference.
"""

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from narrowcast.errors import FormatError, ShapeError
from narrowcast.quant import decode, encode, pack

Array = npt.NDArray[Any]

GROUP = 64
_BIAS = 48
_LARGEST = 0xFE  # 1.5 * 2**15; 0xFF is NaN
_BLOCK = 16  # groups in one block of the Cube's exponent order


@dataclass(frozen=True, eq=False)
class HiF4:
    """Codes and scales: ``value = e6m2 * 2**(bit of 8 + bit of 4) * e1m2``.

    Args:
        codes: E1M2 codes [M, N], uint8.
        e6m2: group scales [M, N/64], uint8 (bias 48, two fraction bits).
        level2: bit i doubles elements 8 i to 8 i + 7 of the group, uint8 [M, N/64].
        level3: bit i doubles elements 4 i to 4 i + 3, uint16 [M, N/64].
    """

    codes: Array
    e6m2: Array
    level2: Array
    level3: Array

    @property
    def packed(self) -> Array:
        """Elements as they lie in memory, two in a byte, the even one low: uint8 [M, N/2]."""
        return pack(self.codes, "e1m2")

    @property
    def exponents(self) -> Array:
        """Scales in the Cube's order, flat: 32 bytes of (e6m2, level2) pairs, then the 32 bytes of their level3.

        The library's test data agrees for its first 128 groups; beyond, its generator repeats group scales.
        """
        pairs = np.stack([self.e6m2.reshape(-1), self.level2.reshape(-1)], axis=-1).reshape(-1, 2 * _BLOCK)
        fine = self.level3.reshape(-1, _BLOCK).astype("<u2").view(np.uint8)
        return np.concatenate([pairs, fine], axis=1).reshape(-1)

    def dequantize(self) -> Array:
        """Return the values as float32 [M, N]; every product is exact."""
        doublings = _expand(self.level2, 8, 8) + _expand(self.level3, 16, 4)
        scale = np.repeat(_e6m2_value(self.e6m2), GROUP, axis=-1)
        return np.asarray(np.ldexp(decode(self.codes, "e1m2") * scale, doublings).astype(np.float32))


def tquant_hif4(values: npt.ArrayLike) -> HiF4:
    """Quantize bf16 values to HiF4, groups of 64 along the last axis.

    Formula: ``t = bf16(max64 * bf16(1/7))``; ``e6m2 = rn(t)``; ``r = bf16(1 / e6m2)``;
    ``level2 = bf16(max8 * r) >= 4``; ``level3 = bf16(bf16(max4 * r) * 2**-level2) >= 2``;
    ``code = rn(bf16(x * bf16(r * 2**-(level2 + level3))))``. A group of zeros has scale code 0 and codes 0.

    Args:
        values: bfloat16 [M, N], finite; N a multiple of 64, M N of 1024.

    Returns:
        A :class:`HiF4`.

    Raises:
        FormatError: values of another type, or not finite.
        ShapeError: sizes that do not divide.

    Source: simulated, pto-isa:a6 TQUANT header and its test data; chip A6, not the 950.

    Example:
        >>> q = tquant_hif4(np.full((16, 64), 3.5, dtype=ml_dtypes.bfloat16))
        >>> hex(q.e6m2[0, 0]), float(q.dequantize()[0, 0])
        ('0xbc', 3.5)
    """
    x = np.asarray(values)
    if x.dtype != ml_dtypes.bfloat16:
        raise FormatError(f"HiF4 takes bfloat16 values; got {x.dtype}.", source="pto-isa:a6 TQUANT")
    if x.ndim != 2 or x.shape[1] % GROUP or x.size % (GROUP * _BLOCK) or not x.size:
        raise ShapeError(
            f"HiF4 takes [M, N] with N a multiple of {GROUP} and M N of {GROUP * _BLOCK}; got shape {x.shape}.",
            source="pto-isa:a6 TQUANT",
        )
    if not np.isfinite(x).all():
        raise FormatError("HiF4 has no rule for NaN and infinity.", hint="Remove them first.", source="pto-isa:a6")
    rows, columns = x.shape
    magnitude = np.abs(x.astype(np.float32)).reshape(rows, columns // GROUP, GROUP)
    largest = magnitude.max(axis=-1)
    e6m2 = _to_e6m2(_bf16(largest * _bf16(np.float32(1 / 7))))
    reciprocal = np.where(largest == 0, np.float32(0), _bf16(1 / _e6m2_value(e6m2)))[..., None]
    eighths = magnitude.reshape(*largest.shape, 8, 8).max(axis=-1)
    fourths = magnitude.reshape(*largest.shape, 16, 4).max(axis=-1)
    level2 = _bf16(eighths * reciprocal) >= 4
    coarse = np.repeat(level2, 2, axis=-1).astype(np.int32)
    level3 = _bf16(np.ldexp(_bf16(fourths * reciprocal), -coarse)) >= 2
    scale = np.repeat(_bf16(np.ldexp(reciprocal, -(coarse + level3))), 4, axis=-1)
    scaled = _bf16(x.astype(np.float32).reshape(scale.shape) * scale)
    return HiF4(
        codes=encode(scaled, "e1m2").reshape(rows, columns),
        e6m2=e6m2,
        level2=np.packbits(level2, axis=-1, bitorder="little")[..., 0],
        level3=np.packbits(level3, axis=-1, bitorder="little").view("<u2")[..., 0],
    )


def _bf16(values: npt.ArrayLike) -> Array:
    """Round to bf16 and widen again."""
    return np.asarray(values, dtype=np.float32).astype(ml_dtypes.bfloat16).astype(np.float32)


def _to_e6m2(values: Array) -> Array:
    """Round positive fp32 values to E6M2 codes, ties to even, limited to the finite codes."""
    bits = values.view(np.uint32).astype(np.int64)
    whole, rest = bits >> 21, bits & ((1 << 21) - 1)
    up = (rest > 1 << 20) | ((rest == 1 << 20) & (whole & 1 == 1))
    code = np.clip(whole + up - ((127 - _BIAS) << 2), 0, _LARGEST)
    return np.where(values == 0, 0, code).astype(np.uint8)


def _e6m2_value(codes: Array) -> Array:
    whole = codes.astype(np.int32)
    significand = np.float32(1) + np.float32(0.25) * (whole & 3)
    return np.asarray(np.ldexp(significand, (whole >> 2) - _BIAS), dtype=np.float32)


def _expand(bits: Array, count: int, width: int) -> Array:
    """Give each element the bit of its run."""
    each = (bits[..., None].astype(np.int32) >> np.arange(count)) & 1
    return np.asarray(np.repeat(each, width, axis=-1).reshape(bits.shape[0], -1))
