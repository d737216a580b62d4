"""Operations as JSON: the class name and its fields, both directions."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from importlib import import_module
from typing import Any

from narrowcast.catalog.operations import OPERATIONS
from narrowcast.errors import EncodingError, unknown_name
from narrowcast.operation.protocol import Operation


def to_json(op: Operation) -> dict[str, Any]:
    """Return the JSON form of an operation."""
    if not is_dataclass(op):
        raise EncodingError(f"{type(op).__name__} is not an operation.")
    return {"op": type(op).__name__, **{f.name: _plain(getattr(op, f.name)) for f in fields(op)}}


def from_json(form: Mapping[str, Any]) -> Operation:
    """Build an operation from its JSON form."""
    name = form.get("op")
    if name not in OPERATIONS:
        raise unknown_name("operation", name, OPERATIONS)
    cls = getattr(import_module(OPERATIONS[name]), name)
    known = {f.name for f in fields(cls)}
    given = {k: v for k, v in form.items() if k != "op"}
    for key in given:
        if key not in known:
            raise unknown_name(f"field of {name}", key, known)
    operation: Operation = cls(**{k: _tupled(v) for k, v in given.items()})
    return operation


def _plain(value: Any) -> Any:
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, tuple):
        return [_plain(v) for v in value]
    return value


def _tupled(value: Any) -> Any:
    return tuple(_tupled(v) for v in value) if isinstance(value, list) else value
