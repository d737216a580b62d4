"""Where a magnitude lies between two neighbours of a format, and which of them a rounding mode takes.

This is the arithmetic of a cast once more, in fractions and one value at a time, so that it can be put into
words. Results never come from here; the tests hold it to ``numerics``.
"""

from dataclasses import dataclass
from fractions import Fraction

from narrowcast.insight.exact import floor_log2
from narrowcast.schema import FloatFormat, IntFormat, Magnitudes, Rounding, TaperedFormat, Ties

_HALF = Fraction(1, 2)
_NEAR_ONE = 3  # abs(E) up to which hybrid rounding is ties-away


@dataclass(frozen=True)
class Place:
    """A magnitude between two neighbours.

    Attributes:
        rank: number of the neighbour nearer to zero; for integers the integer itself.
        toward: its magnitude.
        away: the next magnitude, as if the exponent range were unbounded.
        discarded: how far from ``toward``, in units of the gap: 0 is exact, 1/2 a tie.
    """

    rank: int
    toward: Fraction
    away: Fraction
    discarded: Fraction

    @property
    def tie(self) -> Fraction:
        """The magnitude half-way."""
        return (self.toward + self.away) / 2


def place(magnitude: Fraction, fmt: IntFormat | Magnitudes) -> Place | None:
    """Find the neighbours of a magnitude; None where its exponent is above the format's, or below E8M0's."""
    if isinstance(fmt, IntFormat):
        return _between(magnitude, Fraction(1), 0)
    exponent = floor_log2(magnitude) if magnitude else fmt.subnormal_exponent - 1
    first = fmt.binades[0].exponent
    if exponent > fmt.max_exponent:
        return None
    if exponent < first:
        return _between(magnitude, Fraction(2) ** fmt.subnormal_exponent, 0) if fmt.has_zero else None
    index = exponent - first
    bits = fmt.binades[index].fraction_bits
    return _between(magnitude, Fraction(2) ** (exponent - bits), fmt.base_ranks[index] - (1 << bits))


def _between(magnitude: Fraction, gap: Fraction, offset: int) -> Place:
    steps, rest = divmod(magnitude, gap)
    return Place(int(steps) + offset, steps * gap, (steps + 1) * gap, rest / gap)


def decide(
    rounding: Rounding, at: Place, negative: bool, ties: Ties = Ties.EVEN_CODE, *, integer: bool = False
) -> tuple[bool, str]:
    """Apply a rounding mode other than hybrid.

    Args:
        rounding: the mode.
        at: where the magnitude lies.
        negative: sign of the value.
        ties: how the format settles ties under ``rn``.
        integer: whether the neighbours are integers; changes the words only.

    Returns:
        Whether it takes the neighbour farther from zero, and the reason in words.
    """
    if at.discarded == 0:
        return False, "exact: the value lies on the grid, nothing is rounded"
    match rounding:
        case Rounding.RN | Rounding.RNA:
            return _nearest(rounding, at, ties, integer)
        case Rounding.RD:
            return negative, "toward minus infinity: the neighbour below"
        case Rounding.RU:
            return not negative, "toward plus infinity: the neighbour above"
        case Rounding.RZ:
            return False, "toward zero: the neighbour nearer to zero"
        case _:
            even = at.rank % 2 == 0
            which = "odd neighbour" if integer else "neighbour whose code ends in 1"
            return even, f"to odd: an inexact result takes the {which}"


def _nearest(rounding: Rounding, at: Place, ties: Ties, integer: bool) -> tuple[bool, str]:
    if at.discarded != _HALF:
        away = at.discarded > _HALF
        side = "farther from" if away else "nearer to"
        return away, f"nearest: {'past' if away else 'short of'} the tie, so the neighbour {side} zero"
    if rounding is Rounding.RNA:
        return True, "exact tie: ties go away from zero"
    if ties is Ties.LARGER:
        return True, "exact tie: powers of two have no even neighbour, so the larger one"
    which = "even neighbour" if integer else "neighbour whose code ends in 0"
    return at.rank % 2 == 1, f"exact tie: to the {which}"


@dataclass(frozen=True)
class Hybrid:
    """The comparison that decides HiF8 hybrid rounding.

    Attributes:
        exponent: exponent E of the value, subnormals normalised.
        discarded: leading discarded bits, as many as the threshold has.
        threshold: the source's own low bits that they are compared with.
        threshold_is: which bits of the source the threshold is.
        compare: reading of the comparison: ``ge``, ``gt`` or ``ge-nonzero``.
        up: whether the magnitude goes up.
    """

    exponent: int
    discarded: str
    threshold: str
    threshold_is: str
    compare: str
    up: bool


def hybrid(code: int, source: FloatFormat, target: TaperedFormat, compare: str) -> Hybrid | None:
    """Work out the hybrid comparison for an fp32 or fp16 code.

    Returns:
        The comparison, None where none happens: zero, abs(E) <= 3, and exponents out of HiF8's reach.
    """
    exponent, fraction = _normalised(code, source)
    first = target.binades[0].exponent
    if fraction is None or abs(exponent) <= _NEAR_ONE or not first - 1 <= exponent <= target.max_exponent:
        return None
    wide = source.bits == 32
    window = 14 if wide else 2
    # Half of the smallest value up: the hidden bit itself is the first discarded one.
    below = exponent == first - 1
    dropped = source.fraction_bits + 1 if below else source.fraction_bits - target.fraction_bits_at(exponent)
    significand = fraction | (1 << source.fraction_bits)
    discarded = (significand >> (dropped - window)) & ((1 << window) - 1)
    threshold = code & ((1 << 14) - 1) if wide else ((code & 1) << 1) | 1
    up = discarded > threshold if compare == "gt" else discarded >= threshold
    if compare == "ge-nonzero":
        up = up and discarded != 0
    which = "the source's 14 low bits" if wide else "the source's last bit, then a 1"
    return Hybrid(exponent, f"{discarded:0{window}b}", f"{threshold:0{window}b}", which, compare, up)


def _normalised(code: int, source: FloatFormat) -> tuple[int, int | None]:
    """Exponent and fraction with a leading 1, whether or not the code has it; no fraction for zero."""
    bits = source.fraction_bits
    field = (code >> bits) & ((1 << source.exponent_bits) - 1)
    fraction = code & ((1 << bits) - 1)
    if field:
        return field - source.bias, fraction
    if not fraction:
        return 0, None
    shift = bits + 1 - fraction.bit_length()
    return 1 - source.bias - shift, (fraction << shift) & ((1 << bits) - 1)
