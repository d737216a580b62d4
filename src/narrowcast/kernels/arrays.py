"""Feed flat, contiguous, native arrays to a step, whatever the caller's arrays look like, copying none whole."""

from collections.abc import Callable, Iterator
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

Step = Callable[[Array, Array], int]
"""Convert a flat source into a flat destination of the same size; bits of ``SEEN_*`` say what the source held."""

BLOCK = 1 << 16
SEEN_NAN = 1


_BFLOAT16 = np.dtype(ml_dtypes.bfloat16)


def carrier(values: Array) -> Array:
    """View bfloat16 as uint16: NumPy's own iterator and the compiled module know no ml_dtypes."""
    return values.view(np.uint16) if values.dtype == _BFLOAT16 else values


def elementwise(source: Array, out: Array, step: Step) -> int:
    """Run ``step`` over two arrays of one shape and return the union of what it saw.

    Contiguous arrays go to the step whole. Anything else (strided, byte-swapped, broadcast) goes through buffers of
    ``BLOCK`` elements.
    """
    if source.size == 0:
        return 0
    if _overlaps(source, out):
        source = source.copy()
    if _plain(source) and _plain(out):
        return step(source.reshape(-1), out.reshape(-1))
    seen = 0
    native = [a.dtype.newbyteorder("=") for a in (source, out)]
    nditer: Any = np.nditer  # its stub misspells the operand flag "contig"
    with nditer(
        [source, out],
        flags=["external_loop", "buffered", "delay_bufalloc"],
        op_flags=[["readonly", "contig", "nbo", "aligned"], ["writeonly", "contig", "nbo", "aligned"]],
        op_dtypes=native,
        order="C",
        casting="equiv",
        buffersize=BLOCK,
    ) as pieces:
        pieces.reset()
        for piece, into in pieces:
            seen |= step(piece, into)
    return seen


def blocks(size: int) -> Iterator[slice]:
    """Split a flat array into pieces that stay in the cache between two steps."""
    for begin in range(0, size, BLOCK):
        yield slice(begin, min(begin + BLOCK, size))


class Room:
    """Scratch arrays of one block: fresh ones for every operation would cost more than the operation."""

    def __init__(self, size: int) -> None:
        self._words = [np.empty(size, dtype=np.uint32) for _ in range(4)]
        self._indices = np.empty(size, dtype=np.intp)

    def words(self, which: int, size: int) -> Array:
        """uint32 scratch number 0 to 3."""
        return self._words[which][:size]

    def indices(self, size: int) -> Array:
        """Scratch for the indices of a lookup."""
        return self._indices[:size]


Work = Callable[[Array, Array, Room], int]
"""A step on one block, with scratch."""


def in_blocks(work: Work) -> Step:
    """Make a step out of work that wants small arrays, and whose overflows and NaN are no news."""

    def step(source: Array, out: Array) -> int:
        seen = 0
        room = Room(min(source.size, BLOCK))
        with np.errstate(all="ignore"):
            for piece in blocks(source.size):
                seen |= work(source[piece], out[piece], room)
        return seen

    return step


def _plain(array: Array) -> bool:
    return bool(array.flags.c_contiguous) and bool(array.dtype.isnative)


def _overlaps(source: Array, out: Array) -> bool:
    """Whether writing ``out`` would change elements of ``source`` that are still to be read."""
    if not np.may_share_memory(source, out):
        return False
    same = source.ctypes.data == out.ctypes.data and source.strides == out.strides
    return not (same and source.itemsize == out.itemsize)
