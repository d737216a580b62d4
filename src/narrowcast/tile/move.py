"""TMOV: tile to tile, changing the layout; MX exponents into the order the Cube reads."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from narrowcast.errors import unknown_name
from narrowcast.layout import AxisPattern
from narrowcast.operation import Choices, Control, Effect, Finding, Semantics, rule
from narrowcast.operation.protocol import Inputs, execute
from narrowcast.tile.events import RecordEvent, record
from narrowcast.tile.spelling import Role
from narrowcast.tile.tile import Tile
from narrowcast.tile.types import TileType, canonical, spell, tile_type

_SOURCE = "pto-isa:TMOV"
EXPONENT_ORDER = "exponent_zz_order"
_COLUMN_MAJOR_BOXES = AxisPattern.parse("(r1 r0:16) (c1 c0:2) -> r1 c1 c0 r0")


@dataclass(frozen=True, kw_only=True)
class TMov:
    """A tile move as data.

    Args:
        dst: type of the destination, as ``TileType`` text.
        src: type of the source.
        axis: 1 keeps rows and columns; 0 moves MX exponents that were grouped along rows, so it transposes them.
    """

    dst: str
    src: str
    axis: int = 1

    inputs: ClassVar[tuple[str, ...]] = ("src",)

    def __post_init__(self) -> None:
        object.__setattr__(self, "dst", canonical(self.dst))
        object.__setattr__(self, "src", canonical(self.src))
        if self.axis not in (0, 1):
            raise unknown_name("group axis", self.axis, ("0", "1"))

    @property
    def target(self) -> TileType:
        """The destination's type."""
        return tile_type(self.dst)

    @property
    def origin(self) -> TileType:
        """The source's type."""
        return tile_type(self.src)

    @property
    def switches(self) -> tuple[str, ...]:
        """The order inside an exponent box is written down two ways."""
        return (EXPONENT_ORDER,) if self._exponents and self.axis == 1 else ()

    @property
    def _exponents(self) -> bool:
        return self.target.layout == "ZZ" and self.target.fractal == 32

    def violations(self, semantics: Semantics) -> Iterable[Finding]:
        """Rules the move breaks."""
        for check in RULES:
            yield from check.findings(self, "TMOV")

    def run(self, inputs: Inputs, choices: Choices, control: Control, out: Any = None) -> Any:
        """Return the destination's elements in linear order; ``src`` is the valid region."""
        target = self.target
        values = np.asarray(inputs["src"])
        if self.axis == 0:
            values = values.T
        whole = np.zeros(target.shape, dtype=values.dtype)
        whole[: values.shape[0], : values.shape[1]] = values
        pattern = target.pattern
        if self.switches and choices.choose(EXPONENT_ORDER) == "column-major":
            pattern = _COLUMN_MAJOR_BOXES
        return pattern.pack(whole).reshape(-1)


@rule(
    "MOV-01",
    states="Source and destination hold the same elements: equal formats, equal valid shapes (transposed on axis 0).",
    cause="TMOV converts nothing here",
    effect=Effect.UNAVAILABLE,
    fix="Give the destination the source's format and valid shape; convert with tcvt.",
    source=_SOURCE,
)
def same_elements(move: TMov) -> Iterator[str]:
    target, origin = move.target, move.origin
    if target.bits != origin.bits:
        yield f"dst is {target.dtype}, src {origin.dtype}"
    wanted = origin.valid if move.axis == 1 else origin.valid[::-1]
    if target.valid != wanted:
        yield f"dst holds {target.valid[0]}x{target.valid[1]} valid elements, src gives {wanted[0]}x{wanted[1]}"


@rule(
    "MOV-02",
    states="On axis 0 the source has an even number of exponent rows and a multiple of 16 columns.",
    cause="an exponent box pairs two rows of 16",
    effect=Effect.UNAVAILABLE,
    fix="Quantize a multiple of 64 rows and 16 columns.",
    source="pto-isa:TMOV, TQUANT",
)
def exponent_boxes_are_whole(move: TMov) -> Iterator[str]:
    rows, cols = move.origin.valid
    if move.axis == 0 and (rows % 2 or cols % 16):
        yield f"the exponents are {rows}x{cols}"


RULES = (same_elements, exponent_boxes_are_whole)


def _pipe(dst: TileType, src: TileType) -> str:
    if src.role is Role.ACC:
        return "FIX"
    return "V" if dst.role is Role.VEC and src.role is Role.VEC else "MTE1"


def tmov(dst: Tile, src: Tile, *events: RecordEvent, axis: int = 1, semantics: Semantics | None = None) -> RecordEvent:
    """Move a tile's valid region into another tile, whose layout may differ.

    Formula: ``dst[i, j] = src[i, j]``; with ``axis=0`` (exponents grouped along rows) ``dst[i, j] = src[j, i]``.

    Args:
        dst: the destination; outside its valid region nothing is written.
        src: the source.
        events: events to wait for.
        axis: 1, or 0 for DN exponents into ZZ.
        semantics: whom to believe about the order inside an exponent box.

    Returns:
        The event of the move.

    Raises:
        ConstraintError: formats or shapes that differ.

    Source: pto-isa:TMOV.

    Example:
        >>> src = Tile(np.arange(64, dtype=np.float32).reshape(4, 16))
        >>> dst = Tile(dtype="fp32", shape=(16, 16), valid=(4, 16), layout="NZ")
        >>> event = tmov(dst, src)
        >>> dst.storage[:10].tolist()
        [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 16.0, 17.0]
    """
    dst.require_writable()
    op = TMov(dst=spell(dst.type), src=spell(src.type), axis=axis)
    linear = execute(op, {"src": src.numpy()}, semantics)
    if op.switches and dst.valid == dst.type.shape:
        dst.storage[...] = linear.view(dst.storage.dtype)
    else:
        values = src.numpy() if axis == 1 else src.numpy().T
        own = dst.storage.dtype
        dst.store(values if values.dtype == own else np.ascontiguousarray(values).view(own))
    return record("TMOV", _pipe(dst.type, src.type), (src,), (dst,), events)
