"""Quantize the weights of one safetensors file to one format, one scale per tensor.

The new file holds, for each quantized tensor, its codes under the old name and ``NAME.scale`` (float32, one
element). The metadata ``narrowcast`` describes the file and ``narrowcast:NAME`` each tensor: format, shape,
how the codes are stored, blocks and the record of every choice that decides bits.
"""

import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np

from narrowcast.catalog.formats import formats
from narrowcast.checkpoint.results import QuantizedFile, TensorResult
from narrowcast.errors import CheckpointError, UnknownNameError, UnsupportedCastError, unknown_name
from narrowcast.insight.statistics import Array, FormatTally, Grid, TensorTally, piece
from narrowcast.insight.weights import caster, grid_of, scale_for, target_of, why_not_a_weight
from narrowcast.quant import Blocks, QTensor, Record, pack, unpack
from narrowcast.schema import Format
from narrowcast.storage import SafeTensorsFile, SafeTensorsWriter, TensorEntry, open_safetensors, stored_type
from narrowcast.version import VERSION

TARGETS = ("hif8", "e4m3", "e5m2", "s8", "s4", "e2m1")
NONFINITE = ("error", "saturate", "keep")
CHUNK_ELEMENTS = 1 << 17  # a piece and its temporaries stay in the cache
METADATA_KEY = "narrowcast"
FILE_KIND = "quantized-weights"
_STORED = {"e4m3": "F8_E4M3", "e5m2": "F8_E5M2", "s8": "I8"}
_SOURCES = ("F64", "F32", "F16", "BF16")

Progress = Callable[[int, int, str], None]


@dataclass(frozen=True)
class _Plan:
    """One tensor: kept, or quantized and stored this way."""

    entry: TensorEntry
    kept: str | None
    dtype: str
    shape: tuple[int, ...]

    @property
    def scale_name(self) -> str:
        return f"{self.entry.name}.scale"


def quantize_file(
    source: str | os.PathLike[str],
    output: str | os.PathLike[str],
    format: str,
    *,
    scaled: bool = True,
    everything: bool = False,
    keep: Sequence[str] = (),
    nonfinite: str = "error",
    force: bool = False,
    progress: Progress | None = None,
    chunk_elements: int = CHUNK_ELEMENTS,
) -> QuantizedFile:
    """Quantize the floating-point tensors of a safetensors file, streaming piece by piece.

    Formula: scale = absmax / target per tensor, code = round(x / scale) saturated, real = code value * scale;
    exactly ``narrowcast.quantize(x, format)``.

    Args:
        source: the file to read.
        output: the file to write; it appears whole or not at all.
        format: ``hif8``, ``e4m3``, ``e5m2``, ``s8``, ``s4`` or ``e2m1``.
        scaled: one scale per tensor; false casts the values as they are (scale 1).
        everything: quantize 1-D tensors (biases, norms), scalars and scales, too.
        keep: patterns (``*`` and ``?``) of tensor names to copy unchanged.
        nonfinite: ``error``; ``saturate`` (infinity to the largest value, NaN to 0) or ``keep`` (NaN kept where
            the format has one).
        force: replace an existing output.
        progress: called with (elements done, elements in all, tensor name).
        chunk_elements: elements in memory at a time, rounded up to an even number.

    Returns:
        What was done to each tensor, with its SQNR.

    Raises:
        UnknownNameError: an unknown format or policy, or a pattern that matches no tensor.
        CheckpointError: the source is not well formed, holds NaN or infinity without a policy, or has a tensor
            with the name of a scale.
        OutputError: the output exists, or the disk is full.

    Example:
        >>> import tempfile, numpy as np
        >>> from narrowcast.storage import save_tensors
        >>> folder = tempfile.mkdtemp()
        >>> save_tensors(folder + "/w.safetensors", {"w": np.eye(4, dtype=np.float32)})
        >>> done = quantize_file(folder + "/w.safetensors", folder + "/q.safetensors", "hif8")
        >>> load_quantized(folder + "/q.safetensors", "w").dequantize()[0].tolist()
        [1.0, 0.0, 0.0, 0.0]
    """
    row = formats[format]
    if row.name not in TARGETS:
        raise UnsupportedCastError(f"weights are not stored as {row.name}.", hint=f"Use {', '.join(TARGETS)}.")
    if nonfinite not in NONFINITE:
        raise unknown_name("non-finite policy", nonfinite, NONFINITE)
    with open_safetensors(source) as file:
        plans = _plans(file, row, everything, keep)
        record = Record(
            rule="absmax, symmetric" if scaled else "given scale, symmetric",
            rounding=row.default_rounding.value,
            saturate=True,
            nonfinite=nonfinite,
            scale_from="absmax" if scaled else "given",
            denominator=target_of(row, scaled),
        )
        metadata = _metadata(file, plans, row, record)
        entries: dict[str, tuple[str, Sequence[int]]] = {p.entry.name: (p.dtype, p.shape) for p in plans}
        entries |= {p.scale_name: ("F32", (1,)) for p in plans if p.kept is None}
        job = _Job(file, row, grid_of(row), scaled, nonfinite, chunk_elements + chunk_elements % 2)
        total = sum(p.entry.elements for p in plans)
        done = 0
        results: list[TensorResult] = []
        with SafeTensorsWriter(output, entries, metadata, force=force) as out:
            for plan in plans:

                def tick(count: int, name: str = plan.entry.name, before: int = done) -> None:
                    if progress is not None:
                        progress(before + count, total, name)

                tick(0)
                results.append(job.copy(plan, out, tick) if plan.kept else job.quantize(plan, out, tick))
                done += plan.entry.elements
            size = out.nbytes
        return QuantizedFile(
            source=str(Path(source)),
            output=str(Path(output)),
            source_bytes=file.size,
            output_bytes=size,
            format=row.name,
            rounding=record.rounding,
            scaled=scaled,
            tensors=tuple(results),
            version=VERSION,
        )


