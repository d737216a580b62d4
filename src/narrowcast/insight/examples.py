"""The same few values through every rounding mode of a format, chosen so that the modes differ."""

from fractions import Fraction

import numpy as np

from narrowcast import numerics
from narrowcast.insight.anatomy import read_code
from narrowcast.insight.exact import short_text
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
    # fp32 needs a wider source to have anything to round.
    array = np.array([float(v) for v in values], dtype=np.float64 if target.name == "fp32" else np.float32)
    results: dict[str, list[str]] = {}
    for mode in Rounding:
        if mode is Rounding.RH and target.name != "hif8":
            continue
        codes = numerics.encode(array, target, mode, saturate=True, nan="zero")
        results[mode.value] = [read_code(int(c), target).number.short for c in codes]
    return [(short_text(v), {mode: texts[i] for mode, texts in results.items()}) for i, v in enumerate(values)]


def _start(target: Format) -> tuple[Fraction, Fraction]:
    """A value whose code ends in 0, and the gap above it: 1 where the format has one, so that results are short.

    HiF8 starts beyond 8, where hybrid rounding compares.
    """
    if isinstance(target, IntFormat):
        return Fraction(2), Fraction(1)
    assert isinstance(target, Magnitudes)
    binade = next((b for b in target.binades if b.exponent == b.fraction_bits), target.binades[-1])
    if target.name == "hif8":
        binade = next(b for b in target.binades if b.exponent == 4)
    return Fraction(2) ** binade.exponent, Fraction(2) ** (binade.exponent - binade.fraction_bits)
