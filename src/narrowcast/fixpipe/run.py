"""The public call: build the instruction, run it."""

from typing import Any

import numpy as np
import numpy.typing as npt

from narrowcast.catalog.fixpipe_modes import fixpipe_modes
from narrowcast.errors import EncodingError, FormatError
from narrowcast.fixpipe.operation import Fixpipe
from narrowcast.fixpipe.store import Store
from narrowcast.fixpipe.words import (
    QuantParam,
    QuantParam2201,
    SpecQuantParam,
    check_offsets,
    check_scales,
    quant_words,
)
from narrowcast.operation import Control, Semantics, execute

AnyParam = QuantParam | QuantParam2201 | SpecQuantParam


def run(
    acc: npt.ArrayLike,
    mode: str,
    param: AnyParam | npt.ArrayLike | None = None,
    *,
    offset: npt.ArrayLike = 0,
    signed: bool = True,
    bias: npt.ArrayLike | None = None,
    relu: bool | float | npt.ArrayLike | None = None,
    clip: float | None = None,
    layout: str = "ND",
    route: str = "GM",
    semantics: Semantics | None = None,
    control: Control | None = None,
    **settings: Any,
) -> Store:
    """Send accumulators through the Fixpipe: scale, activation, offset, conversion, layout, store.

    Formula (8-bit): ``clamp(rne(clamp(fp32(acc) * M, -256, 255)) + offset)`` with ``M = scale``, or the slope (0
    for ReLU) for a negative accumulator; other targets: one conversion of ``fp32(acc) * M``.

    Args:
        acc: int32 or float32 accumulators [M, N], or [batches, M, N].
        mode: e.g. ``"REQ8"``, ``"QF32_2_E4M3"``, or a vendor name.
        param: :class:`QuantParam`, words (a uint64 or int64 array, one or N), or fp32 scales (one or N), for a shift
            mode the shift.
        offset: integers -256..255 with scales given as floats.
        signed: S8 rather than U8, with scales given as floats.
        bias: [N], only where the semantics put it in the pipe; else give it to ``mmad``.
        relu: True; a slope (leaky); N slopes (PReLU); None or False.
        clip: upper bound of clip-ReLU.
        layout: ``ND``, ``DN``, ``NZ``.
        route: ``GM``, ``L1`` or ``UB``.
        semantics: whom to believe.
        control: CTRL bits of the program.
        **settings: other fields of :class:`Fixpipe` (stride, dual, offset_bytes, on_violation...).

    Returns:
        A :class:`Store`: ``codes`` in plain order, ``storage`` in destination order, cost, dummy columns.

    Raises:
        ConstraintError: broken rules, all of them, unless ``on_violation="emulate"``.
        EncodingError: a scale or offset that the parameter word cannot hold.
        UnsupportedCastError: a mode, route or chip that do not go together.

    Source: the mode's catalog row; asc-devkit:on-the-fly quantization; seed:2.

    Example:
        >>> run(np.int32([[3, 70]]), "REQ8", QuantParam(2.0, -1)).values.tolist()
        [[5.0, 127.0]]
    """
    semantics = semantics or Semantics()
    activation, alpha = _activation(relu)
    array = np.asarray(acc)
    if array.ndim == 3:
        settings.setdefault("batches", array.shape[0])
    op = Fixpipe(mode=mode, activation=activation, clip=clip, layout=layout, route=route, **settings)
    words = parameter_words(op, param, offset, signed, semantics)
    inputs = {"acc": array, "words": words, "alpha": alpha, "bias": bias}
    result: Store = execute(op, inputs, semantics, control)
    return result


def _activation(relu: Any) -> tuple[str | None, Any]:
    if relu is None or relu is False:
        return None, None
    if relu is True:
        return "relu", None
    slopes = np.asarray(relu, dtype=np.float32)
    check_scales(slopes, name="slope")
    return ("leaky", slopes.reshape(1)) if slopes.size == 1 else ("prelu", slopes)


def parameter_words(
    op: Fixpipe, param: Any, offset: npt.ArrayLike = 0, signed: bool = True, semantics: Semantics | None = None
) -> npt.NDArray[np.uint64] | None:
    """Build the words of an instruction from what a person has: scales and offsets, a parameter, or words.

    Args:
        op: the instruction.
        param: as for :func:`run`.
        offset: integers, one or as many as scales.
        signed: S8 rather than U8.
        semantics: whose word to build.

    Returns:
        uint64 words, None for a mode that takes none.

    Raises:
        EncodingError: what the word cannot hold.
        FormatError: a parameter for a mode that takes none, or an offset beside words that have their own.
    """
    row = fixpipe_modes[op.mode]
    if param is None:
        return None
    if not row.takes_word:
        raise FormatError(f"mode {op.mode} takes no parameter.", source=row.source)
    array = np.array([param.word], dtype=np.uint64) if isinstance(param, AnyParam) else np.asarray(param)
    if isinstance(param, np.ndarray) and array.dtype == np.int64 and not row.shifts:
        array = array.view(np.uint64)  # the operator's other output type; scales are floats
    if array.dtype == np.uint64:
        if np.any(offset):
            raise FormatError(
                "a parameter word has its own offset; an offset beside it would be ignored.",
                hint="Give the offset to QuantParam or quant_words, or pass scales.",
            )
        return np.atleast_1d(array)
    if array.dtype.kind not in "fi":
        raise FormatError(f"param is {array.dtype}; pass a QuantParam, uint64 words or fp32 scales.")
    flat = np.atleast_1d(array)
    if row.shifts:
        return np.array([SpecQuantParam(0.0, target="shift", shift=int(s)).word for s in flat], dtype=np.uint64)
    check_scales(flat)
    by_specification = (semantics or Semantics()).choose("fixpipe_word") == "pto-spec"  # its fields have other widths
    offsets = np.rint(np.asarray(offset)).astype(np.int64) if by_specification else check_offsets(np.asarray(offset))
    if offsets.ndim > 0 and offsets.size not in (1, flat.size) and flat.size != 1:
        raise EncodingError(f"{offsets.size} offsets for {flat.size} scales.")
    if by_specification:
        target = row.targets[0] if row.offset else "float"
        scales, shifts = np.broadcast_arrays(flat, offsets)
        pairs = zip(scales.reshape(-1), shifts.reshape(-1), strict=True)
        return np.array([SpecQuantParam(float(s), int(o), target).word for s, o in pairs], dtype=np.uint64)
    if len(row.targets) == 1:
        signed = False  # bit 46 means something to the 8-bit modes only
    elif op.target is not None:
        signed = op.target != "u8"
    return np.atleast_1d(quant_words(flat, offsets, signed))
