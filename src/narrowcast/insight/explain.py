"""Why a value becomes the code it becomes: fields, neighbours, the tie, and the rule that decided.

The result always comes from ``numerics``; neighbours and words are worked out beside it with fractions.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from narrowcast import numerics
from narrowcast.catalog import casts
from narrowcast.catalog.formats import formats
from narrowcast.catalog.rounding import rounding as resolve_rounding
from narrowcast.catalog.rounding import roundings
from narrowcast.errors import FormatError, UnsupportedCastError, unknown_name
from narrowcast.insight.anatomy import Reading, read_code
from narrowcast.insight.exact import Number, floor_log2, parse
from narrowcast.insight.open_points import OpenPoint, encode_settings, open_points
from narrowcast.insight.placing import Hybrid, Place, decide, hybrid, place
from narrowcast.insight.typed import in_source, values_of
from narrowcast.operation.semantics import Semantics
from narrowcast.quant.cast import NAN_POLICIES
from narrowcast.schema import FloatFormat, Format, IntFormat, Magnitudes, Rounding, TaperedFormat

DEFAULT_SOURCE = "fp32"


@dataclass(frozen=True)
class Neighbour:
    """A value of the target's grid; without a code where it lies beyond the largest finite value."""

    number: Number
    reading: Reading | None

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "hex": self.reading.hex if self.reading else None,
            "value": self.number.decimal,
            "power": self.number.power,
        }


