"""The vendor's rules on shape, stride, split and mode of a Fixpipe instruction."""

from collections.abc import Iterator

from narrowcast.catalog.machine import buffer
from narrowcast.fixpipe.addressing import C0
from narrowcast.fixpipe.call import STORE_GRAIN, Call
from narrowcast.fixpipe.cost import FIELD_COLUMNS, MOST_ROWS
from narrowcast.operation.findings import Effect, Rule, rule


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
        if call.columns > FIELD_COLUMNS:
            yield f"n = {call.columns} exceeds {FIELD_COLUMNS}"


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
        table, plural = {
            "scale": ("Quantization-pre", "scales"),
            "slope": ("RELU-pre", "slopes"),
            "bias": ("Bias", "biases"),
        }[name]
        row = buffer(table)
        if call.op.enforce_limits and array.size > 1 and array.size > row.entries:
            yield f"{array.size} {plural} need {array.size * row.entry_bytes} B; {row.name} has {row.size} B"


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
