"""The one-pass kernels of the usual conversions, and when they apply."""

import numpy as np

from narrowcast.catalog.fixpipe_modes import FixpipeMode, FloatSaturation
from narrowcast.catalog.formats import formats
from narrowcast.fixpipe.addressing import Array
from narrowcast.fixpipe.pipeline import Parameters, intermediate
from narrowcast.kernels import requant
from narrowcast.kernels.tables import Rule
from narrowcast.operation import Choices, Control

FROM_ELEMENTS = 1 << 10
"""Below this many elements preparing the kernel's parameters costs more than it saves."""

_READINGS = {
    "fixpipe_s32_to_fp32": ("rne",),
    "fixpipe_product": ("fp32",),
    "fixpipe_relu_order": ("multiplier",),
    "fixpipe_s9": ("clamp",),
    "fixpipe_integer_rounding": ("rn",),
    "fixpipe_integer_overflow": ("saturate",),
    "fixpipe_float_offset": ("ignored",),
    "fixpipe_float_rounding": ("once",),
    "fixpipe_float_saturation": ("ctrl48", "always"),
    "fixpipe_hif8_rounding": ("mode",),
    "fixpipe_zero_sign": ("ieee",),
    "e4m3_overflow": ("after-rounding",),
}
"""What the kernels compute, by switch; every other reading goes through the stages."""


def serves(mode: FixpipeMode, p: Parameters, choices: Choices) -> bool:
    """Whether a kernel computes this conversion."""
    fields = (p.scale, p.offset, p.alpha)
    return (
        mode.scaled
        and p.target in ("s8", "u8", "s4", "fp16", "bf16", "e4m3", "e5m2", "hif8")
        and p.bias is None
        and p.clip is None
        and p.shift is None
        and all(field is None or field.ndim == 1 for field in fields)
        and all(choices.choose(name) in legal for name, legal in _READINGS.items() if name in choices.declared)
        and requant.available()
    )


def convert_fast(
    acc: Array,
    mode: FixpipeMode,
    p: Parameters,
    choices: Choices,
    control: Control,
    shape: tuple[int, int] | None = None,
    fractal_rows: int = 0,
    into: Array | None = None,
) -> tuple[Array, bool] | None:
    """Convert in one pass over the accumulator; None where the stages must.

    Args:
        acc: accumulators [M, N], or L0C's fractals flat.
        mode: the conversion.
        p: its parameters, one or one a column.
        choices: the disputed points.
        control: the program's control bits.
        shape: [M, N] of fractals.
        fractal_rows: rows of a column of fractals.
        into: a contiguous array of codes that may take the result, whatever its shape.

    Returns:
        Codes [M, N], and whether an FP32 accumulator was subnormal.
    """
    if acc.size < FROM_ELEMENTS or not serves(mode, p, choices):
        return None
    rows, columns = acc.shape if shape is None else shape
    target = formats[p.target]
    acc = np.ascontiguousarray(acc)
    relu = p.alpha is not None and not p.alpha.any()
    by = requant.Multipliers(p.scale, p.offset, None if relu else p.alpha, relu)
    out = _taken(into, rows, columns, target.code_dtype)
    if mode.integer:
        bounds = (int(target.min), int(target.max))
        inner = intermediate(p, choices)
        return out, requant.to_integers(acc, by, inner, bounds, target.code_mask, out, fractal_rows)
    rule = _rule(mode, p, choices, control)
    return (out, requant.to_floats(acc, by, rule, out, fractal_rows)) if requant.serves(rule) else None


def _taken(into: Array | None, rows: int, columns: int, dtype: str) -> Array:
    if into is not None and into.size == rows * columns and into.dtype == dtype and into.flags.c_contiguous:
        return into.reshape(rows, columns)
    return np.empty((rows, columns), dtype=dtype)


def _rule(mode: FixpipeMode, p: Parameters, choices: Choices, control: Control) -> Rule:
    saturate = control.ctrl48 == 0
    if "fixpipe_float_saturation" in choices.declared and choices.choose("fixpipe_float_saturation") == "always":
        saturate = saturate or mode.no_inf_mode
    keeps = not saturate or (mode.float_saturation is FloatSaturation.CTRL48_50 and control.ctrl50 == 1)
    compare = choices.choose("hif8_hybrid_compare") if mode.rounding.value == "rh" else "ge"
    return Rule(p.target, mode.rounding.value, saturate, "keep" if keeps else "zero", compare)
