"""Arrays seen a slab at a time, so that an examination of a large tensor holds no second copy of it."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from narrowcast.errors import ShapeError

Array = npt.NDArray[Any]
Where = tuple[slice, ...]

SLAB = 1 << 16  # elements: a slab and its float64 temporaries stay in the cache


@dataclass(frozen=True)
class Slab:
    """A run of consecutive elements, in row-major order.

    Attributes:
        start: place of its first element in the flattened array.
        where: the index that selects it.
    """

    start: int
    where: Where


def slabs(shape: tuple[int, ...], limit: int | None = None) -> Iterator[Slab]:
    """Cut an array of ``shape`` into slabs of at most ``limit`` elements (SLAB), in row-major order."""
    limit = limit or SLAB
    if math.prod(shape) <= limit:
        yield Slab(0, tuple(slice(0, n) for n in shape))
        return
    inner, cut = 1, len(shape) - 1
    while inner * shape[cut] <= limit:
        inner *= shape[cut]
        cut -= 1
    step = limit // inner
    for outer, index in enumerate(np.ndindex(shape[:cut])):
        before = tuple(slice(i, i + 1) for i in index)
        for begin in range(0, shape[cut], step):
            end = min(begin + step, shape[cut])
            rest = tuple(slice(0, n) for n in shape[cut + 1 :])
            yield Slab((outer * shape[cut] + begin) * inner, (*before, slice(begin, end), *rest))


def sample_places(size: int, count: int) -> Array:
    """Places of about ``count`` elements of a flattened array, one at random in each of equal stretches.

    Equal distances would meet the same column of every row.
    """
    if size <= count:
        return np.arange(size)
    edges = np.arange(count + 1) * size // count
    return np.asarray(np.random.default_rng(0).integers(edges[:-1], edges[1:]))


class Count:
    """How many elements a mask marks, and the first of them."""

    def __init__(self) -> None:
        self.number = 0
        self.first: int | None = None

    def add(self, mask: Array, slab: Slab) -> None:
        """Count one slab's mask."""
        found = int(np.count_nonzero(mask))
        if found and self.first is None:
            self.first = slab.start + int(np.argmax(mask))
        self.number += found

    def index(self, shape: tuple[int, ...]) -> list[int]:
        """Index of the first marked element, zeros where none is."""
        return [0] * len(shape) if self.first is None else [int(i) for i in np.unravel_index(self.first, shape)]


class RowCount(Count):
    """The same, and how many rows have such an element."""

    def __init__(self, columns: int) -> None:
        super().__init__()
        self.columns = max(columns, 1)
        self.rows = 0
        self._last = -1

    def add(self, mask: Array, slab: Slab) -> None:
        """Count one slab's mask; slabs come in order."""
        super().add(mask, slab)
        if not mask.any():
            return
        rows = np.unique((slab.start + np.flatnonzero(mask)) // self.columns)
        self.rows += rows.size - int(rows[0] == self._last)
        self._last = int(rows[-1])


@dataclass(frozen=True, eq=False)
class Spread:
    """Per-block parameters as an array of another shape sees them, without being repeated.

    Attributes:
        array: the parameters, with one axis for each axis of ``shape``.
        sizes: elements per parameter on each axis; 1 where ``array`` has one parameter for the whole axis.
        shape: of the array they belong to.
    """

    array: Array
    sizes: tuple[int, ...]
    shape: tuple[int, ...]

    @classmethod
    def of(cls, per_block: Array, shape: tuple[int, ...], blocks: Sequence[int] | None = None) -> Self:
        """Fit parameters to an array: one, one per row, column or block, or one per element.

        Args:
            per_block: the parameters.
            shape: of the array.
            blocks: elements per parameter on each axis; None to take them from the shapes.

        Raises:
            ShapeError: parameters that fit in none of these ways.
        """
        ones = (1,) * len(shape)
        if per_block.size == 1:
            return cls(per_block.reshape(ones), ones, shape)
        found = per_block
        if found.ndim == 1 and len(shape) >= 2 and found.size in shape[-2:]:
            found = found[:, None] if found.size == shape[-2] else found[None, :]
        found = found.reshape((1,) * (len(shape) - found.ndim) + found.shape)
        sizes = list(ones)
        for axis, have in enumerate(found.shape):
            n = shape[axis] if axis < len(shape) else 0
            if have in (1, n):
                continue
            size = blocks[axis] if blocks is not None and n else n // have if have and n % have == 0 else 0
            if not size or -(-n // size) != have:
                raise ShapeError(
                    f"parameters of shape {per_block.shape} fit no blocks of codes of shape {shape}.",
                    hint="Use one parameter, [M, 1] for rows, [1, N] for columns, or one per block.",
                )
            sizes[axis] = size
        if found.ndim != len(shape):
            raise ShapeError(f"parameters of shape {per_block.shape} have more axes than codes of shape {shape}.")
        return cls(found, tuple(sizes), shape)

    def part(self, where: Where) -> Array:
        """Parameters of a slab, which broadcast against it."""
        found = self.array
        for axis, (cut, size) in enumerate(zip(where, self.sizes, strict=True)):
            if found.shape[axis] == 1:
                continue
            if size == 1:
                found = found[(slice(None),) * axis + (cut,)]
            else:
                found = found.take(np.arange(cut.start, cut.stop) // size, axis=axis)
        return found

    def at(self, index: tuple[Array, ...]) -> Array:
        """Parameters of single elements."""
        lengths = zip(index, self.sizes, self.array.shape, strict=True)
        return np.asarray(self.array[tuple(i * 0 if n == 1 else i // size for i, size, n in lengths)])

    def largest(self, part: Array, slab: Slab) -> tuple[Array, Where]:
        """Largest element of a slab for each parameter it meets, and where those parameters are."""
        places: list[slice] = []
        for axis, (cut, size) in enumerate(zip(slab.where, self.sizes, strict=True)):
            if self.array.shape[axis] == 1:
                part, place = part.max(axis=axis, keepdims=True), slice(0, 1)
            elif size == 1:
                place = cut
            else:
                place = slice(cut.start // size, (cut.stop - 1) // size + 1)
                starts = np.maximum(np.arange(place.start, place.stop) * size - cut.start, 0)
                part = np.maximum.reduceat(part, starts, axis=axis)
            places.append(place)
        return part, tuple(places)
