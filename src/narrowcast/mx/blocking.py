"""Cutting an array into rows of blocks along any axis, a bounded piece at a time."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from narrowcast.numerics.unpacking import Array

PIECE = 1 << 19
"""Elements handled at once: what a second-level cache holds as fp32."""

Index = tuple[Any, ...]


def pieces(shape: tuple[int, ...], limit: int = PIECE) -> Iterator[Index]:
    """Yield indices over the leading axes of ``shape``, each selecting about ``limit`` elements of whole last axes."""
    if len(shape) == 1:
        yield ()
        return
    inner = int(np.prod(shape[1:], dtype=np.int64))
    if inner > limit and len(shape) > 2:
        for i in range(shape[0]):
            for rest in pieces(shape[1:], limit):
                yield (i, *rest)
        return
    step = max(1, limit // max(inner, 1))
    for start in range(0, shape[0], step):
        yield (slice(start, start + step),)


def blocked(rows: Array, block: int) -> Array:
    """Return rows ``[R, K]`` as ``[R, ceil(K / block), block]``, a short last block padded with zeros."""
    count, size = rows.shape
    short = -size % block
    if short:
        padded = np.zeros((count, size + short), dtype=rows.dtype)
        padded[:, :size] = rows
        rows = padded
    return rows.reshape(count, -1, block)
