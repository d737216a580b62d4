"""Reading safetensors one tensor, or one piece of a tensor, at a time."""

import difflib
import math
import os
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from safetensors import SafetensorError, safe_open

from narrowcast.errors import CheckpointError, UnknownNameError
from narrowcast.storage.header import TensorEntry, parse_header

Array = np.ndarray[tuple[int, ...], np.dtype[Any]]


class SafeTensorsFile:
    """An open safetensors file whose tensors are mapped or streamed on demand.

    Attributes:
        path: the file.
        size: bytes in the file.
        entries: name -> :class:`TensorEntry`, in file order.
        metadata: the string metadata of the header.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        if self.path.is_dir():
            raise CheckpointError(f"{path} is a folder.", hint="Name one .safetensors file in it.")
        try:
            self._file = open(self.path, "rb")  # noqa: SIM115 - closed by close()
        except OSError as error:
            raise CheckpointError(
                f"cannot read {path}: {error.strerror or error}.",
                hint="Name a .safetensors file that exists.",
            ) from error
        try:
            self.entries, self.metadata = parse_header(self._file, self.path)
            self.size = os.fstat(self._file.fileno()).st_size
            validate(self.path)
        except BaseException:
            self._file.close()
            raise

    @property
    def names(self) -> tuple[str, ...]:
        """List the tensors in file order."""
        return tuple(self.entries)

    def info(self, name: str) -> TensorEntry:
        """Describe a tensor: dtype string, shape, bytes, offset.

        Raises:
            UnknownNameError: no such tensor; close matches are listed.
        """
        entry = self.entries.get(name)
        if entry is None:
            close = difflib.get_close_matches(name, self.names, n=3)
            hint = f"Did you mean {' or '.join(close)}?" if close else f"The file has {len(self.entries)} tensors."
            raise UnknownNameError(f"{self.path} has no tensor {name!r}.", suggestions=close, hint=hint)
        return entry

    def read(self, name: str) -> Array:
        """Map a tensor without reading it: pages are loaded when touched and dropped with the array.

        Args:
            name: the tensor.

        Returns:
            A read-only array in the tensor's own type (``ml_dtypes`` for BF16 and FP8); F4 as packed
            uint8 ``[..., n/2]``, even element in the low nibble.
        """
        entry = self.info(name)
        if not entry.nbytes:
            return np.zeros(entry.array_shape, entry.stored.array)
        raw = np.memmap(self.path, dtype=np.uint8, mode="r", offset=entry.offset_bytes, shape=(entry.nbytes,))
        array: Array = np.asarray(raw).view(entry.stored.array).reshape(entry.array_shape)
        return array

    def chunks(self, name: str, elements: int = 1 << 20) -> Iterator[Array]:
        """Stream a tensor as flat pieces, so that memory is bounded by one piece whatever its size.

        Args:
            name: the tensor.
            elements: array elements per piece (bytes for packed types).

        Returns:
            Flat arrays in the tensor's own type; the same buffer is reused, so copy what must outlive a step.

        Raises:
            CheckpointError: the file became shorter while it was read.
        """
        entry = self.info(name)
        dtype = entry.stored.array
        total = math.prod(entry.array_shape)
        buffer = np.empty(min(elements, total), dtype)
        for start in range(0, total, elements):
            part = buffer[: min(elements, total - start)]
            self._fill(part.view(np.uint8), entry, start * dtype.itemsize)
            yield part

    def _fill(self, raw: Array, entry: TensorEntry, skip: int) -> None:
        at = entry.offset_bytes + skip
        self._file.seek(at)
        view = raw.data
        done = 0
        while done < len(view):
            count = self._file.readinto(view[done:])
            if not count:
                raise CheckpointError(
                    f"{self.path}, tensor {entry.name!r}, byte {at + done}: the file ends here; "
                    "it was cut while it was being read.",
                    hint="Wait until the file is complete and run again.",
                )
            done += count

    def close(self) -> None:
        """Close the file. Arrays from :meth:`read` stay valid."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def open_safetensors(path: str | os.PathLike[str]) -> SafeTensorsFile:
    """Open a safetensors file, header only, after checking it twice (here and by the reference library).

    Args:
        path: the file.

    Returns:
        A context manager with ``names``, ``info``, ``read``, ``chunks`` and ``metadata``.

    Raises:
        CheckpointError: the file is missing or not well formed; names the tensor and the byte offset.

    Example:
        >>> import tempfile, numpy as np
        >>> from narrowcast.storage import save_tensors
        >>> path = tempfile.mkdtemp() + "/w.safetensors"
        >>> save_tensors(path, {"w": np.eye(2, dtype=np.float32)})
        >>> with open_safetensors(path) as file:
        ...     print(file.names, file.info("w").dtype, float(file.read("w").sum()))
        ('w',) F32 2.0
    """
    return SafeTensorsFile(path)


def validate(path: Path) -> None:
    """Let the reference library check a file.

    Raises:
        CheckpointError: the library refuses it.
    """
    try:
        with safe_open(path, framework="np"):
            pass
    except (SafetensorError, OSError) as error:
        raise CheckpointError(f"{path}: the safetensors library refuses the file: {error}.") from error
