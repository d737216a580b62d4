"""Program files: YAML or JSON with the position of every mistake, and PTO-AS text."""

import os
from dataclasses import MISSING, fields
from importlib import import_module
from pathlib import Path
from typing import Any, get_type_hints

from narrowcast.catalog.authorities import authorities, chips
from narrowcast.catalog.memories import UNITS, memories
from narrowcast.catalog.operations import OPERATIONS
from narrowcast.checks.operations import STEPS
from narrowcast.checks.program import Program, Region, Step
from narrowcast.errors import EncodingError, NarrowcastError
from narrowcast.storage.positioned_yaml import PositionedYaml, read_yaml
from narrowcast.vector.rules import PURPOSES

YAML = (".yaml", ".yml", ".json")
TEXT = (".pto",)
_TOP = ("chip", "authority", "purpose", "operations")
_PLACEMENT = ("op", "name", "time", "reads", "writes", "takes", "gives", "mask_format", "unit")
_REGION = ("memory", "offset_bytes", "bytes")


def read_program(path: str | os.PathLike[str]) -> Program:
    """Read a program: .yaml, .yml or .json with operations, or .pto text.

    Raises:
        EncodingError: not such a file, or something in it is not legal; with line and column.
    """
    suffix = Path(path).suffix.lower()
    if suffix in TEXT:
        from narrowcast.checks.tile_program import read_tile_program

        return read_tile_program(path)
    if suffix not in YAML:
        raise EncodingError(
            f"{os.fspath(path)}: a program is {', '.join((*YAML, *TEXT))}, not {suffix or 'a file without a suffix'}.",
        )
    return program_of(read_yaml(path))


def program_of(source: PositionedYaml) -> Program:
    """Build a program from its parsed file."""
    data = source.data
    source.keys((), data, _TOP, "a program", ("operations",))
    chip = _named(source, ("chip",), data.get("chip", "3510"), chips, "chip")
    authority = _named(source, ("authority",), data.get("authority", "device"), authorities, "authority")
    purpose = data.get("purpose")
    if purpose is not None and purpose not in PURPOSES:
        raise source.unknown(("purpose",), "purpose", purpose, PURPOSES)
    listed = data["operations"]
    if not isinstance(listed, list) or not listed:
        raise source.refuse(("operations",), "operations is a list of at least one operation.")
    steps = tuple(_step(source, ("operations", i), item) for i, item in enumerate(listed))
    return Program(steps, chips[chip], authority, purpose, source.name)


def _named(source: PositionedYaml, path: tuple[str, ...], value: Any, catalog: Any, kind: str) -> str:
    if str(value) not in catalog:
        raise source.unknown(path, kind, value, [*catalog])
    return str(value)


def _step(source: PositionedYaml, path: tuple[str | int, ...], item: Any) -> Step:
    if not isinstance(item, dict) or "op" not in item:
        raise source.refuse(path, "an operation is a mapping with the key 'op'.", f"Known: {', '.join(_known())}.")
    name = item["op"]
    if name not in _known():
        raise source.unknown((*path, "op"), "operation", name, _known())
    cls = STEPS[name] if name in STEPS else getattr(import_module(OPERATIONS[name]), name)
    own = [f.name for f in fields(cls)]
    source.keys(path, item, (*_PLACEMENT, *own), name)
    for each in fields(cls):
        if each.default is MISSING and each.default_factory is MISSING and each.name not in item:
            raise source.refuse(path, f"{name} needs {each.name!r}.")
    hints = get_type_hints(cls)
    settings = {key: _value(source, (*path, key), item[key], hints[key]) for key in own if key in item}
    try:
        op = cls(**settings)
    except NarrowcastError as error:
        at = next((key for key, value in settings.items() if repr(value) in error.message), None)
        raise EncodingError(
            f"{source.where((*path, at) if at else path)}: {error.message}", hint=error.hint, source=error.source
        ) from error
    unit = item.get("unit", "")
    if unit and unit not in UNITS:
        raise source.unknown((*path, "unit"), "unit", unit, UNITS)
    return Step(
        op=op,
        name=_value(source, (*path, "name"), item.get("name", ""), str),
        time=_time(source, (*path, "time"), item.get("time")),
        reads=_regions(source, (*path, "reads"), item.get("reads", [])),
        writes=_regions(source, (*path, "writes"), item.get("writes", [])),
        takes=_names(source, (*path, "takes"), item.get("takes", [])),
        gives=_value(source, (*path, "gives"), item.get("gives"), str | None),
        mask_format=_value(source, (*path, "mask_format"), item.get("mask_format"), str | None),
        unit=unit,
        place=f"{source.where(path)} {item.get('name', name)}",
    )


def _known() -> tuple[str, ...]:
    return (*OPERATIONS, *STEPS)


def _value(source: PositionedYaml, path: tuple[str | int, ...], value: Any, hint: Any) -> Any:
    """Refuse a value of another type than the field's."""
    import pydantic

    try:
        return pydantic.TypeAdapter(hint).validate_python(value)
    except pydantic.ValidationError as error:
        what = error.errors()[0]["msg"].lower()
        raise source.refuse(path, f"{path[-1]} is {value!r}: {what}.") from None


def _time(source: PositionedYaml, path: tuple[str | int, ...], value: Any) -> tuple[float, float] | None:
    if value is None:
        return None
    numbers = isinstance(value, list) and all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in value)
    if not numbers or len(value) != 2 or value[0] >= value[1]:
        raise source.refuse(path, f"time is {value!r}; it is [start, end] with start < end.")
    return (float(value[0]), float(value[1]))


def _regions(source: PositionedYaml, path: tuple[str | int, ...], value: Any) -> tuple[Region, ...]:
    many = value if isinstance(value, list) else [value]
    base: list[tuple[str | int, ...]] = [(*path, i) for i in range(len(many))] if isinstance(value, list) else [path]
    found = []
    for at, item in zip(base, many, strict=True):
        source.keys(at, item, _REGION, "a region", ("memory", "bytes"))
        if str(item["memory"]) not in memories:
            raise source.unknown((*at, "memory"), "memory", item["memory"], memories)
        settings = {k: _value(source, (*at, k), item[k], int) for k in ("offset_bytes", "bytes") if k in item}
        try:
            found.append(Region(memory=str(item["memory"]), **settings))
        except NarrowcastError as error:
            raise source.refuse(at, error.message) from None
    return tuple(found)


def _names(source: PositionedYaml, path: tuple[str | int, ...], value: Any) -> tuple[str, ...]:
    many = [value] if isinstance(value, str) else value
    if not isinstance(many, list) or not all(isinstance(v, str) for v in many):
        raise source.refuse(path, f"{path[-1]} is {value!r}; it is a name or a list of names.")
    return tuple(many)
