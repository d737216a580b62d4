"""Events between pipes, and the program checker that finds reads before their producer's event."""

from collections.abc import Sequence
from contextvars import ContextVar, Token
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Self

from narrowcast.errors import ConstraintError
from narrowcast.operation import Finding

if TYPE_CHECKING:
    from narrowcast.tile.tile import Tile

_SOURCE = "pto-isa:events; seed:000"


@dataclass(frozen=True, eq=False)
class RecordEvent:
    """What a tile operation returns: the token a later operation waits for.

    Args:
        operation: the instruction.
        pipe: the pipe it ran on: MTE2, V, MTE3, MTE1 or FIX.
        waits: events it waited for.
        flags: status flags it raised, under an authority that has them (``narrowcast.tile.exact``).
    """

    operation: str
    pipe: str
    waits: tuple["RecordEvent", ...] = ()
    flags: int = 0

    def __str__(self) -> str:
        return f"{self.operation} on {self.pipe}"


@dataclass(frozen=True)
class Step:
    """One issued operation of a program."""

    event: RecordEvent
    reads: tuple["Tile", ...]
    writes: tuple["Tile", ...]


_CURRENT: ContextVar["Program | None"] = ContextVar("narrowcast_tile_program", default=None)


@dataclass
class Program:
    """Record the tile operations issued inside a ``with`` block, in order, and check their events.

    Operations run as they are issued and give the right values in any case; the checker says what a chip, where
    each pipe runs ahead on its own, could get wrong.

    Example:
        >>> from narrowcast.tile import GlobalTensor, Tile, tload, tstore
        >>> import numpy as np
        >>> memory = GlobalTensor(np.zeros((8, 8), np.float32))
        >>> with Program() as program:
        ...     tile = Tile(shape=(8, 8), dtype="fp32", name="x")
        ...     loaded = tload(tile, memory)
        ...     _ = tstore(memory, tile)
        >>> [finding.rule for finding in program.findings()]
        ['EVT-01']
    """

    steps: list[Step] = field(default_factory=list)
    _token: "Token[Program | None] | None" = None

    def __enter__(self) -> Self:
        self._token = _CURRENT.set(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._token is not None:
            _CURRENT.reset(self._token)
            self._token = None

    def findings(self) -> list[Finding]:
        """List reads before the producer's event, and writes before an earlier reader's or writer's event."""
        found: list[Finding] = []
        done: list[set[int]] = []
        number = {step.event: i for i, step in enumerate(self.steps)}
        last_on: dict[str, int] = {}
        for i, step in enumerate(self.steps):
            before: set[int] = set()
            earlier = [last_on[step.event.pipe]] if step.event.pipe in last_on else []
            for j in (*earlier, *(number[e] for e in step.event.waits if e in number)):
                before |= {j} | done[j]
            done.append(before)
            last_on[step.event.pipe] = i
            found += self._hazards(i, before)
        return found

    def _hazards(self, index: int, before: set[int]) -> list[Finding]:
        step = self.steps[index]
        found = []
        for tile in step.reads:
            writer = next((j for j in reversed(range(index)) if tile in self.steps[j].writes), None)
            if writer is not None and writer not in before:
                found.append(self._finding("EVT-01", index, writer, "reads", "writes", tile))
        for tile in step.writes:
            for j in range(index):
                if j in before:
                    continue
                if tile in self.steps[j].writes:
                    found.append(self._finding("EVT-02", index, j, "overwrites", "writes", tile))
                elif tile in self.steps[j].reads:
                    found.append(self._finding("EVT-02", index, j, "overwrites", "reads", tile))
        return found

    def _finding(self, rule: str, index: int, other: int, verb: str, other_verb: str, tile: "Tile") -> Finding:
        here, there = self.steps[index].event, self.steps[other].event
        return Finding(
            rule=rule,
            place=f"step {index + 1}",
            message=(
                f"{here.operation} (step {index + 1}, pipe {here.pipe}) {verb} {tile.label}, which {there.operation} "
                f"(step {other + 1}, pipe {there.pipe}) {other_verb}, without waiting for its event"
            ),
            evidence={"step": index, "other": other},
            fix=f"Pass the event {there.operation} returned to {here.operation}.",
            source=_SOURCE,
        )


def record(
    operation: str,
    pipe: str,
    reads: Sequence["Tile"],
    writes: Sequence["Tile"],
    waits: Sequence[RecordEvent],
    flags: int = 0,
) -> RecordEvent:
    """Make the event of an issued operation and note it in the current program, if there is one."""
    for event in waits:
        if not isinstance(event, RecordEvent):
            raise ConstraintError(
                f"{operation} waits for events; got {type(event).__name__}.",
                hint="Pass what an earlier tile operation returned.",
                source=_SOURCE,
            )
    made = RecordEvent(operation, pipe, tuple(waits), flags)
    program = _CURRENT.get()
    if program is not None:
        program.steps.append(Step(made, tuple(reads), tuple(writes)))
    return made
