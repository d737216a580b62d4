"""A layout is an invertible index map: axes are cut, and the parts stored in another order."""

import re
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from narrowcast.errors import EncodingError, ShapeError

Array = npt.NDArray[Any]


class Layout(Protocol):
    """Where each element of an array lies in storage."""

    def pack(self, array: npt.ArrayLike, out: Array | None = None) -> Array:
        """Store an array."""

    def unpack(self, storage: npt.ArrayLike, shape: tuple[int, ...], out: Array | None = None) -> Array:
        """Read back an array of ``shape``."""


@dataclass(frozen=True)
class AxisPattern:
    """A layout written as a pattern.

    The left side names the array's last axes; ``(a b:16)`` cuts one into b, 16 elements, and a, how many of them.
    The right side names every part once, in storage order.

    Args:
        axes: for each array axis its parts as (name, size), the first part's size None.
        order: positions of the parts, in storage order.

    Example:
        >>> zz = AxisPattern.parse("(m1 m0:16) (g1 g0:2) -> m1 g1 m0 g0")
        >>> zz.pack(np.zeros((20, 3), dtype=np.uint8)).shape
        (2, 2, 16, 2)
    """

    axes: tuple[tuple[tuple[str, int | None], ...], ...]
    order: tuple[int, ...]

    @classmethod
    def parse(cls, text: str) -> "AxisPattern":
        """Read a pattern."""
        left, arrow, right = text.partition("->")
        axes = tuple(_parts(word) for word in re.findall(r"\([^)]*\)|\S+", left))
        names = [name for axis in axes for name, _ in axis]
        stored = right.split()
        if not arrow or sorted(names) != sorted(stored) or len(set(names)) != len(names):
            raise EncodingError(f"layout pattern {text!r}: both sides name the same parts, each once.")
        return cls(axes, tuple(names.index(name) for name in stored))

    @property
    def multiples(self) -> tuple[int, ...]:
        """What each array axis is padded to a multiple of."""
        return tuple(int(np.prod([size or 1 for _, size in axis])) for axis in self.axes)

    def storage_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Shape of the storage of an array of ``shape``."""
        lead, parts = self._lead(shape), self._part_shape(shape)
        return (*lead, *(parts[i] for i in self.order))

    def _lead(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        if len(shape) < len(self.axes):
            raise ShapeError(f"this layout takes arrays of at least {len(self.axes)} axes; got shape {shape}.")
        return shape[: len(shape) - len(self.axes)]

    def _part_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        parts: list[int] = []
        own = shape[len(shape) - len(self.axes) :]
        for size, axis, multiple in zip(own, self.axes, self.multiples, strict=True):
            parts += [-(-size // multiple) if part is None else part for _, part in axis]
        return tuple(parts)

    def _permutation(self, lead: int) -> tuple[int, ...]:
        return (*range(lead), *(lead + i for i in self.order))

    def pack(self, array: npt.ArrayLike, out: Array | None = None) -> Array:
        """Store an array.

        Args:
            array: any dtype; the pattern describes its last axes.
            out: array for the result.

        Returns:
            Array of ``storage_shape(array.shape)``, padding zero.

        Raises:
            ShapeError: fewer axes than the pattern, or an ``out`` of another shape or dtype.
        """
        source = np.asarray(array)
        lead, parts = self._lead(source.shape), self._part_shape(source.shape)
        padded = (*lead, *(-(-n // m) * m for n, m in zip(source.shape[len(lead) :], self.multiples, strict=True)))
        if padded != source.shape:
            whole = np.zeros(padded, dtype=source.dtype)
            whole[tuple(slice(0, n) for n in source.shape)] = source
            source = whole
        moved = source.reshape(*lead, *parts).transpose(self._permutation(len(lead)))
        return _deliver(moved, out)

    def unpack(self, storage: npt.ArrayLike, shape: tuple[int, ...], out: Array | None = None) -> Array:
        """Read back an array; padding is dropped.

        Args:
            storage: what :meth:`pack` returned, or the same elements flat.
            shape: the array's shape.
            out: array for the result.

        Returns:
            Array of ``shape``.

        Raises:
            ShapeError: storage of another size than the shape needs.
        """
        source = np.asarray(storage)
        stored = self.storage_shape(shape)
        if source.size != int(np.prod(stored, dtype=np.int64)):
            raise ShapeError(
                f"storage has {source.size} elements; an array of shape {shape} needs {stored} in this layout."
            )
        lead = len(shape) - len(self.axes)
        moved = source.reshape(stored).transpose(np.argsort(self._permutation(lead)))
        whole = moved.reshape(
            *shape[:lead], *(-(-n // m) * m for n, m in zip(shape[lead:], self.multiples, strict=True))
        )
        return _deliver(whole[tuple(slice(0, n) for n in shape)], out)

    def positions(self, shape: tuple[int, ...]) -> Array:
        """Flat storage position of every element of an array of ``shape``: the index map itself."""
        stored = self.storage_shape(shape)
        return self.unpack(np.arange(int(np.prod(stored, dtype=np.int64))), shape)


def _parts(word: str) -> tuple[tuple[str, int | None], ...]:
    parts: list[tuple[str, int | None]] = []
    for item in word.strip("()").split():
        name, _, size = item.partition(":")
        parts.append((name, int(size) if size else None))
    if not parts or parts[0][1] is not None or any(size is None for _, size in parts[1:]):
        raise EncodingError(f"layout axis {word!r}: the first part has no size, the others have one, e.g. (m1 m0:16).")
    return tuple(parts)


def _deliver(result: Array, out: Array | None) -> Array:
    if out is None:
        return np.ascontiguousarray(result)
    if out.shape != result.shape or out.dtype != result.dtype:
        raise ShapeError(f"out must be a {result.dtype} array of shape {result.shape}; got {out.dtype} {out.shape}.")
    out[...] = result
    return out


@cache
def parsed(pattern: str) -> AxisPattern:
    """Parse a pattern once."""
    return AxisPattern.parse(pattern)
