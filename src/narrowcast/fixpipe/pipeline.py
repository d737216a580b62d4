"""The arithmetic of the pipe: accumulator to destination codes, stage by stage.

Each stage is a small function on whole arrays; :func:`convert` composes them in the order the semantics choose.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from narrowcast.catalog.fixpipe_modes import FixpipeMode, FloatSaturation
from narrowcast.catalog.formats import formats
from narrowcast.operation.control import Control
from narrowcast.operation.semantics import Choices
from narrowcast.quant.cast import Cast, decode, encode
from narrowcast.schema import IntFormat, Magnitudes, Rounding

Array = npt.NDArray[Any]

_INTERMEDIATE = {"s9": (-256, 255), "s5": (-16, 15), "s17": (-65536, 65535)}


@dataclass(frozen=True)
class Parameters:
    """What the pipe multiplies by and adds: arrays that broadcast against the accumulator.

    ``alpha`` replaces the scale for negative accumulators (0 for ReLU, None without activation); ``clip`` is the
    upper bound of clip-ReLU as a value of the destination.
    """

    scale: Array
    offset: Array
    target: str
    alpha: Array | None = None
    bias: Array | None = None
    clip: float | None = None


def switches_of(mode: FixpipeMode, activation: bool, clips: bool) -> tuple[str, ...]:
    """Name the disputed points a conversion touches."""
    found = ["fixpipe_bias", "nd_tail"]
    if mode.accumulator == "s32" and mode.scaled:
        found.append("fixpipe_s32_to_fp32")
    if mode.scaled:
        found += ["fixpipe_product", "fixpipe_scale_bits"]
    if activation:
        found.append("fixpipe_relu_order")
    if mode.integer:
        found += ["fixpipe_s9", "fixpipe_offset_sign", "fixpipe_integer_overflow"]
    elif mode.targets[0] not in ("s32", "fp32"):
        found.append("fixpipe_zero_sign")
    if mode.targets == ("s4",):
        found.append("fixpipe_s4_offset")
    if clips:
        found.append("fixpipe_clip_domain")
    if mode.targets == ("hif8",):
        found.append("fixpipe_hif8_rounding")
    if mode.rounding is Rounding.RH:
        found.append("hif8_hybrid_compare")
    if mode.targets == ("e4m3",):
        found.append("e4m3_overflow")
    return tuple(found)


def convert(acc: Array, mode: FixpipeMode, p: Parameters, choices: Choices, control: Control) -> Array:
    """Convert accumulators to codes of ``p.target``.

    Args:
        acc: int32 or float32 accumulators, any shape.
        mode: the conversion.
        p: scale, offset, activation, bias; broadcast against ``acc``.
        choices: the disputed points.
        control: the program's control bits.

    Returns:
        Codes of ``p.target``, same shape.
    """
    if p.bias is not None and choices.choose("fixpipe_bias") == "pipe":
        acc = acc + p.bias
    if not mode.scaled and mode.targets[0] in ("s32", "fp32"):
        return _bypass(acc, p)
    value = product(acc, mode, p, choices)
    if mode.integer:
        return to_integer(value, p, choices)
    return to_float(value, mode, p, choices, control)


def _bypass(acc: Array, p: Parameters) -> Array:
    if p.alpha is not None:
        acc = np.where(acc < 0, np.zeros((), dtype=acc.dtype), acc)
    return acc.view(np.uint32)


def product(acc: Array, mode: FixpipeMode, p: Parameters, choices: Choices) -> Array:
    """Accumulator times the multiplier its sign selects: float32, or float64 where the exact product is kept.

    An S32 or FP32 accumulator times a scale of 11 significant bits has at most 43, so float64 is exact.
    """
    exact = mode.scaled and choices.choose("fixpipe_product") == "exact"
    negative = acc < 0
    value = acc
    if acc.dtype == np.int32 and mode.scaled:
        value = _to_fp32(acc, choices.choose("fixpipe_s32_to_fp32"))
    if not mode.scaled:
        return value if p.alpha is None else np.where(negative, np.float32(0), value)
    multiplier = p.scale
    selects = p.alpha is not None and choices.choose("fixpipe_relu_order") == "multiplier"
    if selects:
        assert p.alpha is not None
        multiplier = np.where(negative, p.alpha, p.scale)
    wide = np.float64 if exact or value.dtype == np.float64 else np.float32
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        result: Array = np.multiply(value.astype(wide), multiplier.astype(wide))
    if selects:  # a zero multiplier yields +0, whatever the accumulator
        result = np.where(negative & (multiplier == 0), wide(0), result)
    return result


def _to_fp32(acc: Array, rule: str) -> Array:
    if rule == "exact":
        return acc.astype(np.float64)
    if rule == "rne":
        return acc.astype(np.float32)
    return Cast(None, "fp32", Rounding.RZ)(acc).view(np.float32)


def to_integer(value: Array, p: Parameters, choices: Choices) -> Array:
    """Round half to even, clamp to the intermediate, add the offset, clamp to the target."""
    target = formats[p.target]
    assert isinstance(target, IntFormat)
    bound = p.clip if p.clip is not None else None
    clips_early = bound is not None and choices.choose("fixpipe_clip_domain") == "fp32"
    if clips_early:
        value = np.minimum(value, value.dtype.type(bound))
    value = np.where(np.isnan(value), value.dtype.type(0), value)
    late_relu = p.alpha is not None and choices.choose("fixpipe_relu_order") == "after-offset"
    if choices.choose("fixpipe_s9") == "clamp":
        width = "s9" if p.target != "s4" else choices.choose("fixpipe_s4_offset")
        low, high = _INTERMEDIATE["s17" if p.target == "s16" else width]
        whole = np.rint(np.clip(value, low, high)).astype(np.int64) + p.offset
    else:
        with np.errstate(over="ignore"):
            shifted = value + p.offset.astype(value.dtype)
        whole = np.rint(np.clip(shifted, -(2.0**62), 2.0**62)).astype(np.int64)
    if late_relu:
        whole = np.maximum(whole, 0)
    if choices.choose("fixpipe_integer_overflow") == "saturate":
        whole = np.clip(whole, target.min, target.max)
    if bound is not None and not clips_early:
        whole = np.minimum(whole, int(bound))
    return (whole & target.code_mask).astype(target.code_dtype)


def to_float(value: Array, mode: FixpipeMode, p: Parameters, choices: Choices, control: Control) -> Array:
    """Convert the product once, in the mode's rounding; control bits decide overflow and NaN."""
    target = formats[p.target]
    assert isinstance(target, Magnitudes)
    if p.alpha is not None and mode.scaled and choices.choose("fixpipe_relu_order") == "after-offset":
        value = np.where(value < 0, value.dtype.type(0), value)
    if p.clip is not None and choices.choose("fixpipe_clip_domain") == "fp32":
        value = np.minimum(value, value.dtype.type(p.clip))
    if target.name == "fp32":
        return np.ascontiguousarray(value.astype(np.float32)).view(np.uint32)
    saturate = mode.float_saturation is FloatSaturation.NONE or control.ctrl48 == 0
    keeps_nan = not saturate or (mode.float_saturation is FloatSaturation.CTRL48_50 and control.ctrl50 == 1)
    rounding = mode.rounding
    if rounding is Rounding.RH:
        value = value.astype(np.float32)
    half_up = target.name == "hif8" and choices.choose("fixpipe_hif8_rounding") == "half-up"
    cast = Cast(
        None,
        target.name,
        rounding,
        saturate=saturate,
        nan="keep" if keeps_nan else "zero",
        hybrid_compare=choices.choose("hif8_hybrid_compare") if rounding is Rounding.RH else "ge",
        overflow="before-rounding" if half_up else _overflow(target, choices),
    )
    codes = _half_up(cast, value, target) if half_up else cast(value)
    if choices.choose("fixpipe_zero_sign") == "positive" or p.alpha is not None:
        codes = np.where(codes == target.sign_bit, codes.dtype.type(target.nan_code == target.sign_bit) * codes, codes)
    if p.clip is not None and choices.choose("fixpipe_clip_domain") == "destination":
        codes = _clip_codes(codes, p.clip, p.target)
    return codes


def _overflow(target: Magnitudes, choices: Choices) -> str:
    return choices.choose("e4m3_overflow") if target.name == "e4m3" else "after-rounding"


def _half_up(cast: Cast, value: Array, target: Magnitudes) -> Array:
    """Ties toward plus infinity: away for positive values, toward zero for negative ones."""
    positive = cast(value)
    # A negative tie goes toward zero: nearest on the next smaller magnitude of the source's own grid.
    toward = np.nextafter(value, value.dtype.type(0))
    return np.where(value < 0, cast(toward), positive)


def _clip_codes(codes: Array, bound: float, target: str) -> Array:
    values = decode(codes, target)
    return np.where(values > bound, encode(np.float32(bound), target), codes)
