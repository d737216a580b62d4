"""The arithmetic of the pipe: accumulator to destination codes, stage by stage.

Each stage is a small function on whole arrays; :func:`convert` composes them in the order the semantics choose.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from narrowcast.catalog.fixpipe_modes import FixpipeMode, FloatSaturation
from narrowcast.catalog.formats import formats
from narrowcast.errors import FormatError
from narrowcast.fixpipe import simulator
from narrowcast.fixpipe.addressing import Array
from narrowcast.operation import Choices, Control
from narrowcast.quant import Cast, decode, encode
from narrowcast.quant.arrays import first_index
from narrowcast.schema import IntFormat, Magnitudes, Rounding

_INTERMEDIATE = {"s9": (-256, 255), "s5": (-16, 15), "s17": (-65536, 65535)}
BEYOND_INT = 2.0**62


@dataclass(frozen=True)
class Parameters:
    """What the pipe multiplies by and adds: arrays that broadcast against the accumulator.

    Args:
        scale: float32 multiplier of accumulators.
        offset: int64, added to the rounded product.
        target: destination format.
        alpha: multiplier of negative accumulators: 0 for ReLU, None without activation.
        bias: added first, where the pipe has that stage.
        clip: upper bound of clip-ReLU, a value of the destination.
        shift: right shift of S32 accumulators, 0 for none.
    """

    scale: Array
    offset: Array
    target: str
    alpha: Array | None = None
    bias: Array | None = None
    clip: float | None = None
    shift: Array | None = None


def switches_of(mode: FixpipeMode, activation: bool, clips: bool) -> tuple[str, ...]:
    """Name the disputed points a conversion touches."""
    found = ["fixpipe_bias", "nd_tail"]
    if mode.takes_word:
        found.append("fixpipe_word")
    if mode.takes_word and mode.vector:
        found.append("fixpipe_parameter_axis")
    if mode.shifts:
        return (*found, "fixpipe_shift", *(["fixpipe_relu_order"] if activation else []))
    half = mode.targets[0] in ("fp16", "bf16")
    wanted = {
        "fixpipe_s32_to_fp32": mode.accumulator == "s32" and not mode.bypass,
        "fixpipe_scale_bits": mode.scaled,
        "fixpipe_product": mode.scaled or activation,
        "fixpipe_relu_order": activation,
        "fixpipe_s9": mode.integer,
        "fixpipe_integer_rounding": mode.integer,
        "fixpipe_offset_sign": mode.offset,
        "fixpipe_integer_overflow": mode.integer,
        "fixpipe_float_offset": mode.scaled and not mode.offset,
        "fixpipe_float_rounding": mode.targets == ("fp16",) and mode.scaled,
        "fixpipe_float_saturation": half,
        "fixpipe_zero_sign": not mode.integer and not mode.bypass and mode.targets != ("hif8",),
        "fixpipe_s4_offset": mode.targets == ("s4",),
        "fixpipe_clip_domain": clips,
        "fixpipe_hif8_rounding": mode.targets == ("hif8",),
        "hif8_hybrid_compare": mode.rounding is Rounding.RH,
        "e4m3_overflow": mode.targets == ("e4m3",),
    }
    if mode.scaled and not mode.offset:  # the seed's offset of a float result has a sign too
        wanted["fixpipe_offset_sign"] = True
    return (*found, *(name for name, touches in wanted.items() if touches))


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
    acc = add_bias(acc, p)
    if mode.shifts:
        return shift_right(acc, p, choices)
    if mode.bypass:
        return _bypass(acc, p)
    value = product(acc, mode, p, choices)
    if mode.integer:
        return to_integer(value, p, choices)
    return to_float(value, mode, p, choices, control)


def add_bias(acc: Array, p: Parameters) -> Array:
    """Add the bias in the accumulator's type.

    Raises:
        FormatError: an S32 sum that does not fit.
    """
    if p.bias is None:
        return acc
    if acc.dtype == np.float32:
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray(acc + p.bias)
    wide = acc.astype(np.int64) + p.bias
    narrow = wide.astype(np.int32)
    if not np.array_equal(wide, narrow):
        first = first_index(wide != narrow)
        raise FormatError(
            f"accumulator plus bias does not fit S32, first {int(wide[first])} at {list(first)}.",
            hint="Add the bias in a wider type before the pipe, or scale the operands down.",
        )
    return narrow


def _bypass(acc: Array, p: Parameters) -> Array:
    if p.alpha is not None:
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            acc = np.where(acc < 0, _times(acc, p.alpha).astype(acc.dtype), acc)
    return np.ascontiguousarray(acc).view(np.uint32)


def _times(value: Array, multiplier: Array) -> Array:
    """Multiply; a zero multiplier gives +0, whatever the value."""
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        result: Array = np.where(multiplier == 0, value.dtype.type(0), value * multiplier.astype(value.dtype))
    return result


def shift_right(acc: Array, p: Parameters, choices: Choices) -> Array:
    """Shift S32 accumulators arithmetically and narrow them to S16."""
    assert p.shift is not None
    whole = acc.astype(np.int64) >> p.shift
    if choices.choose("fixpipe_shift") == "wrap":
        whole = whole.astype(np.int16).astype(np.int64)
    whole = np.clip(whole, -(1 << 15), (1 << 15) - 1)
    if p.alpha is not None:
        source = whole if choices.choose("fixpipe_relu_order") == "after-offset" else acc
        whole = np.where(source < 0, 0, whole)
    return whole.astype(np.int16).view(np.uint16)


def fp32_accumulator(acc: Array, choices: Choices) -> Array:
    """An accumulator as the multiplier sees it; float64 where it is not rounded."""
    if acc.dtype == np.float32:
        return acc
    rule = choices.choose("fixpipe_s32_to_fp32")
    if rule == "exact":
        return acc.astype(np.float64)
    if rule == "rne":
        return acc.astype(np.float32)
    return Cast(None, "fp32", Rounding.RZ)(acc).view(np.float32)


def product(acc: Array, mode: FixpipeMode, p: Parameters, choices: Choices) -> Array:
    """Accumulator times the multiplier its sign selects: float32, or float64 where the exact product is kept.

    An S32 or FP32 accumulator times a scale of 24 significant bits has at most 48, so float64 is exact; products
    beyond its range lie beyond every destination's too.
    """
    if p.shift is not None and p.shift.any():  # chip 2201 shifts and saturates to S16 first
        acc = np.where(p.shift > 0, np.clip(acc >> p.shift.astype(np.int32), -(1 << 15), (1 << 15) - 1), acc)
        acc = acc.astype(np.int32)
    value = fp32_accumulator(acc, choices)
    selects = p.alpha is not None and choices.choose("fixpipe_relu_order") == "multiplier"
    if not mode.scaled and not selects:
        return value
    multiplier = np.asarray(p.scale)
    if selects:
        assert p.alpha is not None
        multiplier = np.where(acc < 0, p.alpha, p.scale)
    exact = choices.choose("fixpipe_product") == "exact"
    wide = np.float64 if exact or value.dtype == np.float64 else np.float32
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        result: Array = np.multiply(value.astype(wide), multiplier.astype(wide))
        if wide is np.float64 and not exact:
            result = result.astype(np.float32)
    if selects:  # a zero multiplier yields +0, whatever the accumulator
        result = np.where((acc < 0) & (multiplier == 0), result.dtype.type(0), result)
    return result


def to_whole(value: Array, choices: Choices) -> Array:
    """Round to integers; the caller has bounded the values."""
    if choices.choose("fixpipe_integer_rounding") == "rna":
        wide = value.astype(np.float64)
        return np.asarray(np.trunc(wide + np.copysign(0.5, wide)).astype(np.int64))
    return np.asarray(np.rint(value).astype(np.int64))


def intermediate(p: Parameters, choices: Choices) -> tuple[int, int]:
    """Limits of the rounded product before the offset."""
    if p.target == "s16":
        return _INTERMEDIATE["s17"]
    return _INTERMEDIATE[choices.choose("fixpipe_s4_offset") if p.target == "s4" else "s9"]


def to_integer(value: Array, p: Parameters, choices: Choices) -> Array:
    """Round, clamp to the intermediate, add the offset, clamp to the target; or add in FP32 and round once."""
    target = formats[p.target]
    assert isinstance(target, IntFormat)
    domain = None if p.clip is None else choices.choose("fixpipe_clip_domain")
    late = p.alpha if p.alpha is not None and choices.choose("fixpipe_relu_order") == "after-offset" else None
    saturates = choices.choose("fixpipe_integer_overflow") == "saturate"
    nan = np.isnan(value)
    value = np.where(nan, value.dtype.type(0), value)
    if domain == "product":
        value = np.minimum(value, value.dtype.type(p.clip))
    if choices.choose("fixpipe_s9") == "clamp":
        whole = to_whole(np.clip(value, *intermediate(p, choices)), choices) + p.offset
        value = whole.astype(np.float64)
    else:
        value = value + p.offset.astype(value.dtype)
    if late is not None:
        value = np.where(value < 0, _times(value, late), value)
    if domain == "fp32":
        value = np.minimum(value, value.dtype.type(p.clip))
    whole = to_whole(np.clip(value, -BEYOND_INT, BEYOND_INT), choices)
    if saturates:
        whole = np.clip(whole, target.min, target.max)
    else:
        whole = np.where(nan, target.min, whole)
    if domain == "destination":
        assert p.clip is not None
        whole = np.minimum(whole, int(p.clip))
    return np.asarray((whole & target.code_mask).astype(target.code_dtype))


def to_float(value: Array, mode: FixpipeMode, p: Parameters, choices: Choices, control: Control) -> Array:
    """Convert the product once, in the mode's rounding; control bits decide overflow and NaN."""
    target = formats[p.target]
    assert isinstance(target, Magnitudes)
    domain = None if p.clip is None else choices.choose("fixpipe_clip_domain")
    half = target.name in ("fp16", "bf16")
    saturation = choices.choose("fixpipe_float_saturation") if half else "ctrl48"
    if domain == "product":
        value = np.minimum(value, value.dtype.type(p.clip))
    if mode.scaled and choices.choose("fixpipe_float_offset") == "added":
        value = value + p.offset.astype(value.dtype)
    if mode.scaled and target.name == "fp16" and choices.choose("fixpipe_float_rounding") == "integer-first":
        value = np.rint(value)
    if saturation == "cpu-sim":
        value = simulator.limit(value, mode, control)
    if p.alpha is not None and choices.choose("fixpipe_relu_order") == "after-offset":
        value = np.where(value < 0, _times(value, np.asarray(p.alpha)), value)
        if saturation == "cpu-sim":  # value > 0 ? value : 0
            value = np.where(value > 0, value, value.dtype.type(0))
    if domain == "fp32":
        value = np.minimum(value, value.dtype.type(p.clip))
    if target.name == "fp32":
        with np.errstate(over="ignore", under="ignore"):
            codes = np.ascontiguousarray(value.astype(np.float32)).view(np.uint32)
    else:
        codes = _narrow(value, mode, target, saturation, choices, control)
    if target.has_negative_zero and choices.choose("fixpipe_zero_sign") == "positive":
        codes = np.where(codes == target.sign_bit, codes.dtype.type(0), codes)
    if domain == "destination":
        assert p.clip is not None
        codes = _clip_codes(codes, p.clip, p.target)
    return codes


