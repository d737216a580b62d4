"""Findings, and rules that produce them."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from enum import Enum
from typing import Any, Generic, TypeVar

from narrowcast.errors import ConstraintError

Subject = TypeVar("Subject")


class Effect(Enum):
    """What the machine does when a rule is broken."""

    WRONG_RESULT = "wrong result"
    MISPLACED_DATA = "misplaced data"
    GARBAGE = "garbage in the output"
    HARDWARE_EXCEPTION = "hardware exception"
    DROPPED = "instruction dropped"
    SLOWER = "slower"
    UNAVAILABLE = "not available"
    LOST_ACCURACY = "lost accuracy"


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong or worth knowing: the rule, where, the evidence, and what to do."""

    rule: str
    place: str
    message: str
    evidence: Mapping[str, Any] = field(default_factory=dict)
    fix: str = ""
    source: str = ""

    def __str__(self) -> str:
        parts = [f"{self.rule} {self.place}: {self.message}".replace("  ", " ")]
        if self.fix:
            parts.append(f"Fix: {self.fix}")
        if self.source:
            parts.append(f"[{self.source}]")
        return " ".join(parts)

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {**asdict(self), "evidence": dict(self.evidence)}


@dataclass(frozen=True)
class Rule(Generic[Subject]):
    """A constraint as a row: what must hold, why, what happens otherwise, how to fix it, and the predicate."""

    id: str
    states: str
    cause: str
    effect: Effect
    fix: str
    source: str
    predicate: Callable[[Subject], Iterable[str]]

    def findings(self, subject: Subject, place: str = "") -> Iterator[Finding]:
        """Yield one finding for each violation the predicate reports."""
        for message in self.predicate(subject):
            yield Finding(
                rule=self.id,
                place=place or type(subject).__name__,
                message=f"{message} ({self.effect.value}: {self.cause})",
                fix=self.fix,
                source=self.source,
            )


def rule(
    id: str, *, states: str, cause: str, effect: Effect, fix: str, source: str
) -> Callable[[Callable[[Subject], Iterable[str]]], Rule[Subject]]:
    """Turn a generator of violation messages into a :class:`Rule`."""

    def make(predicate: Callable[[Subject], Iterable[str]]) -> Rule[Subject]:
        return Rule(id, states, cause, effect, fix, source, predicate)

    return make


def refuse(findings: Iterable[Finding], what: str) -> None:
    """Raise one ``ConstraintError`` that lists every finding, if there is any."""
    found = tuple(findings)
    if found:
        listed = "; ".join(str(f) for f in found)
        raise ConstraintError(f"{what} violates {len(found)} rule{'s' * (len(found) > 1)}: {listed}", findings=found)
