"""The public call: build the instruction, run it."""

from typing import Any

import numpy as np
import numpy.typing as npt

from narrowcast.catalog.fixpipe_modes import fixpipe_modes
from narrowcast.errors import FormatError
from narrowcast.fixpipe.operation import Fixpipe
from narrowcast.fixpipe.store import Store
from narrowcast.fixpipe.words import QuantParam, check_offsets, check_scales, quant_words
from narrowcast.operation import Control, Semantics, execute


def run(
    acc: npt.ArrayLike,
    mode: str,
    param: QuantParam | npt.ArrayLike | None = None,
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
        acc: int32 or float32 accumulators [M, N].
        mode: e.g. ``"REQ8"``, ``"QF32_2_E4M3"``, or a vendor name.
        param: :class:`QuantParam`, uint64 words (one or N), or fp32 scales (one or N).
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
    activation, alpha = _activation(relu)
    op = Fixpipe(mode=mode, activation=activation, clip=clip, layout=layout, route=route, **settings)
    words = _words(param, offset, signed, op)
    inputs = {"acc": acc, "words": words, "alpha": alpha, "bias": bias}
    result: Store = execute(op, inputs, semantics, control)
    return result


def _activation(relu: Any) -> tuple[str | None, Any]:
    if relu is None or relu is False:
        return None, None
    if relu is True:
        return "relu", None
    slopes = np.asarray(relu, dtype=np.float32)
    return ("leaky", slopes.reshape(1)) if slopes.size == 1 else ("prelu", slopes)


def _words(param: Any, offset: npt.ArrayLike, signed: bool, op: Fixpipe) -> Any:
    if isinstance(param, QuantParam):
        return np.array([param.word], dtype=np.uint64)
    if param is None:
        return None
    array = np.asarray(param)
    if array.dtype == np.uint64:
        return array
    if array.dtype.kind not in "fi":
        raise FormatError(f"param is {array.dtype}; pass a QuantParam, uint64 words or fp32 scales.")
    if not fixpipe_modes[op.mode].scaled:
        raise FormatError(f"mode {op.mode} takes no parameter.")
    check_scales(array)
    signed = op.target != "u8" if op.target else signed
    return np.atleast_1d(quant_words(array, check_offsets(np.asarray(offset)), signed))
