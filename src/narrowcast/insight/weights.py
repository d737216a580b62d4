"""How a weight tensor meets a format: which tensors and formats, scaled to what, rounded how."""

import numpy as np

from narrowcast.catalog.formats import formats
from narrowcast.errors import UnsupportedCastError
from narrowcast.insight.statistics import Grid
from narrowcast.quant import Cast, decode
from narrowcast.quant.scales import denominator_of, scale_of
from narrowcast.schema import Format

PARAMETER_SUFFIXES = ("scale", "scales", "scale_inv", "weight_offset", "input_offset", "zero_point")
"""Ends of names that other tools give to the scales and offsets of quantized tensors."""


def surveyed_format(name: str) -> Format:
    """Look up a format that can stand for weights: signed, at most 16 bits.

    Raises:
        UnknownNameError: no such format.
        UnsupportedCastError: a format for scales, accumulators or unsigned codes.
    """
    row = formats[name]
    if row.signed and row.bits <= 16:
        return row
    legal = ", ".join(f for f in formats if formats[f].signed and formats[f].bits <= 16)
    why = "has no negative values" if not row.signed else f"has {row.bits} bits"
    raise UnsupportedCastError(
        f"{row.name} {why}; weights take signed formats of at most 16 bits.", hint=f"Use {legal}."
    )


def why_not_a_weight(name: str, shape: tuple[int, ...]) -> str | None:
    """Say why a tensor is better left as it is, None for a weight matrix or kernel."""
    if name.rpartition(".")[2].endswith(PARAMETER_SUFFIXES):
        return "a scale or offset of another tensor"
    if len(shape) < 2:
        return f"{len(shape)}-D (bias, norm or scalar): small and sensitive"
    return None


def grid_of(row: Format) -> Grid:
    """List the codes of a format by value."""
    return Grid(row, lambda codes: decode(codes, row.name))


def caster(row: Format, nan: str = "zero") -> Cast:
    """Build the saturating cast in the format's default rounding."""
    return Cast(None, row.name, nan=nan)


def target_of(row: Format, scaled: bool) -> float | None:
    """Give the value that a tensor's absolute maximum is scaled to.

    None stands for an unscaled cast, which 16-bit floats always get: their range is a checkpoint's own.
    """
    if not scaled or (row.bits == 16 and not row.is_integer):
        return None
    return denominator_of(row, "qmax")


def scale_for(row: Format, absmax: float, scaled: bool, *, wide: bool = False) -> float:
    """Choose the scale of a tensor, the way ``narrowcast.quantize`` does: absmax / target in float32.

    Args:
        row: the format.
        absmax: largest finite magnitude.
        scaled: whether to scale at all.
        wide: the tensor is float64, so the division is, too.

    Returns:
        The scale: real = code value * scale.
    """
    target = target_of(row, scaled)
    if target is None:
        return 1.0
    with np.errstate(over="ignore"):
        scale = float(scale_of(np.asarray(absmax, np.float64 if wide else np.float32), target))
    return min(scale, float(np.finfo(np.float32).max))
