"""Granularity: which elements share a scale."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from narrowcast.errors import ShapeError

Array = npt.NDArray[Any]

_SLAB = 1 << 18  # elements handled at once


@dataclass(frozen=True)
class Blocks:
    """A block shape, aligned with the last axes of an array.

    ``()`` is one block; ``(1, None)`` one per row; ``(1, 32)`` one per 32 elements of a row; ``(128, 128)`` a
    square. None spans the axis; axes left of the shape have block size 1. The last block of an axis may be short.

    Raises:
        ShapeError: a size below 1.

    Example:
        >>> Blocks((1, 32)).grid((4, 100))
        (4, 4)
    """

    shape: tuple[int | None, ...] = ()

    per_tensor: ClassVar["Blocks"]
    per_row: ClassVar["Blocks"]

    def __post_init__(self) -> None:
        sizes = tuple(self.shape) if isinstance(self.shape, Iterable) else (self.shape,)
        for size in sizes:
            if size is not None and (isinstance(size, bool) or not isinstance(size, int | np.integer) or size < 1):
                raise ShapeError(
                    f"block shape {self.shape}: sizes are positive integers, or None for the whole axis.",
                    hint="E.g. Blocks.per_row, Blocks((1, 32)), Blocks((128, 128)).",
                )
        object.__setattr__(self, "shape", tuple(None if size is None else int(size) for size in sizes))

    @classmethod
    def of(cls, blocks: "Blocks | Sequence[int | None]") -> "Blocks":
        """Return blocks as they are, or those of a shape."""
        return blocks if isinstance(blocks, Blocks) else cls(tuple(blocks))

    @classmethod
    def per_channel(cls, axis: int, ndim: int) -> Self:
        """One block per index of ``axis`` in an array of ``ndim`` axes."""
        if not -ndim <= axis < ndim:
            raise ShapeError(f"axis {axis} is outside an array of {ndim} axes.")
        return cls(tuple(1 if i == axis % ndim else None for i in range(ndim)))

    @classmethod
    def per_group(cls, size: int, axis: int = -1) -> Self:
        """Blocks of ``size`` elements along ``axis`` (negative: counted from the last)."""
        if axis >= 0:
            raise ShapeError(f"axis {axis}: name the axis from the end (-1 is the last).")
        return cls(tuple(size if i == axis else 1 for i in range(axis, 0)))

    def sizes(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Block size on each axis of an array."""
        if not self.shape:
            return tuple(max(n, 1) for n in shape)
        block = self.shape
        extra = len(block) - len(shape)
        if extra > 0:
            if any(b not in (1, None) for b in block[:extra]):
                raise ShapeError(f"block shape {block} has more axes than the array, whose shape is {shape}.")
            block = block[extra:]
        block = (1,) * (len(shape) - len(block)) + block
        return tuple(max(n, 1) if b is None else b for b, n in zip(block, shape, strict=True))

    def grid(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Shape of the scale array: the number of blocks on each axis, ``()`` for one scale."""
        if not self.shape:
            return ()
        return tuple(-(-n // b) for n, b in zip(shape, self.sizes(shape), strict=True))

    def rows(self, array: Array) -> Array | None:
        """View an array as [blocks, elements], None unless each block is one contiguous run of equal length."""
        sizes = self.sizes(array.shape)
        lengths = [min(size, n) for size, n in zip(sizes, array.shape, strict=True)]
        spans = [length == n for length, n in zip(lengths, array.shape, strict=True)]
        first = next((axis for axis, length in enumerate(lengths) if length > 1), array.ndim)
        contiguous = array.flags.c_contiguous and all(spans[first + 1 :])
        if array.size == 0 or not contiguous or (first < array.ndim and array.shape[first] % lengths[first]):
            return None
        return array.reshape(-1, int(np.prod(lengths, dtype=np.int64)))

    def reduce(self, array: Array, ufunc: np.ufunc) -> Array:
        """Reduce every block with a ufunc; returns an array of ``grid`` shape."""
        if not self.shape:
            return np.asarray(ufunc.reduce(array, axis=None))
        for axis, size in enumerate(self.sizes(array.shape)):
            if size > 1:
                array = ufunc.reduceat(array, np.arange(0, array.shape[axis], size), axis=axis)
        return array

    def expand(self, per_block: Array, shape: tuple[int, ...]) -> Array:
        """Repeat per-block values so that they broadcast against an array of ``shape``."""
        if not self.shape:
            return per_block
        for axis, (n, size) in enumerate(zip(shape, self.sizes(shape), strict=True)):
            if 1 < size < n:
                per_block = np.repeat(per_block, size, axis=axis)
                per_block = per_block[(slice(None),) * axis + (slice(0, n),)]
        return per_block

    def slabs(self, shape: tuple[int, ...]) -> Iterator[tuple[Any, Any]]:
        """Yield (elements, blocks) index pairs that cut the first axis at block borders, to bound memory."""
        if not shape:
            yield ..., ...
            return
        size = self.sizes(shape)[0] if self.shape else 1
        row = max(1, int(np.prod(shape[1:], dtype=np.int64)))
        step = max(1, _SLAB // (row * size))  # blocks of the first axis at a time
        for block in range(0, -(-shape[0] // size), step):
            elements = slice(block * size, min((block + step) * size, shape[0]))
            yield elements, slice(block, block + step) if self.shape else ...


Blocks.per_tensor = Blocks(())
Blocks.per_row = Blocks((1, None))
