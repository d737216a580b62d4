"""The arithmetic of a legal conversion, whichever interface asked for it, and the disputed points it may read."""

from functools import cache

import numpy as np

from narrowcast.catalog import casts
from narrowcast.catalog.casts import CastRow, Saturation
from narrowcast.catalog.formats import formats
from narrowcast.operation import Choices
from narrowcast.quant import Cast, decode
from narrowcast.schema import Format
from narrowcast.vector import legality
from narrowcast.vector.arrays import Array, dtype_of
from narrowcast.vector.integral import round_to_integral
from narrowcast.vector.saturation import Policy

_DIRECTED = ("rd", "ru", "rz", "ro")


_BF16_TO_HALF_RN = ("c-api", "bf16", "fp16", "rn")


@cache
def conversion_switches(interface: str, source: str, target: str, mode: str) -> tuple[str, ...]:
    """Return the disputed points of a conversion."""
    pair = (source, target)
    rows = casts.rows(interface=interface, source=source, target=target)
    misnamed = (interface, source, target, mode) == _BF16_TO_HALF_RN
    touched = {
        "hif8_hybrid_compare": mode == "rh",
        "e4m3_overflow": target == "e4m3",
        "directed_overflow": _may_overflow_directed(source, target, mode) or misnamed,
        "half_bf16_special": pair in (("fp16", "bf16"), ("hif8", "fp16")),
        "fp4_zero_sign": target in ("e2m1", "e1m2"),
        "half_s16_wrap": pair == ("fp16", "s16"),
        "integral_zero_sign": pair == ("fp32", "fp32"),
        "bfloat162half_rn": misnamed,
        "cast_none": any(mode in row.also_accepts for row in rows),
        "integer_saturation_2201": any(row.chip == "2201" and row.saturation is Saturation.INTEGER for row in rows),
    }
    return tuple(name for name, touches in touched.items() if touches)


def _may_overflow_directed(source: str, target: str, mode: str) -> bool:
    """Whether a directed mode meets values above the target's range: fp32 and bf16 reach far beyond fp16."""
    return target == "fp16" and source in ("fp32", "bf16") and mode in _DIRECTED


def convert(
    mode: str,
    row: CastRow,
    values: Array,
    rule: Policy,
    choices: Choices,
    scale: np.float32 | None = None,
    out: Array | None = None,
) -> Array:
    """Return the target codes of every value of a legal conversion.

    Args:
        mode: short mode name.
        row: the conversion.
        values: values in an array type that casts take.
        rule: saturation and NaN policy.
        choices: the open points.
        scale: the factor of s32 -> fp16.
        out: array for the codes.
    """
    target = formats[row.target]
    if row.saturation is Saturation.EXACT:
        return _stored(_widened(values, row, target), out)
    if row.source == row.target == "fp32":
        positive = choices.choose("integral_zero_sign") == "positive"
        rounded = round_to_integral(values, mode, positive_zero=positive)
        return _stored(rounded.view(target.code_dtype), out)
    if scale is not None:
        values, mode = _dequantized(values, scale), "rn"
    elif mode == legality.NONE:
        mode = "rn"  # CAST_NONE rounds to nearest even where it cannot be exact
    elif (row.interface, row.source, row.target, mode) == _BF16_TO_HALF_RN:
        mode = choices.choose("bfloat162half_rn")
    saturate = rule.saturate
    if (row.source, row.target) == ("fp16", "s16"):
        saturate |= choices.choose("half_s16_wrap") == "limits"
    cast = Cast(None, row.target, mode, saturate=saturate, nan=rule.nan, **_readings(row, mode, choices))
    codes = cast(values, out=out)
    if row.target in ("e2m1", "e1m2") and choices.choose("fp4_zero_sign") == "positive":
        codes[codes == target.code_mask ^ (target.code_mask >> 1)] = 0
    return codes


def _readings(row: CastRow, mode: str, choices: Choices) -> dict[str, str]:
    """How the disputed overflow and hybrid rules are read."""
    found = {}
    if mode == "rh":
        found["hybrid_compare"] = choices.choose("hif8_hybrid_compare")
    if row.target == "e4m3":
        found["overflow"] = choices.choose("e4m3_overflow")
    if _may_overflow_directed(row.source, row.target, mode) and choices.choose("directed_overflow") == "ieee":
        found["overflow"] = "ieee"
    return found


def _widened(values: Array, row: CastRow, target: Format) -> Array:
    if row.target == "fp32" and row.source in ("fp16", "bf16"):
        wide = decode(values.view(np.uint16), row.source)
    else:
        wide = values.astype(dtype_of(target), copy=False)
    return np.ascontiguousarray(wide).view(target.code_dtype).reshape(values.shape)


def _dequantized(values: Array, scale: np.float32) -> Array:
    """s32 -> fp32 (ties to even) * 2^-17 * scale * 2^17, each product rounded to fp32."""
    with np.errstate(over="ignore", invalid="ignore"):
        small: Array = values.astype(np.float32) * np.float32(2.0**-17)
        return np.asarray(small * scale * np.float32(2.0**17))


def _stored(codes: Array, out: Array | None) -> Array:
    if out is None:
        return codes
    out[...] = codes
    return out
