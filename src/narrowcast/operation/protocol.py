"""The shape of an operation, and the one way to run it."""

import warnings
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, ClassVar, Protocol

import numpy as np

from narrowcast.catalog.switches import switches
from narrowcast.errors import ShapeError, UnverifiedWarning
from narrowcast.operation.control import Control
from narrowcast.operation.findings import Finding, refuse
from narrowcast.operation.semantics import Choices, Semantics
from narrowcast.schema import Provenance

Inputs = Mapping[str, Any]


class Operation(Protocol):
    """A call as data: a frozen dataclass of parameters.

    ``inputs`` names the arrays it takes, ``switches`` the disputed points it may read. Inputs named in a class
    attribute ``optional`` may be missing; ``run`` then finds None. A class attribute ``judges_data`` says that ``run``
    refuses broken rules itself, with those that need the data in the same list.
    """

    inputs: ClassVar[tuple[str, ...]]

    @property
    def switches(self) -> tuple[str, ...]:
        """Disputed points that these parameters touch."""

    def violations(self, semantics: Semantics) -> Iterable[Finding]:
        """Rules these parameters break on the chip."""

    def run(self, inputs: Inputs, choices: Choices, control: Control, out: Any = None) -> Any:
        """Compute."""


def named_inputs(op: Operation, inputs: Any) -> dict[str, Any]:
    """Match inputs to the operation's names: a mapping, or a single array for a single name."""
    if not isinstance(inputs, Mapping):
        inputs = {op.inputs[0]: inputs}
    optional: tuple[str, ...] = getattr(op, "optional", ())
    wanted, given = set(op.inputs), set(inputs)
    if not wanted - set(optional) <= given or given - wanted:
        raise ShapeError(
            f"{type(op).__name__} takes {', '.join(op.inputs)}; got {', '.join(sorted(map(str, given))) or 'nothing'}."
        )
    filled = dict.fromkeys(optional) | dict(inputs)
    return {name: value if value is None else _array(value) for name, value in filled.items()}


def _array(value: Any) -> Any:
    """Return an array; of a list with an integer of 2**63 or more and a smaller one NumPy alone would make floats."""
    array = np.asarray(value)
    if array.dtype == np.float64 and isinstance(value, list | tuple) and all(type(word) is int for word in value):
        return np.array(value, dtype=np.uint64 if min(value, default=0) >= 0 else object)
    return array


def execute(
    op: Operation,
    inputs: Any,
    semantics: Semantics | None = None,
    control: Control | None = None,
    out: Any = None,
) -> Any:
    """Run an operation after checking its rules; warn once per row when it may rest on an assumed one."""
    semantics = semantics or Semantics()
    found = tuple(op.violations(semantics))
    if not getattr(op, "judges_data", False):
        refuse(found, type(op).__name__)
    for switch in op.switches:
        if semantics.claim(switch).provenance is Provenance.ASSUMED:
            _warn_once(switch, semantics.choose(switch))
    return perform(op, inputs, semantics, control, out)


def perform(op: Operation, inputs: Any, semantics: Semantics, control: Control | None, out: Any = None) -> Any:
    """Run without checks or warnings: the audit's way in."""
    choices = Choices(semantics, frozenset(op.switches), type(op).__name__)
    return op.run(named_inputs(op, inputs), choices, control or Control(), out)


@cache
def _warn_once(switch: str, value: str) -> None:
    row = switches[switch]
    warnings.warn(
        f"{row.question} No public source settles it; the result may rest on {switch}={value!r} "
        f"({row.claim(value).source}). narrowcast.audit says whether it does.",
        UnverifiedWarning,
        stacklevel=4,
    )