def load_quantized(path: str | os.PathLike[str], name: str) -> QTensor:
    """Read one tensor of a file written by :func:`quantize_file`.

    Args:
        path: the file.
        name: the tensor.

    Returns:
        Its codes, scale and record.

    Raises:
        CheckpointError: the file was not written by :func:`quantize_file`, or the tensor was kept unchanged.
        UnknownNameError: no such tensor.
    """
    with open_safetensors(path) as file:
        entry = file.info(name)
        text = file.metadata.get(f"{METADATA_KEY}:{name}")
        if text is None:
            raise CheckpointError(
                f"{path}: tensor {name!r} has no quantization record; it is stored as plain {entry.dtype}.",
                hint="Read it with narrowcast.storage.open_safetensors, or name a quantized tensor.",
            )
        form = _form(file, name, text)
        row = formats[form["format"]]
        shape = tuple(form["shape"])
        raw = np.array(file.read(name))
        codes = unpack(raw.reshape(-1), row.name, entry_count(shape)) if row.packs else raw.view(row.code_dtype)
        return QTensor(
            codes=codes.reshape(shape),
            format=row.name,
            scale=np.array(file.read(form["scale"])).reshape(()),
            offset=None,
            blocks=Blocks(tuple(form["blocks"])),
            record=Record.from_json(form["record"]),
        )


def entry_count(shape: Sequence[int]) -> int:
    """Count the elements of a shape."""
    return int(np.prod(shape, dtype=np.int64))


def _plans(file: SafeTensorsFile, row: Format, everything: bool, keep: Sequence[str]) -> list[_Plan]:
    for pattern in keep:
        if not any(fnmatchcase(name, pattern) for name in file.names):
            raise unknown_pattern(file, pattern)
    done = _quantized_before(file)
    plans = [_plan(file.info(name), row, everything, keep, done) for name in file.names]
    taken = set(file.names)
    for plan in plans:
        if plan.kept is None and plan.scale_name in taken:
            raise CheckpointError(
                f"{file.path}, tensor {plan.entry.name!r}: its scale would be called {plan.scale_name!r}, "
                "a name the file uses already.",
                hint=f"Is it quantized already? Keep it as it is with --keep '{plan.entry.name}'.",
            )
    return plans


def unknown_pattern(file: SafeTensorsFile, pattern: str) -> UnknownNameError:
    """Build the error for a pattern that matches no tensor."""
    error = unknown_name("tensor", pattern, file.names)
    close = f" Did you mean {' or '.join(error.suggestions)}?" if error.suggestions else ""
    return UnknownNameError(
        f"--keep {pattern!r} matches none of the {len(file.names)} tensors of {file.path}.{close}",
        suggestions=error.suggestions,
    )


def _quantized_before(file: SafeTensorsFile) -> frozenset[str]:
    """Name the codes and scales that an earlier run of ours left in the source."""
    names: set[str] = set()
    for key, text in file.metadata.items():
        prefix, _, name = key.partition(":")
        if prefix == METADATA_KEY and name in file.entries:
            names |= {name, _form(file, name, text)["scale"]}
    return frozenset(names)


def _form(file: SafeTensorsFile, name: str, text: str) -> dict[str, Any]:
    """Read the record of one quantized tensor."""
    try:
        form = json.loads(text)
        missing = {"format", "shape", "scale", "blocks", "record"} - form.keys()
    except (json.JSONDecodeError, AttributeError):
        missing = {"a JSON object"}
    if missing:
        raise CheckpointError(
            f"{file.path}, tensor {name!r}: its record in the metadata lacks {', '.join(sorted(missing))}.",
            hint="The file was not written by `narrowcast quantize`, or was edited since.",
        )
    return dict(form)


def _plan(entry: TensorEntry, row: Format, everything: bool, keep: Sequence[str], done: frozenset[str]) -> _Plan:
    reason = why_not_a_weight(entry.name, entry.shape)
    if entry.name in done:
        kept: str | None = "quantized already"
    elif entry.dtype not in _SOURCES:
        kept = "already narrow" if entry.stored.is_float else "not floating point"
    elif any(fnmatchcase(entry.name, pattern) for pattern in keep):
        kept = "named by --keep"
    else:
        kept = None if everything else reason
    if kept is not None:
        return _Plan(entry, kept, entry.dtype, entry.shape)
    dtype, shape = _storage_of(row, entry)
    return _Plan(entry, None, dtype, shape)