def _narrow(
    value: Array, mode: FixpipeMode, target: Magnitudes, saturation: str, choices: Choices, control: Control
) -> Array:
    saturate = control.ctrl48 == 0
    if saturation == "cpu-sim":
        saturate = False
    elif saturation == "always":
        saturate = saturate or mode.no_inf_mode
    keeps_nan = not saturate or (mode.float_saturation is FloatSaturation.CTRL48_50 and control.ctrl50 == 1)
    half_up = target.name == "hif8" and choices.choose("fixpipe_hif8_rounding") == "half-up"
    rounding = mode.rounding
    if rounding is Rounding.RH:
        with np.errstate(over="ignore", under="ignore"):
            value = value.astype(np.float32)
    cast = Cast(
        None,
        target.name,
        rounding,
        saturate=saturate,
        nan="keep" if keeps_nan else "zero",
        hybrid_compare=choices.choose("hif8_hybrid_compare") if rounding is Rounding.RH else "ge",
        overflow=_overflow(target, half_up, choices),
    )
    return _half_up(cast, value) if half_up else cast(value)


def _overflow(target: Magnitudes, half_up: bool, choices: Choices) -> str:
    if half_up:
        return "before-rounding"
    return choices.choose("e4m3_overflow") if target.name == "e4m3" else "after-rounding"


