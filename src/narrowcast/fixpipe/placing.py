"""Codes into destination buffers: halves, batches, tails, and what was written."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from narrowcast.catalog.formats import formats
from narrowcast.errors import ShapeError
from narrowcast.fixpipe import cost
from narrowcast.fixpipe.addressing import C0, Addressing, Array, ceil_to
from narrowcast.fixpipe.call import STORE_GRAIN
from narrowcast.fixpipe.pipeline import Parameters
from narrowcast.fixpipe.store import Store
from narrowcast.operation import Finding

if TYPE_CHECKING:
    from narrowcast.fixpipe.operation import Fixpipe

DUMMY_BYTE = 0xA5
"""Stands for what the chip would write beyond N when the accumulator array holds nothing there."""


def place(
    op: "Fixpipe",
    codes: Array,
    beyond: Array | None,
    p: Parameters,
    tail: str,
    words: Array | None,
    found: tuple[Finding, ...],
    out: Array | None,
) -> Store:
    """Lay codes out and describe the store.

    Args:
        op: the instruction.
        codes: [batches, m, n].
        beyond: codes of accumulators in columns beyond n, None where the array has none.
        p: parameters of the conversion.
        tail: ``trim`` or ``dummy``, see ``nd_tail``.
        words: parameter words.
        found: violations that are emulated.
        out: array for the storage.
    """
    batches, m, n = codes.shape
    bits = formats[p.target].bits
    start = _displacement(op, found, bits)
    units, storages = [], []
    for rows, columns in _halves(op.dual, m, n):
        part = codes[:, rows, columns]
        last = columns.stop == n
        where = [
            Addressing(op.layout, part.shape[1], part.shape[2], bits, op.stride, op.split, tail, start)
            for _ in range(batches)
        ]
        if batches > 1:
            step = op.batch_stride if op.batch_stride is not None else where[0].end
            where = [replace(where[0], start=start + i * step) for i in range(batches)]
        extra = beyond[:, rows] if beyond is not None and last else None
        storages.append(_store(part, extra, tuple(where), bits, out))
        units.append(tuple(where))
    per_column = words is not None and words.size > 1
    parts = cost.chunks(
        m,
        n,
        quantization=per_column,
        slopes=op.activation == "prelu",
        bias=p.bias is not None,
        enforce=op.enforce_limits,
    )
    read = batches * m * ceil_to(n, C0)
    rates = cost.rates(
        op.route.split("+")[0], bits, read, parts, op.dual is not None, op.table, op.source_row_stride > 1
    )
    written = sum(a.rows * a.written_columns for unit in units for a in unit)
    return Store(
        format=p.target,
        shape=codes.shape[1:] if batches == 1 else codes.shape,
        storage=tuple(storages),
        addressing=tuple(units),
        route=op.route,
        elements=codes.size,
        bytes=-(-written * bits // 8),
        cycles=next(r.cycles for r in rates if r.used),
        rates=rates,
        chunks=parts,
        dual=op.dual,
        findings=found,
    )


def _halves(dual: str | None, m: int, n: int) -> tuple[tuple[slice, slice], ...]:
    every_row, every_column = slice(0, m), slice(0, n)
    if dual == "M":
        return ((slice(0, m // 2), every_column), (slice(m // 2, m), every_column))
    if dual == "N":
        return ((every_row, slice(0, n // 2)), (every_row, slice(n // 2, n)))
    return ((every_row, every_column),)


def _displacement(op: "Fixpipe", found: tuple[Finding, ...], bits: int) -> int:
    """Elements by which a misaligned store is displaced: its address falls back to the grain."""
    if not any(f.rule == "FIXP-03" for f in found):
        return 0
    grain = 8 if op.layout == "NZ2ND" else 8 * STORE_GRAIN
    return -((op.offset_bits % grain) // bits)


def _store(codes: Array, beyond: Array | None, where: tuple[Addressing, ...], bits: int, out: Array | None) -> Array:
    rows, columns = codes.shape[1:]
    width = where[0].written_columns
    size = max(a.end for a in where)
    dense = codes.flags.c_contiguous and width == columns and size == codes.size and where[0].layout == "NZ2ND"
    if dense and all(a.start == i * rows * columns and a.step == columns for i, a in enumerate(where)):
        return _delivered(codes.reshape(-1), out)
    storage = np.zeros(size, dtype=codes.dtype)
    for i, place_of in enumerate(where):
        padded = codes[i]
        if width > columns:
            padded = np.full((rows, width), _dummy_code(codes.dtype, bits), dtype=codes.dtype)
            padded[:, :columns] = codes[i]
            if beyond is not None:
                known = min(width - columns, beyond.shape[2])
                padded[:, columns : columns + known] = beyond[i][:, :known]
        place_of.put(storage, padded)
    return _delivered(storage, out)


def _delivered(storage: Array, out: Array | None) -> Array:
    if out is None:
        return storage
    if out.size != storage.size or out.dtype != storage.dtype or not out.flags.c_contiguous:
        raise ShapeError(f"out must be a contiguous {storage.dtype} array of {storage.size} elements.")
    flat = out.reshape(-1)
    if not np.shares_memory(flat, storage):
        flat[...] = storage
    return flat


def _dummy_code(dtype: np.dtype[Any], bits: int) -> Any:
    pattern = int.from_bytes(bytes([DUMMY_BYTE]) * dtype.itemsize, "little")
    return dtype.type(pattern & ((1 << bits) - 1))
