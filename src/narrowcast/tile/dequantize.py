"""TDEQUANT on tiles: subtract the row's offset, multiply by the row's scale, two roundings."""

from collections.abc import Iterable
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from narrowcast import kernels
from narrowcast.errors import ShapeError, UnsupportedCastError
from narrowcast.operation import Choices, Control, Finding, Semantics
from narrowcast.operation.protocol import Inputs, execute
from narrowcast.tile import dequantize_rules
from narrowcast.tile.events import RecordEvent, record
from narrowcast.tile.scalar import TDequantScalar, issue, multiplier_word, scalar
from narrowcast.tile.tile import Tile
from narrowcast.tile.types import Array, TileType, aligned, canonical, spell, tile_type

COLUMN = "tdequant_parameter_column"
TAIL = "tdequant_tail_predicate"
X90 = "tdequant_kirinx90"
LANES = 64


@dataclass(frozen=True, kw_only=True)
class TDequant:
    """A TDEQUANT call as data: the types of its four tiles.

    Formula: ``dst[i, j] = fp32(fp32(src[i, j] - offset[i]) * scale[i])``.

    Args:
        dst: type of the result tile, as PTO-AS text.
        src: type of the code tile.
        scale: type of the scale tile.
        offset: type of the offset tile.

    Source: seed:000, 001; pto-isa:TDEQUANT.
    """

    dst: str
    src: str
    scale: str
    offset: str

    inputs: ClassVar[tuple[str, ...]] = ("src", "scale", "offset")

    def __post_init__(self) -> None:
        for item in fields(self):
            object.__setattr__(self, item.name, canonical(getattr(self, item.name)))

    @classmethod
    def on(cls, dtype: str, rows: int, cols: int) -> "TDequant":
        """Build the call for the smallest legal tiles of a shape.

        Example:
            >>> TDequant.on("s8", 4, 100).type("src").short
            's8 4x128 valid 4x100 ND'
        """
        parameter = str(TileType.of("fp32", aligned("fp32", rows, 1, "DN"), (rows, 1), layout="DN"))
        return cls(
            dst=str(TileType.of("fp32", aligned("fp32", rows, cols), (rows, cols))),
            src=str(TileType.of(dtype, aligned(dtype, rows, cols), (rows, cols))),
            scale=parameter,
            offset=parameter,
        )

    def type(self, operand: str) -> TileType:
        """Return the type of an operand by name."""
        return tile_type(getattr(self, operand))

    @property
    def switches(self) -> tuple[str, ...]:
        """The disputed points these shapes touch."""
        found = [X90]
        if self.type("scale").valid[1] > 1:
            found.append(COLUMN)
        columns = self.type("dst").valid[1]
        if columns > LANES and columns % LANES:
            found.append(TAIL)
        return tuple(found)

    def violations(self, semantics: Semantics) -> Iterable[Finding]:
        """Rules the tiles break, as far as the authority and chip check them."""
        if semantics.authority == "pto-spec":
            raise UnsupportedCastError(
                "pto-spec's TDEQUANT takes one multiplier and one zero point in registers, not parameter tiles.",
                hint="Pass scalars to tdequant, or use TDequantScalar.",
                source="pto-spec:TDEQUANT",
            )
        return _violations(self, semantics)

    def run(self, inputs: Inputs, choices: Choices, control: Control, out: Any = None) -> Any:
        """Compute the whole static result tile; outside the valid region it keeps what ``out`` holds, or zeros.

        Each input has its tile's static or valid shape; parameters may have one dimension.
        """
        if choices.chip == "kirinx90" and choices.choose(X90) == "absent":
            raise UnsupportedCastError(
                "chip kirinx90 has no TDEQUANT in the library at 3186c381.",
                hint="semantics.override(tdequant_kirinx90='documented') follows the page.",
                source="pto-isa:kirinX90/header.hpp",
            )
        dst = self.type("dst")
        src = self._array(inputs, "src")
        scale, offset = self._array(inputs, "scale"), self._array(inputs, "offset")
        rows, cols = dst.valid
        target = result_array(dst, out)
        spread = self._columns(choices)
        if spread <= 1:
            kernels.dequantize_rows(src[:rows, :cols], scale[:rows, 0], offset[:rows, 0], out=target[:rows, :cols])
        else:
            index = np.minimum(np.arange(cols), spread - 1)
            with np.errstate(all="ignore"):
                shifted = src[:rows, :cols].astype(np.float32) - offset[:rows][:, index]
                np.multiply(shifted, scale[:rows][:, index], out=target[:rows, :cols], casting="same_kind")
        if TAIL in choices.declared and choices.chip == "3510" and choices.choose(TAIL) == "whole-register":
            self._overrun(src, scale, offset, target)
        return target

    def _columns(self, choices: Choices) -> int:
        """How many parameter columns take part."""
        if COLUMN not in choices.declared or choices.choose(COLUMN) == "first":
            return 1
        return max(1, self.type("scale").valid[1])

    def _array(self, inputs: Inputs, name: str) -> Array:
        kind = self.type(name)
        values = np.asarray(inputs[name])
        if values.ndim == 1 and name != "src":
            values = values[:, None]
        if values.shape == kind.shape:
            return values
        if values.shape != kind.valid:
            raise ShapeError(
                f"{name} has shape {values.shape}; its tile is {kind.rows}x{kind.cols} with "
                f"{kind.valid[0]}x{kind.valid[1]} valid."
            )
        whole = np.zeros(kind.shape, dtype=values.dtype)
        whole[: values.shape[0], : values.shape[1]] = values
        return whole

    def _overrun(self, src: Array, scale: Array, offset: Array, target: Array) -> None:
        """Write the lanes of the last 64-lane step behind the valid columns, row after row as the chip would.

        What such a step writes behind the static row lies in the next row, which is written after it; behind the
        last row it leaves the tile, and the model has no memory there.
        """
        rows, cols = self.type("dst").valid
        end = min(-(-cols // LANES) * LANES, target.shape[1])
        linear = np.concatenate([src.reshape(-1), np.zeros(LANES, dtype=src.dtype)])
        position = np.arange(rows)[:, None] * src.shape[1] + np.arange(cols, end)
        lanes = linear[np.minimum(position, linear.size - 1)].astype(np.float32)
        with np.errstate(all="ignore"):
            target[:rows, cols:end] = (lanes - offset[:rows, :1]) * scale[:rows, :1]

    @staticmethod
    def show(value: Any) -> str:
        """Write a result with its bits."""
        return f"{float(value):g} (0x{np.float32(value).view(np.uint32):08X})"


@lru_cache(maxsize=256)
def _violations(op: TDequant, semantics: Semantics) -> tuple[Finding, ...]:
    return tuple(dequantize_rules.violations(op, semantics))


def tdequant(
    dst: Tile,
    src: Tile,
    scale: Tile | float,
    offset: Tile | float,
    *events: RecordEvent,
    semantics: Semantics | None = None,
    rounding: str = "RNE",
) -> RecordEvent:
    """Dequantize integer codes to fp32, with one scale and one offset per row.

    Formula: ``dst[i, j] = fp32(fp32(src[i, j] - offset[i]) * scale[i])``: subtract, round, multiply, round.

    Args:
        dst: fp32 tile, row-major. Outside its valid region nothing is written.
        src: s8 or s16 codes, row-major, same valid shape.
        scale: fp32 steps, one row per row of ``dst``; see ``Tile.per_row``.
        offset: fp32 zero points, like ``scale``.
        events: events to wait for.
        semantics: whom to believe, for which chip. Under ``pto-spec`` ``scale`` and ``offset`` are numbers: one
            fp32 multiplier and one integer zero point; codes are s8 or u8.
        rounding: RMode of the one rounding under ``pto-spec``.

    Returns:
        The event of the operation, on pipe V.

    Raises:
        ConstraintError: tiles that break a rule; all of them are listed with the document's reasons.
        UnsupportedCastError: an authority whose TDEQUANT has no parameter tiles.

    Source: seed:000, 001; pto-isa:TDEQUANT.

    Example:
        >>> codes = Tile.holding(np.int8([[10, -3], [7, 0]]))
        >>> values = Tile(dtype="fp32", shape=(2, 8), valid=(2, 2))
        >>> event = tdequant(values, codes, Tile.per_row([0.5, 2.0]), Tile.per_row([2.0, -1.0]))
        >>> values.numpy().tolist()
        [[4.0, -2.5], [16.0, 2.0]]
    """
    dst.require_writable()
    if semantics is not None and semantics.authority == "pto-spec":
        return _scalar(dst, src, scale, offset, events, rounding)
    for name, tile in (("scale", scale), ("offset", offset)):
        if not isinstance(tile, Tile):
            raise ShapeError(
                f"{name} is a parameter tile; got {type(tile).__name__}.", hint="Use Tile.per_row(values)."
            )
    assert isinstance(scale, Tile) and isinstance(offset, Tile)
    op = TDequant(dst=spell(dst.type), src=spell(src.type), scale=spell(scale.type), offset=spell(offset.type))
    inputs = {"src": src.array(), "scale": scale.array(), "offset": offset.array()}
    if dst.type.boxed:
        dst.write(execute(op, inputs, semantics, out=dst.array()))
    else:
        execute(op, inputs, semantics, out=dst.array())
    return record("TDEQUANT", "V", (src, scale, offset), (dst,), events)


def _scalar(
    dst: Tile, src: Tile, scale: Any, offset: Any, events: tuple[RecordEvent, ...], rounding: str
) -> RecordEvent:
    op = TDequantScalar(
        dst=spell(dst.type),
        src=spell(src.type),
        multiplier=multiplier_word(float(scalar(scale, "scale"))),
        zero_point=int(scalar(offset, "offset")),
        rounding=rounding,
    )
    return issue(op, dst, src, events)


def result_array(kind: TileType, out: Array | None) -> Array:
    """Return the array a result goes to: ``out``, checked, or zeros of the static shape."""
    dtype = {"fp32": np.float32, "fp16": np.float16}.get(kind.dtype, np.float32)
    if out is None:
        return np.zeros(kind.shape, dtype=dtype)
    if out.shape != kind.shape or out.dtype != dtype:
        raise ShapeError(f"out must be a {np.dtype(dtype)} array of shape {kind.shape}; got {out.dtype} {out.shape}.")
    return out
