"""What TQUANT demands of its tiles."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from narrowcast.operation import Effect, Finding, Semantics, rule
from narrowcast.operation.findings import Rule
from narrowcast.tile.spelling import Order

if TYPE_CHECKING:
    from narrowcast.tile.quantize import TQuant

_SOURCE = "pto-isa:TQUANT, constraints"


@rule(
    "TQU-01",
    states="dst and src are row-major.",
    cause="parameters are broadcast along rows",
    effect=Effect.UNAVAILABLE,
    fix="Move the tile to a row-major one with tmov.",
    source=_SOURCE,
)
def row_major(op: "TQuant") -> Iterator[str]:
    for name in ("dst", "src"):
        kind = op.type(name)
        if kind.blocks is not Order.ROW or kind.boxed:
            yield f"{name} is {kind.layout}, not row-major"


@rule(
    "TQU-02",
    states="dst and src have the same valid shape.",
    cause="one-to-one element mapping",
    effect=Effect.UNAVAILABLE,
    fix="Give both tiles the same valid rows and columns.",
    source=_SOURCE,
)
def same_valid_shape(op: "TQuant") -> Iterator[str]:
    dst, src = op.type("dst").valid, op.type("src").valid
    if dst != src:
        yield f"dst is {dst[0]}x{dst[1]}, src {src[0]}x{src[1]}"


@rule(
    "TQU-03",
    states="The parameter tiles have as many valid rows as dst.",
    cause="one parameter group per row",
    effect=Effect.UNAVAILABLE,
    fix="Give one parameter for every valid row (Tile.per_row).",
    source=_SOURCE,
)
def parameter_rows(op: "TQuant") -> Iterator[str]:
    rows = op.type("dst").valid[0]
    for name, called in (("parameter", op.given), ("offset", "offset")):
        if getattr(op, name) and op.type(name).valid[0] != rows:
            yield f"{called} has {op.type(name).valid[0]} valid rows, dst {rows}"


@rule(
    "TQU-04",
    states="src and the parameters are fp32.",
    cause="the integer path multiplies in fp32",
    effect=Effect.UNAVAILABLE,
    fix="Convert the values with tcvt first.",
    source=_SOURCE,
)
def fp32_sources(op: "TQuant") -> Iterator[str]:
    for name, called in (("src", "src"), ("parameter", op.given), ("offset", "offset")):
        if getattr(op, name) and op.type(name).dtype != "fp32":
            yield f"{called} is {op.type(name).dtype}"


@rule(
    "TQU-05",
    states="The symmetric form (no offset) writes s8, the asymmetric one u8.",
    cause="the quantization type fixes the output type",
    effect=Effect.UNAVAILABLE,
    fix="Pass an offset with a u8 tile, none with an s8 tile.",
    source=_SOURCE,
)
def code_type(op: "TQuant") -> Iterator[str]:
    wanted = "u8" if op.offset else "s8"
    if op.type("dst").dtype != wanted:
        yield f"dst is {op.type('dst').dtype}, and {'an' if op.offset else 'no'} offset is given"


@rule(
    "TQU-06",
    states="Chip 2201 takes an fp32 scratch tile of src's size.",
    cause="its conversions are not in place: s32 intermediates need memory",
    effect=Effect.UNAVAILABLE,
    fix="Pass scratch=Tile(dtype='fp32', shape=src's).",
    source=_SOURCE,
)
def scratch_tile(op: "TQuant") -> Iterator[str]:
    if not op.scratch:
        yield "no scratch tile is given"
        return
    scratch, src = op.type("scratch"), op.type("src")
    if scratch.size_bytes < src.size_bytes or scratch.bits != 32:
        yield f"scratch is {scratch.short}, src {src.short}"


ALL: tuple[Rule["TQuant"], ...] = (row_major, same_valid_shape, parameter_rows, fp32_sources, code_type)


def violations(op: "TQuant", semantics: Semantics) -> Iterator[Finding]:
    """Yield the rules an authority and chip check; the simulator lets a short parameter tile repeat its last row."""
    named = {"dst": "dst", "src": "src", "parameter": op.given, "offset": "offset", "scratch": "scratch"}
    for name, called in named.items():
        if getattr(op, name):
            for finding in op.type(name).rules():
                yield Finding(finding.rule, f"TQUANT {called}", finding.message, {}, finding.fix, finding.source)
    for check in ALL:
        yield from check.findings(op, "TQUANT")
    if semantics.chip == "2201":
        yield from scratch_tile.findings(op, "TQUANT")
