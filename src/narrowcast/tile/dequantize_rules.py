"""What TDEQUANT demands of its tiles, with the document's reason for each demand."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from narrowcast.operation import Effect, Finding, Semantics, rule
from narrowcast.operation.findings import Rule
from narrowcast.tile.spelling import Order

if TYPE_CHECKING:
    from narrowcast.tile.dequantize import TDequant

_SOURCE = "seed:000, 001; pto-isa:TDEQUANT, constraints"


@rule(
    "TDQ-01",
    states="dst and src are row-major.",
    cause="per-row parameter broadcast",
    effect=Effect.UNAVAILABLE,
    fix="Move the tile to a row-major one with tmov.",
    source=_SOURCE,
)
def row_major(op: "TDequant") -> Iterator[str]:
    for name in ("dst", "src"):
        kind = op.type(name)
        if kind.blocks is not Order.ROW or kind.boxed:
            yield f"{name} is {kind.layout}, not row-major"


@rule(
    "TDQ-02",
    states="dst and src have the same valid shape.",
    cause="one-to-one element mapping",
    effect=Effect.UNAVAILABLE,
    fix="Give both tiles the same valid rows and columns.",
    source=_SOURCE,
)
def same_valid_shape(op: "TDequant") -> Iterator[str]:
    dst, src = op.type("dst").valid, op.type("src").valid
    if dst != src:
        yield f"dst is {dst[0]}x{dst[1]}, src {src[0]}x{src[1]}"


@rule(
    "TDQ-03",
    states="scale and offset have as many valid rows as dst.",
    cause="one parameter group per row",
    effect=Effect.UNAVAILABLE,
    fix="Give one scale and one offset for every valid row (Tile.per_row).",
    source=_SOURCE,
)
def parameter_rows(op: "TDequant") -> Iterator[str]:
    rows = op.type("dst").valid[0]
    for name in ("scale", "offset"):
        have = op.type(name).valid[0]
        if have != rows:
            yield f"{name} has {have} valid rows, dst {rows}"


@rule(
    "TDQ-04",
    states="dst, scale and offset are fp32.",
    cause="dequantization output precision",
    effect=Effect.UNAVAILABLE,
    fix="Use fp32 tiles and convert the result with tcvt.",
    source=_SOURCE,
)
def fp32_results(op: "TDequant") -> Iterator[str]:
    for name in ("dst", "scale", "offset"):
        if op.type(name).dtype != "fp32":
            yield f"{name} is {op.type(name).dtype}"


@rule(
    "TDQ-05",
    states="src is s8 or s16.",
    cause="quantized integer code width",
    effect=Effect.UNAVAILABLE,
    fix="Unsigned codes need Semantics('pto-spec') or Semantics('pto-isa', 'cpu-sim').",
    source=_SOURCE,
)
def code_width(op: "TDequant") -> Iterator[str]:
    if op.type("src").dtype not in ("s8", "s16"):
        yield f"src is {op.type('src').dtype}"


@rule(
    "TDQ-06",
    states="scale and offset have one tile type.",
    cause="they are one template parameter, TileDataPara, and one row stride serves both",
    effect=Effect.UNAVAILABLE,
    fix="Give both the same static shape and layout.",
    source="seed:000, 001; pto-isa:TDEQUANT, C++ interface",
)
def same_parameter_type(op: "TDequant") -> Iterator[str]:
    scale, offset = op.type("scale"), op.type("offset")
    if (scale.dtype, scale.shape, scale.layout) != (offset.dtype, offset.shape, offset.layout):
        yield f"scale is {scale.short}, offset {offset.short}"


@rule(
    "TDQ-08",
    states="src holds an element for every valid element of dst.",
    cause="an element beyond the tile cannot be read",
    effect=Effect.GARBAGE,
    fix="Enlarge src, or reduce the valid shape of dst.",
    source="the memory a tile has",
)
def codes_exist(op: "TDequant") -> Iterator[str]:
    dst, src = op.type("dst").valid, op.type("src").shape
    if dst[0] > src[0] or dst[1] > src[1]:
        yield f"src has {src[0]}x{src[1]} elements, dst {dst[0]}x{dst[1]} valid ones"


@rule(
    "TDQ-07",
    states="The parameter tiles hold a parameter for every row.",
    cause="a row beyond the tile has no parameter to read",
    effect=Effect.GARBAGE,
    fix="Enlarge the parameter tiles.",
    source="the memory a tile has",
)
def parameters_exist(op: "TDequant") -> Iterator[str]:
    rows = op.type("dst").valid[0]
    for name in ("scale", "offset"):
        if op.type(name).rows < rows:
            yield f"{name} has {op.type(name).rows} rows, dst {rows} valid ones"


ALL: tuple[Rule["TDequant"], ...] = (
    row_major,
    same_valid_shape,
    parameter_rows,
    fp32_results,
    code_width,
    same_parameter_type,
    parameters_exist,
    codes_exist,
)
_NEEDED = (fp32_results, parameters_exist, codes_exist)


def violations(op: "TDequant", semantics: Semantics) -> Iterator[Finding]:
    """Yield the rules an authority and chip check.

    The library checks no parameter rows on chip 2201 and nothing at all in its simulator; the documents check
    everything on all targets. What remains for the simulator is what a result needs to exist here.
    """
    skipped: tuple[str, ...] = ()
    if semantics.authority == "pto-isa":
        skipped = {
            "cpu-sim": tuple(r.id for r in ALL if r not in _NEEDED),
            "2201": (parameter_rows.id,),
        }.get(semantics.chip, ())
    for name in ("dst", "src", "scale", "offset"):
        for finding in op.type(name).rules():
            yield Finding(
                finding.rule, f"TDEQUANT {name}", finding.message, finding.evidence, finding.fix, finding.source
            )
    for check in ALL:
        if check.id not in skipped:
            yield from check.findings(op, "TDEQUANT")