@dataclass(frozen=True)
class Explanation:
    """One conversion of one value, explained.

    Attributes:
        typed: what was asked about, as text.
        source: the source format's code that holds it.
        source_error: what writing it in the source format changed, None for a code.
        target: name of the target format.
        rounding: the mode.
        saturate: whether overflow gives the largest finite value.
        below: the neighbour below the source value, None where the value lies outside the grid.
        above: the neighbour above it.
        position: distance from the neighbour nearer to zero, in units of the gap: 0 exact, 1/2 a tie.
        tie: the value half-way.
        away: whether the neighbour farther from zero was taken; None outside the grid.
        steps: which rules decided, in words and in order.
        hybrid: the comparison of hybrid rounding, where one was made.
        result: the code under the asked saturation.
        saturating: the code with saturation.
        not_saturating: the code without.
        on_chip: whether the chip has this conversion in this mode.
        on_chip_note: the same in words, with the modes it has.
        provenance: who states the behaviour: ``(what, level, source)``.
        open: disputed points of this conversion, and what each reading gives.
    """

    typed: str
    source: Reading
    source_error: Fraction | None
    target: str
    rounding: str
    saturate: bool
    below: Neighbour | None
    above: Neighbour | None
    position: Fraction | None
    tie: Number | None
    away: bool | None
    steps: tuple[str, ...]
    hybrid: Hybrid | None
    saturating: Reading
    not_saturating: Reading
    on_chip: bool
    on_chip_note: str
    provenance: tuple[tuple[str, str, str], ...]
    open: tuple[OpenPoint, ...]

    @property
    def result(self) -> Reading:
        """The code under the asked saturation."""
        return self.saturating if self.saturate else self.not_saturating

    @property
    def error(self) -> Fraction | None:
        """Result minus source value, None where one of them is no real number."""
        after, before = self.result.number.fraction, self.source.number.fraction
        return None if after is None or before is None else after - before

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form; exact values are strings."""
        shown = None
        if self.hybrid is not None:
            shown = {
                "exponent": self.hybrid.exponent,
                "discarded": self.hybrid.discarded,
                "threshold": self.hybrid.threshold,
                "compare": self.hybrid.compare,
                "up": self.hybrid.up,
            }
        return {
            "typed": self.typed,
            "source": self.source.to_json(),
            "source_error": None if self.source_error is None else str(self.source_error),
            "target": self.target,
            "rounding": self.rounding,
            "saturate": self.saturate,
            "below": self.below.to_json() if self.below else None,
            "above": self.above.to_json() if self.above else None,
            "position": None if self.position is None else str(self.position),
            "tie": self.tie.decimal if self.tie else None,
            "steps": list(self.steps),
            "hybrid": shown,
            "result": self.result.to_json(),
            "error": None if self.error is None else str(self.error),
            "saturating": self.saturating.hex,
            "not_saturating": self.not_saturating.hex,
            "on_chip": self.on_chip,
            "on_chip_note": self.on_chip_note,
            "provenance": [{"what": w, "level": level, "source": s} for w, level, s in self.provenance],
            "open": [point.to_json() for point in self.open],
        }


def explain_code(text: str | int, format: str) -> Reading:
    """Read a code: fields, exact value.

    Args:
        text: ``0x7e``, ``0b1111110``, or an integer.
        format: format name or alias.

    Returns:
        A :class:`~narrowcast.insight.anatomy.Reading`.

    Raises:
        FormatError: not a code, or one with more bits than the format.

    Example:
        >>> explain_code("0x7e", "e4m3").number.decimal
        '448'
    """
    fmt = formats[format]
    code = parse(text) if isinstance(text, str) else text
    if not isinstance(code, int):
        raise FormatError(f"{text!r} is a value, not a code.", hint=f"Write a code as 0x.., or use --to {fmt.name}.")
    return read_code(code, fmt)


def explain_cast(
    value: str | int | float,
    to: str,
    *,
    rounding: str | Rounding | None = None,
    source: str = DEFAULT_SOURCE,
    saturate: bool = True,
    nan: str = "keep",
    semantics: Semantics | None = None,
) -> Explanation:
    """Explain what a conversion gives for one value, and why.

    The value is first written in the source format (nearest, ties to even; ``source_error`` says what that
    changed), then rounded once to the target.

    Args:
        value: a number as text or as a Python number, or a code of the source format (``"0x3f800000"``).
        to: target format.
        rounding: mode, None for the target's default.
        source: format of the value.
        saturate: which of the two results ``result`` is.
        nan: ``keep``, ``zero`` or ``error``.
        semantics: whom to believe on open points.

    Returns:
        An :class:`Explanation`.

    Raises:
        UnknownNameError, FormatError, UnsupportedCastError: as for ``encode``.

    Example:
        >>> e = explain_cast("17", "e4m3")
        >>> e.result.hex, str(e.position), e.below.reading.hex, e.above.reading.hex
        ('0x58', '1/2', '0x58', '0x59')
    """
    target, origin = formats[to], formats[source]
    if nan not in NAN_POLICIES:
        raise unknown_name("NaN policy", nan, NAN_POLICIES)
    mode = target.default_rounding if rounding is None else resolve_rounding(rounding)
    semantics = semantics or Semantics()
    code, changed = in_source(value, origin)
    array = values_of(code, origin)
    reading = read_code(code, origin)
    if reading.number.nan and target.nan_code is None and nan != "zero":
        raise FormatError(
            f"{target.name} has no NaN.", hint='Choose nan="zero" (--nan zero) to encode it as 0.', source=target.source
        )
    settings = encode_settings(semantics, target, mode)

    def run(saturating: bool, **changes: str) -> Reading:
        codes = numerics.encode(array, target, mode, saturate=saturating, nan=nan, **{**settings, **changes})
        return read_code(int(codes[0]), target)

    saturating, not_saturating = run(True), run(False)
    number = reading.number
    at = _place(number, target)
    steps, away, compared = _decide(reading, origin, at, target, mode, settings)
    toward_zero, farther = _neighbours(number, at, target)
    chip_has, chip_note = _on_chip(semantics.chip, origin, target, mode)
    return Explanation(
        typed=str(value),
        source=reading,
        source_error=changed,
        target=target.name,
        rounding=mode.value,
        saturate=saturate,
        below=farther if number.negative else toward_zero,
        above=toward_zero if number.negative else farther,
        position=at.discarded if at else None,
        tie=_signed(at.tie, number) if at else None,
        away=away,
        steps=(*steps, *_ending(number, at, away, target, saturating, not_saturating, nan)),
        hybrid=compared,
        saturating=saturating,
        not_saturating=not_saturating,
        on_chip=chip_has,
        on_chip_note=chip_note,
        provenance=_provenance(target, mode),
        open=open_points(semantics, target, mode, saturate, number, run),
    )


def _place(number: Number, target: Format) -> Place | None:
    if number.fraction is None or not isinstance(target, IntFormat | Magnitudes):
        return None
    if isinstance(target, Magnitudes) and not target.has_zero and number.fraction <= 0:
        return None
    return place(abs(number.fraction), target)


def _signed(magnitude: Fraction, number: Number) -> Number:
    return Number(-magnitude if number.negative else magnitude, number.negative)


def _neighbours(number: Number, at: Place | None, target: Format) -> tuple[Neighbour | None, Neighbour | None]:
    """The neighbour nearer to zero and the one farther away; an exact value is its own neighbour."""
    if at is None:
        return None, None
    near = _neighbour(at.rank, _signed(at.toward, number), target)
    return near, _neighbour(at.rank + 1, _signed(at.away, number), target)


def _neighbour(rank: int, number: Number, target: Format) -> Neighbour:
    if isinstance(target, IntFormat):
        value = int(number.fraction or 0)
        inside = target.min <= value <= target.max
        return Neighbour(number, read_code(value & target.code_mask, target) if inside else None)
    assert isinstance(target, Magnitudes)
    if not 0 <= rank < target.overflow_rank:
        return Neighbour(number, None)
    code = target.rank_to_code(rank)
    if number.negative and (code or target.has_negative_zero):
        code |= target.sign_bit
    reading = read_code(code, target)
    return Neighbour(reading.number, reading)


def _decide(
    reading: Reading, origin: Format, at: Place | None, target: Format, mode: Rounding, settings: Mapping[str, str]
) -> tuple[tuple[str, ...], bool | None, Hybrid | None]:
    """The rounding step in words, whether it moved away from zero, and hybrid's comparison."""
    if at is None:
        return (), None, None
    if mode is not Rounding.RH:
        away, reason = decide(mode, at, reading.number.negative, target.ties, integer=target.is_integer)
        return (reason,), away, None
    if not isinstance(target, TaperedFormat) or not isinstance(origin, FloatFormat):
        raise UnsupportedCastError(f"hybrid rounding (rh) is defined for fp32 or fp16 -> hif8, not {origin.name}.")
    compared = hybrid(reading.code, origin, target, settings["hybrid_compare"])
    exponent = floor_log2(abs(reading.number.fraction)) if reading.number.fraction else None
    if compared is not None:
        sign = {"ge": ">=", "gt": ">", "ge-nonzero": ">= (and not all zero)"}[compared.compare]
        verdict = "holds: away from zero" if compared.up else "does not hold: toward zero"
        reason = (
            f"hybrid, E = {compared.exponent}: discarded {compared.discarded} {sign} {compared.threshold} {verdict}"
        )
        return (reason,), compared.up, compared
    if exponent is None or exponent < target.subnormal_low - 1:
        reason = "zero stays zero" if exponent is None else f"hybrid, E = {exponent} is below -23: zero"
        return (reason,), False, None
    away, reason = decide(Rounding.RNA, at, reading.number.negative, target.ties)
    return (f"hybrid, E = {exponent}: near 1.0 it is ties-away; {reason}",), away, None


