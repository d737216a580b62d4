"""What a tile is: role, element type, static and valid shape, blocks and boxes, padding; and its linear order."""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Any, Self

import numpy.typing as npt

from narrowcast.catalog.formats import formats
from narrowcast.errors import EncodingError, ShapeError, unknown_name
from narrowcast.layout import AxisPattern
from narrowcast.operation import Effect, Finding, rule
from narrowcast.operation.findings import refuse
from narrowcast.schema import Format
from narrowcast.tile.spelling import (
    BLOCK_TEXT,
    BOX_TEXT,
    LAYOUTS,
    Order,
    Pad,
    Role,
    member,
    order,
    read_dtype,
    read_pad,
    write_dtype,
    write_pad,
)

Array = npt.NDArray[Any]

BLOCK_BYTES = 32
_LAYOUT_SOURCE = "pto-isa:Tile, static checks"


# A ragged last row block has a place of its own only in NZ, where rows are not cut.
_PATTERNS = {
    "ND": "r c -> r c",
    "DN": "r c -> c r",
    "NZ": "r (c1 c0:{ic}) -> c1 r c0",
    "ZN": "(r1 r0:{ir}) c -> r1 c r0",
    "ZZ": "(r1 r0:{ir}) (c1 c0:{ic}) -> r1 c1 r0 c0",
    "NN": "(r1 r0:{ir}) (c1 c0:{ic}) -> c1 r1 c0 r0",
}
_pattern = cache(AxisPattern.parse)

_SCALES = (Role.SCALE_LEFT, Role.SCALE_RIGHT)


