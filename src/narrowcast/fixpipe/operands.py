"""What a Fixpipe instruction is given: accumulators and parameters, checked and brought to one form."""

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from narrowcast.errors import FormatError, ShapeError, UnsupportedCastError
from narrowcast.fixpipe.addressing import C0, Array, ceil_to, from_fractal
from narrowcast.fixpipe.decoding import decode_words, one_target
from narrowcast.fixpipe.pipeline import Parameters
from narrowcast.fixpipe.words import truncate_scale
from narrowcast.operation import Choices
from narrowcast.operation.protocol import Inputs
from narrowcast.quant.arrays import first_index

if TYPE_CHECKING:
    from narrowcast.fixpipe.operation import Fixpipe

_DTYPES = {"s32": "int32", "fp32": "float32"}
_COUNTS = (
    *("m", "n", "batches", "stride", "batch_stride"),
    *("source_stride", "source_batch_stride", "source_row_stride", "source_offset_bytes"),
    *("parameter_source_bytes", "parameter_target_bytes"),
)
"""Fields that count elements, rows or bytes."""


def check_sizes(op: "Fixpipe") -> None:
    """Refuse sizes, addresses and bounds that nothing has.

    Raises:
        ShapeError: a size or address that is negative or no whole number, or an NZ accumulator without m and n.
        FormatError: a clip bound that is infinite or NaN.
    """
    for name in _COUNTS:
        value, least = getattr(op, name), 1 if name == "batches" else 0
        if value is not None and (not isinstance(value, (int, np.integer)) or value < least):
            raise ShapeError(f"{name} is {value}; it is a whole number from {least}.")
    if not (math.isfinite(op.offset_bytes) and op.offset_bytes >= 0 and float(2 * op.offset_bytes).is_integer()):
        raise ShapeError(f"offset_bytes is {op.offset_bytes}; it counts bytes from 0, half a byte being one S4 result.")
    if op.clip is not None and not math.isfinite(op.clip):
        raise FormatError(f"clip bound {op.clip} is not finite.", source="asc-devkit:SetFixPipeClipRelu")
    if op.acc_layout == "NZ" and (op.m is None or op.n is None):
        raise ShapeError("an NZ accumulator needs m and n, which its padded storage does not tell.")


def accumulators(op: "Fixpipe", acc: Any) -> tuple[Array, Array | None]:
    """Return the [batches, m, n] accumulators, and what the array holds in columns beyond n.

    Raises:
        FormatError: accumulators of another type than the mode's.
        ShapeError: an array too small for m, n and the strides.
    """
    dtype = _DTYPES[op.mode_row.accumulator]
    array = np.asarray(acc)
    if array.dtype.newbyteorder("=").name != dtype:
        beyond = _beyond_s32(array) if dtype == "int32" else None
        if beyond is not None:
            raise FormatError(
                f"accumulator {int(array[beyond])} at {list(beyond)} does not fit S32, which mode {op.mode} takes.",
                hint="Scale the operands down, or split K and add the parts in a wider type.",
                source=op.mode_row.source,
            )
        raise FormatError(
            f"mode {op.mode} takes {op.mode_row.accumulator} accumulators ({dtype}); got {array.dtype}.",
            hint="S32 accumulators come from s8 operands, FP32 ones from the others.",
            source=op.mode_row.source,
        )
    array = array.astype(dtype, copy=False)
    full = _from_l0c(op, array) if op.acc_layout == "NZ" else _plain(op, array)
    m = full.shape[1] if op.m is None else op.m
    n = full.shape[2] if op.n is None else op.n
    if m > full.shape[1] or n > full.shape[2]:
        raise ShapeError(f"m x n = {m} x {n} is larger than the accumulator array {list(full.shape[1:])}.")
    return full[:, :m, :n], full[:, :m, n:] if full.shape[2] > n else None


def _beyond_s32(array: Array) -> tuple[int, ...] | None:
    """Index of the first integer that S32 cannot hold."""
    if array.dtype.kind not in "iu" or not array.size:
        return None
    limits = np.iinfo(np.int32)
    bad = (array < limits.min) | (array > limits.max)
    return first_index(bad) if bad.any() else None


