"""Rounding to integers on the vector core: ceil, floor, round, rint, trunc, and the high-level Round."""

import numpy as np
import numpy.typing as npt

from narrowcast.operation import Control, Semantics, execute
from narrowcast.vector.arrays import Array, source_format
from narrowcast.vector.operation import VectorRound


def _apply(
    function: str, src: npt.ArrayLike, control: Control | None, semantics: Semantics | None, out: Array | None
) -> Array:
    array = np.asarray(src)
    op = VectorRound(function=function, format=source_format(array, None))
    semantics = semantics or Semantics()
    refusal = op.refusal(semantics.chip)
    if refusal is not None:
        raise refusal.error()
    result: Array = execute(op, array, semantics, control, out)
    return result


def ceil(
    src: npt.ArrayLike,
    *,
    control: Control | None = None,
    semantics: Semantics | None = None,
    out: Array | None = None,
) -> Array:
    """Round up to integers.

    Formula: ``ceil(src)``.

    fp32 keeps infinity and NaN. With CTRL[48] = 0 (reset) fp16 and bf16 turn infinity into the largest finite value
    and NaN into 0, unless the switch ``integral_special`` says otherwise; ``integral_zero_sign`` decides the sign of a
    zero result.

    Args:
        src: float16, bfloat16 or float32 array of any shape (bfloat16 on chip 3510 only).
        control: control bits, by default at reset.
        semantics: whom to believe and the chip.
        out: array of the same type and shape for the result.

    Returns:
        Array of the same type and shape, every finite element an integer.

    Raises:
        UnsupportedCastError: a type the chip's function does not take.

    Source: seed 3.4; asc-devkit:C-API asc_ceil, Truncate.

    Example:
        >>> import numpy as np
        >>> ceil(np.float32([2.5, -2.5, 0.7]))
        array([ 3., -2.,  1.], dtype=float32)
    """
    return _apply("ceil", src, control, semantics, out)


def floor(
    src: npt.ArrayLike,
    *,
    control: Control | None = None,
    semantics: Semantics | None = None,
    out: Array | None = None,
) -> Array:
    """Round down to integers.

    Formula: ``floor(src)``.

    fp32 keeps infinity and NaN. With CTRL[48] = 0 (reset) fp16 and bf16 turn infinity into the largest finite value
    and NaN into 0, unless the switch ``integral_special`` says otherwise; ``integral_zero_sign`` decides the sign of a
    zero result.

    Args:
        src: float16, bfloat16 or float32 array of any shape (bfloat16 on chip 3510 only).
        control: control bits, by default at reset.
        semantics: whom to believe and the chip.
        out: array of the same type and shape for the result.

    Returns:
        Array of the same type and shape, every finite element an integer.

    Raises:
        UnsupportedCastError: a type the chip's function does not take.

    Source: seed 3.4; asc-devkit:C-API asc_floor, Truncate.

    Example:
        >>> import numpy as np
        >>> floor(np.float32([2.5, -2.5, 0.7]))
        array([ 2., -3.,  0.], dtype=float32)
    """
    return _apply("floor", src, control, semantics, out)


def round(
    src: npt.ArrayLike,
    *,
    control: Control | None = None,
    semantics: Semantics | None = None,
    out: Array | None = None,
) -> Array:
    """Round to the nearest integer, ties away from zero.

    Formula: ``sign(src) * floor(|src| + 1/2)``.

    fp32 keeps infinity and NaN. With CTRL[48] = 0 (reset) fp16 and bf16 turn infinity into the largest finite value
    and NaN into 0, unless the switch ``integral_special`` says otherwise; ``integral_zero_sign`` decides the sign of a
    zero result.

    Args:
        src: float16, bfloat16 or float32 array of any shape (bfloat16 on chip 3510 only).
        control: control bits, by default at reset.
        semantics: whom to believe and the chip.
        out: array of the same type and shape for the result.

    Returns:
        Array of the same type and shape, every finite element an integer.

    Raises:
        UnsupportedCastError: a type the chip's function does not take.

    Source: seed 3.4; asc-devkit:C-API asc_round, Truncate.

    Example:
        >>> import numpy as np
        >>> round(np.float32([2.5, -2.5, 0.7]))
        array([ 3., -3.,  1.], dtype=float32)
    """
    return _apply("round", src, control, semantics, out)


