"""A case to diagnose, written as YAML: values, parameters and the chain of casts they pass through."""

import os
from pathlib import Path
from typing import Any

import numpy as np

from narrowcast.catalog.formats import formats
from narrowcast.catalog.rounding import roundings
from narrowcast.errors import NarrowcastError
from narrowcast.insight.detectors_chain import ChainStep
from narrowcast.storage.arrays import load_array
from narrowcast.storage.positioned_yaml import Place, PositionedYaml, read_yaml

ARRAYS = ("values", "codes", "scale", "multiplier", "offset", "updates")
KEYS = (*ARRAYS, "to", "columns", "packed", "arithmetic", "scale_format", "chain")
STEP = ("from", "to", "rounding", "scale")


def read_case(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read a case: arguments for :func:`narrowcast.diagnose`, with ``values`` under the name ``x``.

    Raises:
        EncodingError: a mistake in the file, or a chain that contradicts itself; with line and column.
    """
    source = read_yaml(path)
    source.keys((), source.data, KEYS, "a case", ("values",))
    found: dict[str, Any] = {}
    for key, value in source.data.items():
        if key in ARRAYS:
            found["x" if key == "values" else key] = _array(source, (key,), value, Path(path).parent)
        elif key == "chain":
            found[key] = _chain(source, value)
        else:
            found[key] = _scalar(source, (key,), key, value)
    return found


def _array(source: PositionedYaml, path: Place, value: Any, folder: Path) -> Any:
    if isinstance(value, str):
        named = value if os.path.isabs(value) else str(folder / value)
        try:
            return load_array(named)
        except NarrowcastError as error:
            raise source.refuse(path, error.message, error.hint) from None
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise source.refuse(path, f"{path[-1]} is neither a file nor numbers.") from None
    return array.astype(np.int64) if path[-1] in ("codes", "offset") else array.astype(np.float32)


def _scalar(source: PositionedYaml, path: Place, key: str, value: Any) -> Any:
    if key in ("to", "arithmetic", "scale_format"):
        return _format(source, path, value)
    wanted = {"columns": int, "packed": bool}[key]
    if type(value) is not wanted:
        raise source.refuse(
            path, f"{key} is {value!r}; it is {'a whole number' if wanted is int else 'true or false'}."
        )
    return value


def _format(source: PositionedYaml, path: Place, value: Any) -> str:
    if str(value) not in formats:
        raise source.unknown(path, "format", value, formats)
    return formats[str(value)].name


def _chain(source: PositionedYaml, value: Any) -> list[ChainStep]:
    if not isinstance(value, list) or not value:
        raise source.refuse(("chain",), "chain is a list of formats, or of steps with 'to'.")
    steps: list[ChainStep] = []
    for i, item in enumerate(value):
        path: Place = ("chain", i)
        if not isinstance(item, dict):
            steps.append(ChainStep(_format(source, path, item)))
            continue
        source.keys(path, item, STEP, "a step", ("to",))
        if "from" in item:
            start = _format(source, (*path, "from"), item["from"])
            if steps and start != steps[-1].to:
                raise source.refuse(
                    (*path, "from"),
                    f"the chain contradicts itself: step {i + 1} starts from {start}, "
                    f"and step {i} ends in {steps[-1].to}.",
                    "Correct one of them, or add the cast between.",
                )
        rounding, scale = item.get("rounding"), item.get("scale")
        if rounding is not None and str(rounding) not in roundings:
            raise source.unknown((*path, "rounding"), "rounding", rounding, roundings)
        if scale is not None and (isinstance(scale, bool) or not isinstance(scale, (int, float)) or not scale > 0):
            raise source.refuse((*path, "scale"), f"scale is {scale!r}; it is a positive number.")
        steps.append(ChainStep(_format(source, (*path, "to"), item["to"]), rounding, scale))
    return steps
