"""Public functions of the Cube: build the operation, run it."""

import numpy.typing as npt

from narrowcast.cube.accumulate import Array
from narrowcast.cube.operation import MX_BLOCK, Mmad, MmadMx
from narrowcast.errors import FormatError
from narrowcast.operation import Semantics, execute
from narrowcast.quant import QTensor


def mmad(
    a: npt.ArrayLike,
    b: npt.ArrayLike,
    a_format: str = "s8",
    b_format: str | None = None,
    bias: npt.ArrayLike | None = None,
    *,
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
        semantics: whom to believe.
        out: int32 or float32 [M, N] for the result.

    Returns:
        int32 or float32 accumulators [M, N].

    Raises:
        UnsupportedCastError: operand formats the Cube does not pair.
        ShapeError: inner sizes or a bias that do not fit.
        FormatError: an S32 sum that overflows, naming K and the first element.

    Source: asc-devkit:Mmad.

    Example:
        >>> mmad(np.int8([[2, 3]]), np.int8([[5], [7]]), bias=np.int32([100])).tolist()
        [[131]]
    """
    op = Mmad(a_format=a_format, b_format=b_format or a_format)
    result: Array = execute(op, {"a": a, "b": b, "bias": bias}, semantics, out=out)
    return result


def mmad_mx(
    a: QTensor,
    b: QTensor,
    bias: npt.ArrayLike | None = None,
    *,
    semantics: Semantics | None = None,
    out: Array | None = None,
) -> Array:
    """Multiply block-scaled matrices: E8M0 scales, one per 32 along K on each side.

    Formula: ``C = bias + sum over k of (sA[i, k//32] A[i, k]) (sB[k//32, j] B[k, j])``.

    Args:
        a: QTensor [M, K] with blocks (1, 32).
        b: QTensor [K, N] with blocks (32, 1).
        bias: float32, float16 or bfloat16, [N] or [M, N].
        semantics: whom to believe; ``cube_accumulation`` names the order.
        out: float32 [M, N] for the result.

    Returns:
        float32 accumulators [M, N].

    Raises:
        FormatError: an operand without E8M0 scales over 32 along K.
        ShapeError: K is no multiple of 64, or sizes differ.
        UnsupportedCastError: FP4 with FP8.

    Source: asc-devkit:MmadMx; seed:4#11.
    """
    for q, name, blocks in ((a, "a", (1, MX_BLOCK)), (b, "b", (MX_BLOCK, 1))):
        if q.scale_format != "e8m0" or q.blocks.sizes(q.codes.shape) != blocks:
            raise FormatError(
                f"{name} has {q.scale_format} scales over blocks {q.blocks.shape}; MmadMx needs e8m0 over {blocks}.",
                hint="Quantize it with narrowcast.mx.quantize along K.",
                source="asc-devkit:MmadMx",
            )
    op = MmadMx(a_format=a.format, b_format=b.format)
    inputs = {"a": a.codes, "a_scale": a.scale, "b": b.codes, "b_scale": b.scale, "bias": bias}
    result: Array = execute(op, inputs, semantics, out=out)
    return result
