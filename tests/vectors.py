"""Reader of the large vector files kept beside the repository, where they are present.

They are not part of the package: a checkout on its own has none, and a test that needs one is skipped by name.
"""

import json
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

FOLDER = Path(__file__).resolve().parents[2] / "shared" / "vectors"


def available() -> tuple[str, ...]:
    """Return the names of the vector files that are present."""
    return tuple(sorted(p.stem for p in FOLDER.glob("*.npz"))) if FOLDER.is_dir() else ()


@lru_cache(maxsize=4)
def load(name: str) -> Mapping[str, np.ndarray]:
    """Return the arrays of a vector file, or skip the calling test with the file's name."""
    path = FOLDER / f"{name}.npz"
    if not path.is_file():
        pytest.skip(f"vector file {name}.npz is not beside this checkout")
    with np.load(path, allow_pickle=False) as file:
        return MappingProxyType({key: file[key] for key in file.files})


@lru_cache(maxsize=4)
def json_file(name: str) -> Mapping[str, Any]:
    """Return the content of a JSON vector file, or skip the calling test with the file's name."""
    path = FOLDER / f"{name}.json"
    if not path.is_file():
        pytest.skip(f"vector file {name}.json is not beside this checkout")
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return MappingProxyType(content)
