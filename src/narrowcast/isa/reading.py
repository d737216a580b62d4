"""Read programs and arrays from files."""

import os
from pathlib import Path

import numpy as np

from narrowcast.errors import EncodingError
from narrowcast.storage.npy import open_npy
from narrowcast.tile.types import Array


def read_text(path: str | os.PathLike[str]) -> str:
    """Read a program's text.

    Raises:
        EncodingError: bytes that are no UTF-8 text.
    """
    try:
        return Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise EncodingError(
            f"{path}: byte offset {error.start} is no text.", hint="Use `narrowcast disasm` for a file of words."
        ) from None


def read_array(path: str | os.PathLike[str]) -> Array:
    """Read the array of a ``.npy`` file.

    Raises:
        CheckpointError: not such a file, or a damaged one.
    """
    open_npy(path)
    array: Array = np.load(path, allow_pickle=False)
    # NumPy writes bfloat16 and its like as raw bytes without a name; the program's types say what they are.
    return array.view(f"uint{8 * array.dtype.itemsize}") if array.dtype.kind == "V" else array
