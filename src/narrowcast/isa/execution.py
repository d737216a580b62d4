"""Run a tile program on arrays."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from narrowcast.errors import EncodingError, NarrowcastError, ShapeError
from narrowcast.isa.bundle import at
from narrowcast.isa.program import Form, MemoryType, Operand, Statement, TileProgram
from narrowcast.operation import Control, Finding, Semantics
from narrowcast.operation.findings import refuse
from narrowcast.tile import GlobalTensor, Program, Tile, TileType, tcvt, tdequant, tload, tmov, tquant, tstore
from narrowcast.tile.events import RecordEvent
from narrowcast.tile.spelling import Order
from narrowcast.tile.tile import element_dtype
from narrowcast.tile.types import Array

_SATURATION = {"on": True, "off": False, "true": True, "false": False}


@dataclass(frozen=True)
class Execution:
    """What a program left behind.

    Args:
        arrays: stored memories by name.
        tiles: tiles by name, as they are at the end.
        findings: reads before their producer's event; a program's text waits for every operand, so none.
    """

    arrays: Mapping[str, Array]
    tiles: Mapping[str, Tile]
    findings: tuple[Finding, ...] = ()


@dataclass
class _Run:
    arrays: dict[str, Array]
    semantics: Semantics
    control: Control | None
    tiles: dict[str, Tile] = field(default_factory=dict)
    produced: dict[str, RecordEvent] = field(default_factory=dict)
    stored: dict[str, Array] = field(default_factory=dict)

    def statement(self, statement: Statement) -> None:
        try:
            event = getattr(self, f"_{statement.op}")(statement)
        except NarrowcastError as error:
            if error.message.startswith("line "):
                raise
            raise at(error, statement.line, statement.column) from None
        if not statement.stores:
            self.produced[statement.results[0].name] = event

    def _source(self, statement: Statement, index: int) -> Tile:
        operand = statement.sources[index]
        tile = self.tiles.get(operand.name)
        if tile is None:
            known = ", ".join(f"%{name}" for name in self.tiles) or "none"
            raise _here(statement, operand, f"{operand} is not defined (tiles so far: {known}).")
        if statement.source_types:
            declared = statement.source_types[index]
            if not isinstance(declared, TileType):
                raise _here(statement, operand, f"{operand} is a tile, and its type here is {declared}.")
            if (declared.dtype, declared.shape) != (tile.type.dtype, tile.type.shape):
                raise _here(
                    statement, operand, f"{operand} is {tile.type.short}, and its type here is {declared.short}."
                )
        return tile

    def _waits(self, statement: Statement) -> list[RecordEvent]:
        names = [o.name for o in (*statement.sources, *statement.results)]
        return [self.produced[name] for name in names if name in self.produced]

    def _result(self, statement: Statement) -> Tile:
        operand = statement.results[0]
        existing = self.tiles.get(operand.name)
        if existing is not None:
            kind = statement.result_types[0] if statement.result_types else existing.type
            same = isinstance(kind, TileType) and (kind.dtype, kind.shape) == (existing.type.dtype, existing.type.shape)
            if statement.form is Form.SSA or not same:
                raise _here(statement, operand, f"{operand} is defined already, as {existing.type.short}.")
            return existing
        if not statement.result_types or not isinstance(statement.result_types[0], TileType):
            raise _here(statement, operand, f"{operand} has no tile type.")
        kind = statement.result_types[0]
        refuse((replace(finding, place=str(operand)) for finding in kind.rules()), str(operand))
        tile = Tile.empty(kind, name=str(operand))
        self.tiles[operand.name] = tile
        return tile

    def _memory(self, statement: Statement, operand: Operand, kind: Any, tile: Tile, array: Array) -> GlobalTensor:
        if isinstance(kind, TileType):
            raise _here(statement, operand, f"{operand} is memory, and its type here is a tile.")
        if kind is not None:
            array = _fit(statement, operand, kind, array)
        layout = "DN" if tile.type.blocks is Order.COL and not tile.type.boxed else "ND"
        offset = (0, 0) if not operand.offsets else _offset(statement, operand)
        dtype = kind.dtype if kind is not None else tile.dtype
        return GlobalTensor(array, dtype=dtype, layout=layout, offset=offset, name=str(operand))

    def _tload(self, statement: Statement) -> RecordEvent:
        operand = statement.sources[0]
        array = self.stored.get(operand.name, self.arrays.get(operand.name))
        if array is None:
            given = ", ".join(self.arrays) or "none"
            raise _here(
                statement, operand, f"{operand} has no array (given: {given}).", f"Pass --in {operand.name}=FILE."
            )
        tile = self._result(statement)
        kind = statement.source_types[0] if statement.source_types else None
        return tload(tile, self._memory(statement, operand, kind, tile, array), *self._waits(statement))

    def _tstore(self, statement: Statement) -> RecordEvent:
        tile, operand = self._source(statement, 0), statement.results[0]
        kind = statement.result_types[0] if statement.result_types else None
        array = self.stored.get(operand.name)
        if array is None:
            array = (
                self.arrays[operand.name].copy() if operand.name in self.arrays else _blank(statement, operand, kind)
            )
            self.stored[operand.name] = array
        memory = self._memory(statement, operand, kind, tile, array)
        atomic = statement.attributes.get("atomic", "none")
        return tstore(memory, tile, *self._waits(statement), atomic=atomic)

    def _tmov(self, statement: Statement) -> RecordEvent:
        src, dst = self._source(statement, 0), self._result(statement)
        axis = int(statement.attributes.get("axis", "1"))
        return tmov(dst, src, *self._waits(statement), axis=axis, semantics=self.semantics)

    def _tdequant(self, statement: Statement) -> RecordEvent:
        src, scale, offset = (self._source(statement, i) for i in range(3))
        return tdequant(self._result(statement), src, scale, offset, *self._waits(statement), semantics=self.semantics)

    def _tquant(self, statement: Statement) -> RecordEvent:
        src, parameter = self._source(statement, 0), self._source(statement, 1)
        offset = self._source(statement, 2) if len(statement.sources) == 3 else None
        given = statement.attributes.get("parameter", "multiplier")
        if given not in ("scale", "multiplier"):
            raise EncodingError(f"parameter is scale or multiplier; got {given!r}.")
        scratch = Tile.empty(src.type) if self.semantics.chip == "2201" else None
        return tquant(
            self._result(statement),
            src,
            *self._waits(statement),
            offset=offset,
            scratch=scratch,
            scale=parameter if given == "scale" else None,
            multiplier=parameter if given == "multiplier" else None,
            semantics=self.semantics,
        )

    def _tcvt(self, statement: Statement) -> RecordEvent:
        src = self._source(statement, 0)
        mode, saturation = statement.attributes.get("rmode", "rn"), statement.attributes.get("sat")
        if saturation is not None and saturation.lower() not in _SATURATION:
            raise EncodingError(f"sat is on or off; got {saturation!r}.")
        return tcvt(
            self._result(statement),
            src,
            *self._waits(statement),
            mode=mode,
            saturate=None if saturation is None else _SATURATION[saturation.lower()],
            semantics=self.semantics,
            control=self.control,
        )


def _here(statement: Statement, operand: Operand, message: str, hint: str | None = None) -> EncodingError:
    return EncodingError(
        f"line {statement.line}, column {operand.column}: {statement.op}: {message}", hint=hint, source="pto-isa:PTO-AS"
    )


def _offset(statement: Statement, operand: Operand) -> tuple[int, int]:
    *leading, row, col = (0, 0, *operand.offsets)
    if any(leading) or len(operand.offsets) > 5:
        raise _here(statement, operand, f"{operand}: only the last two offsets may be other than 0.")
    return row, col


def _fit(statement: Statement, operand: Operand, kind: MemoryType, array: Array) -> Array:
    """View an array as its memory type says; a vector may stand for one column or one row."""
    row = TileType.of(kind.dtype, (1, 1)).format
    own = element_dtype(row)
    sizes = kind.dims
    # Codes stand for elements; a type that .npy files have no name for comes back as bytes of its size.
    legal = array.dtype in (own, np.dtype(row.code_dtype)) or array.dtype == np.dtype((np.void, own.itemsize))
    if not legal:
        raise _here(statement, operand, f"{operand} holds {array.dtype}, and its type here says {kind.dtype}.")
    if TileType.of(kind.dtype, (1, 1)).bits == 4 and sizes[-1] is not None:
        sizes = (*sizes[:-1], (sizes[-1] + 1) // 2)
    if array.ndim == 1 and len(sizes) > 1 and 1 in sizes[-2:]:
        array = array.reshape(*(1,) * (len(sizes) - 2), *((-1, 1) if sizes[-1] == 1 else (1, -1)))
    if array.ndim != len(sizes) or any(n is not None and n != m for n, m in zip(sizes, array.shape, strict=True)):
        raise _here(statement, operand, f"{operand} has shape {array.shape}, and its type here says {kind}.")
    return array


def _blank(statement: Statement, operand: Operand, kind: Any) -> Array:
    if not isinstance(kind, MemoryType) or None in kind.dims:
        raise _here(statement, operand, f"{operand} needs a memory type with fixed sizes, or an array to store into.")
    shape = [n for n in kind.dims if n is not None]
    row = TileType.of(kind.dtype, (1, 1))
    if row.bits == 4:
        shape[-1] = (shape[-1] + 1) // 2
    return np.zeros(shape, dtype=element_dtype(row.format))


def _native(value: Any) -> Array:
    array = np.asarray(value)
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def run(
    program: TileProgram,
    arrays: Mapping[str, Any],
    semantics: Semantics | None = None,
    control: Control | None = None,
) -> Execution:
    """Run a program on arrays.

    Args:
        program: see ``narrowcast.isa.parse``.
        arrays: what ``tload`` reads, by memory name. A memory that is stored to may be given too: its content
            outside the stored region stays. Inputs are not modified.
        semantics: whom to believe, for which chip.
        control: control bits.

    Returns:
        The stored arrays, the tiles and findings.

    Raises:
        EncodingError: an undefined value, a missing array, a type that does not fit; with line and column.
        ConstraintError: a rule an operation breaks, with the line.

    Source: pto-isa:PTO-AS.

    Example:
        >>> import numpy as np
        >>> from narrowcast.isa import parse
        >>> text = '''
        ... %x = pto.tload %a : !pto.partition_tensor_view<2x8xf32> -> !pto.tile<f32, 2, 8>
        ... pto.tstore %x, %b : (!pto.tile<f32, 2, 8>, !pto.partition_tensor_view<2x8xf32>) -> ()
        ... '''
        >>> run(parse(text), {"a": np.ones((2, 8), np.float32)}).arrays["b"].sum().item()
        16.0
    """
    state = _Run({name: _native(value) for name, value in arrays.items()}, semantics or Semantics(), control)
    unused = [name for name in state.arrays if name not in (*program.inputs, *program.outputs)]
    if unused:
        known = ", ".join(dict.fromkeys((*program.inputs, *program.outputs))) or "none"
        raise ShapeError(f"the program has no memory {', '.join(unused)} (it has: {known}).")
    with Program() as issued:
        for statement in program.statements:
            state.statement(statement)
    return Execution(state.stored, state.tiles, tuple(issued.findings()))
