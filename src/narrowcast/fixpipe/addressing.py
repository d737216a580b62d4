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


def accumulator_index(m: Array, n: Array, source_stride: int) -> Array:
    """Element of L0C: 16-column fractals, ``source_stride`` rows apart (normally ceil16(M))."""
    return ((n // C0) * source_stride + m) * C0 + n % C0


@dataclass(frozen=True)
class Addressing:
    """Destination of one store.

    Args:
        layout: ``NZ2NZ``, ``NZ2ND`` or ``NZ2DN``.
        rows: M, rows written.
        columns: N, columns that hold results.
        bits: width of a destination element.
        stride: elements between rows (ND), columns (DN) or column groups (NZ); None packs them densely.
        split: 8-column fractals for fp32 (NZ2NZ).
    """

    layout: str
    rows: int
    columns: int
    bits: int
    stride: int | None = None
    split: bool = False

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
        return {"NZ2ND": self.columns, "NZ2DN": self.rows, "NZ2NZ": self.rows * self.group}[self.layout]

    @property
    def written_columns(self) -> int:
        """Columns NZ2NZ writes: whole fractals (whole groups of 64 for 4-bit elements)."""
        if self.layout != "NZ2NZ":
            return self.columns
        return ceil_to(self.columns, self.group if self.split or self.bits == 4 else C0)

    def index(self, m: Array, n: Array) -> Array:
        """Element index of (m, n); works on arrays."""
        if self.layout == "NZ2ND":
            return m * self.step + n
        if self.layout == "NZ2DN":
            return n * self.step + m
        plain = (n // self.group) * self.step + m * self.group + n % self.group
        total = self.written_columns
        if self.bits != 8 or total % self.group == 0:
            return plain
        # An odd fractal at the end stays unmerged, 16 columns wide.
        whole = total // self.group
        return np.where(n >= whole * self.group, whole * self.step + m * C0 + n % C0, plain)

    def indices(self, columns: int) -> Array:
        """Index of every (m, n) for the first ``columns`` columns, shape [rows, columns]."""
        m = np.arange(self.rows, dtype=np.int64)[:, None]
        n = np.arange(columns, dtype=np.int64)[None, :]
        return np.asarray(self.index(m, n))

    @property
    def extent(self) -> int:
        """Elements from the first to the last one written."""
        if not self.rows or not self.columns:
            return 0
        last = np.asarray([self.rows - 1]), np.asarray([self.written_columns - 1])
        return int(max(self.index(*last)[0], self._last_merged())) + 1

    def _last_merged(self) -> int:
        """An unmerged last fractal may end before the merged group ahead of it."""
        total = self.written_columns
        if self.layout != "NZ2NZ" or self.bits != 8 or total % self.group == 0 or total < self.group:
            return 0
        return int(self.index(np.asarray([self.rows - 1]), np.asarray([total // self.group * self.group - 1]))[0])


def from_fractal(storage: Array, rows: int, columns: int) -> Array:
    """Read an accumulator [rows, columns] out of L0C's NZ order (flat, ceil16 rows)."""
    stride = ceil_to(rows, C0)
    need = ceil_to(columns, C0) * stride
    flat = np.asarray(storage).reshape(-1)
    if flat.size != need:
        raise ShapeError(f"an NZ accumulator of {rows} x {columns} has {need} elements; got {flat.size}.")
    m, n = np.arange(rows)[:, None], np.arange(columns)[None, :]
    return np.asarray(flat[accumulator_index(m, n, stride)])


def to_fractal(acc: Array, fill: int = 0) -> Array:
    """Write a plain accumulator [M, N] in L0C's NZ order, padding rows and columns to 16."""
    rows, columns = acc.shape
    stride = ceil_to(rows, C0)
    flat = np.full(ceil_to(columns, C0) * stride, fill, dtype=acc.dtype)
    m, n = np.arange(rows)[:, None], np.arange(columns)[None, :]
    flat[accumulator_index(m, n, stride)] = acc
    return flat
