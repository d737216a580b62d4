"""A tile: a typed, laid-out piece of local memory with a valid region."""

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from narrowcast.catalog.formats import formats
from narrowcast.errors import FormatError, ShapeError
from narrowcast.quant import encode, pack, unpack
from narrowcast.schema import Format
from narrowcast.tile.spelling import Order, Pad, Role
from narrowcast.tile.types import Array, TileType, aligned, require_legal
from narrowcast.vector.arrays import dtype_of, source_format


def element_dtype(fmt: Format) -> np.dtype[np.generic]:
    """Return the array type of a tile's elements: the format's own, uint8 codes for 4-bit and hif8 tiles."""
    return np.dtype(np.uint8) if fmt.bits == 4 else dtype_of(fmt)


class Tile:
    """A tile over its own bytes, or over the memory of an array.

    Args:
        array: values (or codes, where the format has no array type), rows x cols. A contiguous row-major array
            becomes the tile's memory without a copy.
        dtype: format of the elements; by default what the array holds.
        shape: static shape of an empty tile, instead of ``array``.
        valid: valid rows and columns; by default the whole tile. None in a place leaves it to be set later.
        layout: ``ND``, ``DN``, ``NZ``, ``ZN``, ``ZZ`` or ``NN``.
        role: the buffer, e.g. ``Vec`` or ``Mat``.
        pad: what TLOAD puts outside the valid region: ``null``, ``zero``, ``max``, ``min``, or 2**32 plus the bits
            of an element.
        fractal: bytes of a box.
        name: how findings call the tile.

    Raises:
        ConstraintError: a shape, valid region or layout that no tile has; every broken rule is listed.
        FormatError: an array that does not hold ``dtype``.

    Source: pto-isa:Tile.

    Example:
        >>> tile = Tile(np.zeros((4, 32), np.int8), valid=(4, 20))
        >>> tile.numpy().shape
        (4, 20)
    """

    def __init__(
        self,
        array: npt.ArrayLike | None = None,
        *,
        dtype: str | None = None,
        shape: tuple[int, int] | None = None,
        valid: tuple[int | None, int | None] | None = None,
        layout: str = "ND",
        role: str | Role = Role.VEC,
        pad: str | int = "null",
        fractal: int | None = None,
        name: str = "",
    ) -> None:
        values = None if array is None else np.asarray(array)
        if values is not None and values.ndim != 2:
            raise ShapeError(
                f"a tile has two dimensions; the array has shape {values.shape}.",
                hint="Use Tile.per_row for one parameter per row.",
            )
        if values is None and (shape is None or dtype is None):
            raise ShapeError("a tile needs an array, or dtype and shape.")
        fmt = formats[source_format(values, dtype) if values is not None else str(dtype)]
        static = shape if values is None else (values.shape[0], values.shape[1])
        assert static is not None
        kind = TileType.of(fmt.name, static, valid, layout=layout, role=role, pad=pad, fractal=fractal)
        self._adopt(require_legal(kind), None, name)
        if values is not None:
            self._take(_elements(values, fmt))

    def _adopt(self, kind: TileType, memory: Array | None, name: str) -> None:
        self._type = kind
        self._memory = np.zeros(kind.size_bytes, dtype=np.uint8) if memory is None else memory
        self.name = name

    def _take(self, values: Array) -> None:
        if self.type.layout == "ND" and self.type.bits >= 8 and values.flags.c_contiguous and values.dtype.isnative:
            self._memory = values.reshape(-1).view(np.uint8)
        else:
            self.write(values)

    @classmethod
    def empty(cls, kind: TileType, memory: Array | None = None, name: str = "", *, check: bool = True) -> "Tile":
        """Make a zero-filled tile of a type, or one over existing bytes; ``check=False`` leaves out the tile rules."""
        tile = cls.__new__(cls)
        if memory is not None and (memory.dtype != np.uint8 or memory.shape != (kind.size_bytes,)):
            raise ShapeError(f"tile {kind.short} takes {kind.size_bytes} bytes; got {memory.dtype} {memory.shape}.")
        tile._adopt(require_legal(kind) if check else kind, memory, name)
        return tile

    @classmethod
    def holding(
        cls,
        array: npt.ArrayLike,
        *,
        dtype: str | None = None,
        layout: str = "ND",
        pad: str | int = "null",
        name: str = "",
    ) -> "Tile":
        """Make the smallest legal tile without boxes whose valid region holds an array.

        Example:
            >>> Tile.holding(np.zeros((3, 5), np.float32)).type.short
            'fp32 3x8 valid 3x5 ND'
        """
        values = np.asarray(array)
        if values.ndim != 2:
            raise ShapeError(f"a tile has two dimensions; the array has shape {values.shape}.")
        fmt = formats[source_format(values, dtype)]
        rows, cols = values.shape
        static = aligned(fmt.name, rows, cols, layout)
        if static == (rows, cols) and layout.upper() == "ND":
            return cls(values, dtype=fmt.name, pad=pad, name=name)
        tile = cls.empty(TileType.of(fmt.name, static, (rows, cols), layout=layout, pad=pad), name=name)
        tile.store(_elements(values, fmt))
        return tile

    @classmethod
    def per_row(cls, values: npt.ArrayLike, *, rows: int | None = None, name: str = "") -> "Tile":
        """Make a column-major parameter tile: one fp32 number per row.

        Args:
            values: numbers, one per row, or one number with ``rows``.
            rows: how many rows; by default the length of ``values``.
            name: how findings call the tile.

        Example:
            >>> Tile.per_row([0.5, 0.25, 0.125]).type.short
            'fp32 8x1 valid 3x1 DN'
        """
        column = np.asarray(values, dtype=np.float32).reshape(-1)
        column = np.broadcast_to(column, (column.size if rows is None else rows,))
        return cls.holding(column[:, None], layout="DN", name=name)

    @property
    def type(self) -> TileType:
        """Its type, with the current valid shape."""
        return self._type

    @property
    def label(self) -> str:
        """Its name, or its type."""
        return self.name or f"tile {self.type.short}"

    @property
    def dtype(self) -> str:
        """Format of the elements."""
        return self.type.dtype

    @property
    def valid(self) -> tuple[int, int]:
        """Valid rows and columns."""
        return self.type.valid

    @valid.setter
    def valid(self, shape: tuple[int, int]) -> None:
        self._type = require_legal(replace(self._type, valid_rows=shape[0], valid_cols=shape[1]))

    @property
    def memory(self) -> Array:
        """Its bytes."""
        return self._memory

    @property
    def storage(self) -> Array:
        """Elements in linear order: a view, or unpacked codes of a 4-bit tile."""
        if self.type.bits == 4:
            return unpack(self._memory, self.dtype, self.type.rows * self.type.cols)
        return self._memory.view(element_dtype(self.type.format))

    def require_writable(self) -> None:
        """Refuse a tile over the memory of a read-only array as a destination."""
        if not self._memory.flags.writeable:
            raise ShapeError(
                f"{self.label} lies on a read-only array and cannot be written.", hint="Make the tile from a copy."
            )

    def array(self) -> Array:
        """Return the whole static tile, rows x cols: a view without boxes, else a copy."""
        if self.type.boxed:
            return self.type.pattern.unpack(self.storage, self.type.shape)
        if self.type.blocks is Order.ROW:
            return self.storage.reshape(self.type.shape)
        return self.storage.reshape(self.type.cols, self.type.rows).T

    def numpy(self) -> Array:
        """Return the valid region: a view without boxes, else a copy. 4-bit elements come as codes, one per byte."""
        rows, cols = self.valid
        return self.array()[:rows, :cols]

    def write(self, values: npt.ArrayLike) -> None:
        """Replace the whole static tile by an array of its elements."""
        self.require_writable()
        array = np.asarray(values)
        if array.shape != self.type.shape:
            raise ShapeError(f"{self.label} is {self.type.rows}x{self.type.cols}; got shape {array.shape}.")
        linear = self.type.pattern.pack(array).reshape(-1)
        if self.type.bits == 4:
            self._memory[:] = pack(linear, self.dtype)
        else:
            self.storage[...] = linear

    def store(self, values: npt.ArrayLike) -> None:
        """Replace the valid region; everything outside keeps its bits."""
        self.require_writable()
        array = np.asarray(values)
        if array.shape != self.valid:
            raise ShapeError(f"{self.label} holds {self.valid[0]}x{self.valid[1]} valid elements; got {array.shape}.")
        if self.type.boxed or self.type.bits == 4:
            whole = self.array().copy()
            whole[: array.shape[0], : array.shape[1]] = array
            self.write(whole)
        else:
            self.numpy()[...] = array

    def __repr__(self) -> str:
        return f"Tile({self.type.short}{f', name={self.name!r}' if self.name else ''})"