def whole_fractals(op: "Fixpipe", acc: Any) -> Array | None:
    """View an NZ accumulator as [n/16, rows, 16] where it is nothing but whole fractals in order, else None."""
    array = np.asarray(acc)
    plain = op.batches == 1 and op.source_row_stride == 1 and op.source_offset_bytes == 0
    if op.acc_layout != "NZ" or not plain or not op.m or not op.n or op.n % C0:
        return None
    rows = op.source_stride if op.source_stride is not None else ceil_to(op.m, C0)
    if array.dtype.name != _DTYPES[op.mode_row.accumulator] or rows < op.m or array.size < rows * op.n:
        return None
    return np.ascontiguousarray(array).reshape(-1)[: rows * op.n].reshape(op.n // C0, rows, C0)


def _plain(op: "Fixpipe", array: Array) -> Array:
    if array.ndim == 2 and op.batches == 1:
        return array[None]
    if array.ndim == 3 and array.shape[0] == op.batches:
        return array
    wanted = "[M, N]" if op.batches == 1 else f"[{op.batches}, M, N]"
    raise ShapeError(
        f"accumulators are {wanted}; got shape {list(array.shape)}.",
        hint='For L0C\'s fractals pass acc_layout="NZ" with m and n.',
    )


def _from_l0c(op: "Fixpipe", array: Array) -> Array:
    assert op.m is not None and op.n is not None
    rows = op.source_stride if op.source_stride is not None else ceil_to(op.m * op.source_row_stride, C0)
    step = op.source_batch_stride if op.source_batch_stride is not None else rows * (ceil_to(op.n, C0) // C0)
    first = op.source_offset_bytes // array.itemsize
    return np.stack(
        [
            from_fractal(array, op.m, ceil_to(op.n, C0), rows, first + i * step * C0, op.source_row_stride)
            for i in range(op.batches)
        ]
    )


def parameters(
    op: "Fixpipe", inputs: Inputs, shape: tuple[int, ...], choices: Choices
) -> tuple[Array | None, Parameters]:
    """Decode the words and collect everything a conversion takes.

    Raises:
        FormatError: a mode without its word, a bias of the wrong type.
        ShapeError: arrays that match neither one nor N.
    """
    rows, columns = shape
    row = op.mode_row
    alpha = _alpha(op, inputs["alpha"], columns)
    bias = _bias(op, inputs["bias"], columns)
    if not row.takes_word:
        if inputs["words"] is not None:
            raise FormatError(f"mode {row.name} takes no parameter word.", source=row.source)
        one = np.ones(1, dtype=np.float32)
        return None, Parameters(one, np.zeros(1, dtype=np.int64), row.targets[0], alpha, bias, op.clip)
    words = _words(op, inputs["words"], rows, columns, choices)
    decoded = decode_words(words, row, choices)
    fields = [decoded.scale, decoded.offset, decoded.shift]
    if words.size > 1 and choices.choose("fixpipe_parameter_axis") == "row":
        fields = [field[:, None] for field in fields]
    scale, offset, shift = fields
    return words, Parameters(
        scale,
        offset,
        op.target or one_target(row, decoded.signed),
        alpha,
        bias,
        op.clip,
        shift if shift.any() else None,
    )


def _words(op: "Fixpipe", words: Any, rows: int, columns: int, choices: Choices) -> Array:
    row = op.mode_row
    if words is None:
        raise FormatError(
            f"mode {row.name} needs a parameter word.",
            hint="Pass param=QuantParam(scale), on the command line --scale.",
        )
    array = np.atleast_1d(np.asarray(words))
    if array.dtype == np.int64:  # the operator's other output type
        array = array.view(np.uint64)
    if array.dtype != np.uint64:
        raise FormatError(f"parameter words are uint64 (or int64 of the same bits); got {array.dtype}.")
    if array.size > 1 and (not row.vector or (choices.authority == "seed" and not row.seed_vector)):
        raise UnsupportedCastError(
            f"mode {row.name} takes one parameter word{', by the seed' if row.vector else ''}, not one per column.",
            source="seed:2.1" if row.vector else row.source,
        )
    if array.shape == (1,):
        return array
    if choices.choose("fixpipe_parameter_axis") == "row":
        if array.ndim == 1 and array.size >= rows:
            return array[:rows]
        raise ShapeError(f"parameter words have shape {array.shape}; the simulator reads one for each of {rows} rows.")
    if array.shape != (columns,):
        raise ShapeError(f"parameter words have shape {array.shape}; N = {columns} columns need 1 or {columns}.")
    return array


def _alpha(op: "Fixpipe", alpha: Any, columns: int) -> Array | None:
    if op.activation is None:
        return None
    if op.activation == "relu":
        return np.zeros(1, dtype=np.float32)
    array = np.atleast_1d(np.asarray(alpha, dtype=np.float32)) if alpha is not None else np.zeros(0)
    wanted = (1,) if op.activation == "leaky" else (columns,)
    if array.shape != wanted:
        raise ShapeError(f"activation {op.activation} needs slopes of shape {wanted}; got {array.shape}.")
    return truncate_scale(array)


def _bias(op: "Fixpipe", bias: Any, columns: int) -> Array | None:
    if bias is None:
        return None
    array = np.asarray(bias)
    dtype = _DTYPES[op.mode_row.accumulator]
    if array.dtype.name != dtype:
        raise FormatError(f"mode {op.mode} takes a {dtype} bias; got {array.dtype}.")
    if array.shape not in ((columns,), (1, columns)):
        raise ShapeError(f"bias has shape {array.shape}; N = {columns} columns need ({columns},).")
    return array.reshape(-1)


def last_column(p: Parameters) -> Parameters:
    """Parameters of accumulators beyond N, which have no column of their own: those of the last one."""

    def last(field: Array) -> Array:
        return field[..., -1:]

    alpha = None if p.alpha is None else last(p.alpha)
    return replace(p, scale=last(p.scale), offset=last(p.offset), alpha=alpha, bias=None)
