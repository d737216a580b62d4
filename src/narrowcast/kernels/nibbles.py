"""Two 4-bit codes in a byte, the even element in the low nibble."""

import numpy as np

from narrowcast.kernels.arrays import Array
from narrowcast.kernels.library import native, threads


def pack(codes: Array, out: Array | None = None) -> Array:
    """Pack codes along the last axis; an odd last element leaves its byte's high nibble 0.

    Args:
        codes: uint8 codes below 16, at least one axis.
        out: uint8 array for the bytes.
    """
    size = codes.shape[-1]
    if out is None:
        out = np.empty((*codes.shape[:-1], (size + 1) // 2), dtype=np.uint8)
    module = native()
    if module is not None and _one_run(codes, out, size):
        module.pack4(codes.reshape(-1), out.reshape(-1), threads(codes.size))
        return out
    np.bitwise_and(codes[..., 0::2], 15, out=out)
    out[..., : size // 2] |= codes[..., 1::2] << np.uint8(4)
    return out


def unpack(packed: Array, count: int, out: Array | None = None) -> Array:
    """Unpack bytes into ``count`` codes along the last axis.

    Args:
        packed: uint8 bytes, ``(count + 1) // 2`` along the last axis.
        count: codes along the last axis.
        out: uint8 array for the codes.
    """
    if out is None:
        out = np.empty((*packed.shape[:-1], count), dtype=np.uint8)
    module = native()
    if module is not None and _one_run(packed, out, count):
        module.unpack4(packed.reshape(-1), out.reshape(-1), threads(out.size))
        return out
    np.bitwise_and(packed, 15, out=out[..., 0::2])
    np.right_shift(packed[..., : count // 2], 4, out=out[..., 1::2])
    return out


def _one_run(source: Array, out: Array, codes: int) -> bool:
    """Whether the rows follow each other without a half-used byte, so that one flat run does them all."""
    whole = codes % 2 == 0 or source.ndim == 1
    overlap = np.may_share_memory(source, out)
    return whole and source.flags.c_contiguous and out.flags.c_contiguous and not overlap
