"""A scale rule with its parameters as one string: ``cann-2:dst_type_max=7``."""

from collections.abc import Mapping
from dataclasses import dataclass

from narrowcast.catalog.scale_rules import ScaleRuleRow, scale_rules
from narrowcast.errors import EncodingError, unknown_name


@dataclass(frozen=True)
class ScaleRule:
    """A scale rule and its parameters, every one resolved.

    Args:
        name: rule name or alias.
        parameters: ``((name, value), ...)`` in the row's order.

    Example:
        >>> str(ScaleRule.parse("cann-2", {"dst_type_max": 7}))
        'cann-2:dst_type_max=7'
    """

    name: str
    parameters: tuple[tuple[str, float], ...] = ()

    def __post_init__(self) -> None:
        row = scale_rules[self.name]
        given = dict(self.parameters)
        known = {p.name: p for p in row.parameters}
        for name in given:
            if name not in known:
                raise unknown_name(f"parameter of scale rule {row.name}", name, known or ["(it takes none)"])
        resolved = tuple((p.name, p.check(given.get(p.name, p.default), row.name)) for p in row.parameters)
        object.__setattr__(self, "name", row.name)
        object.__setattr__(self, "parameters", resolved)

    @classmethod
    def parse(cls, text: str, parameters: Mapping[str, float] | None = None) -> "ScaleRule":
        """Read ``name`` or ``name:parameter=value,...``, with more parameters beside it.

        Raises:
            UnknownNameError: an unknown rule or parameter.
            EncodingError: a parameter without a number.
            ConstraintError: a value outside the parameter's range.
        """
        name, _, rest = str(text).partition(":")
        given: dict[str, float] = {}
        for item in filter(None, rest.split(",")):
            key, _, value = item.partition("=")
            try:
                given[key.strip()] = float(value)
            except ValueError:
                raise EncodingError(
                    f"scale rule {text!r}: {item!r} is no parameter=number.",
                    hint="Write e.g. cann-2:dst_type_max=7.",
                ) from None
        return cls(name.strip(), tuple({**given, **(parameters or {})}.items()))

    @property
    def row(self) -> ScaleRuleRow:
        """The catalog row."""
        return scale_rules[self.name]

    def __str__(self) -> str:
        defaults = {p.name: p.default for p in self.row.parameters}
        written = ",".join(f"{k}={v:g}" for k, v in self.parameters if v != defaults[k])
        return f"{self.name}:{written}" if written else self.name
