"""The scale rules as integer algorithms: largest magnitude of a block, in bits, to its E8M0 byte.

Every rule but ``mse2`` is a function of the block's largest magnitude alone. The rows of
``narrowcast.catalog.scale_rules`` say what each does in words.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from narrowcast.mx.bits import (
    BIAS,
    FRACTION,
    FRACTION_BITS,
    INFINITY,
    Element,
    exponent_field,
    product,
    round_to_bf16,
    split,
    truncate_to_bf16,
)
from narrowcast.numerics.unpacking import Array

NAN_BYTE = 255
_LOWEST, _HIGHEST = -127, 127


@dataclass(frozen=True)
class Context:
    """What a rule may look at besides the largest magnitude."""

    element: Element
    source: str  # fp32, fp16, bf16
    parameters: Mapping[str, float] = field(default_factory=dict)
    switches: Mapping[str, str] = field(default_factory=dict)


Rule = Callable[[Array, Context], Array]
"""Largest magnitudes as fp32 bits (uint32), and the context, to bytes (any integer dtype, 0..255)."""


def scale_bytes(rule: str, largest: Array, context: Context) -> Array:
    """Return the E8M0 byte of each block.

    Args:
        rule: name of a scale rule other than ``mse2``.
        largest: largest magnitude of each block as fp32 bits, uint32.
        context: element format, source and parameters.

    Returns:
        uint8 array.
    """
    return RULES[rule](largest, context).astype(np.uint8)


def _from_exponent(exponent: Array, largest: Array) -> Array:
    """Limit an exponent to the scale's range; zero blocks give 0, non-finite ones NaN."""
    byte = np.clip(exponent, _LOWEST, _HIGHEST) + BIAS
    byte = np.where(largest == 0, 0, byte)
    return np.where(largest >= INFINITY, NAN_BYTE, byte)


def ocp_floor(largest: Array, context: Context) -> Array:
    """``floor(log2 amax) - emax``."""
    exponent, _ = split(largest)
    return _from_exponent(exponent - context.element.emax, largest)


def ceil(largest: Array, context: Context) -> Array:
    """Smallest e with ``amax <= max * 2**e``."""
    exponent, fraction = split(largest)
    clips = fraction > np.uint32(context.element.max_fraction)
    return _from_exponent(exponent - context.element.emax + clips, largest)


def ceil_log2(largest: Array, context: Context) -> Array:
    """``ceil(log2 amax) - emax``."""
    exponent, fraction = split(largest)
    return _from_exponent(exponent - context.element.emax + (fraction > 0), largest)


def _rounded_up_from(largest: Array, fraction_bits: int, emax: int) -> Array:
    """Add half a unit of ``fraction_bits`` to the bits, then take the exponent field."""
    half = np.uint32(1 << (FRACTION_BITS - fraction_bits - 1))
    return _from_exponent(exponent_field(largest + half) - BIAS - emax, largest)


def even(largest: Array, context: Context) -> Array:
    """Half an element ulp up, then floor."""
    return _rounded_up_from(largest, context.element.fraction_bits, context.element.emax)


def compressed_tensors(largest: Array, context: Context) -> Array:
    """One up from significand 1.75, whatever the element."""
    return _rounded_up_from(largest, 1, context.element.emax)


def cann_0(largest: Array, context: Context) -> Array:
    """Exponent field of a bf16 view, at least emax, minus emax. Truncation to bf16 does not move it."""
    byte = np.maximum(exponent_field(largest) - context.element.emax, 0)
    return np.where(largest >= INFINITY, NAN_BYTE, byte)


def _quotient_byte(largest: Array, reciprocal: int, subnormal_rule: bool) -> Array:
    """Exponent field of ``fp32(amax * reciprocal)``, one up where bits lie below the leading one."""
    quotient = product(np.where(largest >= INFINITY, np.uint32(0), largest), reciprocal)
    byte, fraction = exponent_field(quotient), quotient & FRACTION
    up = (byte > 0) & (byte < 254) & (fraction > 0)
    if subnormal_rule:
        up |= (byte == 0) & (fraction > np.uint32(0x400000))
    return byte + up


def _reciprocal(value: float) -> int:
    return int((np.float32(1.0) / np.float32(value)).view(np.uint32))


def _value(bits: int) -> float:
    return float(np.uint32(bits).view(np.float32))


def cann_1(largest: Array, context: Context) -> Array:
    """Quotient by the largest value, rounded up."""
    low = context.parameters.get("max_low_bound", 0.0)
    raised = np.maximum(largest, np.float32(low).view(np.uint32))
    byte = _quotient_byte(raised, _reciprocal(_value(context.element.max_bits)), subnormal_rule=True)
    if context.switches.get("mx_zero_low_bound", "zero") == "zero":
        byte = np.where(largest == 0, 0, byte)
    return np.where(largest >= INFINITY, NAN_BYTE, byte)


_BF16_STEP = 1 << 16


def cann_2(largest: Array, context: Context) -> Array:
    """Exponent bumped above significand 1.5 (1.75) of a bf16 view, or the quotient by ``dst_type_max``."""
    target = context.parameters.get("dst_type_max", 0.0)
    if target not in (0.0, 6.0, 7.0):
        byte = _quotient_byte(largest, _reciprocal(target), subnormal_rule=False)
    else:
        view = round_to_bf16(largest) if context.source == "fp16" else truncate_to_bf16(largest)
        bump = (0x1F if target == 7.0 else 0x3F) * _BF16_STEP
        field_ = exponent_field(view)
        byte = np.where(field_ < context.element.emax, 0, exponent_field(view + np.uint32(bump)) - context.element.emax)
    return np.where(largest >= INFINITY, NAN_BYTE, byte)


