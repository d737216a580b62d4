"""Global memory and the transfers between it and tiles: TLOAD, TSTORE."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from narrowcast.catalog.formats import formats
from narrowcast.errors import ShapeError, unknown_name
from narrowcast.operation import Effect, rule
from narrowcast.operation.findings import refuse
from narrowcast.quant import pack, unpack
from narrowcast.tile.events import RecordEvent, record
from narrowcast.tile.spelling import Order
from narrowcast.tile.tile import Tile, element_dtype, pad_element
from narrowcast.tile.types import Array, TileType
from narrowcast.vector.arrays import source_format

_SOURCE = "pto-isa:TLOAD, TSTORE"
_MEMORY_LAYOUTS = ("ND", "DN")


class GlobalTensor:
    """An array in global memory.

    Args:
        array: up to five dimensions; all but the last together are the rows. 4-bit formats are packed, two per
            byte along the last axis.
        dtype: format of the elements; by default what the array holds.
        layout: ``ND``, or ``DN`` for an array whose columns are contiguous on the chip.
        offset: row and column where a transfer starts.
        name: how findings call it.

    Example:
        >>> GlobalTensor(np.zeros((2, 3, 8), np.float32)).shape
        (6, 8)
    """

    def __init__(
        self,
        array: Array,
        *,
        dtype: str | None = None,
        layout: str = "ND",
        offset: tuple[int, int] = (0, 0),
        name: str = "",
    ) -> None:
        if not isinstance(array, np.ndarray) or not 1 <= array.ndim <= 5:
            raise ShapeError(f"global memory is a NumPy array of 1 to 5 dimensions; got {np.shape(array)}.")
        if layout not in _MEMORY_LAYOUTS:
            raise unknown_name("memory layout", layout, _MEMORY_LAYOUTS)
        self.array = array
        self.format = formats[source_format(array, dtype)]
        self.layout = layout
        self.offset = offset
        self.name = name

    @property
    def packed(self) -> bool:
        """Whether two elements share a byte."""
        return self.format.bits == 4 and self.array.dtype.name == "uint8"

    @property
    def label(self) -> str:
        """Its name, or its shape."""
        return self.name or f"global {self.format.name} {self.array.shape}"

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns in elements."""
        last = self.array.shape[-1] * (2 if self.packed else 1)
        return int(np.prod(self.array.shape[:-1], dtype=np.int64)), last

    def matrix(self) -> Array:
        """Return the array as rows x columns of its own type, a view."""
        view: Array = self.array.reshape(self.shape[0], self.array.shape[-1])
        if self.array.size and not np.shares_memory(view, self.array):
            raise ShapeError(f"{self.label}: the leading dimensions cannot be seen as rows without a copy.")
        return view


@dataclass(frozen=True)
class Transfer:
    """What the transfer rules look at."""

    tile: TileType
    memory: GlobalTensor
    storing: bool

    @property
    def region(self) -> tuple[slice, slice]:
        """The part of the memory that takes part."""
        (r, c), (rows, cols) = self.memory.offset, self.tile.valid
        return slice(r, r + rows), slice(c, c + cols)


@rule(
    "MEM-01",
    states="Tile and memory elements have the same size.",
    cause="a transfer moves bytes and converts nothing",
    effect=Effect.UNAVAILABLE,
    fix="Use a tile of the memory's type and convert with tcvt.",
    source=_SOURCE,
)
def same_element_size(transfer: Transfer) -> Iterator[str]:
    fmt = transfer.memory.format
    bits = 4 if fmt.bits == 4 else fmt.code_bits
    if bits != transfer.tile.bits:
        yield f"tile elements ({transfer.tile.dtype}) have {transfer.tile.bits} bits, memory's ({fmt.name}) {bits}"


@rule(
    "MEM-02",
    states="The valid region lies inside the memory.",
    cause="the transfer is as large as the tile's valid region",
    effect=Effect.HARDWARE_EXCEPTION,
    fix="Reduce the tile's valid shape, or the offset.",
    source=_SOURCE,
)
def inside_memory(transfer: Transfer) -> Iterator[str]:
    (r, c), (rows, cols), (height, width) = transfer.memory.offset, transfer.tile.valid, transfer.memory.shape
    if r < 0 or c < 0 or r + rows > height or c + cols > width:
        yield f"{rows}x{cols} at ({r}, {c}) does not fit {transfer.memory.label} of {height}x{width}"


