"""Feed flat, contiguous, native arrays to a step, whatever the caller's arrays look like, without copying them whole."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

Step = Callable[[Array, Array], int]
"""Convert a flat source into a flat destination of the same size; bits of ``SEEN_*`` say what the source held."""

BLOCK = 1 << 16
SEEN_NAN = 1


def carrier(values: Array) -> Array:
    """View bfloat16 as uint16: NumPy's own iterator and the compiled module know no ml_dtypes."""
    return values.view(np.uint16) if values.dtype.name == "bfloat16" else values


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
    with np.nditer(
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


def in_blocks(work: Callable[[Array, Array], int]) -> Step:
    """Make a step out of work that wants small arrays."""

    def step(source: Array, out: Array) -> int:
        seen = 0
        for piece in blocks(source.size):
            seen |= work(source[piece], out[piece])
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
