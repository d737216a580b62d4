"""YAML that remembers where everything stands, so that an error can say line and column."""

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from narrowcast.errors import EncodingError, unknown_name

Place = tuple[str | int, ...]
MOST_NODES = 200_000
"""Beyond this an alias of an alias of an alias would fill the memory."""


@dataclass(frozen=True)
class PositionedYaml:
    """A document and the line and column of each of its parts.

    Attributes:
        name: the file's name, for messages.
        data: plain dicts, lists and scalars.
        places: path of keys and indices -> (line, column), counted from 1. A mapping's keys are there with a
            trailing ``"?"``: the place of the key rather than the value.
    """

    name: str
    data: Any
    places: dict[Place, tuple[int, int]] = field(repr=False)

    def where(self, path: Iterable[str | int], *, key: bool = False) -> str:
        """Write ``file:line:column`` of the deepest known part of a path."""
        parts = tuple(path)
        if key and (*parts, "?") in self.places:
            line, column = self.places[(*parts, "?")]
            return f"{self.name}:{line}:{column}"
        while parts and parts not in self.places:
            parts = parts[:-1]
        line, column = self.places.get(parts, (1, 1))
        return f"{self.name}:{line}:{column}"

    def refuse(self, path: Iterable[str | int], message: str, hint: str | None = None) -> EncodingError:
        """Build the error for a bad value."""
        return EncodingError(f"{self.where(path)}: {message}", hint=hint)

    def unknown(
        self, path: Iterable[str | int], kind: str, name: object, legal: Iterable[str], *, key: bool = False
    ) -> EncodingError:
        """Build the error for a misspelt name (or key), with close matches."""
        error = unknown_name(kind, name, legal)
        return EncodingError(f"{self.where(path, key=key)}: {error.message}", hint=error.hint)

    def keys(self, path: Place, value: Any, legal: Iterable[str], kind: str, required: Iterable[str] = ()) -> None:
        """Refuse a part that is no mapping, has a key it should not, or lacks one.

        Raises:
            EncodingError: with line, column and close matches.
        """
        legal = list(legal)
        if not isinstance(value, dict):
            raise self.refuse(path, f"{kind} is a mapping; got {_kind(value)}.", f"Its keys are {', '.join(legal)}.")
        for name in value:
            if name not in legal:
                raise self.unknown((*path, name), f"key of {kind}", name, legal, key=True)
        for name in required:
            if name not in value:
                raise self.refuse(path, f"{kind} needs {name!r}.")


def _kind(value: Any) -> str:
    return {dict: "a mapping", list: "a list", type(None): "nothing"}.get(type(value), repr(value))


def read_yaml(path: str | os.PathLike[str]) -> PositionedYaml:
    """Read one YAML (or JSON) document from a file.

    Raises:
        EncodingError: no such file, not text, or no YAML; with line and column.
    """
    name = os.fspath(path)
    try:
        text = Path(path).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise EncodingError(f"{name}: no such file.") from None
    except UnicodeDecodeError:
        raise EncodingError(f"{name} is not UTF-8 text.", hint="A program file is YAML.") from None
    return parse_yaml(text, name)


def parse_yaml(text: str, name: str = "yaml") -> PositionedYaml:
    """Read YAML text.

    Example:
        >>> parse_yaml("a: [1, 2]", "x.yaml").where(("a", 1))
        'x.yaml:1:8'
    """
    import yaml

    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"{name}:{mark.line + 1}:{mark.column + 1}" if mark else name
        raise EncodingError(
            f"{where}: {error.problem or error.context}.", hint="It is not YAML as it stands."
        ) from None
    except yaml.YAMLError as error:
        raise EncodingError(f"{name}: {error}.") from None
    if node is None:
        raise EncodingError(f"{name} is empty.")
    places: dict[Place, tuple[int, int]] = {}
    loader = yaml.SafeLoader("")
    try:
        data = _build(node, (), loader, places, name)
    finally:
        loader.dispose()
    return PositionedYaml(name, data, places)


def _build(node: Any, path: Place, loader: Any, places: dict[Place, tuple[int, int]], name: str) -> Any:
    import yaml

    mark = node.start_mark
    places[path] = (mark.line + 1, mark.column + 1)
    if len(places) > MOST_NODES:
        raise EncodingError(f"{name} has more than {MOST_NODES} parts.")
    if isinstance(node, yaml.SequenceNode):
        return [_build(child, (*path, i), loader, places, name) for i, child in enumerate(node.value)]
    if isinstance(node, yaml.MappingNode):
        result: dict[str, Any] = {}
        for key_node, child in node.value:
            where = f"{name}:{key_node.start_mark.line + 1}:{key_node.start_mark.column + 1}"
            if not isinstance(key_node, yaml.ScalarNode):
                raise EncodingError(f"{where}: a key is a word, not a list or mapping.")
            key = str(key_node.value)
            if key in result:
                raise EncodingError(f"{where}: key {key!r} is there twice.")
            result[key] = _build(child, (*path, key), loader, places, name)
            places[(*path, key, "?")] = (key_node.start_mark.line + 1, key_node.start_mark.column + 1)
        return result
    try:
        return loader.construct_object(node)
    except (yaml.YAMLError, ValueError) as error:
        raise EncodingError(f"{name}:{mark.line + 1}:{mark.column + 1}: {node.value!r} is no value: {error}.") from None
