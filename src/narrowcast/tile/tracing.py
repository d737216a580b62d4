"""What a chip executes for a tile instruction: its micro-operations, and the result of executing them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from narrowcast.errors import ShapeError, UnsupportedCastError
from narrowcast.operation import Semantics
from narrowcast.operation.findings import refuse
from narrowcast.tile.dequantize import TAIL, TDequant
from narrowcast.tile.micro import LANES, Core, Micro
from narrowcast.tile.quantize import TQuant
from narrowcast.tile.tile import Tile
from narrowcast.tile.types import Array, TileType

_CHIPS = ("3510", "2201", "kirinx90")
_KIRIN_SOURCE = "pto-isa:8ae8afdb, a5/TDeQuant.hpp"


@dataclass(frozen=True)
class Lane:
    """One lane of one micro-operation: the tile element it works on, None for an inactive lane."""

    step: int
    lane: int
    active: bool
    element: tuple[int, int] | None


@dataclass(frozen=True)
class Trace:
    """The micro-operations of one call, in order.

    Args:
        op: the call.
        semantics: the chip and whom to believe.
        steps: the micro-operations.
        source: where they are written down.
    """

    op: TDequant | TQuant
    semantics: Semantics
    steps: tuple[Micro, ...]
    source: str

    def run(self, inputs: Mapping[str, Any]) -> Array:
        """Execute the micro-operations.

        Args:
            inputs: the arrays of the call, as ``execute`` takes them.

        Returns:
            The whole static result tile, zeros where nothing was written.
        """
        memory = {}
        for name, operand in self._operands().items():
            tile = Tile.empty(self.op.type(operand))
            if name not in ("dst", "scratch"):
                _fill(tile, inputs[operand])
            memory[name] = tile.memory
        core = Core(memory)
        for step in self.steps:
            core.execute(step)
        return Tile.empty(self.op.type("dst"), memory["dst"]).array()

    def _operands(self) -> dict[str, str]:
        """Name of each memory in the trace to the operand of the call."""
        if isinstance(self.op, TDequant):
            return {name: name for name in ("dst", "src", "scale", "offset")}
        names = {"dst": "dst", "src": "src", "multiplier": "parameter"}
        names |= {"offset": "offset"} if self.op.offset else {}
        return names | ({"scratch": "scratch"} if self.semantics.chip == "2201" else {})

    def lanes(self) -> Iterator[Lane]:
        """Yield every lane of every micro-operation."""
        for number, step in enumerate(self.steps):
            total = step.lanes if step.name.startswith("vconv_") or step.name in _MEMORY_OPS else LANES
            for lane in range(total):
                active = lane < step.lanes
                column = 0 if step.detail == "BRC_B32" else step.column + lane  # a broadcast repeats one parameter
                yield Lane(number, lane, active, (step.row, column) if active else None)

    def to_json(self) -> list[dict[str, Any]]:
        """Return the steps as JSON."""
        return [
            {
                "step": i,
                "op": step.name,
                "detail": step.detail,
                "writes": step.writes,
                "reads": list(step.reads),
                "row": step.row,
                "column": step.column,
                "lanes": step.lanes,
                "offset_bytes": list(step.offset_bytes),
            }
            for i, step in enumerate(self.steps)
        ]


_MEMORY_OPS = ("vadds", "vmuls", "ld")


def _fill(tile: Tile, values: Any) -> None:
    array = np.asarray(values)
    if array.ndim == 1:
        array = array[:, None]
    array = array.astype(tile.storage.dtype, copy=False)
    if array.shape == tile.type.shape:
        tile.write(array)
    elif array.shape == tile.valid:
        tile.store(array)
    else:
        raise ShapeError(f"{tile.label} got an array of shape {array.shape}.")


def trace(op: TDequant | TQuant, chip: str = "3510", semantics: Semantics | None = None) -> Trace:
    """List what a chip executes for a call.

    Args:
        op: a ``TDequant``, or a ``TQuant`` with ``given="multiplier"``, the form the chip has.
        chip: ``3510``, ``2201`` or ``kirinx90``.
        semantics: whom to believe, instead of ``pto-isa`` on ``chip``.

    Returns:
        The trace; executing it gives the same bits as the operation.

    Raises:
        ConstraintError: tiles that break a rule.
        UnsupportedCastError: another chip or operation.

    Source: seed:000, 001; pto-isa:a5, a2a3, kirinX90 headers.

    Example:
        >>> [step.name for step in trace(TDequant.on("s16", 1, 8)).steps]
        ['vlds', 'vlds', 'vlds', 'vcvt', 'vsub', 'vmul', 'vsts']
    """
    semantics = semantics or Semantics("pto-isa", chip=chip)
    if semantics.chip not in _CHIPS or not isinstance(op, TDequant | TQuant):
        raise UnsupportedCastError(
            f"no micro-operations are on record for {type(op).__name__} on chip {semantics.chip}.",
            hint=f"TDequant and TQuant have them on {', '.join(_CHIPS)}.",
            source="pto-isa",
        )
    refuse(op.violations(semantics), type(op).__name__)
    if isinstance(op, TQuant) and op.given != "multiplier":
        raise UnsupportedCastError(
            "no chip divides in TQUANT: its operand is the multiplier.",
            hint='Trace TQuant(given="multiplier"); narrowcast.audit shows where the two formulas differ.',
            source="pto-isa:TQuant.hpp",
        )
    return Trace(op, semantics, tuple(_steps(op, semantics)), _source(op, semantics.chip))


def _source(op: TDequant | TQuant, chip: str) -> str:
    name = "TDeQuant" if isinstance(op, TDequant) else "TQuant"
    if chip == "kirinx90" and isinstance(op, TDequant):
        return f"{_KIRIN_SOURCE}; seed:000, 001"
    folder = {"3510": "a5", "2201": "a2a3", "kirinx90": "kirinX90"}[chip]
    return f"pto-isa:{folder}/{name}.hpp"


def _steps(op: TDequant | TQuant, semantics: Semantics) -> Iterator[Micro]:
    if isinstance(op, TDequant):
        if semantics.chip == "2201":
            return _dequantize_2201(op)
        return _dequantize(op, semantics)
    return _quantize_2201(op) if semantics.chip == "2201" else _quantize(op, semantics.chip)


def _at(kind: TileType, row: int, column: int) -> int:
    return kind.offset(row, column) * kind.bits // 8


def _linear(kind: TileType, row: int, column: int) -> int:
    """Byte of an element that may lie behind the row: rows follow one another."""
    return (row * kind.cols + column) * kind.bits // 8


def _dequantize(op: TDequant, semantics: Semantics) -> Iterator[Micro]:
    dst, src, scale, offset = (op.type(name) for name in ("dst", "src", "scale", "offset"))
    rows, cols = dst.valid
    whole = TAIL in op.switches and semantics.chip == "3510" and semantics.choose(TAIL) == "whole-register"
    for row in range(rows):
        for name, kind in (("scale", scale), ("offset", offset)):
            place = (_at(kind, row, 0),)
            yield Micro("vlds", "BRC_B32", f"v_{name}", (name,), row, 0, LANES, place)
        for column in range(0, cols, LANES):
            lanes = LANES if whole else min(LANES, cols - column)
            base = Micro("", "", "", (), row, column, lanes)
            yield from _unpack(base, src, semantics.chip)
            yield replace(base, name="vsub", detail="MODE_ZEROING", writes="v", reads=("v", "v_offset"))
            yield replace(base, name="vmul", detail="MODE_ZEROING", writes="v", reads=("v", "v_scale"))
            place = (_linear(dst, row, column),)
            yield replace(base, name="vsts", detail="NORM_B32", writes="dst", reads=("v",), offset_bytes=place)


def _unpack(base: Micro, src: TileType, chip: str) -> Iterator[Micro]:
    """Load 64 codes and make them fp32."""
    place = (_linear(src, base.row, base.column),)
    load = replace(base, name="vlds", writes="v_src", reads=("src",), offset_bytes=place)
    convert = replace(base, name="vcvt")
    if src.dtype == "s16":
        yield replace(load, detail="UNPK_B16")
        yield replace(convert, detail="s16>f32 PART_EVEN", writes="v", reads=("v_src",))
    elif chip == "kirinx90":
        yield replace(load, detail="US_B8")
        yield replace(convert, detail="s8>s32 PART_P0", writes="v_int0", reads=("v_src",))
        yield replace(convert, detail="s8>s32 PART_P2", writes="v_int1", reads=("v_src",))
        yield replace(base, name="vintlv", writes="v_int0", reads=("v_int0", "v_int1"))
        yield replace(convert, detail="s32>f32 ROUND_Z", writes="v", reads=("v_int0",))
    else:
        yield replace(load, detail="UNPK4_B8")
        yield replace(convert, detail="s8>s32 PART_P0", writes="v_int", reads=("v_src",))
        yield replace(convert, detail="s32>f32 ROUND_Z", writes="v", reads=("v_int",))


def _dequantize_2201(op: TDequant) -> Iterator[Micro]:
    """Count-masked rows on memory: convert the whole tile first, then read two scalars a row."""
    dst, src, scale, offset = (op.type(name) for name in ("dst", "src", "scale", "offset"))
    rows, cols = dst.valid
    for row in range(rows):
        to, at = _at(dst, row, 0), _at(src, row, 0)
        base = Micro("", "count", "dst", ("src",), row, 0, cols, (to, at))
        if src.dtype == "s8":
            yield replace(base, name="vconv_s82f16")
            yield replace(base, name="vconv_f162f32", reads=("dst",), offset_bytes=(to, to))
        else:
            yield replace(base, name="vconv_s162f32")
    for row in range(rows):
        to = _at(dst, row, 0)
        base = Micro("", "count", "dst", ("dst",), row, 0, cols, (to, to))
        for name, kind in (("offset", offset), ("scale", scale)):
            yield Micro("ld", "", f"s_{name}", (name,), row, 0, 1, (_at(kind, row, 0),))
        yield replace(base, name="vadds", reads=("dst", "-s_offset"))
        yield replace(base, name="vmuls", reads=("dst", "s_scale"))


def _quantize(op: TQuant, chip: str) -> Iterator[Micro]:
    dst, src, parameter = op.type("dst"), op.type("src"), op.type("parameter")
    rows, cols = dst.valid
    small = dst.dtype
    for row in range(rows):
        for column in range(0, cols, LANES):
            base = Micro("", "", "v", ("v",), row, column, min(LANES, cols - column))
            place = (_at(parameter, row, 0),)
            yield replace(
                base, name="vlds", detail="BRC_B32", writes="v_scale", reads=("multiplier",), offset_bytes=place
            )
            if op.offset:
                place = (_at(op.type("offset"), row, 0),)
                yield replace(
                    base, name="vlds", detail="BRC_B32", writes="v_offset", reads=("offset",), offset_bytes=place
                )
            place = (_linear(src, row, column),)
            yield replace(base, name="vlds", detail="NORM", reads=("src",), offset_bytes=place)
            yield replace(base, name="vmul", detail="MODE_ZEROING", reads=("v", "v_scale"))
            if op.offset:
                yield replace(base, name="vadd", detail="MODE_ZEROING", reads=("v", "v_offset"))
            convert = replace(base, name="vcvt")
            yield replace(convert, detail="f32>s32 ROUND_R RS_ENABLE", writes="v_int")
            yield replace(convert, detail="s32>f32 ROUND_R", reads=("v_int",))
            yield replace(convert, detail="f32>f16 ROUND_R RS_ENABLE PART_EVEN", writes="v_half")
            yield replace(convert, detail=f"f16>{small} ROUND_R RS_ENABLE PART_EVEN", writes="v_out", reads=("v_half",))
            place = (_linear(dst, row, column),)
            store = replace(base, name="vsts", writes="dst", reads=("v_out",), offset_bytes=place)
            if chip == "kirinx90":
                for _ in range(2):
                    yield replace(base, name="vdintlv", writes="v_out", reads=("v_out", "v_tmp"))
                yield replace(store, detail="NORM_B8")
            else:
                yield replace(store, detail="PK4_B32")


def _quantize_2201(op: TQuant) -> Iterator[Micro]:
    """Rows on memory: multiply (and add) in place, then three conversions between source, scratch and destination."""
    dst, src, parameter = op.type("dst"), op.type("src"), op.type("parameter")
    scratch = op.type("scratch")
    rows, cols = dst.valid
    halves = TileType.of("fp16", (src.rows, -(-src.cols // 16) * 16))
    for row in range(rows):
        at = _at(src, row, 0)
        base = Micro("", "count", "src", ("src",), row, 0, cols, (at, at))
        yield Micro("ld", "", "s_multiplier", ("multiplier",), row, 0, 1, (_at(parameter, row, 0),))
        yield replace(base, name="vmuls", reads=("src", "s_multiplier"))
        if op.offset:
            yield Micro("ld", "", "s_offset", ("offset",), row, 0, 1, (_at(op.type("offset"), row, 0),))
            yield replace(base, name="vadds", reads=("src", "s_offset"))
    small = "vconv_f162s8r" if dst.dtype == "s8" else "vconv_f162u8r"
    for name, writes, reads, to_kind, from_kind in (
        ("vconv_f322s32r", "scratch", "src", scratch, src),
        ("vconv_deqs322f16", "src", "scratch", halves, scratch),
        (small, "dst", "src", dst, halves),
    ):
        for row in range(rows):
            places = (_at(to_kind, row, 0), _at(from_kind, row, 0))
            yield Micro(name, "count", writes, (reads,), row, 0, cols, places)
