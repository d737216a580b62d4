"""What TCVT demands of its tiles, and which pairs exist where."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from narrowcast.catalog import tile_casts
from narrowcast.errors import UnsupportedCastError
from narrowcast.operation import Effect, Finding, Semantics, rule

if TYPE_CHECKING:
    from narrowcast.tile.convert import TCvt

_SOURCE = "pto-isa:TCVT, constraints"
_EXPONENT_SOURCES = ("fp16", "bf16", "fp32")


@rule(
    "TCV-01",
    states="dst and src have the same valid shape.",
    cause="one-to-one element mapping",
    effect=Effect.UNAVAILABLE,
    fix="Give both tiles the same valid rows and columns.",
    source=_SOURCE,
)
def same_valid_shape(op: "TCvt") -> Iterator[str]:
    dst, src = op.type("dst").valid, op.type("src").valid
    if dst != src:
        yield f"dst is {dst[0]}x{dst[1]}, src {src[0]}x{src[1]}"


@rule(
    "TCV-02",
    states="dst and src have the same layout.",
    cause="a conversion keeps the order of its elements",
    effect=Effect.UNAVAILABLE,
    fix="Change the layout with tmov.",
    source=_SOURCE,
)
def same_layout(op: "TCvt") -> Iterator[str]:
    if op.type("dst").layout != op.type("src").layout:
        yield f"dst is {op.type('dst').layout}, src {op.type('src').layout}"


@rule(
    "TCV-03",
    states="dst has room for every valid element of src.",
    cause="the simulator walks the source's valid region and checks nothing",
    effect=Effect.MISPLACED_DATA,
    fix="Enlarge dst.",
    source="the memory a tile has",
)
def destination_exists(op: "TCvt") -> Iterator[str]:
    dst, src = op.type("dst").shape, op.type("src").valid
    if src[0] > dst[0] or src[1] > dst[1]:
        yield f"dst has {dst[0]}x{dst[1]} elements, src {src[0]}x{src[1]} valid ones"


def no_pair(pair: tuple[str, str], chip: str) -> UnsupportedCastError:
    """Return the error for a pair a chip does not have; the message says which it has."""
    source, target = pair
    known = tile_casts.targets(chip, source)
    have = f"from {source}: {', '.join(known)}" if known else f"nothing converts from {source} there"
    elsewhere = [c for c in ("3510", "2201") if c != chip and tile_casts.find(c, source, target)]
    hint = f"Chip {elsewhere[0]} has it." if elsewhere else "Go through another type."
    return UnsupportedCastError(
        f"{source} -> {target} is no TCVT of chip {chip} ({have}).", hint=hint, source="pto-isa:TCVT"
    )


def violations(op: "TCvt", semantics: Semantics) -> Iterator[Finding]:
    """Yield broken rules; raise for a pair that does not exist."""
    _require_pair(op, semantics)
    if semantics.authority == "pto-spec":  # its tiles have capacities, and it converts between layouts
        yield from same_valid_shape.findings(op, "TCVT")
        return
    for name in ("dst", "src"):
        for finding in op.type(name).rules():
            yield Finding(finding.rule, f"TCVT {name}", finding.message, {}, finding.fix, finding.source)
    if semantics.chip == "cpu-sim":
        yield from destination_exists.findings(op, "TCVT")
        return
    for check in (same_valid_shape, same_layout):
        yield from check.findings(op, "TCVT")


def _require_pair(op: "TCvt", semantics: Semantics) -> None:
    source, target = op.type("src").format, op.type("dst").format
    if semantics.authority == "pto-spec":
        exponent = target.name == "e8m0" and source.name in _EXPONENT_SOURCES
        if not exponent and not (source.is_integer and target.is_integer):
            raise UnsupportedCastError(
                f"{source.name} -> {target.name}: pto-spec executes integer -> integer and fp16, bf16, fp32 -> e8m0; "
                "its other pairs pass raw bits through as a placeholder.",
                hint="Choose another authority for this pair.",
                source="pto-spec:TCVT",
            )
    elif semantics.chip != "cpu-sim" and tile_casts.find(semantics.chip, source.name, target.name) is None:
        raise no_pair((source.name, target.name), semantics.chip)
