"""The ten constraints of seed 5.1, and the vendor's rules on shape, stride and mode, beside the operation they bind."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from narrowcast.catalog.machine import buffer
from narrowcast.fixpipe.addressing import C0
from narrowcast.fixpipe.cost import MOST_ROWS
from narrowcast.operation.findings import Effect, Finding, Rule, rule

if TYPE_CHECKING:
    from narrowcast.fixpipe.operation import Fixpipe

STORE_GRAIN = 32  # bytes
SMALLEST_NORMAL = 2.0**-126
_BLOCK = 1 << 16  # elements
MOST_N = 4095


@dataclass(frozen=True)
class Call:
    """An instruction with what is known of its data: accumulators and parameter arrays may be absent."""

    op: "Fixpipe"
    acc: npt.NDArray[Any] | None = None
    parameters: tuple[tuple[str, npt.NDArray[Any]], ...] = ()
    shape: tuple[int, ...] = (0, 0)

    @property
    def rows(self) -> int:
        """M, 0 when unknown."""
        return self.op.m or self.shape[0]

    @property
    def columns(self) -> int:
        """N, 0 when unknown."""
        return self.op.n or self.shape[1]


@rule(
    "FIXP-01",
    states="No FP32 accumulator is subnormal.",
    cause="the pipe works in FP32 and does not handle subnormal operands",
    effect=Effect.WRONG_RESULT,
    fix="Flush subnormal accumulators to zero, or scale the operands up.",
    source="seed:5.1#1",
)
def no_subnormal_accumulator(call: Call) -> Iterator[str]:
    """FP32 accumulators only; S32 has no subnormals."""
    if call.acc is None or call.acc.dtype != np.float32:
        return
    first, count = None, 0
    for start in range(0, call.acc.shape[0], step := max(1, _BLOCK // max(1, call.acc[:1].size))):
        # As integers, subnormal magnitudes are 1..0x7FFFFF: one comparison, no rounding.
        magnitude = (np.ascontiguousarray(call.acc[start : start + step]).view(np.uint32) << np.uint32(1)) - np.uint32(
            1
        )
        small = magnitude < np.uint32(0xFFFFFF)
        if small.any():
            count += int(small.sum())
            if first is None:
                where = np.unravel_index(int(np.argmax(small)), small.shape)
                first = (start + int(where[0]), *(int(i) for i in where[1:]))
    if first is not None:
        yield f"{count} subnormal accumulators, first {call.acc[first]!s} at {list(first[-2:])}"


@rule(
    "FIXP-02",
    states="No scale or ReLU parameter is subnormal, infinite or NaN; zero is legal.",
    cause="parameters are used as they are",
    effect=Effect.WRONG_RESULT,
    fix="Use normal fp32 parameters, at least 2**-126 in magnitude, or zero.",
    source="seed:5.1#2",
)
def parameters_are_normal(call: Call) -> Iterator[str]:
    """Checked on the 19 bits the pipe reads."""
    for name, array in call.parameters:
        magnitude = np.abs(array)
        bad = ~np.isfinite(array) | ((magnitude > 0) & (magnitude < SMALLEST_NORMAL))
        if bad.any():
            first = int(np.argmax(bad.reshape(-1)))
            yield f"{name} {array.reshape(-1)[first]!s} at index {first}"


@rule(
    "FIXP-03",
    states="A store to OUT (GM) is byte-aligned; NZ2NZ and NZ2DN stores to it start on 32 bytes.",
    cause="the OUT interface addresses bytes, and NZ and DN bursts 32-byte grains",
    effect=Effect.MISPLACED_DATA,
    fix="Align the destination offset.",
    source="seed:5.1#3; asc-devkit:Fixpipe L0C to GM",
)
def out_alignment(call: Call) -> Iterator[str]:
    """GM only."""
    op = call.op
    if op.route != "GM":
        return
    if op.offset_bits % 8:
        yield f"offset of {op.offset_bits} bits is not a whole byte"
    elif op.layout != "NZ2ND" and op.offset_bytes % STORE_GRAIN:
        yield f"offset {op.offset_bytes} B of a {op.layout} store is not a multiple of {STORE_GRAIN} B"


@rule(
    "FIXP-04",
    states="A quantized store to L1 or UB starts on a 32-byte boundary.",
    cause="L1 and UB accept writes only in 32-byte grains",
    effect=Effect.HARDWARE_EXCEPTION,
    fix="Align the destination offset to 32 B, or store to GM, which is byte-aligned.",
    source="seed:5.1#4",
)
def store_alignment(call: Call) -> Iterator[str]:
    """L1 and UB."""
    op = call.op
    if op.route in ("L1", "UB") and op.offset_bits % (8 * STORE_GRAIN):
        yield f"offset {op.offset_bits / 8:g} B in {op.route} is not a multiple of {STORE_GRAIN} B"


@rule(
    "FIXP-05",
    states="L0C is read from 64-byte boundaries (32-byte ones for 16-bit accumulators).",
    cause="granularity of the L0C banks",
    effect=Effect.SLOWER,
    fix="Start the accumulator tile on a 64 B boundary.",
    source="seed:5.1#5",
)
def source_alignment(call: Call) -> Iterator[str]:
    """Both accumulator types of the pipe have 4 bytes."""
    if call.op.source_offset_bytes % 64:
        yield f"L0C offset {call.op.source_offset_bytes} B is not a multiple of 64 B; the data may also be wrong"


@rule(
    "FIXP-06",
    states="One instruction writes exactly one of OUT, L1 and UB.",
    cause="the three share the pipe",
    effect=Effect.DROPPED,
    fix="Issue one instruction per destination.",
    source="seed:5.1#6",
)
def one_route(call: Call) -> Iterator[str]:
    """A route such as ``GM+L1`` asks for two."""
    if "+" in call.op.route:
        yield f"route {call.op.route} asks for {call.op.route.count('+') + 1} destinations at once"


@rule(
    "FIXP-07",
    states="The post-quantization type is 0.",
    cause="chip 3510 has no post-quantization stage",
    effect=Effect.UNAVAILABLE,
    fix="Quantize in the pre stage (mode), and leave post_mode at 0.",
    source="seed:5.1#7",
)
def no_post_mode(call: Call) -> Iterator[str]:
    """The post modes exist as names in the compiler header only."""
    if call.op.post_mode:
        yield f"post_mode is {call.op.post_mode}"


@rule(
    "FIXP-08",
    states="The consumer ignores dummy columns: N is a multiple of the group, or dummy columns are expected.",
    cause="the pipe drops padding in M, not in N",
    effect=Effect.GARBAGE,
    fix='Round N up to C0 and ignore the rest (accept_dummy=True), or use NZ2DN with nd_tail="trim".',
    source="seed:5.1#8",
)
def no_dummy_columns(call: Call) -> Iterator[str]:
    """NZ2NZ writes whole fractals of 16 columns (8 when split, 64 for 4-bit results)."""
    op = call.op
    if op.layout != "NZ2NZ" or op.accept_dummy or not call.columns:
        return
    unit = C0 // 2 if op.split else 4 * C0 if op.mode_row.targets == ("s4",) else C0
    if call.columns % unit:  # seed 5.1 #8 and the vendor's n % 16 are one rule
        yield f"N = {call.columns} is not a multiple of {unit}: {-call.columns % unit} dummy columns in each row"


@rule(
    "FIXP-09",
    states="Quantization, ReLU and bias parameters are loaded from L1.",
    cause="the parameter buffers have no other load path",
    effect=Effect.UNAVAILABLE,
    fix="Copy the parameters from GM to L1 first, then to the buffer.",
    source="seed:5.1#9",
)
def parameters_from_l1(call: Call) -> Iterator[str]:
    """Any other origin cannot be loaded."""
    if call.op.parameters_from != "L1":
        yield f"parameters come from {call.op.parameters_from}"


@rule(
    "FIXP-10",
    states="A parameter load reads L1 at 32-byte and writes the buffer at 64-byte boundaries.",
    cause="the MEM_RIF interface",
    effect=Effect.HARDWARE_EXCEPTION,
    fix="Align both addresses.",
    source="seed:5.1#10",
)
def parameter_alignment(call: Call) -> Iterator[str]:
    """Source and destination of the parameter load."""
    row = buffer("Quantization-pre")
    if call.op.parameter_source_bytes % row.source_alignment:
        yield f"L1 source {call.op.parameter_source_bytes} B is not a multiple of {row.source_alignment} B"
    if call.op.parameter_target_bytes % row.destination_alignment:
        yield f"buffer address {call.op.parameter_target_bytes} B is not a multiple of {row.destination_alignment} B"


@rule(
    "FIXP-11",
    states="One instruction has 1 <= n <= 4095 and 1 <= m <= 65535.",
    cause="widths of the instruction's fields",
    effect=Effect.UNAVAILABLE,
    fix="Split the matrix.",
    source="asc-devkit:Fixpipe L0C to GM",
)
def size_limits(call: Call) -> Iterator[str]:
    """A larger matrix goes out in several instructions, unless that is refused."""
    if call.op.enforce_limits:
        if call.rows > MOST_ROWS:
            yield f"m = {call.rows} exceeds {MOST_ROWS}"
        if call.columns > MOST_N:
            yield f"n = {call.columns} exceeds {MOST_N}"


@rule(
    "FIXP-12",
    states="NZ2ND rows (NZ2DN columns) written to L1 or UB fill whole 32-byte grains.",
    cause="L1 and UB accept writes only in 32-byte grains",
    effect=Effect.UNAVAILABLE,
    fix="Pad n (m for NZ2DN) so that its bytes are a multiple of 32.",
    source="asc-devkit:Fixpipe L0C to L1, to UB",
)
def row_width(call: Call) -> Iterator[str]:
    """n * sizeof or m * sizeof modulo 32."""
    op = call.op
    if op.route not in ("L1", "UB") or op.layout == "NZ2NZ":
        return
    length, axis = (call.columns, "n") if op.layout == "NZ2ND" else (call.rows, "m")
    bits = op.result_bits
    if length * bits % (8 * STORE_GRAIN):
        yield f"{axis} = {length} gives {length * bits / 8:g} B, not a multiple of {STORE_GRAIN} B in {op.route}"


@rule(
    "FIXP-13",
    states="The destination stride is not zero and rows do not overlap.",
    cause="overlapping destinations of one instruction have no defined order",
    effect=Effect.WRONG_RESULT,
    fix="Use a stride of at least one row (column, group).",
    source="asc-devkit:Fixpipe, dstStride; NZ2NZ and NZ2DN notes",
)
def stride_fits(call: Call) -> Iterator[str]:
    """The stride in elements against what lies between two starts; likewise between two matrices of a batch."""
    op = call.op
    if op.batches > 1 and op.batch_stride is not None and op.layout == "NZ2ND" and call.rows and call.columns:
        needed = (call.rows - 1) * (call.columns if op.stride is None else op.stride) + call.columns
        if op.batch_stride < needed and (op.stride is None or op.batch_stride < call.columns):
            yield f"batch stride {op.batch_stride} elements is below the {needed} of a matrix"
    if op.stride is None:
        return
    group = C0 // 2 if op.split else {4: 4 * C0, 8: 2 * C0}.get(op.result_bits, C0)
    rows = call.rows // 2 if op.dual == "M" else call.rows
    columns = call.columns // 2 if op.dual == "N" else call.columns
    length = {"NZ2ND": columns, "NZ2DN": rows, "NZ2NZ": rows * group}[op.layout]
    several = {"NZ2ND": rows > 1, "NZ2DN": columns > 1, "NZ2NZ": columns > group}[op.layout]
    if op.stride == 0 or (op.stride < length and several):
        yield f"stride {op.stride} elements is below the {length} written"


@rule(
    "FIXP-14",
    states="Channel split is FP32 to FP32 in NZ2NZ.",
    cause="the split stage handles 4-byte results only",
    effect=Effect.UNAVAILABLE,
    fix="Leave split=False.",
    source="asc-devkit:F32 channel split",
)
def split_is_fp32(call: Call) -> Iterator[str]:
    """Mode and layout of a split store."""
    if call.op.split and (call.op.mode_row.targets != ("fp32",) or call.op.layout != "NZ2NZ"):
        yield f"split with mode {call.op.mode} and layout {call.op.layout}"


@rule(
    "FIXP-15",
    states="A dual destination is UB without quantization or ReLU, not NZ2DN; M even or N a multiple of 32.",
    cause="both write ports carry plain accumulators",
    effect=Effect.UNAVAILABLE,
    fix="Use one destination, or the bypass mode.",
    source="asc-devkit:L0C buffer to UB, dual destination",
)
def dual_destination(call: Call) -> Iterator[str]:
    """``dual="M"`` splits rows, ``dual="N"`` columns."""
    op = call.op
    if op.dual is None:
        return
    if op.route != "UB":
        yield f"dual destination with route {op.route}"
    if op.mode_row.vendor != "NoQuant" or op.activation:
        yield f"dual destination with mode {op.mode} and activation {op.activation}"
    if op.layout == "NZ2DN":
        yield "dual destination with NZ2DN"
    if op.dual == "M" and call.rows % 2:
        yield f"split of M = {call.rows}, which is odd"
    if op.dual == "N" and call.columns % 32:
        yield f"split of N = {call.columns}, which is not a multiple of 32"


@rule(
    "FIXP-16",
    states="S4 results come in whole bytes: n even for NZ2ND, m even for NZ2DN, the stride even.",
    cause="two results share a byte",
    effect=Effect.WRONG_RESULT,
    fix="Pad to an even count.",
    source="asc-devkit:newer C-API pages",
)
def whole_bytes(call: Call) -> Iterator[str]:
    """4-bit modes."""
    op = call.op
    if op.mode_row.targets != ("s4",):
        return
    if op.layout == "NZ2ND" and call.columns % 2:
        yield f"n = {call.columns} is odd"
    if op.layout == "NZ2DN" and call.rows % 2:
        yield f"m = {call.rows} is odd"
    if op.stride is not None and op.stride % 2:
        yield f"stride {op.stride} is odd"


@rule(
    "FIXP-17",
    states="Clip-ReLU goes with normal ReLU and a quantization mode.",
    cause="the clip stage belongs to the activation",
    effect=Effect.UNAVAILABLE,
    fix='Set activation="relu".',
    source="asc-devkit:ReLU on the way out",
)
def clip_needs_relu(call: Call) -> Iterator[str]:
    """A clip bound without ReLU, or on a bypass."""
    op = call.op
    if op.clip is not None and (op.activation != "relu" or op.mode_row.vendor == "NoQuant"):
        yield f"clip with activation {op.activation} and mode {op.mode}"


@rule(
    "FIXP-18",
    states="Parameters lie inside their buffer: Bias 4 KB, RELU-pre 2 KB, Quantization-pre 4 KB.",
    cause="the buffer ends there",
    effect=Effect.HARDWARE_EXCEPTION,
    fix="Load at most 512 columns (1024 of bias) at a time, from address 0.",
    source="seed:2.2; asc-devkit:DataCopy L1 to Fixpipe buffer",
)
def parameters_fit(call: Call) -> Iterator[str]:
    """The load address; the number of columns where one instruction must hold them."""
    row = buffer("Quantization-pre")
    if call.op.parameter_target_bytes >= row.size:
        yield f"buffer address {call.op.parameter_target_bytes} B is beyond the {row.size} B of {row.name}"
    for name, array in call.parameters:
        row = buffer({"scale": "Quantization-pre", "slope": "RELU-pre", "bias": "Bias"}[name])
        if call.op.enforce_limits and array.size > 1 and array.size > row.entries:
            yield f"{array.size} {name}s need {array.size * row.entry_bytes} B; {row.name} has {row.size} B"


@rule(
    "FIXP-19",
    states="A batch (ndNum, dnNum) is NZ2ND or NZ2DN, with one set of parameters for every matrix.",
    cause="the loop belongs to the ND and DN engines, and the parameter table does not advance in it",
    effect=Effect.UNAVAILABLE,
    fix="Issue one instruction per matrix.",
    source="asc-devkit:NZ2ND, NZ2DN",
)
def batch_layout(call: Call) -> Iterator[str]:
    """Batches of NZ2NZ, or to two unit buffers."""
    op = call.op
    if op.batches > 1 and op.layout == "NZ2NZ":
        yield f"{op.batches} matrices with layout NZ2NZ"
    if op.batches > 1 and op.dual is not None:
        yield f"{op.batches} matrices with a dual destination"


@rule(
    "FIXP-20",
    states="A leaky or parametric slope acts on a mode that multiplies, or on FP32.",
    cause="the slope replaces the multiplier; an S32 bypass has none",
    effect=Effect.UNAVAILABLE,
    fix='Use activation="relu", or a quantization mode.',
    source="asc-devkit:quantization with ReLU",
)
def slope_needs_multiplier(call: Call) -> Iterator[str]:
    """S32 bypass and shift modes."""
    row = call.op.mode_row
    if call.op.activation in ("leaky", "prelu") and row.accumulator == "s32" and not row.scaled:
        yield f"activation {call.op.activation} with mode {call.op.mode}"


@rule(
    "FIXP-21",
    states="The source row stride belongs to NZ2DN and is not zero.",
    cause="only the DN engine reads it",
    effect=Effect.HARDWARE_EXCEPTION,
    fix="Leave source_row_stride at 1.",
    source="asc-devkit:asc_set_l0c2gm_channel_para",
)
def row_stride(call: Call) -> Iterator[str]:
    """srcNzC0Stride."""
    op = call.op
    if op.source_row_stride < 1 or (op.source_row_stride != 1 and op.layout != "NZ2DN"):
        yield f"source row stride {op.source_row_stride} with layout {op.layout}"


RULES: tuple[Rule[Call], ...] = (
    no_subnormal_accumulator,
    parameters_are_normal,
    out_alignment,
    store_alignment,
    source_alignment,
    one_route,
    no_post_mode,
    no_dummy_columns,
    parameters_from_l1,
    parameter_alignment,
    size_limits,
    row_width,
    stride_fits,
    split_is_fp32,
    dual_destination,
    whole_bytes,
    clip_needs_relu,
    parameters_fit,
    batch_layout,
    slope_needs_multiplier,
    row_stride,
)

EMULATED = {"FIXP-03": "misplaced", "FIXP-06": "dropped", "FIXP-08": "dummy columns"}
"""Rules whose consequence the documents describe well enough to reproduce."""


def check(call: Call) -> Iterator[Finding]:
    """Yield every violation of the Fixpipe's rules by one instruction."""
    for row in RULES:
        yield from row.findings(call, f"Fixpipe {call.op.mode}")
