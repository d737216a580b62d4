"""Rows of rounding modes and of disputed points."""

from dataclasses import dataclass

from narrowcast.schema.sets import Provenance, Rounding


@dataclass(frozen=True, kw_only=True)
class RoundingRow:
    """One rounding mode with every vendor's spelling and number for it."""

    rounding: Rounding
    title: str
    rule: str  # on sign and magnitude, kept part K, discarded part D in units of the last kept place
    use: str  # the seed's typical use
    aliases: tuple[str, ...]
    ascendc: str | None  # RoundMode enumerator
    ascendc_ordinal: int | None
    pto_ordinal: int | None
    spec_rmode: str | None
    vcvt: str | None
    targets: str
    provenance: Provenance
    source: str


@dataclass(frozen=True, kw_only=True)
class Claim:
    """What one source says about a disputed point."""

    value: str
    means: str
    provenance: Provenance
    source: str


@dataclass(frozen=True, kw_only=True)
class SwitchRow:
    """A point on which sources disagree or are silent; ``defaults`` selects a claim per authority."""

    name: str
    question: str
    claims: tuple[Claim, ...]
    defaults: dict[str, str]  # authority -> value; "device" is always present
    conflict: bool
    example: str

    def claim(self, value: str) -> Claim:
        """The claim with this value."""
        return next(c for c in self.claims if c.value == value)

    @property
    def values(self) -> tuple[str, ...]:
        return tuple(c.value for c in self.claims)
