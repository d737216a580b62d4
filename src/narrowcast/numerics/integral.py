"""Round to an integer that stays in its floating-point format (ceil, floor, round, rint, trunc)."""

import numpy as np

from narrowcast.numerics.unpacking import Array
from narrowcast.schema import Rounding


def round_to_integral(values: Array, rounding: Rounding) -> Array:
    """Round fp32, fp16 or bf16 values to integers of the same type; inf, NaN and the sign of zero are kept.

    Args:
        values: flat float32, float16 or bfloat16 array.
        rounding: any mode but ``RH``.

    Returns:
        Array of the same dtype. Exact: float64 holds every operand and every result.
    """
    # A signalling NaN raises the invalid flag in each of these; it stays NaN.
    with np.errstate(invalid="ignore"):
        wide = values.astype(np.float64)
        truncated = np.trunc(wide)
        match rounding:
            case Rounding.RN:
                result = np.rint(wide)
            case Rounding.RNA:
                away = np.abs(wide - truncated) >= 0.5
                result = truncated + np.where(away, np.copysign(1.0, wide), 0.0)
            case Rounding.RD:
                result = np.floor(wide)
            case Rounding.RU:
                result = np.ceil(wide)
            case Rounding.RZ:
                result = truncated
            case Rounding.RO | Rounding.RH:
                jam = (wide != truncated) & (np.fmod(truncated, 2.0) == 0.0)
                result = truncated + np.where(jam, np.copysign(1.0, wide), 0.0)
        return np.copysign(result, wide).astype(values.dtype)
