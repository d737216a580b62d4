"""Where the element of row m, column n lands: element indices of every output layout."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from narrowcast.errors import ShapeError, unknown_name

Array = npt.NDArray[Any]

C0 = 16
"""Columns of one fractal in L0C."""

LAYOUTS = ("NZ2NZ", "NZ2ND", "NZ2DN")
_ALIASES = {"NZ": "NZ2NZ", "ND": "NZ2ND", "DN": "NZ2DN", "NC1HWC0->NHWC": "NZ2ND"}


def layout_name(name: str) -> str:
    """Resolve a layout; NC1HWC0 -> NHWC is what NZ2ND does with M = H * W."""
    found = _ALIASES.get(name.upper(), name.upper())
    if found not in LAYOUTS:
        raise unknown_name("Fixpipe layout", name, (*LAYOUTS, *_ALIASES))
    return found


def ceil_to(value: int, unit: int) -> int:
    """Round up to a multiple."""
    return -(-value // unit) * unit


def accumulator_index(m: Any, n: Any, source_stride: int) -> Any:
    """Element of L0C for integers or arrays: 16-column fractals, ``source_stride`` rows apart (normally ceil16(M))."""
    return ((n // C0) * source_stride + m) * C0 + n % C0


@dataclass(frozen=True)
class Addressing:
    """Destination of one matrix.

    Args:
        layout: ``NZ2NZ``, ``NZ2ND`` or ``NZ2DN``.
        rows: M, rows written.
        columns: N, columns that hold results.
        bits: width of a destination element.
        stride: elements between rows (ND), columns (DN) or column groups (NZ); None packs them densely.
        split: 8-column fractals for fp32 (NZ2NZ).
        tail: ``trim`` or ``dummy``: whether ND and DN write the columns up to a multiple of 16.
        start: element at which the matrix begins; of a batch, or displaced by a misaligned address.
    """

    layout: str
    rows: int
    columns: int
    bits: int
    stride: int | None = None
    split: bool = False
    tail: str = "trim"
    start: int = 0

    @property
    def group(self) -> int:
        """Columns that a NZ2NZ group holds: 16, merged to 32 for 8-bit and 64 for 4-bit elements, 8 when split."""
        if self.split:
            return C0 // 2
        return {4: 4 * C0, 8: 2 * C0}.get(self.bits, C0)

    @property
    def step(self) -> int:
        """The stride in force, in elements."""
        if self.stride is not None:
            return self.stride
        dense = {"NZ2ND": self.columns, "NZ2DN": self.rows, "NZ2NZ": self.rows * self.group}
        return dense[self.layout]

    @property
    def written_columns(self) -> int:
        """Columns written: whole fractals (whole groups of 64 for 4-bit elements) in NZ2NZ or with a dummy tail."""
        if self.layout != "NZ2NZ":
            return ceil_to(self.columns, C0) if self.tail == "dummy" else self.columns
        return ceil_to(self.columns, self.group if self.split or self.bits == 4 else C0)

    @property
    def merged_columns(self) -> int:
        """Columns in whole groups; an odd fractal of 8-bit elements at the end stays unmerged, 16 columns wide."""
        total = self.written_columns
        return total // self.group * self.group if self.layout == "NZ2NZ" and self.bits == 8 else total

    def index(self, m: Any, n: Any) -> Any:
        """Element index of (m, n), integers or arrays."""
        if self.layout == "NZ2ND":
            return self.start + m * self.step + n
        if self.layout == "NZ2DN":
            return self.start + n * self.step + m
        plain = self.start + (n // self.group) * self.step + m * self.group + n % self.group
        whole = self.merged_columns
        if whole == self.written_columns:
            return plain
        last = self.start + whole // self.group * self.step + m * C0 + n % C0
        return np.where(n >= whole, last, plain)

    def indices(self, columns: int) -> Array:
        """Index of every (m, n) for the first ``columns`` columns, shape [rows, columns]."""
        m = np.arange(self.rows, dtype=np.int64)[:, None]
        n = np.arange(columns, dtype=np.int64)[None, :]
        return np.asarray(self.index(m, n))

    @property
    def end(self) -> int:
        """One past the last element written."""
        if not self.rows or not self.columns:
            return max(self.start, 0)
        m = self.rows - 1
        ends = [self.written_columns - 1]
        if 0 < self.merged_columns < self.written_columns:  # an unmerged last fractal may end before its neighbour
            ends.append(self.merged_columns - 1)
        return max(int(self.index(m, n)) for n in ends) + 1

    def put(self, storage: Array, codes: Array) -> None:
        """Write [rows, written_columns] elements to their places, row after row where rows overlap."""
        rows, columns = codes.shape
        if not codes.size:
            return
        if self.start < 0 or not self._one_pass(columns):
            for row in range(rows):
                index = np.asarray(self.index(row, np.arange(columns)))
                storage[index[index >= 0]] = codes[row, index >= 0]
            return
        if self.layout == "NZ2ND":
            _window(storage, self.start, (rows, columns), (self.step, 1))[...] = codes
        elif self.layout == "NZ2DN":
            _window(storage, self.start, (columns, rows), (self.step, 1))[...] = codes.T
        else:
            whole, wide = self.merged_columns, self.group
            groups = whole // wide
            merged = codes[:, :whole].reshape(rows, groups, wide).transpose(1, 0, 2)
            _window(storage, self.start, (groups, rows, wide), (self.step, wide, 1))[...] = merged
            if whole < columns:
                _window(storage, self.start + groups * self.step, (rows, C0), (C0, 1))[...] = codes[:, whole:]

    def _one_pass(self, columns: int) -> bool:
        """Whether no element is written twice."""
        length = {"NZ2ND": columns, "NZ2DN": self.rows, "NZ2NZ": self.rows * self.group}[self.layout]
        return self.step >= length or (self.layout == "NZ2ND" and self.rows == 1)

    def take(self, storage: Array) -> Array:
        """Read the results [rows, columns] back; elements written before the destination read as 0."""
        if self.layout == "NZ2ND" and self.start >= 0 and self.rows and self.columns:
            return _window(storage, self.start, (self.rows, self.columns), (self.step, 1)).copy()
        index = self.indices(self.columns)
        return np.where(index >= 0, storage[np.maximum(index, 0)], storage.dtype.type(0))

    def marks(self, size: int) -> tuple[Array, Array]:
        """Masks over ``size`` elements: written, and written without holding a result."""
        written = np.zeros(size, dtype=np.bool_)
        dummy = np.zeros(size, dtype=np.bool_)
        columns = np.arange(self.written_columns)
        if self.step >= columns.size or self.layout != "NZ2ND":
            index = self.indices(columns.size)
            inside = index >= 0
            written[index[inside]] = True
            dummy[index[inside & np.broadcast_to(columns >= self.columns, index.shape)]] = True
            return written, dummy
        for row in range(self.rows):  # a later row covers an earlier one's dummy columns
            index = np.asarray(self.index(row, columns))
            inside = index >= 0
            written[index[inside]] = True
            dummy[index[inside]] = (columns >= self.columns)[inside]
        return written, dummy


def _window(storage: Array, start: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> Array:
    """View elements of a flat array; the caller has sized it."""
    size = storage.itemsize
    return np.lib.stride_tricks.as_strided(storage[start:], shape, tuple(s * size for s in strides))


def from_fractal(
    storage: Array, rows: int, columns: int, source_stride: int | None = None, start: int = 0, row_stride: int = 1
) -> Array:
    """Read an accumulator [rows, columns] out of L0C's NZ order.

    Args:
        storage: accumulators in L0C order, flat.
        rows: M.
        columns: N.
        source_stride: rows between two columns of fractals; None: whole fractals.
        start: element of the first accumulator.
        row_stride: fractal rows between two accumulator rows.

    Raises:
        ShapeError: a storage that ends before the last accumulator.
    """
    stride = ceil_to(rows * row_stride, C0) if source_stride is None else source_stride
    flat = np.asarray(storage).reshape(-1)
    if not rows or not columns:
        return np.zeros((rows, columns), dtype=flat.dtype)
    last = start + int(accumulator_index((rows - 1) * row_stride, columns - 1, stride))
    if last >= flat.size:
        raise ShapeError(
            f"an NZ accumulator of {rows} x {columns} reaches element {last} of L0C; the array has {flat.size}.",
            hint=f"Pad it to whole fractals: ceil16(M) x ceil16(N) = {ceil_to(rows, C0) * ceil_to(columns, C0)}.",
        )
    whole = columns // C0
    parts = _window(flat, start, (rows, whole, C0), (row_stride * C0, stride * C0, 1)).reshape(rows, whole * C0)
    if whole * C0 == columns:
        return parts
    tail = _window(flat, start + whole * stride * C0, (rows, columns % C0), (row_stride * C0, 1))
    return np.concatenate([parts, tail], axis=1)


def to_fractal(acc: Array, fill: int = 0) -> Array:
    """Write a plain accumulator [M, N] in L0C's NZ order, padding rows and columns to 16."""
    rows, columns = acc.shape
    stride = ceil_to(rows, C0)
    flat = np.full(ceil_to(columns, C0) * stride, fill, dtype=acc.dtype)
    m, n = np.arange(rows)[:, None], np.arange(columns)[None, :]
    flat[accumulator_index(m, n, stride)] = acc
    return flat
