"""What the tile library's CPU simulator does with FP16 and BF16 results, where it differs from the documents."""

import numpy as np

from narrowcast.catalog.fixpipe_modes import FixpipeMode
from narrowcast.fixpipe.addressing import Array
from narrowcast.operation.control import Control

_FP16_MAX = 65504.0
_ALWAYS = ("DEQF16",)
_BY_BIT_48 = {"QF322F16": _FP16_MAX, "QF32_2_BF16": float(np.finfo(np.float32).max)}
_BY_BIT_48["F322BF16"] = _BY_BIT_48["QF32_2_BF16"]


def limit(value: Array, mode: FixpipeMode, control: Control) -> Array:
    """Clamp a product before its conversion, as the simulator does.

    DEQF16 always clamps. The modes from FP32 clamp finite values; infinity and NaN only when bit 48 is set, which is
    the opposite of CTRL[48]. BF16 is clamped at the FP32 maximum, which still rounds to infinity. QS322BF16 and
    F322F16 are not clamped.
    """
    kind = value.dtype.type
    if mode.name in _ALWAYS:
        return np.clip(value, kind(-_FP16_MAX), kind(_FP16_MAX))
    if mode.name not in _BY_BIT_48:
        return value
    bound = kind(_BY_BIT_48[mode.name])
    clamped = np.clip(value, -bound, bound)
    if control.ctrl48:
        return np.where(np.isnan(value), kind(0), clamped)
    return np.where(np.isfinite(value), clamped, value)