@dataclass(frozen=True, kw_only=True)
class TileType:
    """The static description of a tile.

    Args:
        dtype: format of the elements.
        rows: static rows.
        cols: static columns.
        valid_rows: rows that hold data; None when set at run time.
        valid_cols: columns that hold data; None when set at run time.
        role: the buffer it lives in.
        blocks: which index runs fastest from block to block.
        box: which index runs fastest inside a box; ``NONE`` for a tile without boxes.
        fractal: bytes of a box: 512 for operands, 1024 for accumulators, 32 for MX scales.
        pad: what TLOAD puts outside the valid region; an integer is 2**32 plus the bits of an element.
    """

    dtype: str
    rows: int
    cols: int
    valid_rows: int | None = None
    valid_cols: int | None = None
    role: Role = Role.VEC
    blocks: Order = Order.ROW
    box: Order = Order.NONE
    fractal: int = 512
    pad: Pad | int = Pad.NULL

    @classmethod
    def of(
        cls,
        dtype: str,
        shape: tuple[int, int],
        valid: tuple[int | None, int | None] | None = None,
        *,
        layout: str = "ND",
        role: str | Role = Role.VEC,
        pad: str | int | Pad = Pad.NULL,
        fractal: int | None = None,
    ) -> Self:
        """Build from a short layout name; the valid shape is the static one unless given."""
        if layout.upper() not in LAYOUTS:
            raise unknown_name("tile layout", layout, LAYOUTS)
        blocks, box = LAYOUTS[layout.upper()]
        where = role if isinstance(role, Role) else member(Role, role, "tile role")
        default = 1024 if where is Role.ACC else 32 if where in _SCALES else 512
        valid_rows, valid_cols = valid or shape
        return cls(
            dtype=formats[dtype].name,
            rows=shape[0],
            cols=shape[1],
            valid_rows=valid_rows,
            valid_cols=valid_cols,
            role=where,
            blocks=blocks,
            box=box,
            fractal=default if fractal is None else fractal,
            pad=read_pad(pad),
        )

    @property
    def format(self) -> Format:
        """The element format's row."""
        return formats[self.dtype]

    @property
    def bits(self) -> int:
        """Bits one element takes in memory."""
        return 4 if self.format.bits == 4 else self.format.code_bits

    @property
    def layout(self) -> str:
        """Short layout name."""
        return next(name for name, orders in LAYOUTS.items() if orders == (self.blocks, self.box))

    @property
    def shape(self) -> tuple[int, int]:
        """Static shape."""
        return self.rows, self.cols

    @property
    def valid(self) -> tuple[int, int]:
        """Valid shape; a part that is set at run time counts as the static one."""
        rows = self.rows if self.valid_rows is None else self.valid_rows
        return rows, self.cols if self.valid_cols is None else self.valid_cols

    @property
    def size_bytes(self) -> int:
        """Bytes of the whole static tile."""
        return (self.rows * self.cols * self.bits + 7) // 8

    @property
    def boxed(self) -> bool:
        """Whether elements are grouped in boxes."""
        return self.box is not Order.NONE

    @property
    def box_shape(self) -> tuple[int, int]:
        """Rows and columns of a box, (1, 1) without boxes."""
        if not self.boxed:
            return 1, 1
        if self.fractal == 1024:
            return 16, 16
        long, short = (16, 2) if self.fractal == 32 else (16, BLOCK_BYTES * 8 // self.bits)
        return (long, short) if self.box is Order.ROW else (short, long)

    @property
    def row_stride(self) -> int:
        """Elements from one row to the next in a tile without boxes."""
        return self.cols if self.blocks is Order.ROW else 1

    def with_valid(self, rows: int, cols: int) -> "TileType":
        """Return a copy with another valid shape."""
        return replace(self, valid_rows=rows, valid_cols=cols)

    @property
    def pattern(self) -> AxisPattern:
        """Where each element lies: the layout as an index map."""
        ir, ic = self.box_shape
        return _pattern(_PATTERNS[self.layout].format(ir=ir, ic=ic))

    def offset(self, row: int, col: int) -> int:
        """Return the linear position, in elements, of one element.

        Example:
            >>> TileType.of("u8", (32, 64), layout="NZ").offset(16, 0)
            512
        """
        if not (0 <= row < self.rows and 0 <= col < self.cols):
            raise ShapeError(f"element ({row}, {col}) lies outside the static shape {self.rows}x{self.cols}.")
        parts: list[int] = []
        for index, axis in zip((row, col), self.pattern.axes, strict=True):
            sizes = [size or 1 for _, size in axis[1:]]
            inner = math.prod(sizes)
            parts += [index // inner, *([index % inner] if sizes else [])]
        position = 0
        for i, size in zip(self.pattern.order, self.pattern.storage_shape(self.shape), strict=True):
            position = position * size + parts[i]
        return position

    def rules(self) -> Iterator[Finding]:
        """Yield what makes this tile illegal."""
        for check in RULES:
            yield from check.findings(self, f"tile {self.short}")

    @property
    def short(self) -> str:
        """A few words: type, shape, layout."""
        valid = "" if self.valid == self.shape else f" valid {self.valid[0]}x{self.valid[1]}"
        return f"{self.dtype} {self.rows}x{self.cols}{valid} {self.layout}"

    def __str__(self) -> str:
        parts = [
            f"loc={self.role.value}",
            write_dtype(self.dtype),
            str(self.rows),
            str(self.cols),
            BLOCK_TEXT[self.blocks],
            BOX_TEXT[self.box],
            str(self.fractal) if self.boxed else "None",
            write_pad(self.pad),
        ]
        if (self.valid_rows, self.valid_cols) != self.shape:
            parts.append(f"valid={_dimension(self.valid_rows)}x{_dimension(self.valid_cols)}")
        return f"!pto.tile<{', '.join(parts)}>"

    @classmethod
    def parse(cls, text: str) -> "TileType":
        """Read the PTO-AS spelling ``!pto.tile<loc=vec, i8, 16, 64, RowMajor, NoneBox, None, Zero>``.

        ``tile_buf`` means the same. Parameters may be given by name (``rows=``, ``v_row=``, ``blayout=``, ...);
        the trailing ones may be omitted. ``valid=RxC`` (or ``v_row=``, ``v_col=``) is the valid shape, ``?`` a
        part set at run time.

        Raises:
            EncodingError: not such a type; the message names the parameter.
        """
        found = re.fullmatch(r"!?\s*(?:pto\.)?tile(?:_buf)?\s*<(.*)>", text.strip(), re.DOTALL)
        if found is None:
            raise EncodingError(f"{text.strip()!r} is no tile type.", hint="Write !pto.tile<loc=vec, f32, 16, 64>.")
        return _read_parameters(found[1])


_POSITIONS = ("dtype", "rows", "cols", "blayout", "slayout", "fractal", "pad")
_NAMES = (*_POSITIONS, "loc", "valid", "v_row", "v_col")


def _dimension(value: int | None) -> str:
    return "?" if value is None else str(value)


def _read_parameters(body: str) -> TileType:
    given: dict[str, str] = {}
    position = 0
    for part in (p.strip() for p in body.split(",")):
        name, equals, value = (s.strip() for s in part.partition("="))
        if not equals:
            if position >= len(_POSITIONS):
                raise EncodingError(
                    f"a tile type takes {len(_POSITIONS)} parameters besides loc=; {part!r} is too many."
                )
            name, value = _POSITIONS[position], part
            position += 1
        elif name not in _NAMES:
            raise unknown_name("tile type parameter", name, _NAMES)
        if name in given:
            raise EncodingError(f"tile type parameter {name} is given twice.")
        given[name] = value
    for name in ("dtype", "rows", "cols"):
        if name not in given:
            raise EncodingError(f"a tile type needs {name}.", hint="Write !pto.tile<loc=vec, f32, 16, 64>.")
    dtype = read_dtype(given["dtype"])
    rows, cols = _number("rows", given["rows"]), _number("cols", given["cols"])
    if rows is None or cols is None:
        raise EncodingError("the static shape is fixed; only the valid shape may be ?.")
    valid = given.get("valid", "x".join((given.get("v_row", str(rows)), given.get("v_col", str(cols)))))
    valid_rows, cross, valid_cols = valid.partition("x")
    if not cross:
        raise EncodingError(f"valid is written RxC; got {valid!r}.")
    role = member(Role, given.get("loc", "vec"), "tile role")
    blocks = order(given.get("blayout", "RowMajor"))
    box = order(given.get("slayout", "NoneBox"))
    fractal = given.get("fractal", "None")
    default = 1024 if role is Role.ACC else 32 if role in _SCALES else 512
    return TileType(
        dtype=dtype,
        rows=rows,
        cols=cols,
        valid_rows=_number("valid rows", valid_rows),
        valid_cols=_number("valid columns", valid_cols),
        role=role,
        blocks=blocks,
        box=box,
        fractal=default if fractal.lower() == "none" else _number("fractal", fractal) or default,
        pad=read_pad(given.get("pad", "null")),
    )


def _number(name: str, text: str) -> int | None:
    if text.strip() in ("?", "-1"):
        return None
    if not text.strip().isdigit():
        raise EncodingError(f"tile type parameter {name} is a whole number; got {text.strip()!r}.")
    return int(text)


@rule(
    "TILE-01",
    states="0 < valid rows <= static rows and 0 < valid columns <= static columns.",
    cause="the valid region is a corner of the static tile",
    effect=Effect.UNAVAILABLE,
    fix="Enlarge the static shape or reduce the valid one.",
    source=_LAYOUT_SOURCE,
)
def valid_inside_static(tile: TileType) -> Iterator[str]:
    for name, valid, static in zip(("rows", "columns"), tile.valid, tile.shape, strict=True):
        if not 0 < valid <= static:
            yield f"valid {name} {valid} are not within 1..{static}"


@rule(
    "TILE-02",
    states="A row of a row-major tile, a column of a column-major one, is a multiple of 32 bytes.",
    cause="UB is read and written in blocks of 32 bytes",
    effect=Effect.UNAVAILABLE,
    fix="Round the static shape up (Tile.holding does) and keep the valid shape.",
    source=_LAYOUT_SOURCE,
)
def rows_are_aligned(tile: TileType) -> Iterator[str]:
    if tile.boxed:
        return
    name, count = ("row", tile.cols) if tile.blocks is Order.ROW else ("column", tile.rows)
    if count * tile.bits % (8 * BLOCK_BYTES):
        least = 8 * BLOCK_BYTES // tile.bits
        yield (
            f"a {name} of {count} {tile.dtype} elements has {count * tile.bits / 8:g} bytes, "
            f"not a multiple of {BLOCK_BYTES} (next legal: {-(-count // least) * least} elements)"
        )


@rule(
    "TILE-03",
    states="The static shape of a boxed tile is a multiple of the box, except rows of Vec and MX scale tiles.",
    cause="a box is moved whole",
    effect=Effect.UNAVAILABLE,
    fix="Round the static shape up to the box.",
    source=_LAYOUT_SOURCE,
)
def boxes_fit(tile: TileType) -> Iterator[str]:
    if not tile.boxed:
        return
    ir, ic = tile.box_shape
    if tile.cols % ic:
        yield f"{tile.cols} columns are not a multiple of the box's {ic}"
    free = tile.role is Role.VEC or tile.fractal == 32 or tile.rows == 1
    # Only in NZ does a ragged last row block have a place of its own.
    if tile.rows % ir and not (free and tile.layout == "NZ"):
        yield f"{tile.rows} rows are not a multiple of the box's {ir}"


RULES = (valid_inside_static, rows_are_aligned, boxes_fit)


@lru_cache(maxsize=1024)
def tile_type(text: str) -> TileType:
    """Read a tile type, once per text."""
    return TileType.parse(text)


@lru_cache(maxsize=1024)
def spell(kind: TileType) -> str:
    """Write a tile type, once per type."""
    return str(kind)


def canonical(text: "str | TileType") -> str:
    """Return the one spelling of a tile type."""
    return spell(tile_type(text) if isinstance(text, str) else text)


def require_legal(tile: TileType) -> TileType:
    """Return the type, or raise one error with every rule it breaks."""
    refuse(tile.rules(), f"tile {tile.short}")
    return tile


def aligned(dtype: str, rows: int, cols: int, layout: str = "ND") -> tuple[int, int]:
    """Return the smallest legal static shape of a tile without boxes that holds rows x cols."""
    least = 8 * BLOCK_BYTES // TileType.of(dtype, (1, 1)).bits
    if layout.upper() == "DN":
        return -(-rows // least) * least, cols
    return rows, -(-cols // least) * least