def pto_ocp(largest: Array, context: Context) -> Array:
    """Exponent field minus emax, at least 0; infinity is the number 2**128."""
    byte = np.maximum(exponent_field(largest) - context.element.emax, 0)
    special = largest > INFINITY
    if context.switches.get("mx_infinite_block", "number") == "nan":
        special = largest >= INFINITY
    return np.where(special, NAN_BYTE, byte)


def pto_nv(largest: Array, context: Context) -> Array:
    """Quotient by the largest value, rounded up; infinity gives 254."""
    byte = _quotient_byte(largest, _reciprocal(_value(context.element.max_bits)), subnormal_rule=True)
    byte = np.where(largest == INFINITY, 254, byte)
    return np.where(largest > INFINITY, NAN_BYTE, byte)


_SLIM_ADDEND = np.float32(9.6e-7)


def _slim_quotient(largest: Array, divisor: float, bf16: bool) -> Array:
    """``amax / divisor + 9.6e-7`` with each operation rounded, as float64."""
    finite = np.where(largest >= INFINITY, np.uint32(0), largest)
    with np.errstate(over="ignore"):
        quotient = np.asarray(finite.view(np.float32) / np.float32(divisor))
        if bf16:
            quotient = _as_bf16(quotient)
        total = np.asarray(quotient + _SLIM_ADDEND)
    return (_as_bf16(total) if bf16 else total).astype(np.float64)


def _as_bf16(values: Array) -> Array:
    return round_to_bf16(values.view(np.uint32)).view(np.float32)


def _log2_bf16(values: Array) -> Array:
    """Log2 of positive bf16 values, rounded to bf16.

    fp64 decides correctly: the log2 of a number of 8 bits is never closer than 1e-3 ulp to a tie.
    """
    return _as_bf16(np.log2(values).astype(np.float32)).astype(np.float64)


_SLIM_TOP = 127.0  # the library limits the exponent before it subtracts emax; an infinite quotient ends here


def _floor_log2(values: Array) -> Array:
    exponent = np.where(np.isinf(values), _SLIM_TOP, np.frexp(values)[1] - 1)
    return np.minimum(exponent, _SLIM_TOP)


def _ceil_log2(values: Array) -> Array:
    significand, exponent = np.frexp(values)
    return np.where(np.isinf(values), _SLIM_TOP, exponent - (significand == 0.5))


def _slim_byte(exponent: Array, largest: Array) -> Array:
    return np.where(largest >= INFINITY, NAN_BYTE, np.clip(exponent + BIAS, 0, 254))


def msmodelslim(largest: Array, context: Context) -> Array:
    """Floor of the logarithm; e2m1 divides by 0.875 and adds 9.6e-7 first."""
    if context.element.name == "e4m3":
        return ocp_floor(largest, context)
    return _slim_byte(_floor_log2(_slim_quotient(largest, 0.875, bf16=False)) - 2, largest)


def msmodelslim_bf16(largest: Array, context: Context) -> Array:
    """As :func:`msmodelslim` with each operation rounded to bf16."""
    if context.element.name == "e4m3":
        positive = (largest > 0) & (largest < INFINITY)
        values = np.where(positive, largest, np.uint32(BIAS << FRACTION_BITS)).view(np.float32).astype(np.float64)
        byte = _slim_byte(np.floor(_log2_bf16(values)) - context.element.emax, largest)
        return np.where(largest == 0, 0, byte)
    logarithm = _log2_bf16(_slim_quotient(largest, 0.875, bf16=True))
    return _slim_byte(np.minimum(np.floor(logarithm), _SLIM_TOP) - 2, largest)


def ceil_x(largest: Array, context: Context) -> Array:
    """Ceiling of the logarithm of ``amax / c + 9.6e-7``."""
    return _slim_byte(_ceil_log2(_slim_quotient(largest, context.parameters.get("c", 7.25), bf16=False)), largest)


def ceil_x_bf16(largest: Array, context: Context) -> Array:
    """As :func:`ceil_x` with each operation rounded to bf16."""
    logarithm = _log2_bf16(_slim_quotient(largest, context.parameters.get("c", 7.25), bf16=True))
    return _slim_byte(np.ceil(logarithm), largest)


RULES: dict[str, Rule] = {
    "ocp-floor": ocp_floor,
    "ceil": ceil,
    "ceil-log2": ceil_log2,
    "even": even,
    "cann-0": cann_0,
    "cann-1": cann_1,
    "cann-2": cann_2,
    "pto-ocp": pto_ocp,
    "pto-nv": pto_nv,
    "msmodelslim": msmodelslim,
    "msmodelslim-bf16": msmodelslim_bf16,
    "ceil-x": ceil_x,
    "ceil-x-bf16": ceil_x_bf16,
    "compressed-tensors": compressed_tensors,
}


def multipliers(codes: Array, largest: Array, *, flush_byte0: bool, flush_zero: bool) -> Array:
    """Return what the elements are multiplied by: ``2**(127 - byte)``, NaN for byte 255, 0 where a rule flushes.

    Args:
        codes: scale bytes.
        largest: largest magnitude of each block as fp32 bits.
        flush_byte0: byte 0 means multiplier 0.
        flush_zero: a zero block has multiplier 0.

    Returns:
        float32 array.
    """
    field_ = 254 - codes.astype(np.int32)
    bits = np.where(field_ > 0, field_ << FRACTION_BITS, 0x00400000)  # byte 254: 2**-127, an fp32 subnormal
    bits = np.where(codes == NAN_BYTE, 0x7FC00000, bits).astype(np.uint32)
    gone = np.zeros(codes.shape, dtype=np.bool_)
    if flush_byte0:
        gone |= codes == 0
    if flush_zero:
        gone |= largest == 0
    return np.where(gone, np.uint32(0), bits).view(np.float32)
