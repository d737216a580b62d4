"""A matrix product and its way out as one operation, so that an audit asks the questions of both."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, ClassVar

from narrowcast.cube import Mmad
from narrowcast.fixpipe.addressing import Array
from narrowcast.fixpipe.operation import Fixpipe
from narrowcast.fixpipe.store import Store
from narrowcast.operation import Choices, Control, Finding, Semantics
from narrowcast.operation.protocol import Inputs


@dataclass(frozen=True, kw_only=True)
class ProductOut:
    """``Fixpipe(Mmad(a, b))``; the bias goes where ``fixpipe_bias`` says.

    Args:
        product: the Cube's part.
        pipe: the way out.
    """

    product: Mmad
    pipe: Fixpipe
    made: dict[tuple[str, ...], Array] = field(default_factory=dict, compare=False, repr=False)
    """Accumulators by the choices they depend on: an audit asks for the same ones many times."""

    judges_data: ClassVar[bool] = True
    inputs: ClassVar[tuple[str, ...]] = ("a", "b", "bias", "words", "alpha")
    optional: ClassVar[tuple[str, ...]] = ("bias", "words", "alpha")

    @property
    def switches(self) -> tuple[str, ...]:
        """Those of both parts."""
        return (*self.product.switches, *self.pipe.switches)

    def violations(self, semantics: Semantics) -> Iterable[Finding]:
        """Rules that either part breaks."""
        yield from self.product.violations(semantics)
        yield from self.pipe.violations(semantics)

    def run(self, inputs: Inputs, choices: Choices, control: Control, out: Any = None) -> Store:
        """Multiply, then send the accumulators out."""
        place = choices.choose("fixpipe_bias")
        start, late = (None, inputs["bias"]) if place == "pipe" else (inputs["bias"], None)
        key = (place, *(choices.choose(name) for name in self.product.switches))
        if key not in self.made:
            self.made[key] = self.product.run({"a": inputs["a"], "b": inputs["b"], "bias": start}, choices, control)
        sent = {"acc": self.made[key], "words": inputs["words"], "alpha": inputs["alpha"], "bias": late}
        return self.pipe.run(sent, choices, control, out)

    def show(self, code: Any) -> str:
        """Write a code with its value."""
        return self.pipe.show(code)
