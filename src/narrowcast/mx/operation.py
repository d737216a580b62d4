"""Block quantization as an operation."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from narrowcast.catalog.formats import formats
from narrowcast.catalog.rounding import rounding as resolve_rounding
from narrowcast.errors import ConstraintError, FormatError, ShapeError, UnsupportedCastError
from narrowcast.mx.filling import fill
from narrowcast.mx.scheme import Scheme
from narrowcast.mx.spelling import ScaleRule
from narrowcast.numerics import source_name
from narrowcast.numerics.unpacking import Array
from narrowcast.operation import Choices, Control, Effect, Finding, Semantics, rule
from narrowcast.operation.findings import refuse
from narrowcast.quant import Blocks, QTensor, Record
from narrowcast.quant.arrays import as_values, check_out

GROUP = 32
"""Elements that share a scale in OCP MX; a block is a multiple of it."""

_SOURCES = ("fp32", "fp16", "bf16")


@dataclass(frozen=True, kw_only=True)
class MxQuant:
    """Quantize blocks of an array to MX elements with one E8M0 scale each.

    Args:
        format: element format name or alias.
        rule: scale rule with its parameters, e.g. ``cann-2:dst_type_max=7``.
        block: elements per scale, a multiple of 32.
        axis: the axis that blocks run along.
        rounding: mode of the element cast, None for the rule's default.
        saturate: whether elements that overflow give the largest value; only off-chip rules leave a choice.
        pad: whether a short last block is padded with zeros; else it is refused.
    """

    format: str
    rule: str = "ocp-floor"
    block: int = GROUP
    axis: int = -1
    rounding: str | None = None
    saturate: bool = True
    pad: bool = True

    inputs: ClassVar[tuple[str, ...]] = ("x",)

    def __post_init__(self) -> None:
        target = formats[self.format]
        chosen = ScaleRule.parse(self.rule)
        element = chosen.row.element(target.name)
        mode = element.roundings[0] if self.rounding is None else resolve_rounding(self.rounding)
        if mode not in element.roundings:
            allowed = ", ".join(r.value for r in element.roundings)
            raise UnsupportedCastError(
                f"scale rule {chosen.name} rounds {target.name} elements with {allowed}, not {mode.value}.",
                hint="Use one of those, or an off-chip rule such as ocp-floor.",
                source=chosen.row.source,
            )
        if not self.saturate and not chosen.row.free:
            raise UnsupportedCastError(
                f"scale rule {chosen.name} saturates its elements.",
                hint="Leave saturate=True, or use an off-chip rule such as ocp-floor.",
                source=chosen.row.source,
            )
        if isinstance(self.block, bool) or not isinstance(self.block, int) or self.block < 1 or self.block % GROUP:
            raise ShapeError(
                f"block {self.block!r}: an MX block is a positive multiple of {GROUP}.",
                hint="Use nc.quantize(..., blocks=nc.Blocks(...)) with fp32 scales for other sizes.",
                source="OCP MX v1.0; ops-nn:DynamicMxQuant",
            )
        object.__setattr__(self, "format", target.name)
        object.__setattr__(self, "rule", str(chosen))
        object.__setattr__(self, "rounding", mode.value)

    @property
    def scale_rule(self) -> ScaleRule:
        """The rule, parsed."""
        return ScaleRule.parse(self.rule)

    @property
    def switches(self) -> tuple[str, ...]:
        """The disputed points of this rule with this element format."""
        return tuple(_switches(self))

    def violations(self, semantics: Semantics) -> Iterable[Finding]:
        """Block sizes the rule's instruction or library does not have, and chips without the element format."""
        yield from block_limit.findings(self)
        if self.scale_rule.row.on_chip and semantics.chip == "2201":
            yield Finding(
                rule="MX-03",
                place=type(self).__name__,
                message=f"chip 2201 has no {self.format}; rule {self.scale_rule.name} runs on chip 3510",
                fix="Guard the call with __NPU_ARCH__ == 3510, or use an off-chip rule such as ocp-floor.",
                source="seed:5.2#2",
            )

    def check(self, array: Array, choices: Choices) -> str:
        """Return the source's format name, or refuse what the rule does not take."""
        refuse(self.violations(choices.semantics), type(self).__name__)
        check_axis(self, array)
        return check_source(self, array, choices)

    def run(self, inputs: Any, choices: Choices, control: Control, out: Any = None) -> QTensor:
        """Quantize ``x``; ``out`` is a pair of arrays for codes and scale bytes."""
        array = as_values(inputs["x"])
        source = check_source(self, array, choices)
        axis = check_axis(self, array)
        scheme = scheme_of(self, choices, control)
        codes, scale = results(array.shape, axis, self.block, scheme, out)
        fill(array, axis, codes, scale, self.block, source, scheme)
        record = Record(
            rule=self.rule,
            rounding=scheme.rounding.value,
            saturate=self.saturate,
            nonfinite=scheme.nan_lanes,
            scale_from="absmax",
            padded=-array.shape[axis] % self.block,
            semantics=choices.semantics.to_json(),
        )
        blocks = Blocks.per_group(self.block, axis - array.ndim)
        return QTensor(codes, self.format, scale, None, blocks, record, scale_format="e8m0")

    def show(self, code: Any) -> str:
        """Write a code with the element it may be."""
        return f"{int(code):#04x}"


