"""Whom to believe, for which chip."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from narrowcast.catalog.authorities import authorities, chips
from narrowcast.catalog.switches import switches
from narrowcast.errors import NarrowcastError, UnsupportedCastError, unknown_name
from narrowcast.schema import Claim, SwitchRow


@dataclass(frozen=True)
class Semantics:
    """Select an authority, a chip and, per disputed point, a claim.

    Args:
        authority: ``device`` (default), ``seed``, ``pto-isa`` or ``pto-spec``.
        chip: ``3510`` (default) or another chip the authority describes; aliases such as ``a5`` are accepted.
        overrides: ``((switch, value), ...)``; use :meth:`override`.

    Raises:
        UnknownNameError: an authority, chip, switch or value that does not exist.
        UnsupportedCastError: a chip the authority says nothing about.

    Example:
        >>> Semantics("device", chip="a5").override(hif8_hybrid_compare="gt").choose("hif8_hybrid_compare")
        'gt'
    """

    authority: str = "device"
    chip: str = "3510"
    overrides: tuple[tuple[str, str], ...] = field(default=())

    def __post_init__(self) -> None:
        row = authorities[self.authority]
        chip = chips[self.chip]
        if chip not in row.chips:
            raise UnsupportedCastError(
                f"authority {row.name!r} says nothing about chip {chip} (it describes: {', '.join(row.chips)}).",
                hint="Choose one of those chips, or another authority.",
                source=row.source,
            )
        object.__setattr__(self, "authority", row.name)
        object.__setattr__(self, "chip", chip)
        for name, value in self.overrides:
            _check_value(switches[name], value)
        object.__setattr__(self, "overrides", tuple(sorted(dict(self.overrides).items())))

    def override(self, **changes: str) -> Self:
        """Return a copy that makes another choice on the named switches."""
        return type(self)(self.authority, self.chip, tuple({**dict(self.overrides), **changes}.items()))

    def choose(self, switch: str) -> str:
        """Return the value of a switch: the override, else this authority's and chip's default."""
        row = switches[switch]
        overridden = dict(self.overrides).get(row.name)
        if overridden is not None:
            return overridden
        keys = (f"{self.authority}:{self.chip}", self.authority, f"device:{self.chip}", "device")
        return next(row.defaults[k] for k in keys if k in row.defaults)

    def claim(self, switch: str) -> Claim:
        """Return the chosen claim, with its provenance and source."""
        return switches[switch].claim(self.choose(switch))

    def to_json(self) -> dict[str, Any]:
        """Return the one JSON form."""
        return {"authority": self.authority, "chip": self.chip, "overrides": dict(self.overrides)}

    @classmethod
    def from_json(cls, form: Mapping[str, Any]) -> Self:
        """Build from the JSON form."""
        return cls(form["authority"], form["chip"], tuple(form.get("overrides", {}).items()))


def _check_value(row: SwitchRow, value: str) -> None:
    if value not in row.values:
        raise unknown_name(f"value of switch {row.name}", value, row.values)


@dataclass(frozen=True)
class Choices:
    """A semantics as one operation may read it: only the switches the operation declared."""

    semantics: Semantics
    declared: frozenset[str]
    operation: str

    @property
    def chip(self) -> str:
        """The chip."""
        return self.semantics.chip

    @property
    def authority(self) -> str:
        """The authority."""
        return self.semantics.authority

    def choose(self, switch: str) -> str:
        """Return a declared switch's value; reading another one is a defect of the operation."""
        if switch not in self.declared:
            raise NarrowcastError(f"{self.operation} reads switch {switch!r}, which it does not declare.")
        return self.semantics.choose(switch)
