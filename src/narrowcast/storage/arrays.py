"""One array named on a command line: a ``.npy`` file, or a tensor of a safetensors file."""

import os
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from narrowcast.errors import CheckpointError, unknown_name
from narrowcast.storage.npy import open_npy
from narrowcast.storage.reader import open_safetensors

SUFFIX = ".safetensors"


def load_array(name: str | os.PathLike[str]) -> npt.NDArray[Any]:
    """Load ``x.npy``, or ``model.safetensors:tensor``.

    A two-byte void array, which is how NumPy stores bfloat16, is read as bfloat16.

    Raises:
        CheckpointError: no such file, not one of the two kinds, or a safetensors file without a tensor's name.
        UnknownNameError: no such tensor.
    """
    text = os.fspath(name)
    file, _, tensor = text.rpartition(":") if SUFFIX + ":" in text else (text, "", "")
    if file.endswith(SUFFIX):
        with open_safetensors(file) as opened:
            if not tensor and len(opened.names) == 1:
                tensor = next(iter(opened.names))
            if not tensor:
                raise CheckpointError(
                    f"{file} has {len(opened.names)} tensors; name one.",
                    hint=f"Write {file}:{next(iter(opened.names), 'NAME')}.",
                )
            if tensor not in opened.names:
                raise unknown_name(f"tensor of {file}", tensor, opened.names)
            return np.array(opened.read(tensor))
    if not Path(file).exists():
        raise CheckpointError(f"{file}: no such file.", hint="Give a .npy file, or model.safetensors:TENSOR.")
    stored = open_npy(file)
    if stored.elements == 0:
        return np.empty(stored.shape, stored.dtype)
    flat = np.memmap(stored.path, dtype=stored.dtype, mode="r", offset=stored.offset_bytes, shape=(stored.elements,))
    array: npt.NDArray[Any] = flat.reshape(stored.shape, order="F" if stored.fortran_order else "C")
    return array.view(ml_dtypes.bfloat16) if stored.dtype == np.dtype("V2") else array
