"""Writing safetensors: header first, then one tensor at a time, and the name only when all is there."""

import os
import shutil
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self

import numpy as np

from narrowcast.errors import CheckpointError, OutputError, ShapeError
from narrowcast.storage.atomic import AtomicFile
from narrowcast.storage.dtypes import stored_name, stored_type
from narrowcast.storage.header import TensorEntry, header_bytes, layout
from narrowcast.storage.reader import Array, validate


class SafeTensorsWriter:
    """Stream tensors into a new safetensors file.

    Names, dtypes and shapes are declared first, so the header is written once and no tensor has to wait in
    memory. Tensors may come in any order and in pieces.

    Args:
        path: the final name; it appears when every declared tensor is complete.
        entries: name -> (dtype string, logical shape).
        metadata: strings for ``__metadata__``.
        force: replace an existing file.

    Raises:
        OutputError: the name exists, or the disk has less room than the file needs.
        CheckpointError: an unknown dtype string, an odd last dimension of F4, a missing tensor at the end.

    Example:
        >>> import tempfile
        >>> path = tempfile.mkdtemp() + "/w.safetensors"
        >>> with SafeTensorsWriter(path, {"w": ("F32", (2, 2))}) as out:
        ...     out.append("w", np.zeros(2, np.float32))
        ...     out.append("w", np.ones(2, np.float32))
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        entries: Mapping[str, tuple[str, Sequence[int]]],
        metadata: Mapping[str, str] | None = None,
        *,
        force: bool = False,
    ) -> None:
        self.placed = layout({name: (stored_type(d), tuple(map(int, s))) for name, (d, s) in entries.items()})
        head = header_bytes(self.placed, metadata or {})
        self._start = len(head)
        self._done = dict.fromkeys(self.placed, 0)
        self.nbytes = self._start + sum(e.nbytes for e in self.placed.values())
        self._output = AtomicFile(path, force=force)
        try:
            self._refuse_full_disk()
            with self._output.explained():
                self._output.file.write(head)
        except BaseException:
            self._output.discard()
            raise

    def _refuse_full_disk(self) -> None:
        folder = self._output.path.parent
        with self._output.explained():
            free = shutil.disk_usage(folder).free
        if free < self.nbytes:
            raise OutputError(
                f"cannot write {self._output.shown}: it needs {self.nbytes} bytes and the disk has {free} left.",
                hint=f"Free space on the disk that holds {folder}, or name an output on another disk.",
            )

    def write(self, name: str, array: Array) -> None:
        """Write a whole tensor.

        Args:
            name: a declared tensor.
            array: its elements, of the declared dtype and shape (packed bytes for F4).

        Raises:
            ShapeError: another shape than declared.
        """
        entry = self._entry(name)
        if array.shape not in (entry.array_shape, entry.shape):
            raise ShapeError(f"tensor {name!r} was declared with shape {entry.array_shape}, got {array.shape}.")
        self.append(name, array)

    def append(self, name: str, part: Array) -> None:
        """Write the next elements of a tensor.

        Raises:
            CheckpointError: another dtype than declared, or more bytes than it takes.
        """
        entry = self._entry(name)
        part = np.ascontiguousarray(part, dtype=_as_stored(part, entry))
        done = self._done[name]
        if done + part.nbytes > entry.nbytes:
            raise CheckpointError(
                f"tensor {name!r} takes {entry.nbytes} bytes; {done} are written and {part.nbytes} more came."
            )
        with self._output.explained():
            self._output.file.seek(self._start + entry.offset_bytes + done)
            self._output.file.write(part.reshape(-1).view(np.uint8).data)
        self._done[name] = done + part.nbytes

    def _entry(self, name: str) -> TensorEntry:
        entry = self.placed.get(name)
        if entry is None:
            raise CheckpointError(f"tensor {name!r} was not declared when the file was opened.")
        return entry

    def close(self) -> None:
        """Check that every tensor is complete, have the safetensors library read the file, and name it.

        Raises:
            CheckpointError: a declared tensor is missing or short.
        """
        try:
            for name, entry in self.placed.items():
                if self._done[name] != entry.nbytes:
                    raise CheckpointError(
                        f"tensor {name!r} of {self._output.shown} is incomplete: "
                        f"{self._done[name]} of {entry.nbytes} bytes."
                    )
            self._output.commit(check=validate)
        except BaseException:
            self._output.discard()
            raise

    def discard(self) -> None:
        """Give up: nothing is left under the name, nor a temporary file."""
        self._output.discard()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.close()
        else:
            self.discard()


def _as_stored(part: Array, entry: TensorEntry) -> np.dtype[Any]:
    wanted = entry.stored.array
    if part.dtype == wanted:
        return wanted
    if part.dtype.newbyteorder("<") == wanted:
        return wanted  # same numbers in the other byte order
    if part.dtype.kind == "u" and part.dtype.itemsize == wanted.itemsize == 1:
        return part.dtype  # codes: their bytes are the elements
    raise CheckpointError(f"tensor {entry.name!r} was declared {entry.dtype}, got an array of {part.dtype}.")


def save_tensors(
    path: str | os.PathLike[str],
    tensors: Mapping[str, Array | tuple[str, Array]],
    metadata: Mapping[str, str] | None = None,
    force: bool = False,
) -> None:
    """Save arrays as one safetensors file.

    Args:
        path: the file to write; it appears whole or not at all.
        tensors: name -> array, or (dtype string, array) to store codes under another dtype of the same
            width: ``("F8_E4M3", uint8 codes)``, ``("F4", packed uint8 [..., n/2])``.
        metadata: strings for ``__metadata__``.
        force: replace an existing file.

    Raises:
        OutputError: the file exists, or the disk is full.
        CheckpointError: an array that the format cannot hold.

    Example:
        >>> import tempfile
        >>> save_tensors(tempfile.mkdtemp() + "/q.safetensors", {"w": ("F8_E4M3", np.zeros((2, 2), np.uint8))})
    """
    arrays: dict[str, Array] = {}
    entries: dict[str, tuple[str, Sequence[int]]] = {}
    for name, value in tensors.items():
        dtype, array = value if isinstance(value, tuple) else (stored_name(value), value)
        arrays[name] = array
        shape = array.shape
        if dtype == "F4":
            shape = (*shape[:-1], shape[-1] * 2) if shape else shape
        entries[name] = (dtype, shape)
    with SafeTensorsWriter(path, entries, metadata, force=force) as out:
        for name, array in arrays.items():
            out.write(name, array)
