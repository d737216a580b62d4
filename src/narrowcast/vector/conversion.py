"""The arithmetic of a legal conversion, whichever interface asked for it, and the disputed points it may read."""

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


def conversion_switches(interface: str, source: str, target: str, mode: str) -> tuple[str, ...]:
    """Return the disputed points of a conversion."""
    pair = (source, target)
    found = []
    if mode == "rh":
        found.append("hif8_hybrid_compare")
    if target == "e4m3":
        found.append("e4m3_overflow")
    if pair in (("fp32", "fp16"), ("bf16", "fp16")) and mode in _DIRECTED:
        found.append("directed_overflow")
    if pair in (("fp16", "bf16"), ("hif8", "fp16")):
        found.append("half_bf16_special")
    if target in ("e2m1", "e1m2"):
        found.append("fp4_zero_sign")
    if pair == ("fp16", "s16"):
        found.append("half_s16_wrap")
    if pair == ("fp32", "fp32"):
        found.append("integral_zero_sign")
    if interface == "c-api" and pair == ("bf16", "fp16") and mode == "rn":
        found += ["bfloat162half_rn", "directed_overflow"]
    rows = casts.rows(interface=interface, source=source, target=target)
    if any(mode in row.also_accepts for row in rows):
        found.append("cast_none")
    if any(row.chip == "2201" and row.saturation is Saturation.INTEGER for row in rows):
        found.append("integer_saturation_2201")
    return tuple(found)


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
        rounded = round_to_integral(values, mode)
        return _stored(positive_zeros(rounded, choices).view(target.code_dtype), out)
    if scale is not None:
        values, mode = _dequantized(values, scale), "rn"
    elif mode == legality.NONE:
        mode = "rn"  # CAST_NONE rounds to nearest even where it cannot be exact
    elif "bfloat162half_rn" in choices.declared:
        mode = choices.choose("bfloat162half_rn")
    saturate = rule.saturate
    if "half_s16_wrap" in choices.declared:
        saturate |= choices.choose("half_s16_wrap") == "limits"
    cast = Cast(None, row.target, mode, saturate=saturate, nan=rule.nan, **_readings(choices))
    codes = cast(values, out=out)
    if row.target in ("e2m1", "e1m2") and choices.choose("fp4_zero_sign") == "positive":
        codes[codes == target.code_mask ^ (target.code_mask >> 1)] = 0
    return codes


def _readings(choices: Choices) -> dict[str, str]:
    found = {}
    if "hif8_hybrid_compare" in choices.declared:
        found["hybrid_compare"] = choices.choose("hif8_hybrid_compare")
    if "e4m3_overflow" in choices.declared:
        found["overflow"] = choices.choose("e4m3_overflow")
    if "directed_overflow" in choices.declared and choices.choose("directed_overflow") == "ieee":
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


def positive_zeros(values: Array, choices: Choices) -> Array:
    if choices.choose("integral_zero_sign") == "positive":
        values[values == 0] = 0
    return values


def _stored(codes: Array, out: Array | None) -> Array:
    if out is None:
        return codes
    out[...] = codes
    return out