def _ending(
    number: Number,
    at: Place | None,
    away: bool | None,
    target: Format,
    saturating: Reading,
    not_saturating: Reading,
    nan: str,
) -> tuple[str, ...]:
    """What happens after rounding, or instead of it: range, special values, the sign of zero."""
    both = saturating.hex if saturating == not_saturating else f"{saturating.hex} saturating, {not_saturating.hex} not"
    if number.nan:
        policy = " under the policy zero" if nan == "zero" else f": {target.name} keeps it"
        return (f"NaN{policy}: {both}",)
    if number.fraction is None:
        return (f"infinity: {both}",)
    if isinstance(target, IntFormat):
        return _integer_ending(number, at, away, target, both)
    assert isinstance(target, Magnitudes)
    if not target.has_zero and number.fraction <= 0:
        what = "a negative number" if number.fraction < 0 else "zero"
        return (f"{target.name} has no code for {what}: NaN, {both}",)
    if at is None or at.rank < 0:
        if abs(number.fraction) > target.max:
            return (f"beyond the range: the exponent is above the largest, {target.max_exponent}: {both}",)
        return (f"below the smallest value {Number(Fraction(target.min_normal)).power}: {both}",)
    rank = at.rank + bool(away)
    if rank >= target.overflow_rank:
        reached = Number(at.away if away else at.toward).short
        largest = Number(Fraction(target.max)).short
        return (f"overflow: the rounded magnitude {reached} is above the largest value {largest}: {both}",)
    if rank == 0 and number.negative and not target.has_negative_zero:
        return (f"the sign is lost: {target.name} has one zero",)
    return ()


def _integer_ending(
    number: Number, at: Place | None, away: bool | None, target: IntFormat, both: str
) -> tuple[str, ...]:
    assert at is not None
    rounded = int(at.away if away else at.toward) * (-1 if number.negative else 1)
    if target.min <= rounded <= target.max:
        return ()
    outside = f"overflow: {rounded} is outside {target.min} to {target.max}"
    return (f"{outside}: the limit when saturating, else the low {target.bits} bits ({both})",)


def _on_chip(chip: str, origin: Format, target: Format, mode: Rounding) -> tuple[bool, str]:
    found = casts.rows(chip=chip, source=origin.name, target=target.name)
    pair = f"{origin.name} -> {target.name}"
    if not found:
        return False, f"chip {chip} has no conversion {pair}; off the chip any pair works"
    modes = dict.fromkeys(m for row in found for m in (*row.modes, *row.also_accepts))
    if "none" in modes and len(modes) == 1:
        return True, f"chip {chip} has {pair} without a rounding mode"
    listed = ", ".join(m for m in modes if m != "none")
    if mode.value in modes:
        return True, f"chip {chip} has {pair} in {listed}"
    return False, f"chip {chip} has {pair} in {listed} only; {mode.value} is off the chip"


def _provenance(target: Format, mode: Rounding) -> tuple[tuple[str, str, str], ...]:
    row = roundings[mode.value]
    return (
        (f"format {target.name}", target.provenance.value, target.source),
        (f"rounding {mode.value}", row.provenance.value, row.source),
    )