def _elements(values: Array, fmt: Format) -> Array:
    """Check that an array holds elements of a format, and give them in the tile's array type."""
    want = element_dtype(fmt)
    if values.dtype == want:
        if fmt.bits == 4 and values.size and values.max() > fmt.code_mask:
            raise FormatError(f"a {fmt.name} code is 0..{fmt.code_mask}; got {values.max()}.")
        return values
    if fmt.bits == 4 and values.dtype.name == fmt.ml_dtype:
        return values.view(np.uint8) & np.uint8(15)
    if values.dtype == np.dtype(fmt.code_dtype):
        return values.view(want)
    raise FormatError(
        f"{fmt.name} tiles hold {want} elements; got dtype {values.dtype}.",
        hint="Convert the array first, or name its own format with dtype=.",
    )


def pad_element(kind: TileType) -> Array:
    """Return the element TLOAD fills a tile with: 0, an end of the range (infinite where there is one), or its bits."""
    fmt = kind.format
    own = element_dtype(fmt)
    if not isinstance(kind.pad, Pad):
        pattern = kind.pad & ((1 << min(kind.bits, 32)) - 1)
        return np.asarray(pattern, dtype=f"uint{8 * own.itemsize}").view(own)
    if kind.pad in (Pad.NULL, Pad.ZERO):
        return np.zeros((), dtype=own)
    if fmt.inf_code is not None:
        value = np.inf if kind.pad is Pad.MAX else -np.inf
    else:
        value = fmt.max if kind.pad is Pad.MAX else fmt.min
    if fmt.is_integer and fmt.bits >= 8:
        return np.asarray(value, dtype=own)
    code = encode(np.float32(value), fmt.name, saturate=False)
    return code if code.dtype == own else code.view(own)