def _half_up(cast: Cast, value: Array) -> Array:
    """Ties toward plus infinity: away for positive values, toward zero for negative ones."""
    positive = cast(value)
    # A negative tie goes toward zero: nearest on the next smaller magnitude of the source's own grid.
    toward = np.nextafter(value, value.dtype.type(0))
    return np.where(value < 0, cast(toward), positive)


def _clip_codes(codes: Array, bound: float, target: str) -> Array:
    values = decode(codes, target)
    return np.where(values > bound, encode(np.array([bound], dtype=np.float32), target), codes)


def in_row_blocks(
    acc: Array, mode: FixpipeMode, p: Parameters, choices: Choices, control: Control, elements: int = 1 << 16
) -> Array:
    """Convert a matrix in row blocks that stay in the cache; the result is that of :func:`convert`."""
    rows, columns = acc.shape
    step = max(1, elements // max(1, columns))
    fields: tuple[Any, ...] = (p.scale, p.offset, p.alpha, p.bias, p.shift)
    if rows <= step or any(f is not None and f.ndim > 1 for f in fields):
        return convert(acc, mode, p, choices, control)
    out = np.empty(acc.shape, dtype=formats[p.target].code_dtype)
    for start in range(0, rows, step):
        out[start : start + step] = convert(acc[start : start + step], mode, p, choices, control)
    return out
