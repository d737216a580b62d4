"""One ``.npy`` file, read by mapping it and written piece by piece."""

import io
import math
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from narrowcast.errors import CheckpointError

Array = npt.NDArray[Any]

_HINTS = (
    (b"PK\x03\x04", "It is a zip archive: take the array out of the .npz first, with np.load and np.save."),
    (b"\x80", "It is a Python pickle: save the array with np.save."),
    (b"version https://git-lfs", "It is a Git LFS pointer: fetch the real file with `git lfs pull`."),
)
_SAFETENSORS = "It looks like safetensors: use `narrowcast quantize`."
_READERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}


@dataclass(frozen=True)
class NpyArray:
    """An array in a file.

    Attributes:
        path: the file.
        dtype: element type as stored, byte order included.
        shape: its shape.
        fortran_order: whether elements lie column by column.
        offset_bytes: where the elements begin.
    """

    path: Path
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    fortran_order: bool
    offset_bytes: int

    @property
    def elements(self) -> int:
        """Count the elements."""
        return math.prod(self.shape)

    def index(self, position: int) -> tuple[int, ...]:
        """Turn a position in the file's element order into an index."""
        shape = self.shape[::-1] if self.fortran_order else self.shape
        index = tuple(int(i) for i in np.unravel_index(position, shape))
        return index[::-1] if self.fortran_order else index

    def chunks(self, elements: int) -> Iterator[Array]:
        """Yield flat, native-order arrays of at most ``elements`` elements, in the file's order."""
        if self.elements == 0:
            return
        mapped = np.memmap(self.path, dtype=self.dtype, mode="r", offset=self.offset_bytes, shape=(self.elements,))
        for start in range(0, self.elements, elements):
            piece = mapped[start : start + elements]
            yield np.ascontiguousarray(piece, dtype=self.dtype.newbyteorder("="))


def open_npy(path: str | os.PathLike[str]) -> NpyArray:
    """Read and check the header of a ``.npy`` file.

    Raises:
        CheckpointError: not a ``.npy`` file, Python objects inside, or fewer bytes than the header says.
    """
    path = Path(path)
    with open(path, "rb") as file:
        head = file.read(64)
        file.seek(0)
        if not head.startswith(b"\x93NUMPY"):
            raise CheckpointError(f"{path} is not a .npy file.", hint=_hint(head))
        try:
            version = np.lib.format.read_magic(file)
            if version not in _READERS:
                raise CheckpointError(
                    f"{path}: .npy version {version[0]}.{version[1]} is not read.", hint="Save it with np.save."
                )
            shape, fortran_order, dtype = _READERS[version](file)
        except (ValueError, EOFError) as error:
            if isinstance(error, CheckpointError):
                raise
            raise CheckpointError(
                f"{path}: the header of the .npy file is damaged or truncated.", hint="Write or fetch it again."
            ) from error
        offset = file.tell()
        size = file.seek(0, os.SEEK_END)
    if dtype.hasobject or dtype.fields is not None:
        raise CheckpointError(f"{path} holds {dtype}, not numbers.", hint="Save a plain numeric array with np.save.")
    needed = offset + math.prod(shape) * dtype.itemsize
    if size < needed:
        raise CheckpointError(
            f"{path} is truncated: {dtype.name} {list(shape)} ends at byte {needed}, the file at byte {size}.",
            hint="Write or fetch it again.",
        )
    return NpyArray(path, dtype, tuple(shape), fortran_order, offset)


def _hint(head: bytes) -> str:
    if not head:
        return "It is empty."
    if len(head) > 8 and head[8:9] == b"{":
        return _SAFETENSORS
    return next((hint for magic, hint in _HINTS if head.startswith(magic)), "Save the array with np.save.")


def write_header(file: IO[bytes], dtype: np.dtype[Any], shape: tuple[int, ...], fortran_order: bool) -> None:
    """Write the header of a ``.npy`` file; the elements follow as they lie in memory."""
    header = io.BytesIO()
    descr = np.lib.format.dtype_to_descr(dtype)
    np.lib.format.write_array_header_1_0(header, {"descr": descr, "fortran_order": fortran_order, "shape": shape})
    file.write(header.getvalue())
