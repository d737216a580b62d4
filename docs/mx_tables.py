"""Tables of the block-scaling page."""

from collections.abc import Callable, Iterable, Sequence

from narrowcast.catalog.layouts import layouts
from narrowcast.catalog.scale_rules import ElementRow, ParameterRow, scale_rules

Table = Callable[[Sequence[str], Iterable[Sequence[str]]], str]


def code(text: object) -> str:
    return f"`{text}`"


def elements(rows: Sequence[ElementRow]) -> str:
    """Group the element formats that round alike."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for row in rows:
        groups.setdefault(tuple(mode.value for mode in row.roundings), []).append(row.format)
    return "; ".join(f"{', '.join(names)} ({' '.join(modes)})" for modes, names in groups.items())


def limits(parameter: ParameterRow) -> str:
    """Write a parameter with its default and range."""
    also = "".join(f", {value:g}" for value in parameter.also)
    return f"`{parameter.name}` {parameter.low:g}..{parameter.high:g}{also}, default {parameter.default:g}"


def tables(table: Table) -> dict[str, Callable[[str], str]]:
    """Return the writers by name."""

    def rules(_: str) -> str:
        rows = []
        for row in scale_rules.values():
            parameters = "; ".join(limits(p) for p in row.parameters)
            formula = row.formula + (f". {parameters}" if parameters else "")
            rows.append([code(row.name), formula, elements(row.elements), row.source, row.provenance.value])
        return table(["rule", "shared exponent", "elements (roundings, default first)", "source", "backed"], rows)

    def edges(_: str) -> str:
        rows = [[code(r.name), r.infinite, r.nan, r.zero, r.tiny] for r in scale_rules.values()]
        return table(["rule", "infinity in the block", "NaN", "all zero", "tiny"], rows)

    def stored(_: str) -> str:
        rows = [[code(r.name), code(r.pattern), r.title, r.source] for r in layouts.values()]
        return table(["layout", "pattern", "what it holds", "source"], rows)

    return {"scale-rules": rules, "scale-rule-edges": edges, "layouts": stored}