def _switches(op: MxQuant) -> Iterator[str]:
    row = op.scale_rule.row
    narrow = formats[op.format].bits == 4
    for name in row.switches:
        if name == "mx_zero_low_bound" and not dict(op.scale_rule.parameters)["max_low_bound"]:
            continue
        if name == "mx_zero_sign" and op.format != "e4m3":
            continue
        yield name
    if row.on_chip and narrow:
        yield "mx_fp4_nan"
        if op.rounding == "rd":
            yield "mx_subnormal_product"
    if row.on_chip and row.name.startswith("pto") and not narrow:
        yield "mx_fp8_nan"


@rule(
    "MX-01",
    states="A rule quantizes blocks up to the size its instruction or library has.",
    cause="the scale's group size is fixed there",
    effect=Effect.UNAVAILABLE,
    fix="Use block=32, or an off-chip rule such as ocp-floor.",
    source="ops-nn:DynamicMxQuant; pto-isa:TQUANT",
)
def block_limit(op: MxQuant) -> Iterator[str]:
    limit = op.scale_rule.row.block_limit
    if limit is not None and op.block > limit:
        yield f"block {op.block} is larger than {limit}, the most scale rule {op.scale_rule.name} has"


def check_source(op: MxQuant, array: Array, choices: Choices) -> str:
    """Return the format name of the values, or refuse them."""
    name = source_name(array.dtype)
    row = op.scale_rule.row
    legal = row.element(op.format).sources
    if row.name.startswith("pto") and choices.chip == "cpu-sim":
        legal = _SOURCES  # the simulator has no type checks
    if name not in _SOURCES:
        raise FormatError(
            f"MX quantization takes fp32, fp16 or bf16 values; got {array.dtype}.",
            hint="Convert them first, e.g. with .astype(np.float32).",
        )
    if name not in legal:
        raise UnsupportedCastError(
            f"scale rule {row.name} takes {' or '.join(legal)} for {op.format}; got {name}.",
            hint="Convert the values first, e.g. x.astype(ml_dtypes.bfloat16).",
            source=row.source,
        )
    if row.name.startswith("cann") and formats[op.format].packs and array.shape[-1] % 2:
        raise ConstraintError(
            f"axis {array.ndim - 1} has {array.shape[-1]} elements; DynamicMxQuant takes an even number of "
            f"{op.format}, two of which share a byte.",
            hint="Pad the last axis to an even length, or use an off-chip rule such as ocp-floor.",
            source="ops-nn:DynamicMxQuant; seed:5.2#3",
        )
    limit = row.fp32_block_limit
    if name == "fp32" and limit is not None and op.block > limit:
        raise ConstraintError(
            f"scale rule {row.name} quantizes fp32 values in blocks of {limit}; got block {op.block}.",
            hint=f"Use block={limit}, or fp16 or bf16 values.",
            source=row.source,
        )
    return name


def check_axis(op: MxQuant, array: Array) -> int:
    """Return the axis counted from the first, or refuse it, or a short block without padding."""
    if not -array.ndim <= op.axis < array.ndim:
        raise ShapeError(f"axis {op.axis} is outside an array of {array.ndim} axes (shape {array.shape}).")
    axis = op.axis % array.ndim
    size = array.shape[axis]
    if size % op.block and not op.pad:
        raise ShapeError(
            f"axis {axis} has {size} elements; blocks of {op.block} leave {size % op.block} over.",
            hint=f"Pass pad=True to pad the last block with {-size % op.block} zeros.",
        )
    return axis


def scheme_of(op: MxQuant, choices: Choices, control: Control) -> Scheme:
    """Resolve an operation's open points."""
    values = {name: choices.choose(name) for name in op.switches}
    return Scheme(
        rule=op.scale_rule,
        format=op.format,
        rounding=resolve_rounding(str(op.rounding)),
        saturate=op.saturate,
        nan_lanes=_nan_lanes(op, values, control),
        switches=tuple(sorted(values.items())),
    )


def _nan_lanes(op: MxQuant, values: dict[str, str], control: Control) -> str:
    target = formats[op.format]
    if not op.scale_rule.row.on_chip:
        return "zero" if target.nan_code is None else "nan"
    if target.bits == 4:
        return values["mx_fp4_nan"]
    if values.get("mx_fp8_nan") == "nan":
        return "nan"
    return "nan" if control.ctrl50 else "zero"


def results(
    shape: tuple[int, ...], axis: int, block: int, scheme: Scheme, out: tuple[Array, Array] | None
) -> tuple[Array, Array]:
    """Return arrays for codes and scale bytes: the caller's, once checked, or new ones."""
    grid = (*shape[:axis], -(-shape[axis] // block), *shape[axis + 1 :])
    dtype = scheme.target.code_dtype
    if out is None:
        return np.empty(shape, dtype=dtype), np.empty(grid, dtype=np.uint8)
    codes, scale = out
    check_out(codes, shape, dtype)
    check_out(scale, grid, "uint8")
    return codes, scale


def packed(op: MxQuant, array: Array, semantics: Semantics, control: Control) -> tuple[Array, Array]:
    """Run an operation along the last axis and return its 4-bit codes packed, and its scale bytes."""
    choices = Choices(semantics, frozenset(op.switches), "MxQuant")
    source, axis = op.check(array, choices), check_axis(op, array)
    scheme = scheme_of(op, choices, control)
    size = array.shape[-1]
    codes = np.empty((*array.shape[:-1], (size + 1) // 2), dtype=np.uint8)
    scale = np.empty((*array.shape[:-1], -(-size // op.block)), dtype=np.uint8)
    fill(array, axis, codes, scale, op.block, source, scheme)
    return codes, scale
