"""Which open question touches this result."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from narrowcast.catalog.switches import switches
from narrowcast.errors import NarrowcastError
from narrowcast.operation.control import Control
from narrowcast.operation.protocol import Operation, perform
from narrowcast.operation.semantics import Semantics
from narrowcast.quant.arrays import first_index


@dataclass(frozen=True)
class AuditEntry:
    """An alternative reading that changes bits of this result."""

    switch: str
    question: str
    chosen: str
    alternative: str
    changed: int
    total: int
    part: str
    first_index: tuple[int, ...]
    chosen_result: str
    alternative_result: str
    chosen_source: str
    alternative_source: str

    def __str__(self) -> str:
        where = f"[{', '.join(map(str, self.first_index))}]"
        return (
            f"{self.switch}: {self.changed} of {self.total} elements change, first {self.part}{where}: "
            f"{self.chosen_result} with {self.chosen!r} [{self.chosen_source}], "
            f"{self.alternative_result} with {self.alternative!r} [{self.alternative_source}]"
        )


@dataclass(frozen=True)
class Audit:
    """The open questions an operation has, and those that touch its result."""

    operation: str
    asked: tuple[str, ...]
    entries: tuple[AuditEntry, ...]
    refused: tuple[str, ...] = ()

    @property
    def clean(self) -> bool:
        """Whether no open question touches the data."""
        return not self.entries

    def __str__(self) -> str:
        if not self.entries:
            asked = f" (asked: {', '.join(self.asked)})" if self.asked else ""
            return f"No open question touches your data{asked}."
        return "\n".join(str(entry) for entry in self.entries)

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {**asdict(self), "clean": self.clean}


def audit(op: Operation, inputs: Any, semantics: Semantics | None = None, control: Control | None = None) -> Audit:
    """Re-run an operation under every disputed or assumed switch it declares and list what changes.

    Args:
        op: the operation.
        inputs: its input arrays by name, or the array itself where it takes one.
        semantics: whom to believe; the default is the device.
        control: the program's control bits; the default is their reset value.

    Returns:
        An :class:`Audit`; ``str()`` of it is the report, ``clean`` whether nothing is open.

    Example:
        >>> import numpy as np
        >>> from narrowcast.operation import CastOp
        >>> print(audit(CastOp(target="hif8", rounding="rh"), np.float32([16.0])).entries[0].changed)
        1
    """
    semantics = semantics or Semantics()
    chosen = comparable(perform(op, inputs, semantics, control))
    entries: list[AuditEntry] = []
    refused: list[str] = []
    for name in op.switches:
        row = switches[name]
        for value in row.values:
            if value == semantics.choose(name):
                continue
            try:
                other = comparable(perform(op, inputs, semantics.override(**{name: value}), control))
            except NarrowcastError as error:
                refused.append(f"{name}={value}: {error}")
                continue
            entry = _compare(op, name, semantics.choose(name), value, chosen, other)
            if entry is not None:
                entries.append(entry)
    return Audit(type(op).__name__, tuple(op.switches), tuple(entries), tuple(refused))


def comparable(result: Any) -> dict[str, npt.NDArray[Any]]:
    """Name the arrays of a result."""
    if hasattr(result, "arrays"):
        return {k: np.asarray(v) for k, v in result.arrays().items()}
    if isinstance(result, Mapping):
        return {k: np.asarray(v) for k, v in result.items()}
    return {"": np.asarray(result)}


def differs(a: npt.NDArray[Any], b: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Compare bits, floats with NaN by class and zeros with their sign."""
    if a.dtype.kind in "iub" or a.dtype != b.dtype:
        return np.asarray(a != b)
    width = f"uint{8 * a.dtype.itemsize}"
    same = np.ascontiguousarray(a).view(width) == np.ascontiguousarray(b).view(width)
    return np.asarray(~(same | (np.isnan(a) & np.isnan(b))))


def _shown(show: Callable[[Any], str], array: npt.NDArray[Any], index: tuple[int, ...]) -> str:
    return "nothing" if array.ndim == 1 and index[0] >= array.size else show(array[index])


def _compare(
    op: Operation,
    switch: str,
    chosen: str,
    alternative: str,
    results: dict[str, npt.NDArray[Any]],
    others: dict[str, npt.NDArray[Any]],
) -> AuditEntry | None:
    row = switches[switch]
    show = getattr(op, "show", str)
    for part, result in results.items():
        other = others[part]
        flat = result.ndim == other.ndim == 1
        if flat:  # storage of another size: the elements both have are compared, the others are only in one
            both = min(result.size, other.size)
            changed = np.ones(max(result.size, other.size), dtype=np.bool_)
            changed[:both] = differs(result[:both], other[:both])
        elif result.shape != other.shape:
            changed = np.ones(result.shape, dtype=np.bool_)
            other = np.broadcast_to(np.array(str(other.shape)), result.shape)
        else:
            changed = differs(result, other)
        count = int(changed.sum())
        if count:
            first = first_index(changed)
            return AuditEntry(
                switch=switch,
                question=row.question,
                chosen=chosen,
                alternative=alternative,
                changed=count,
                total=changed.size,
                part=part,
                first_index=first,
                chosen_result=_shown(show, result, first),
                alternative_result=_shown(show, other, first),
                chosen_source=row.claim(chosen).source,
                alternative_source=row.claim(alternative).source,
            )
    return None
