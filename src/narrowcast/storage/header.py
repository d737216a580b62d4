"""The header of a safetensors file: read it without trusting it, write it the way readers expect.

Layout: eight bytes little-endian header length, a JSON object, then the tensors back to back. Every tensor
has ``dtype``, ``shape`` and ``data_offsets`` relative to the end of the header.
"""

import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NoReturn

from narrowcast.errors import CheckpointError
from narrowcast.storage.dtypes import STORED_TYPES, StoredType

LENGTH_BYTES = 8
HEADER_LIMIT = 100_000_000  # the reference reader's limit
METADATA = "__metadata__"
_NOT_SAFETENSORS = (
    (b"version https://git-lfs", "It is a Git LFS pointer: fetch the real file with `git lfs pull`."),
    (b"PK\x03\x04", "It is a zip archive, probably a PyTorch checkpoint: convert it to safetensors first."),
    (b"\x80\x02", "It is a Python pickle, probably a PyTorch checkpoint: convert it to safetensors first."),
    (b"GGUF", "It is a GGUF file; only safetensors is read."),
    (b"\x93NUMPY", "It is a NumPy array: use `narrowcast cast`."),
)


@dataclass(frozen=True)
class TensorEntry:
    """Where one tensor lies in a file.

    Attributes:
        name: the tensor's name.
        stored: its element type.
        shape: logical shape, in elements.
        offset_bytes: position of the first byte, from the start of the file.
        nbytes: size in the file.
    """

    name: str
    stored: StoredType
    shape: tuple[int, ...]
    offset_bytes: int
    nbytes: int

    @property
    def dtype(self) -> str:
        """Give the dtype string of the header."""
        return self.stored.name

    @property
    def elements(self) -> int:
        """Count the logical elements."""
        return math.prod(self.shape)

    @property
    def array_shape(self) -> tuple[int, ...]:
        """Give the shape of the array that carries the tensor (bytes for packed types)."""
        if not self.stored.packed:
            return self.shape
        if self.stored.bits == 4 and self.shape:
            return (*self.shape[:-1], self.shape[-1] // 2)
        return (self.nbytes,)


def tensor_nbytes(stored: StoredType, shape: Sequence[int], *, where: str) -> int:
    """Compute the bytes of a tensor: elements x bits / 8.

    Raises:
        CheckpointError: the elements do not fill whole bytes (F4: the last dimension is odd).
    """
    if stored.bits == 4 and (not shape or shape[-1] % 2):
        raise CheckpointError(
            f"{where}: F4 packs two elements per byte along the last dimension, which is "
            f"{shape[-1] if shape else 'missing'}.",
            hint="The last dimension of an F4 tensor has to be even; store such a tensor as packed U8.",
        )
    bits = math.prod(shape) * stored.bits
    if bits % 8:
        raise CheckpointError(f"{where}: {stored.name} of shape {list(shape)} does not fill whole bytes.")
    return bits // 8


def parse_header(file: IO[bytes], path: str | os.PathLike[str]) -> tuple[dict[str, TensorEntry], dict[str, str]]:
    """Read and check the header of an open safetensors file.

    Args:
        file: the file, opened for reading in binary.
        path: its name, for messages.

    Returns:
        The entries in file order, and the string metadata.

    Raises:
        CheckpointError: anything that is not a well-formed safetensors file, with tensor and byte offset.

    Example:
        >>> import io
        >>> head = b'{"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}'
        >>> raw = len(head).to_bytes(8, "little") + head + bytes(4)
        >>> entries, metadata = parse_header(io.BytesIO(raw), "w.safetensors")
        >>> entries["w"].offset_bytes
        62
    """
    return _HeaderParser(file, Path(path)).parse()


class _HeaderParser:
    def __init__(self, file: IO[bytes], path: Path) -> None:
        self.file = file
        self.path = path
        file.seek(0, os.SEEK_END)
        self.size = file.tell()
        file.seek(0)

    def fail(self, what: str, *, tensor: str | None = None, at: int | None = None, hint: str | None = None) -> NoReturn:
        where = str(self.path)
        if tensor is not None:
            where += f", tensor {tensor!r}"
        if at is not None:
            where += f", byte {at}"
        raise CheckpointError(f"{where}: {what}", hint=hint)

    def parse(self) -> tuple[dict[str, TensorEntry], dict[str, str]]:
        raw = self.read_raw()
        start = LENGTH_BYTES + len(raw)
        table = self.decode(raw)
        metadata = self.metadata(table.pop(METADATA, None))
        entries = [self.entry(name, row, start) for name, row in table.items()]
        entries.sort(key=lambda e: (e.offset_bytes, e.nbytes))
        self.check_coverage(entries, start)
        return {e.name: e for e in entries}, metadata

    def read_raw(self) -> bytes:
        head = self.file.read(64)
        # A header of 640 bytes makes the file start like a pickle, so the first byte after the length decides.
        json_follows = head[LENGTH_BYTES : LENGTH_BYTES + 1] == b"{"
        for magic, hint in _NOT_SAFETENSORS:
            if head.startswith(magic) and not json_follows:
                self.fail("this is not a safetensors file.", at=0, hint=hint)
        if len(head) < LENGTH_BYTES:
            self.fail(
                f"the file has {self.size} bytes; a safetensors file starts with an eight-byte header length.",
                at=self.size,
                hint="The file is empty or truncated: fetch it again.",
            )
        length = int.from_bytes(head[:LENGTH_BYTES], "little")
        if length > HEADER_LIMIT:
            self.fail(
                f"the header length reads {length} bytes, more than the format's limit of {HEADER_LIMIT}.",
                at=0,
                hint="This is not a safetensors file, or its first bytes are damaged.",
            )
        if LENGTH_BYTES + length > self.size:
            self.fail(
                f"truncated: the header needs {length} bytes and the file ends after {self.size - LENGTH_BYTES}.",
                at=self.size,
                hint="Fetch the file again.",
            )
        self.file.seek(LENGTH_BYTES)
        raw = self.file.read(length)
        if not raw.startswith(b"{"):
            self.fail("the header does not start with '{'.", at=LENGTH_BYTES, hint="This is not a safetensors file.")
        return raw

    def decode(self, raw: bytes) -> dict[str, Any]:
        def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
            table: dict[str, Any] = {}
            for name, value in items:
                if name in table:  # readers differ in which of the two they take
                    self.fail("the name appears twice in the header.", tensor=name, hint="Write the file again.")
                table[name] = value
            return table

        try:
            table = json.loads(raw.decode("utf-8"), object_pairs_hook=pairs)
        except UnicodeDecodeError as error:
            self.fail("the header is not UTF-8.", at=LENGTH_BYTES + error.start, hint="The header is damaged.")
        except json.JSONDecodeError as error:
            at = LENGTH_BYTES + len(error.doc[: error.pos].encode())
            self.fail(f"the header is not valid JSON: {error.msg}.", at=at, hint="The header is damaged.")
        except (RecursionError, ValueError) as error:
            if isinstance(error, CheckpointError):
                raise
            self.fail(f"the header is not usable JSON: {error}.", at=LENGTH_BYTES, hint="The header is damaged.")
        if not isinstance(table, dict):
            self.fail("the header is not a JSON object.", at=LENGTH_BYTES)
        return table

    def metadata(self, row: Any) -> dict[str, str]:
        if row is None:
            return {}
        if not isinstance(row, dict) or not all(isinstance(v, str) for v in row.values()):
            self.fail(f"{METADATA} has to map strings to strings.", at=LENGTH_BYTES)
        return dict(row)

    def entry(self, name: str, row: Any, start: int) -> TensorEntry:
        if not isinstance(row, dict) or not {"dtype", "shape", "data_offsets"} <= row.keys():
            self.fail("the header entry needs dtype, shape and data_offsets.", tensor=name)
        stored = STORED_TYPES.get(row["dtype"]) if isinstance(row["dtype"], str) else None
        if stored is None:
            self.fail(f"unknown dtype {row['dtype']!r}.", tensor=name, hint=f"Known: {', '.join(STORED_TYPES)}.")
        shape, offsets = row["shape"], row["data_offsets"]
        if not _is_counts(shape):
            self.fail(f"shape {shape!r} is not a list of sizes.", tensor=name)
        if not _is_counts(offsets) or len(offsets) != 2:
            self.fail(f"data_offsets {offsets!r} is not a pair of byte positions.", tensor=name)
        begin, end = offsets
        if begin > end:
            self.fail(f"data_offsets end ({end}) before they begin ({begin}).", tensor=name, at=start + begin)
        if start + end > self.size:
            self.fail(
                f"the tensor ends at byte {start + end}, past the end of the file ({self.size} bytes).",
                tensor=name,
                at=start + begin,
                hint="The file is truncated: fetch it again.",
            )
        need = tensor_nbytes(stored, shape, where=f"{self.path}, tensor {name!r}, byte {start + begin}")
        if need != end - begin:
            self.fail(
                f"{stored.name} of shape {shape} takes {need} bytes, data_offsets give {end - begin}.",
                tensor=name,
                at=start + begin,
                hint="The header is damaged: write the file again.",
            )
        return TensorEntry(name, stored, tuple(shape), start + begin, need)

    def check_coverage(self, entries: list[TensorEntry], start: int) -> None:
        position, last = start, None
        for entry in entries:
            if entry.offset_bytes < position:
                self.fail(
                    f"overlaps tensor {last!r}, which ends at byte {position}.",
                    tensor=entry.name,
                    at=entry.offset_bytes,
                    hint="Each byte belongs to one tensor: write the file again.",
                )
            if entry.offset_bytes > position:
                self.fail(
                    f"{entry.offset_bytes - position} bytes before this tensor belong to none.",
                    tensor=entry.name,
                    at=position,
                    hint="The format allows no gaps: write the file again.",
                )
            position, last = entry.offset_bytes + entry.nbytes, entry.name
        if position != self.size:
            self.fail(
                f"{self.size - position} bytes after the last tensor belong to none.",
                at=position,
                hint="The file is damaged or has something appended: write or fetch it again.",
            )


def _is_counts(value: Any) -> bool:
    return isinstance(value, list) and all(type(v) is int and v >= 0 for v in value)


def layout(entries: Mapping[str, tuple[StoredType, tuple[int, ...]]]) -> dict[str, TensorEntry]:
    """Place tensors one after the other, widest elements first so that each one is aligned.

    Returns:
        Entries in file order, with offsets relative to the end of the header.
    """
    ordered = sorted(entries.items(), key=lambda item: -max(item[1][0].bits, 8))
    placed: dict[str, TensorEntry] = {}
    position = 0
    for name, (stored, shape) in ordered:
        nbytes = tensor_nbytes(stored, shape, where=f"tensor {name!r}")
        placed[name] = TensorEntry(name, stored, shape, position, nbytes)
        position += nbytes
    return placed


def header_bytes(placed: Mapping[str, TensorEntry], metadata: Mapping[str, str]) -> bytes:
    """Build the length and the JSON, padded so that the data starts on an eight-byte boundary."""
    table: dict[str, Any] = {METADATA: dict(metadata)} if metadata else {}
    for name, entry in placed.items():
        span = [entry.offset_bytes, entry.offset_bytes + entry.nbytes]
        table[name] = {"dtype": entry.dtype, "shape": list(entry.shape), "data_offsets": span}
    raw = json.dumps(table, separators=(",", ":"), ensure_ascii=False).encode()
    raw += b" " * (-len(raw) % LENGTH_BYTES)
    if len(raw) > HEADER_LIMIT:
        raise CheckpointError(f"the header would take {len(raw)} bytes; the format's limit is {HEADER_LIMIT}.")
    return len(raw).to_bytes(LENGTH_BYTES, "little") + raw
