"""The same few values through every rounding mode of a format, chosen so that the modes differ."""

from fractions import Fraction

import numpy as np

from narrowcast import numerics
from narrowcast.insight.anatomy import read_code
from narrowcast.schema import Format, IntFormat, Magnitudes, Rounding

_STEPS = (Fraction(1, 4), Fraction(1, 2), Fraction(3, 4), Fraction(3, 2))


def rounding_examples(target: Format) -> list[tuple[str, dict[str, str]]]:
    """Round values around two neighbouring ties of a format in every mode.

    Args:
        target: the format.

    Returns:
        One ``(value, {mode: result})`` per value, as text; a quarter, a tie, three quarters, the next tie, and
        the first two negated where the format has a sign.
    """
    start, gap = _start(target)
    values = [start + step * gap for step in _STEPS]
    if target.signed:
        values += [-values[0], -values[1]]
    array = np.array([float(v) for v in values], dtype=np.float32)
    results: dict[str, list[str]] = {}
    for mode in Rounding:
        if mode is Rounding.RH and target.name != "hif8":
            continue
        codes = numerics.encode(array, target, mode, saturate=True, nan="zero")
        results[mode.value] = [read_code(int(c), target).number.short for c in codes]
    return [(f"{float(v):g}", {mode: texts[i] for mode, texts in results.items()}) for i, v in enumerate(values)]


def _start(target: Format) -> tuple[Fraction, Fraction]:
    """A value whose code ends in 0, and the gap above it; beyond 8 for HiF8, where hybrid rounding compares."""
    if isinstance(target, IntFormat):
        return Fraction(2), Fraction(1)
    assert isinstance(target, Magnitudes)
    wanted = 4 if target.name == "hif8" else 0
    binade = next((b for b in target.binades if b.exponent >= wanted), target.binades[-1])
    return Fraction(2) ** binade.exponent, Fraction(2) ** (binade.exponent - binade.fraction_bits)
