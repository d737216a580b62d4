"""Which rounding mode: the seed's tree walked, the modes the chip has, and what they do to the data."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from narrowcast.advise.rounding_measure import MEASURED_MODES, ModeMeasure, measure_modes
from narrowcast.catalog import casts
from narrowcast.catalog.advice import ROOT, SPEED_NOTE, LeafRow, leaves, questions
from narrowcast.catalog.authorities import chips
from narrowcast.catalog.fixpipe_modes import fixpipe_modes
from narrowcast.catalog.formats import formats
from narrowcast.catalog.rounding import roundings
from narrowcast.errors import FormatError, unknown_name

NOTICEABLE_DB = 0.1
BIAS_SHARE = 0.05  # of a code step; a mode that never lets the errors cancel has 0.25 or more


@dataclass(frozen=True)
class Step:
    """One question of the walk."""

    name: str
    asks: str
    original: str
    answer: str


@dataclass(frozen=True)
class LegalModes:
    """Modes one way of converting the pair has."""

    where: str
    modes: tuple[str, ...]
    source: str


@dataclass(frozen=True)
class RoundingAdvice:
    """The seed's answer and the measured one, kept apart.

    Attributes:
        steps: the questions answered so far.
        mode: the seed's mode, None while a question is open.
        says: the seed's reason.
        original: the seed's own line.
        open_question: the first question without an answer.
        possible: leaves still reachable.
        legal: the ways the chip converts the pair, with their modes.
        is_legal: whether the seed's mode is among them; None without a pair or a mode.
        measured: each mode on the data, best SQNR first.
        best: mode with the best SQNR among the legal ones (all, where the chip has no such cast).
        warnings: where the seed's answer is illegal or loses.
    """

    steps: tuple[Step, ...]
    mode: str | None
    says: str
    original: str
    typical_use: str
    open_question: str | None
    possible: tuple[tuple[str, str], ...]
    source_format: str | None
    target: str | None
    chip: str
    legal: tuple[LegalModes, ...]
    is_legal: bool | None
    measured: tuple[ModeMeasure, ...]
    best: str | None
    warnings: tuple[str, ...]
    source: str = "seed:5.3"

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return asdict(self)


def rounding(
    *,
    training: bool | None = None,
    unbiased: bool | None = None,
    prefer: str | None = None,
    special: str | None = None,
    source: str | None = None,
    target: str | None = None,
    chip: str = "3510",
    data: npt.ArrayLike | None = None,
    scale: float | None = None,
) -> RoundingAdvice:
    """Advise a rounding mode: walk the seed's decision tree, and measure the modes on your own values.

    Formula: per mode, ``real = decode(encode(x / scale, mode)) * scale``; bias is the mean of ``real - x``, SQNR
    ``10 log10(sum x^2 / sum (real - x)^2)``.

    Args:
        training: whether it is training; None leaves the question open.
        unbiased: whether the result must be unbiased.
        prefer: ``speed`` or ``accuracy``.
        special: ``upper-bound``, ``lower-bound`` or ``accumulation``.
        source: format of the values; with data its dtype's.
        target: format to round to.
        chip: the chip whose legal modes are listed.
        data: values, any float array; needs a target.
        scale: what values are divided by; None: absmax / target for integers and floats of at most 8 bits, else 1.

    Returns:
        A :class:`RoundingAdvice`.

    Raises:
        UnknownNameError: an unknown format, chip, preference or special case.
        FormatError: data without a target, or with nothing finite to measure.

    Source: seed:5.3 for the tree, seed:3.5 for the modes; the measurement is ours.

    Example:
        >>> advice = rounding(training=False, unbiased=False, prefer="speed", target="fp16",
        ...                   data=np.linspace(1, 2, 999, dtype=np.float32))
        >>> advice.mode, advice.best
        ('rz', 'rn')
    """
    if special is not None and special not in ("no", *dict(questions["special"].branches)):
        raise unknown_name("special case", special, [a for a, _ in questions["special"].branches])
    if prefer is not None and prefer not in dict(questions["prefer"].branches):
        raise unknown_name("preference", prefer, [a for a, _ in questions["prefer"].branches])
    chip = chips[chip]
    target = None if target is None else formats[target].name
    values = None if data is None else _values(data, target)
    if values is not None and source is None:
        source = _format_of(values)
    source = None if source is None else formats[source].name
    answers = {
        "special": special or "no",
        "training": _yes_no(training),
        "hif8": _yes_no(None if target is None else target == "hif8"),
        "unbiased": _yes_no(unbiased),
        "prefer": prefer,
    }
    if target is None and (unbiased is not None or prefer is not None):
        answers["hif8"] = "no"  # a question further down was answered
    steps, end = _walk(answers)
    leaf = end if isinstance(end, LeafRow) else None
    legal = () if target is None else legal_modes(source, target, chip)
    allowed = tuple(dict.fromkeys(m for row in legal for m in row.modes))
    measured = () if values is None or target is None else measure_modes(values, target, scale)
    best = _best(measured, allowed)
    is_legal = None if leaf is None or target is None else leaf.mode in allowed
    return RoundingAdvice(
        steps=steps,
        mode=leaf.mode if leaf else None,
        says=leaf.says if leaf else "",
        original=leaf.original if leaf else "",
        typical_use=roundings[leaf.mode].use if leaf else "",
        open_question=end if isinstance(end, str) else None,
        possible=tuple((row.mode, row.says) for row in (leaves(end) if isinstance(end, str) else ())),
        source_format=source,
        target=target,
        chip=chip,
        legal=legal,
        is_legal=is_legal,
        measured=measured,
        best=best,
        warnings=tuple(_warnings(leaf, source, target, chip, allowed, measured, best)),
    )


def legal_modes(source: str | None, target: str, chip: str) -> tuple[LegalModes, ...]:
    """List the ways a chip converts to a format, with their rounding modes."""
    found = []
    for row in casts.rows(chip=chip, target=target):
        if source in (None, row.source) and row.emulated and not row.scaled and row.source != target:
            modes = tuple(m for m in row.modes if m != "none")
            if modes:
                name = {"basic": "Cast", "reg": "register Cast", "c-api": "C API"}[row.interface]
                found.append(LegalModes(f"{name} {row.source} -> {target}", modes, row.reference))
    for mode in fixpipe_modes.values():
        known = chip in mode.chips and "device" in mode.authorities and not mode.bypass
        if known and target in mode.targets and source in (None, mode.accumulator):
            where = f"Fixpipe {mode.name} {mode.accumulator} -> {target}"
            found.append(LegalModes(where, (mode.rounding.value,), mode.source))
    return tuple(found)


def _yes_no(value: bool | None) -> str | None:
    return None if value is None else "yes" if value else "no"


def _walk(answers: Mapping[str, str | None]) -> tuple[tuple[Step, ...], str | LeafRow]:
    steps = []
    at: str | LeafRow = ROOT
    while isinstance(at, str):
        row, answer = questions[at], answers[at]
        if answer is None:
            break
        steps.append(Step(row.name, row.asks, row.original, answer))
        at = row.branch(answer)
    return tuple(steps), at


def _values(data: npt.ArrayLike, target: str | None) -> npt.NDArray[Any]:
    if target is None:
        raise FormatError("data without a target: name the format to round to (--to e4m3).")
    array = np.asarray(data)
    if array.dtype.kind not in "fV" and array.dtype.name != "bfloat16":
        raise FormatError(f"data is {array.dtype}; rounding is measured on floating-point values.")
    return array


def _format_of(values: npt.NDArray[Any]) -> str | None:
    return {"float32": "fp32", "float16": "fp16", "bfloat16": "bf16"}.get(values.dtype.name)


def _best(measured: tuple[ModeMeasure, ...], allowed: tuple[str, ...]) -> str | None:
    fitting = [m for m in measured if m.mode in allowed] or list(measured)
    return fitting[0].mode if fitting else None


def _warnings(
    leaf: LeafRow | None,
    source: str | None,
    target: str | None,
    chip: str,
    allowed: tuple[str, ...],
    measured: tuple[ModeMeasure, ...],
    best: str | None,
) -> list[str]:
    found = []
    if target is not None and not allowed:
        pair = f"{source} -> {target}" if source else f"to {target}"
        found.append(f"no rounding cast {pair} is on record for chip {chip}; encode() has every mode off-device.")
    elif leaf is not None and target is not None and leaf.mode not in allowed:
        pair = f"{source} -> {target}" if source else f"to {target}"
        found.append(f"{leaf.mode} is illegal for {pair} on chip {chip}; legal there: {', '.join(allowed)}.")
    if source == "fp32" and target in ("s8", "u8", "s4"):
        row = casts.find("basic", chip, "fp16", target)
        if row is not None:
            found.append(
                f"the vector core reaches {target} from fp16 only ({', '.join(row.modes)}): from fp32 it rounds twice."
            )
    if leaf is not None and leaf.mode == "rz":
        found.append(SPEED_NOTE)
    by_mode = {m.mode: m for m in measured}
    if leaf is None or best is None or leaf.mode not in by_mode:
        return found
    mine, other = by_mode[leaf.mode], by_mode[best]
    loses = other.sqnr_db - mine.sqnr_db
    if best != leaf.mode and loses > NOTICEABLE_DB:
        found.append(
            f"measured on your values, {leaf.mode} loses {loses:.1f} dB to {best} "
            f"({mine.sqnr_db:.1f} against {other.sqnr_db:.1f} dB)."
        )
    if abs(mine.shrinkage) > max(BIAS_SHARE * mine.relative_error, 1e-9) and abs(mine.shrinkage) > 2 * abs(
        other.shrinkage
    ):
        toward = "toward zero" if mine.shrinkage < 0 else "away from zero"
        found.append(
            f"{leaf.mode} is biased on your values: it moves magnitudes {toward} by {abs(mine.shrinkage):.2%} on "
            f"average (bias {mine.bias:.3g}); {best}: {abs(other.shrinkage):.2%} (bias {other.bias:.3g})."
        )
    elif abs(mine.bias) > 4 * abs(other.bias) and abs(mine.bias) > BIAS_SHARE * mine.rms_error:
        found.append(
            f"{leaf.mode} is biased on your values: mean error {mine.bias:.3g} ({best}: {other.bias:.3g}), "
            f"RMS error {mine.rms_error:.3g}."
        )
    return found


__all__ = ["MEASURED_MODES", "LegalModes", "ModeMeasure", "RoundingAdvice", "Step", "legal_modes", "rounding"]
