"""What a plan holds."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, Self

from narrowcast.catalog.planner import SkuRow


@dataclass(frozen=True)
class Term:
    """One stage's share of a path, on one cube core (or one of its two vector cores).

    Attributes:
        name: what happens.
        unit: FIXP, V (vector), MTE2 (into UB) or MTE3 (out of UB).
        cycles: None where the table in use has no figure.
        formula: with the numbers in it.
        source: who gives the rate.
        missing: which cell is missing, empty when none is.
        other_tables: (table, elements per cycle, cycles) where another table's figure differs.
    """

    name: str
    unit: str
    cycles: float | None
    formula: str
    source: str
    missing: str = ""
    other_tables: tuple[tuple[str, float | None, float | None], ...] = ()


@dataclass(frozen=True)
class PathPlan:
    """One way out of the accumulators.

    Attributes:
        cycles: all tiles, stages overlapped, without the product; None when unavailable or a figure is missing.
        microseconds: the same.
        gm_bytes: traffic to and from GM, the operands' loads left out.
        hide_from_k: smallest K from which the product takes longer.
        hidden: whether it does at this K (and the two overlap).
        tail_cycles: the last tile's stages, which nothing hides.
        total_cycles: product and path together.
        limiting: the unit that takes longest, the Cube included.
        why_not: why the path is not available, empty if it is.
    """

    name: str
    title: str
    terms: tuple[Term, ...] = ()
    cycles: float | None = None
    microseconds: float | None = None
    gm_bytes: float = 0.0
    hide_from_k: float | None = None
    hidden: bool = False
    tail_cycles: float | None = None
    total_cycles: float | None = None
    total_microseconds: float | None = None
    limiting: str = ""
    notes: tuple[str, ...] = ()
    why_not: str = ""

    @property
    def available(self) -> bool:
        """Whether the chip can take this path."""
        return not self.why_not

    @property
    def missing(self) -> tuple[str, ...]:
        """Cells that the table in use does not have."""
        return tuple(t.missing for t in self.terms if t.missing)

    @classmethod
    def unavailable(cls, name: str, title: str, why: str) -> Self:
        """A path that the chip does not have."""
        return cls(name=name, title=title, why_not=why)

    @classmethod
    def of(
        cls,
        name: str,
        title: str,
        terms: tuple[Term, ...],
        tiles: int,
        gm_bytes: float,
        cube: int,
        overlaps: bool,
        k: int,
        sku: SkuRow,
        notes: tuple[str, ...],
    ) -> Self:
        """Compose the stages and set them against the product."""
        stages = _by_unit(terms)
        if any(t.cycles is None for t in terms):
            return cls(name=name, title=title, terms=terms, gm_bytes=gm_bytes, notes=notes)
        whole, longest = sum(stages.values()), max(stages.values())
        cycles = longest + (whole - longest) / tiles
        tail = whole / tiles
        total = max(cube, cycles) + tail if overlaps else cube + cycles
        units = {**stages, "Cube": float(cube)}
        return cls(
            name=name,
            title=title,
            terms=terms,
            cycles=cycles,
            microseconds=cycles / sku.clock_hz * 1e6,
            gm_bytes=gm_bytes,
            hide_from_k=cycles * k / cube,
            hidden=overlaps and cycles <= cube,
            tail_cycles=tail,
            total_cycles=total,
            total_microseconds=total / sku.clock_hz * 1e6,
            limiting=max(units, key=lambda unit: units[unit]),
            notes=notes,
        )


def _by_unit(terms: Iterable[Term]) -> dict[str, float]:
    """One unit's terms add up: it does one thing at a time."""
    sums: dict[str, float] = {}
    for term in terms:
        sums[term.unit] = sums.get(term.unit, 0.0) + (term.cycles or 0.0)
    return sums


@dataclass(frozen=True)
class Plan:
    """The paths for one product, with what they were computed from."""

    m: int
    n: int
    k: int
    acc: str
    out: str
    scale: str
    inputs: str
    sku: str
    table: str
    gm_limit: str
    tile: tuple[int, int]
    tiles: int
    elements: int
    cube_cycles: int
    products_per_cycle: int
    clock_hz: float
    overlaps: bool
    paths: tuple[PathPlan, ...]
    notes: tuple[str, ...] = ()

    @property
    def cube_microseconds(self) -> float:
        """Time of the product."""
        return self.cube_cycles / self.clock_hz * 1e6

    @property
    def best(self) -> PathPlan | None:
        """The path with the least total, the one with the fewer bytes when level; None when none has figures."""
        known = [p for p in self.paths if p.total_cycles is not None]
        return min(known, key=lambda p: (p.total_cycles, p.gm_bytes), default=None)

    @property
    def advice(self) -> str:
        """Which path, and what decides."""
        best = self.best
        if best is None:
            return "No path has a complete set of figures."
        assert best.total_cycles is not None
        hidden = [p for p in self.paths if p.hidden]
        if best.hidden and len(hidden) > 1:
            others = ", ".join(f"{p.name} {p.tail_cycles:.0f}" for p in hidden if p is not best)
            return (
                f"The product takes longer than {', '.join(p.name for p in hidden)} at this K. What is left is the "
                f"last tile, {best.tail_cycles:.0f} cycles for {best.name} ({others}), and the bytes: {best.name}."
            )
        close = [
            p.name for p in self.paths
            if p is not best and p.total_cycles is not None and p.total_cycles <= 1.1 * best.total_cycles
        ]  # fmt: skip
        if close:
            return (
                f"{best.name} by the least time; {', '.join(close)} within 10%, which is inside the model's error: "
                "let rounding, bytes and what can be fused decide."
            )
        return f"{best.name}: nothing else comes within 10%."

    def path(self, name: str) -> PathPlan:
        """Return a path by name."""
        return next(p for p in self.paths if p.name == name)

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        form = {**asdict(self), "cube_microseconds": self.cube_microseconds, "advice": self.advice}
        form["best"] = None if self.best is None else self.best.name
        return form
