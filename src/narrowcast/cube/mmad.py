"""Public functions of the Cube: build the operation, run it."""

import numpy.typing as npt

from narrowcast.cube.accumulate import Array
from narrowcast.cube.operation import MX_BLOCK, Mmad, MmadMx
from narrowcast.errors import FormatError
from narrowcast.operation import Semantics, execute
from narrowcast.quant import Blocks, QTensor


def mmad(
    a: npt.ArrayLike,
    b: npt.ArrayLike,
    a_format: str = "s8",
    b_format: str | None = None,
    bias: npt.ArrayLike | None = None,
    *,
    acc_layout: str = "plain",
    semantics: Semantics | None = None,
    out: Array | None = None,
) -> Array:
    """Multiply matrices into accumulators.

    Formula: ``C = bias + A @ B``, the bias being the accumulator's initial value. S32 is exact; FP32 accumulates
    in the order the switch ``cube_accumulation`` names (assumed: no source states the chip's).

    Args:
        a: [M, K] values or codes of ``a_format``.
        b: [K, N] values or codes of ``b_format``.
        a_format: ``s8 fp16 bf16 fp32 hif8 e4m3 e5m2``.
        b_format: default ``a_format``; e4m3 and e5m2 mix.
        bias: [N] or [M, N]: int32 for s8; float32, float16 or bfloat16 else.
        acc_layout: ``plain``, or ``NZ`` for L0C's fractals [N/16, M/16, 16, 16].
        semantics: whom to believe.
        out: array for the result.

    Returns:
        int32 or float32 accumulators [M, N], or fractals.

    Raises:
        UnsupportedCastError: operand formats the Cube does not pair.
        ShapeError: inner sizes or a bias that do not fit.
        FormatError: an S32 sum that overflows, naming K and the first element.

    Source: asc-devkit:Mmad.

    Example:
        >>> mmad(np.int8([[2, 3]]), np.int8([[5], [7]]), bias=np.int32([100])).tolist()
        [[131]]
    """
    op = Mmad(a_format=a_format, b_format=b_format or a_format, acc_layout=acc_layout)
    result: Array = execute(op, {"a": a, "b": b, "bias": bias}, semantics, out=out)
    return result


def mmad_mx(
    a: QTensor | npt.ArrayLike,
    b: QTensor | npt.ArrayLike,
    bias: npt.ArrayLike | None = None,
    *,
    a_scale: npt.ArrayLike | None = None,
    b_scale: npt.ArrayLike | None = None,
    a_format: str = "e4m3",
    b_format: str | None = None,
    a_scale_layout: str = "nd",
    b_scale_layout: str = "nd",
    acc_layout: str = "plain",
    semantics: Semantics | None = None,
    out: Array | None = None,
) -> Array:
    """Multiply block-scaled matrices: E8M0 scales, one per 32 along K on each side.

    Formula: ``C = bias + sum over k of (sA[i, k//32] A[i, k]) (sB[k//32, j] B[k, j])``.

    Args:
        a: QTensor [M, K] with blocks (1, 32); or codes, with ``a_scale`` and ``a_format``.
        b: QTensor [K, N] with blocks (32, 1); or codes, with ``b_scale`` and ``b_format``.
        bias: float32, float16 or bfloat16, [N] or [M, N].
        a_scale: E8M0 bytes of codes ``a``.
        b_scale: E8M0 bytes of codes ``b``.
        a_format: format of codes ``a``.
        b_format: format of codes ``b``; default ``a_format``.
        a_scale_layout: layout of ``a_scale``: ``nd``, ``scale-a-nd``, ``scale-a-dn``, ``scale-zz``.
        b_scale_layout: layout of ``b_scale``: ``nd``, ``scale-b-nd``, ``scale-transposed``, ``scale-nn``.
        acc_layout: ``plain``, or ``NZ`` for L0C's fractals.
        semantics: whom to believe; ``cube_accumulation`` names the order.
        out: array for the result.

    Returns:
        float32 accumulators [M, N], or fractals.

    Raises:
        FormatError: an operand without E8M0 scales over 32 along K.
        ShapeError: K is no multiple of 64, or sizes differ.
        UnsupportedCastError: FP4 with FP8.

    Source: asc-devkit:MmadMx; seed:4#11.

    Example:
        >>> ones = np.ones((64, 64), dtype=np.float32)
        >>> mmad_mx(nc.mx.quantize(ones, "e4m3"), nc.mx.quantize(ones, "e4m3", axis=0))[0, :3].tolist()
        [64.0, 64.0, 64.0]
    """
    left, left_scale, left_format = _operand(a, a_scale, a_format, "a", (1, MX_BLOCK))
    right, right_scale, right_format = _operand(b, b_scale, b_format or a_format, "b", (MX_BLOCK, 1))
    op = MmadMx(
        a_format=left_format,
        b_format=right_format,
        acc_layout=acc_layout,
        a_scale_layout=a_scale_layout,
        b_scale_layout=b_scale_layout,
    )
    inputs = {"a": left, "a_scale": left_scale, "b": right, "b_scale": right_scale, "bias": bias}
    result: Array = execute(op, inputs, semantics, out=out)
    return result


def _operand(
    q: QTensor | npt.ArrayLike, scale: npt.ArrayLike | None, fmt: str, name: str, blocks: tuple[int, int]
) -> tuple[npt.ArrayLike, npt.ArrayLike, str]:
    if not isinstance(q, QTensor):
        if scale is None:
            raise FormatError(
                f"{name} has no scales.", hint=f"Pass {name}_scale, or a QTensor.", source="asc-devkit:MmadMx"
            )
        return q, scale, fmt
    if q.scale_format != "e8m0" or q.blocks.grid(q.shape) != Blocks(blocks).grid(q.shape):
        raise FormatError(
            f"{name} has {q.scale_format} scales over blocks {q.blocks.shape}; MmadMx needs e8m0 over {blocks}.",
            hint="Quantize it with narrowcast.mx.quantize along K.",
            source="asc-devkit:MmadMx",
        )
    return q.codes, q.scale, q.format
