"""Running a scheme over an array: by the compiled kernel where it has one, else by NumPy, a bounded piece at a time."""

import math

import numpy as np

from narrowcast import kernels
from narrowcast.kernels.blocks import quantize_blocks
from narrowcast.mx.blocking import PIECE, blocked, pieces
from narrowcast.mx.scheme import Scheme
from narrowcast.mx.steps import block_rule
from narrowcast.numerics.unpacking import Array
from narrowcast.quant import decode

_WIDE_ENOUGH = 8  # elements behind the axis from which columns are quicker than moving the axis


def fill(array: Array, axis: int, codes: Array, scale: Array, block: int, source: str, scheme: Scheme) -> None:
    """Quantize an array into arrays of codes and scale bytes.

    Args:
        array: fp32, fp16 or bf16 values of any strides and byte order.
        axis: the axis that blocks run along, not negative.
        codes: the array's shape, overwritten; 4-bit codes may share a byte along the last axis.
        scale: the array's shape with the axis divided by the block, overwritten.
        block: elements per scale.
        source: format name of the values.
        scheme: the resolved call.
    """
    if not array.size:
        return
    inner = array.shape[axis + 1 :]
    if math.prod(inner) >= _WIDE_ENOUGH and all(map(_plain, (array, codes, scale))):
        _fill_in_place(array, axis, codes, scale, block, source, scheme)
        return
    moved, into, bytes_ = (np.moveaxis(a, axis, -1) for a in (array, codes, scale))
    rule = block_rule(scheme, source)
    whole = rule is not None and source == "fp32" and _plain(moved) and kernels.level() != "numpy"
    for index in pieces(moved.shape, moved.size if whole else PIECE):
        rows = _rows(moved[index])
        found, found_bytes = _buffer(into[index], rows.shape[0]), _buffer(bytes_[index], rows.shape[0])
        if rule is None or not quantize_blocks(_wide(rows, source), found, found_bytes, block, scheme.mode, rule):
            _by_numpy(rows, found, found_bytes, block, source, scheme)
        if not np.may_share_memory(found, into):
            into[index] = found.reshape(into[index].shape)
        if not np.may_share_memory(found_bytes, bytes_):
            bytes_[index] = found_bytes.reshape(bytes_[index].shape)


def _fill_in_place(
    array: Array, axis: int, codes: Array, scale: Array, block: int, source: str, scheme: Scheme
) -> None:
    """Quantize along an axis that is not the last, without moving an element: blocks are columns of ``[K, I]``."""
    lead, size = array.shape[:axis], array.shape[axis]
    values = array.reshape(*lead, size, -1)
    into, bytes_ = codes.reshape(*lead, size, -1), scale.reshape(*lead, scale.shape[axis], -1)
    step = max(1, PIECE // (values.shape[-1] * block)) * block
    for index in np.ndindex(lead):
        for start in range(0, size, step):
            rows = values[index][start : start + step]
            short = -rows.shape[0] % block
            if short:
                rows = np.concatenate([rows, np.zeros((short, rows.shape[1]), dtype=rows.dtype)])
            columns = rows.reshape(-1, block, rows.shape[1]).swapaxes(1, 2)
            found, found_bytes = scheme.quantize(columns, source)
            flat = found.swapaxes(1, 2).reshape(rows.shape)
            into[index][start : start + step] = flat[: rows.shape[0] - short]
            bytes_[index][start // block : start // block + len(found_bytes)] = found_bytes


def _plain(array: Array) -> bool:
    return bool(array.flags.c_contiguous) and bool(array.dtype.isnative)


def _rows(piece: Array) -> Array:
    native = piece.astype(piece.dtype.newbyteorder("="), copy=False)
    return np.ascontiguousarray(native).reshape(-1, piece.shape[-1])


def _buffer(target: Array, rows: int) -> Array:
    """View a target as contiguous rows, or make room beside it."""
    if target.flags.c_contiguous:
        return target.reshape(rows, -1)
    return np.empty((rows, target.shape[-1]), dtype=target.dtype)


def _wide(rows: Array, source: str) -> Array:
    return rows if source == "fp32" else decode(rows.view(np.uint16), source)


def _by_numpy(rows: Array, codes: Array, scale: Array, block: int, source: str, scheme: Scheme) -> None:
    step = max(1, PIECE // rows.shape[1])
    for start in range(0, rows.shape[0], step):
        part = slice(start, start + step)
        found, scale[part] = scheme.quantize(blocked(rows[part], block), source)
        flat = found.reshape(found.shape[0], -1)[:, : rows.shape[1]]
        codes[part] = flat if codes.shape[1] == rows.shape[1] else kernels.pack(flat)
