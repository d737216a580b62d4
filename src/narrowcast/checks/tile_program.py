"""PTO-AS text as a program to check: each statement's operation with the types in force."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from narrowcast.checks.program import Program, Step
from narrowcast.errors import EncodingError, NarrowcastError
from narrowcast.isa import Statement, parse
from narrowcast.tile import TCvt, TDequant, TileType, TMov, TQuant


def read_tile_program(path: str | os.PathLike[str]) -> Program:
    """Read a .pto file; transfers have nothing to check without arrays and are left out.

    Raises:
        EncodingError: text that does not parse; with line and column.
    """
    name = os.fspath(path)
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (FileNotFoundError, UnicodeDecodeError):
        raise EncodingError(f"{name}: no such text file.") from None
    types: dict[str, TileType] = {}
    steps = []
    for statement in parse(text).statements:
        for operand, kind in zip(statement.results, statement.result_types, strict=False):
            if isinstance(kind, TileType):
                types.setdefault(operand.name, kind)
        for operand, kind in zip(statement.sources, statement.source_types, strict=False):
            if isinstance(kind, TileType):
                types.setdefault(operand.name, kind)
        place = f"{name}:{statement.line}:{statement.column} {statement.op}"
        build = _BUILDERS.get(statement.op)
        if build is None:
            continue
        try:
            op = build(statement, types)
        except NarrowcastError as error:
            raise EncodingError(f"{place}: {error.message}", hint=error.hint, source=error.source) from error
        takes = tuple(o.name for o in statement.sources)
        gives = statement.results[0].name if statement.results else None
        steps.append(Step(op=op, name=statement.op, takes=takes, gives=gives, place=place))
    return Program(tuple(steps), name=name)


def _type(statement: Statement, name: str, types: Mapping[str, TileType]) -> str:
    if name not in types:
        raise EncodingError(f"%{name} has no tile type.", hint="Give its type where it is loaded.")
    return str(types[name])


def _tdequant(statement: Statement, types: Mapping[str, TileType]) -> Any:
    src, scale, offset = (_type(statement, o.name, types) for o in statement.sources[:3])
    return TDequant(dst=_type(statement, statement.results[0].name, types), src=src, scale=scale, offset=offset)


def _tquant(statement: Statement, types: Mapping[str, TileType]) -> Any:
    names = [_type(statement, o.name, types) for o in statement.sources]
    given = statement.attributes.get("parameter", "multiplier")
    return TQuant(
        dst=_type(statement, statement.results[0].name, types),
        src=names[0],
        parameter=names[1],
        offset=names[2] if len(names) > 2 else "",
        given=given,
    )


def _tmov(statement: Statement, types: Mapping[str, TileType]) -> Any:
    return TMov(
        dst=_type(statement, statement.results[0].name, types),
        src=_type(statement, statement.sources[0].name, types),
        axis=int(statement.attributes.get("axis", "1")),
    )


def _tcvt(statement: Statement, types: Mapping[str, TileType]) -> Any:
    saturation = statement.attributes.get("sat")
    return TCvt(
        dst=_type(statement, statement.results[0].name, types),
        src=_type(statement, statement.sources[0].name, types),
        mode=statement.attributes.get("rmode", "rn"),
        saturate=None if saturation is None else saturation.lower() in ("on", "true"),
    )


_BUILDERS: dict[str, Callable[[Statement, Mapping[str, TileType]], Any]] = {
    "tdequant": _tdequant,
    "tquant": _tquant,
    "tmov": _tmov,
    "tcvt": _tcvt,
}