def rint(
    src: npt.ArrayLike,
    *,
    control: Control | None = None,
    semantics: Semantics | None = None,
    out: Array | None = None,
) -> Array:
    """Round to the nearest integer, ties to even.

    Formula: ``rint(src)``.

    fp32 keeps infinity and NaN. With CTRL[48] = 0 (reset) fp16 and bf16 turn infinity into the largest finite value
    and NaN into 0, unless the switch ``integral_special`` says otherwise; ``integral_zero_sign`` decides the sign of a
    zero result.

    Args:
        src: float16, bfloat16 or float32 array of any shape (bfloat16 on chip 3510 only).
        control: control bits, by default at reset.
        semantics: whom to believe and the chip.
        out: array of the same type and shape for the result.

    Returns:
        Array of the same type and shape, every finite element an integer.

    Raises:
        UnsupportedCastError: a type the chip's function does not take.

    Source: seed 3.4; asc-devkit:C-API asc_rint, Truncate.

    Example:
        >>> import numpy as np
        >>> rint(np.float32([2.5, -2.5, 0.7]))
        array([ 2., -2.,  1.], dtype=float32)
    """
    return _apply("rint", src, control, semantics, out)


def trunc(
    src: npt.ArrayLike,
    *,
    control: Control | None = None,
    semantics: Semantics | None = None,
    out: Array | None = None,
) -> Array:
    """Round toward zero to integers.

    Formula: ``trunc(src)``.

    fp32 keeps infinity and NaN. With CTRL[48] = 0 (reset) fp16 and bf16 turn infinity into the largest finite value
    and NaN into 0, unless the switch ``integral_special`` says otherwise; ``integral_zero_sign`` decides the sign of a
    zero result.

    Args:
        src: float16, bfloat16 or float32 array of any shape (bfloat16 on chip 3510 only).
        control: control bits, by default at reset.
        semantics: whom to believe and the chip.
        out: array of the same type and shape for the result.

    Returns:
        Array of the same type and shape, every finite element an integer.

    Raises:
        UnsupportedCastError: a type the chip's function does not take.

    Source: seed 3.4; asc-devkit:C-API asc_trunc, Truncate.

    Example:
        >>> import numpy as np
        >>> trunc(np.float32([2.5, -2.5, 0.7]))
        array([ 2., -2.,  0.], dtype=float32)
    """
    return _apply("trunc", src, control, semantics, out)


def round_half_even(
    src: npt.ArrayLike,
    *,
    control: Control | None = None,
    semantics: Semantics | None = None,
    out: Array | None = None,
) -> Array:
    """Round to the nearest integer, ties to even: what the high-level API calls ``Round``.

    Formula: ``rint(src)``.

    fp32 keeps infinity and NaN. With CTRL[48] = 0 (reset) fp16 and bf16 turn infinity into the largest finite value
    and NaN into 0, unless the switch ``integral_special`` says otherwise; ``integral_zero_sign`` decides the sign of a
    zero result.

    Args:
        src: float16 or float32 array of any shape.
        control: control bits, by default at reset.
        semantics: whom to believe and the chip.
        out: array of the same type and shape for the result.

    Returns:
        Array of the same type and shape, every finite element an integer.

    Raises:
        UnsupportedCastError: a type the chip's function does not take.

    Source: asc-devkit:high-level Round, constraints.

    Example:
        >>> import numpy as np
        >>> round_half_even(np.float32([2.5, -2.5, 0.7]))
        array([ 2., -2.,  1.], dtype=float32)
    """
    return _apply("round_half_even", src, control, semantics, out)