@rule(
    "MEM-03",
    states="Row-major tiles go with ND memory, column-major ones with DN.",
    cause="a Vec transfer keeps the order of its elements",
    effect=Effect.UNAVAILABLE,
    fix='Declare the memory layout="DN", or move through tmov.',
    source=_SOURCE,
)
def orders_match(transfer: Transfer) -> Iterator[str]:
    tile, layout = transfer.tile, transfer.memory.layout
    if tile.boxed or 1 in tile.shape or 1 in transfer.memory.shape:
        return
    if (tile.blocks is Order.ROW) != (layout == "ND"):
        yield f"tile {tile.short} and {layout} memory"


RULES = (same_element_size, inside_memory, orders_match)


def _check(transfer: Transfer, what: str) -> None:
    refuse((f for r in RULES for f in r.findings(transfer, what)), what)


def tload(dst: Tile, src: GlobalTensor, *events: RecordEvent) -> RecordEvent:
    """Load a rectangle of global memory into a tile.

    Formula: ``dst[i, j] = src[r0 + i, c0 + j]`` in the valid region; everything else becomes the padding value.

    Args:
        dst: the tile. A valid shape that was left open becomes the memory's.
        src: the memory.
        events: events to wait for.

    Returns:
        The event of the transfer, on pipe MTE2.

    Raises:
        ConstraintError: element sizes, layouts or shapes that do not go together.

    Source: pto-isa:TLOAD; its simulator pads the whole static tile.

    Example:
        >>> tile = Tile(shape=(2, 8), dtype="fp32", valid=(2, 3))
        >>> event = tload(tile, GlobalTensor(np.ones((2, 3), np.float32)))
        >>> tile.array()[0].tolist()
        [1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0]
    """
    _settle(dst, src)
    transfer = Transfer(dst.type, src, storing=False)
    _check(transfer, "TLOAD")
    region = transfer.region
    if src.packed:
        values = unpack(src.matrix(), src.format.name)[region]
    else:
        values = src.matrix()[region]
    own = element_dtype(dst.type.format)
    if values.dtype != own:
        values = np.ascontiguousarray(values).view(own)
    if dst.valid == dst.type.shape:
        dst.write(values)
    else:
        whole = np.full(dst.type.shape, pad_element(dst.type))
        whole[: values.shape[0], : values.shape[1]] = values
        dst.write(whole)
    return record("TLOAD", "MTE2", (), (dst,), events)


def _settle(tile: Tile, memory: GlobalTensor) -> None:
    kind = tile.type
    if kind.valid_rows is None or kind.valid_cols is None:
        rows = memory.shape[0] - memory.offset[0] if kind.valid_rows is None else kind.valid_rows
        cols = memory.shape[1] - memory.offset[1] if kind.valid_cols is None else kind.valid_cols
        tile.valid = (rows, cols)


def tstore(dst: GlobalTensor, src: Tile, *events: RecordEvent, atomic: str = "none") -> RecordEvent:
    """Store a tile's valid region into global memory.

    Formula: ``dst[r0 + i, c0 + j] = src[i, j]``, or ``+=`` with ``atomic="add"``.

    Args:
        dst: the memory; nothing outside the rectangle changes.
        src: the tile.
        events: events to wait for.
        atomic: ``none`` or ``add``.

    Returns:
        The event of the transfer, on pipe MTE3.

    Raises:
        ConstraintError: element sizes, layouts or shapes that do not go together.

    Source: pto-isa:TSTORE.

    Example:
        >>> memory = np.zeros((2, 4), np.float32)
        >>> event = tstore(GlobalTensor(memory), Tile(np.ones((2, 8), np.float32), valid=(2, 3)))
        >>> memory[0].tolist()
        [1.0, 1.0, 1.0, 0.0]
    """
    if atomic not in ("none", "add"):
        raise unknown_name("atomic operation", atomic, ("none", "add"))
    if not dst.array.flags.writeable:
        raise ShapeError(f"{dst.label} is a read-only array and cannot be stored to.", hint="Store to a copy.")
    transfer = Transfer(src.type, dst, storing=True)
    _check(transfer, "TSTORE")
    region = transfer.region
    values = src.numpy()
    if dst.packed:
        whole = unpack(dst.matrix(), dst.format.name)
        whole[region] = values
        dst.matrix()[...] = pack(whole, dst.format.name)
    else:
        target = dst.matrix()[region]
        moved = values if values.dtype == target.dtype else np.ascontiguousarray(values).view(target.dtype)
        target[...] = moved if atomic == "none" else target + moved
    return record("TSTORE", "MTE3", (src,), (), events)


def global_tensor(value: Any, name: str = "") -> GlobalTensor:
    """Return a GlobalTensor: the value itself, or an array seen as one."""
    return value if isinstance(value, GlobalTensor) else GlobalTensor(np.asarray(value), name=name)
