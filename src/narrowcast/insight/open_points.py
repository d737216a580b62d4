"""Disputed points of one conversion, and what each reading of them gives for one value."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from narrowcast.catalog.switches import switches
from narrowcast.insight.anatomy import Reading, read_code
from narrowcast.insight.exact import Number
from narrowcast.operation.semantics import Semantics
from narrowcast.schema import FloatFormat, Format, Rounding

_DIRECTED = (Rounding.RD, Rounding.RU, Rounding.RZ, Rounding.RO)


@dataclass(frozen=True)
class Alternative:
    """One reading of a disputed point."""

    value: str
    means: str
    level: str
    source: str
    result: Reading


@dataclass(frozen=True)
class OpenPoint:
    """A disputed point: the question, the reading in use, and the result under each reading."""

    switch: str
    question: str
    chosen: str
    alternatives: tuple[Alternative, ...]

    @property
    def matters(self) -> bool:
        """Whether the readings give different codes for this value."""
        return len({a.result.code for a in self.alternatives}) > 1

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "switch": self.switch,
            "question": self.question,
            "chosen": self.chosen,
            "matters": self.matters,
            "readings": [
                {"value": a.value, "means": a.means, "level": a.level, "source": a.source, "result": a.result.hex}
                for a in self.alternatives
            ],
        }


def encode_settings(semantics: Semantics, target: Format, mode: Rounding) -> dict[str, str]:
    """Resolve the arguments of ``numerics.encode`` that open points select."""
    settings = {"hybrid_compare": semantics.choose("hif8_hybrid_compare"), "overflow": "after-rounding"}
    if target.name == "e4m3":
        settings["overflow"] = semantics.choose("e4m3_overflow")
    elif target.name in ("fp16", "bf16") and mode in _DIRECTED and semantics.choose("directed_overflow") == "ieee":
        settings["overflow"] = "ieee"
    return settings


def open_points(
    semantics: Semantics,
    target: Format,
    mode: Rounding,
    saturate: bool,
    number: Number,
    run: Callable[..., Reading],
) -> tuple[OpenPoint, ...]:
    """List the disputed points of a conversion.

    Args:
        semantics: whom to believe.
        target: the target format.
        mode: the rounding mode.
        saturate: the asked saturation.
        number: the source value.
        run: the conversion, ``run(saturate, **settings of numerics.encode)``.
    """
    found = []
    if mode is Rounding.RH:
        found.append(_point("hif8_hybrid_compare", semantics, lambda v: run(saturate, hybrid_compare=v)))
    if target.name == "e4m3" and not saturate:
        found.append(_point("e4m3_overflow", semantics, lambda v: run(False, overflow=v)))
    if target.name in ("fp16", "bf16") and mode in _DIRECTED and not saturate:
        rules = {"range-first": "after-rounding", "ieee": "ieee"}
        found.append(_point("directed_overflow", semantics, lambda v: run(False, overflow=rules[v])))
    if isinstance(target, FloatFormat) and target.bits == 4 and number.negative:
        found.append(_point("fp4_zero_sign", semantics, lambda v: _zero_sign(run(saturate), target, v)))
    if target.name == "e8m0" and number.infinite:
        codes = {"nan": 0xFF, "max": 0xFE}
        found.append(_point("e8m0_infinity", semantics, lambda v: read_code(codes[v], target)))
    return tuple(found)


def _zero_sign(result: Reading, target: Format, value: str) -> Reading:
    return read_code(0, target) if value == "positive" and result.kind == "zero" else result


def _point(switch: str, semantics: Semantics, result: Callable[[str], Reading]) -> OpenPoint:
    row = switches[switch]
    readings = tuple(Alternative(c.value, c.means, c.provenance.value, c.source, result(c.value)) for c in row.claims)
    return OpenPoint(switch, row.question, semantics.choose(switch), readings)
