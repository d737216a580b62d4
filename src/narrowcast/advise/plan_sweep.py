"""Plans over a range of one size."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

from narrowcast.advise.plan_result import Plan
from narrowcast.advise.planner import plan
from narrowcast.errors import EncodingError, unknown_name

SIZES = ("M", "N", "K")
MOST_POINTS = 512


@dataclass(frozen=True)
class Axis:
    """The size that varies, and its values.

    Example:
        >>> Axis.parse("K=64..512").values
        (64, 128, 256, 512)
        >>> Axis.parse("M=100..300/100").values
        (100, 200, 300)
    """

    name: str
    values: tuple[int, ...]

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read ``K=64..8192`` (doubling), ``K=64..8192/64`` (steps) or ``K=64,96,128``.

        Raises:
            UnknownNameError: a size other than M, N, K.
            EncodingError: a range that is empty, backwards or no range.
        """
        name, _, span = text.partition("=")
        name = name.strip().upper()
        if name not in SIZES:
            raise unknown_name("size to sweep", name, SIZES)
        return cls(name, tuple(_values(span.strip(), text)))


def _values(span: str, text: str) -> Iterator[int]:
    match = re.fullmatch(r"(\d+)\.\.(\d+)(?:/(\d+))?", span)
    listed = re.fullmatch(r"\d+(,\d+)*", span)
    if not match and not listed:
        raise EncodingError(
            f"{text!r} is no sweep.", hint="Write K=64..8192 (doubling), K=64..8192/64 (steps) or K=64,96,128."
        )
    if listed:
        values = [int(v) for v in span.split(",")]
    else:
        assert match is not None
        first, last, step = int(match[1]), int(match[2]), int(match[3] or 0)
        if first < 1 or last < first or match[3] == "0":
            raise EncodingError(f"{text!r}: the range runs from {first} to {last}; it must rise from 1 or more.")
        values = list(range(first, last + 1, step)) if step else _doubling(first, last)
    if len(values) > MOST_POINTS:
        raise EncodingError(f"{text!r} has {len(values)} points; {MOST_POINTS} is the most.")
    yield from values


def _doubling(first: int, last: int) -> list[int]:
    values = []
    while first <= last:
        values.append(first)
        first *= 2
    return values


@dataclass(frozen=True)
class Sweep:
    """Plans along an axis."""

    axis: Axis
    plans: tuple[Plan, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {"axis": self.axis.name, "values": list(self.axis.values), "plans": [p.to_json() for p in self.plans]}


def sweep(axis: Axis | str, m: int, n: int, k: int, acc: str = "s32", out: str = "s8", **settings: Any) -> Sweep:
    """Plan every value of one size, the others fixed.

    Args:
        axis: an :class:`Axis` or its text, ``K=64..8192``.
        m: rows, unless swept.
        n: columns, unless swept.
        k: inner size, unless swept.
        acc: accumulator.
        out: format stored.
        **settings: as for :func:`plan`.

    Returns:
        A :class:`Sweep`.

    Raises:
        UnknownNameError: a size other than M, N, K.
        EncodingError: no range.

    Source: cost model of docs/plan.md.

    Example:
        >>> [p.best.hidden for p in sweep("K=64..256", 4096, 4096, 0).plans]
        [False, False, True]
    """
    axis = Axis.parse(axis) if isinstance(axis, str) else axis
    sizes = {"M": m, "N": n, "K": k}
    plans = []
    for value in axis.values:
        at = {**sizes, axis.name: value}
        plans.append(plan(at["M"], at["N"], at["K"], acc, out, **settings))
    return Sweep(axis, tuple(plans))
