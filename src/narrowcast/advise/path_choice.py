"""Which of the seed's eleven scenarios applies, and why not the others."""

from dataclasses import asdict, dataclass
from typing import Any

from narrowcast.advise.planner import fixpipe_mode
from narrowcast.catalog import casts
from narrowcast.catalog.authorities import chips
from narrowcast.catalog.formats import formats
from narrowcast.catalog.planner import FIXPIPE_SCALES, SCALES
from narrowcast.catalog.scenarios import ScenarioRow, scenarios
from narrowcast.errors import unknown_name

GROUPED = ("e2m1", "e1m2")


@dataclass(frozen=True)
class Alternative:
    """A scenario that was not taken, and why."""

    name: str
    number: int
    title: str
    possible: bool
    why_not: tuple[str, ...]


@dataclass(frozen=True)
class PathAdvice:
    """The scenario for a conversion.

    Attributes:
        scenario: the row, None when no single scenario converts the pair.
        mode: the Fixpipe mode of scenario 1.
        chain: formats of a chain of vector casts where no scenario converts directly.
        alternatives: every other scenario, possible ones first.
        notes: what to know before using it.
    """

    source_format: str
    target: str
    after_matmul: bool
    chip: str
    scale: str
    scenario: ScenarioRow | None
    mode: str
    chain: tuple[str, ...]
    alternatives: tuple[Alternative, ...]
    notes: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return asdict(self)


def path(
    source: str, target: str, *, after_matmul: bool = False, chip: str = "3510", scale: str = "per-tensor"
) -> PathAdvice:
    """Choose among the eleven scenarios of seed 4.

    Args:
        source: format of the data (``s32`` or ``fp32`` for accumulators).
        target: format wanted.
        after_matmul: whether the data is the result of a matrix product, still in L0C.
        chip: 3510 or 2201.
        scale: granularity; the Fixpipe has ``none``, ``per-tensor`` and ``per-channel`` only.

    Returns:
        A :class:`PathAdvice`: the scenario's row has the API per chip, parameters, constraints, cost, the call
        here that emulates it and a C++ skeleton.

    Raises:
        UnknownNameError: an unknown format, chip or granularity.

    Source: seed:4; the modes' and casts' own rows.

    Example:
        >>> path("s32", "s8", after_matmul=True).scenario.name
        'cube-requantize'
    """
    source, target, chip = formats[source].name, formats[target].name, chips[chip]
    if scale not in SCALES:
        raise unknown_name("scale", scale, SCALES)
    reasons = {row.name: _why_not(row, source, target, after_matmul, chip, scale) for row in scenarios.values()}
    fitting = [row for row in scenarios.values() if not reasons[row.name]]
    fitting.sort(key=lambda row: row.side != ("cube" if after_matmul else "vector"))
    chosen = fitting[0] if fitting else None
    found = [
        Alternative(row.name, row.number, row.title, row in fitting, tuple(reasons[row.name]) or (_less(row, chosen),))
        for row in scenarios.values()
        if row is not chosen
    ]
    found.sort(key=lambda a: (not a.possible, len(a.why_not)))
    mode = fixpipe_mode(source, target, scale) if chosen is not None and chosen.number == 1 else ""
    chain = () if chosen is not None else _chain(source, target, chip)
    return PathAdvice(
        source_format=source,
        target=target,
        after_matmul=after_matmul,
        chip=chip,
        scale=scale,
        scenario=chosen,
        mode=mode if isinstance(mode, str) else mode.name,
        chain=chain,
        alternatives=tuple(found),
        notes=tuple(_notes(source, target, after_matmul, scale, chosen, chain, chip)),
    )


def _why_not(row: ScenarioRow, source: str, target: str, after_matmul: bool, chip: str, scale: str) -> list[str]:
    found = []
    if source not in row.sources:
        found.append(f"takes {', '.join(row.sources)}, not {source}")
    if target not in row.targets:
        found.append(f"gives {', '.join(row.targets)}, not {target}")
    if chip not in row.api:
        found.append(f"chip {chip} does not have it (it exists on {', '.join(row.api)})")
    if found:
        return found
    if row.number == 1:
        if not after_matmul:
            found.append("the data is not in L0C: the Fixpipe reads accumulators only")
        if scale not in FIXPIPE_SCALES:
            found.append(f"the Fixpipe has no {scale} scale: one, or one per column")
        mode = fixpipe_mode(source, target, "per-tensor" if scale not in FIXPIPE_SCALES else scale)
        if isinstance(mode, str):
            found.append(mode)
        elif chip not in mode.chips:
            found.append(f"mode {mode.name} does not exist on chip {chip}")
    elif row.side == "vector" and not casts.rows(chip=chip, source=source, target=target):
        found.append(f"chip {chip} has no cast {source} -> {target}")
    if row.number == 11:
        found.append("it multiplies MX operands; nothing else is converted on the way in")
    return found


def _less(row: ScenarioRow, chosen: ScenarioRow | None) -> str:
    if chosen is not None and chosen.side == "cube" and row.side == "vector":
        return "possible, but it takes vector cycles that the Fixpipe does for nothing [seed:5.2#7]"
    return "possible as well"


def _chain(source: str, target: str, chip: str) -> tuple[str, ...]:
    """The two casts that get there, the finest type between first."""
    between = [
        row.target
        for row in casts.rows(interface="basic", chip=chip, source=source)
        if row.emulated and row.target != source and casts.find("basic", chip, row.target, target)
    ]
    between.sort(key=lambda name: -formats[name].bits)
    # Integers on the way lose what is behind the point.
    floats = [name for name in between if not formats[name].is_integer]
    chosen = (floats or between)[:1]
    return (source, *chosen, target) if chosen else ()


def _notes(
    source: str,
    target: str,
    after_matmul: bool,
    scale: str,
    chosen: ScenarioRow | None,
    chain: tuple[str, ...],
    chip: str,
) -> list[str]:
    notes = []
    if chosen is not None and chosen.side == "cube" and after_matmul:
        other = _chain(source, target, chip)
        if other:
            notes.append(
                f"the vector core would go {' -> '.join(other)}: vector cycles, and a rounding at each step that is "
                "not exact [seed:5.2#7]."
            )
    if chosen is None and chain:
        notes.append(
            f"no scenario converts {source} -> {target} at once; the vector core goes {' -> '.join(chain)}, "
            "which rounds twice where neither step is exact."
        )
    elif chosen is None:
        notes.append(
            f"neither a scenario nor two casts lead from {source} to {target} on chip {chip}; "
            "encode() does it off-device."
        )
    if source == "s32" and not after_matmul:
        notes.append("s32 data is usually an accumulator: if it is still in L0C, add --after-matmul.")
    if target in GROUPED and scale != "per-group":
        notes.append(
            f"{target} has one or two fraction bits: pair it with MX scales, one per 32 elements [seed:5.4#5]."
        )
    if after_matmul and scale not in FIXPIPE_SCALES:
        notes.append(f"a {scale} scale needs the vector core: accumulators to UB first (plan's path B-UB).")
    return notes