def _storage_of(row: Format, entry: TensorEntry) -> tuple[str, tuple[int, ...]]:
    """Choose dtype string and shape: F4 and packed bytes need an even last dimension to keep the shape."""
    if not row.packs:
        return _STORED.get(row.name, "U8"), entry.shape
    even = bool(entry.shape) and entry.shape[-1] % 2 == 0
    if row.name == "e2m1" and even:
        return "F4", entry.shape
    return "U8", (*entry.shape[:-1], entry.shape[-1] // 2) if even else ((entry.elements + 1) // 2,)


def _metadata(file: SafeTensorsFile, plans: Sequence[_Plan], row: Format, record: Record) -> dict[str, str]:
    metadata = dict(file.metadata)  # what others said about the file, and our records of kept tensors
    summary = {"kind": FILE_KIND, "version": VERSION, "format": row.name, "source": file.path.name}
    metadata[METADATA_KEY] = json.dumps(summary)
    for plan in plans:
        if plan.kept is not None:
            continue
        form: dict[str, Any] = {
            "format": row.name,
            "shape": list(plan.entry.shape),
            "source_dtype": plan.entry.dtype,
            "packing": "two per byte in order, even element in the low nibble" if row.packs else None,
            "scale": plan.scale_name,
            "blocks": [],
            "record": record.to_json(),
        }
        metadata[f"{METADATA_KEY}:{plan.entry.name}"] = json.dumps(form)
    return metadata


@dataclass(frozen=True)
class _Job:
    """What every tensor of a run shares."""

    file: SafeTensorsFile
    row: Format
    grid: Grid
    scaled: bool
    nonfinite: str
    chunk: int  # even, so that the 4-bit codes of a chunk fill whole bytes

    def copy(self, plan: _Plan, out: SafeTensorsWriter, tick: Callable[[int], None]) -> TensorResult:
        entry = plan.entry
        for part in self.file.chunks(entry.name, self.chunk):
            out.append(entry.name, part)
        tick(entry.elements)
        return TensorResult(
            entry.name,
            entry.dtype,
            entry.shape,
            entry.elements,
            entry.nbytes,
            stored=entry.dtype,
            stored_bytes=entry.nbytes,
            kept=plan.kept,
        )

    def values(self, entry: TensorEntry) -> Iterator[Array]:
        wide = entry.dtype == "F64"
        for raw in self.file.chunks(entry.name, self.chunk):
            yield raw.astype(np.float64 if wide else np.float32)

    def survey(self, entry: TensorEntry) -> TensorTally:
        tally = TensorTally()
        seen = 0
        for values in self.values(entry):
            tally.read(values)
            if tally.finite != tally.elements and self.nonfinite == "error":
                first = seen + int(np.argmin(np.isfinite(values)))
                at = entry.offset_bytes + first * entry.stored.bits // 8
                raise CheckpointError(
                    f"{self.file.path}, tensor {entry.name!r}, byte {at}: element {first} is {values[first - seen]}.",
                    hint="Repair it, keep the tensor as it is with --keep, or name a policy: --nonfinite saturate.",
                )
            seen += values.size
        return tally

    def quantize(self, plan: _Plan, out: SafeTensorsWriter, tick: Callable[[int], None]) -> TensorResult:
        entry = plan.entry
        tensor = self.survey(entry)
        scale = scale_for(self.row, tensor.absmax, self.scaled, wide=entry.dtype == "F64")
        cast = caster(self.row, "keep" if self.nonfinite == "keep" and self.row.nan_code is not None else "zero")
        tally = FormatTally(self.grid, cast, scale)
        seen = 0
        for values in self.values(entry):
            scaled = tally.scaled(values)
            codes = cast(scaled)
            finite = np.isfinite(values)
            if finite.all():
                tally.count(piece(values), scaled, codes)
            else:
                tally.count(piece(values[finite]), scaled[finite], codes[finite])
            out.append(entry.name, pack(codes, self.row.name) if self.row.packs else codes)
            seen += values.size
            tick(seen)
        out.append(plan.scale_name, np.array([scale], np.float32))
        nonfinite = tensor.nans + tensor.infinities
        finite_count = tensor.elements - nonfinite
        nonzero = finite_count - tensor.zeros
        return TensorResult(
            name=entry.name,
            dtype=entry.dtype,
            shape=entry.shape,
            elements=entry.elements,
            nbytes=entry.nbytes,
            stored=plan.dtype,
            stored_bytes=entry_count(plan.shape) * stored_type(plan.dtype).bits // 8 + 4,
            scale=scale,
            signal=tensor.signal,
            noise=tally.noise,
            max_error=tally.max_error,
            saturated=tally.saturated / finite_count if finite_count else 0.0,
            flushed=(tally.zeros - tensor.zeros) / nonzero if nonzero else 0.0,
            nonfinite=nonfinite,
        )
