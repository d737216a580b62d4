"""A format conversion as an operation, free of any chip's legality rules."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

from narrowcast.catalog.formats import formats
from narrowcast.catalog.rounding import rounding as resolve_rounding
from narrowcast.operation.control import Control
from narrowcast.operation.findings import Finding
from narrowcast.operation.protocol import Inputs
from narrowcast.operation.semantics import Choices, Semantics
from narrowcast.quant import Cast, decode

_DIRECTED = ("rd", "ru", "rz", "ro")


@dataclass(frozen=True, kw_only=True)
class CastOp:
    """Round values to a format: what ``narrowcast.encode`` does, as data.

    Args:
        target: format name or alias.
        rounding: mode, None for the format's default.
        saturate: whether overflow gives the largest finite value.
        nan: ``keep``, ``zero`` or ``error``.
    """

    target: str
    rounding: str | None = None
    saturate: bool = True
    nan: str = "keep"

    inputs: ClassVar[tuple[str, ...]] = ("values",)

    def __post_init__(self) -> None:
        row = formats[self.target]
        mode = row.default_rounding if self.rounding is None else resolve_rounding(self.rounding)
        object.__setattr__(self, "target", row.name)
        object.__setattr__(self, "rounding", mode.value)

    @property
    def switches(self) -> tuple[str, ...]:
        """The disputed points of this conversion."""
        found = []
        if self.rounding == "rh":
            found.append("hif8_hybrid_compare")
        if self.target == "e4m3" and not self.saturate:
            found.append("e4m3_overflow")
        if self.target in ("fp16", "bf16") and self.rounding in _DIRECTED and not self.saturate:
            found.append("directed_overflow")
        return tuple(found)

    def violations(self, semantics: Semantics) -> Iterable[Finding]:
        """None: a conversion off the chip is always legal."""
        return ()

    def run(self, inputs: Inputs, choices: Choices, control: Control, out: Any = None) -> Any:
        """Encode ``values``."""
        return cast_with(self, choices)(inputs["values"], out=out)

    def show(self, code: Any) -> str:
        """Write a code with its value."""
        value = decode(code, self.target)
        return f"{int(code):#04x} ({float(value):g})"


def cast_with(op: CastOp, choices: Choices) -> Cast:
    """Resolve a conversion's open points."""
    extra = {}
    if "hif8_hybrid_compare" in choices.declared:
        extra["hybrid_compare"] = choices.choose("hif8_hybrid_compare")
    overflow = "after-rounding"
    if "e4m3_overflow" in choices.declared:
        overflow = choices.choose("e4m3_overflow")
    if "directed_overflow" in choices.declared and choices.choose("directed_overflow") == "ieee":
        overflow = "ieee"
    return Cast(None, op.target, op.rounding, saturate=op.saturate, nan=op.nan, overflow=overflow, **extra)
