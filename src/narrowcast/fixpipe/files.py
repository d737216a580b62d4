"""Array files through the pipe: what ``narrowcast fixpipe`` and ``narrowcast matmul`` read and write."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from narrowcast.catalog.formats import formats
from narrowcast.errors import CheckpointError, FormatError
from narrowcast.fixpipe.addressing import Array
from narrowcast.fixpipe.store import Store
from narrowcast.storage import atomic_output
from narrowcast.storage.npy import open_npy
from narrowcast.version import VERSION

SIDECAR = ".json"
"""What is added to an array's file name for the file that says how to read its codes."""
_NUMPY_TYPES = ("s8", "u8", "s16", "s32", "fp16", "fp32")


@dataclass(frozen=True)
class StoreFile:
    """A store that was written.

    Args:
        output: the array file.
        sidecar: the file that says how to read it.
        dtype: NumPy type of the elements.
        shape: shape of the array in the file.
        order: ``rows`` where it is [M, N], else ``destination``: as the bytes lie in memory.
    """

    output: Path
    sidecar: Path
    dtype: str
    shape: tuple[int, ...]
    order: str

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "output": str(self.output),
            "sidecar": str(self.sidecar),
            "dtype": self.dtype,
            "array_shape": list(self.shape),
            "order": self.order,
        }


def read_array(path: str | Path) -> Array:
    """Map the array of a ``.npy`` file.

    Raises:
        CheckpointError: not such a file, or a truncated one.
    """
    open_npy(path)  # checks it, with messages of ours
    array: Array = np.load(path, mmap_mode="r", allow_pickle=False)
    if array.dtype.kind == "V" and array.dtype.itemsize <= 2:  # how NumPy stores a type of ml_dtypes
        raise FormatError(
            f"{path} holds {array.dtype}: a bfloat16 or 8-bit float array loses its name in .npy.",
            hint="Save its codes, array.view(np.uint16) or .view(np.uint8), and name the format.",
        )
    return array


def number_or_array(text: str, what: str) -> Array:
    """Read a parameter: a number, or the array of a ``.npy`` file.

    Raises:
        CheckpointError: neither.
    """
    try:
        return np.asarray(float(text))
    except ValueError:
        pass
    if not Path(text).exists():
        raise CheckpointError(f"{what} {text!r} is neither a number nor a file.")
    array = read_array(text)
    return array.reshape(-1) if array.ndim else np.asarray(array)


def write_store(store: Store, path: Path, record: Mapping[str, Any], force: bool = False) -> StoreFile:
    """Write what a store left in memory, and a file beside it that says how to read it.

    A dense row-major result is written as [M, N] in NumPy's own type, or as codes where NumPy has none; every other
    layout as a flat array in destination order, two unit buffers as two rows.

    Args:
        store: the result.
        path: the array file; ``.json`` is added for the other.
        record: the operation, semantics and control bits.
        force: replace existing files.

    Raises:
        OutputError: a file exists, or cannot be written.
        FormatError: a store that wrote nothing.
    """
    if not store.storage:
        raise FormatError("the instruction was dropped: there is nothing to write.")
    sizes = {s.size for s in store.storage}
    if len(sizes) > 1:
        raise FormatError("the two unit buffers received different sizes; store them one by one.")
    where = store.addressing[0][0]
    dense = len(store.storage) == 1 and where.layout == "NZ2ND" and store.storage[0].size == int(np.prod(store.shape))
    array = store.storage[0].reshape(store.shape) if dense else np.stack(store.storage)
    array = array[0] if not dense and len(store.storage) == 1 else array
    numpy_type = store.format in _NUMPY_TYPES
    array = array.view(str(formats[store.format].ml_dtype)) if numpy_type else array
    sidecar = path.with_name(path.name + SIDECAR)
    order = "rows" if dense else "destination"
    form = {
        "format": store.format,
        "stored": "values" if numpy_type else "codes",
        "order": order,
        "layout": where.layout,
        "stride": where.step,
        **store.summary(),
        **record,
        "version": VERSION,
    }
    with atomic_output(sidecar, force=force) as described:
        with atomic_output(path, force=force) as output:
            np.save(output, array)
        described.write((json.dumps(form, indent=2) + "\n").encode())
    return StoreFile(path, sidecar, array.dtype.name, array.shape, order)
