"""The ten constraints of seed 5.1 beside the operation they bind; :mod:`vendor_rules` has the vendor's."""

from collections.abc import Iterator

import numpy as np

from narrowcast.catalog.machine import buffer
from narrowcast.fixpipe import vendor_rules
from narrowcast.fixpipe.addressing import C0
from narrowcast.fixpipe.call import STORE_GRAIN, Call
from narrowcast.fixpipe.words import SMALLEST_NORMAL
from narrowcast.operation.findings import Effect, Finding, Rule, rule
from narrowcast.quant.arrays import first_index

_BLOCK = 1 << 16  # elements


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
                row, *rest = first_index(small)
                first = (start + row, *rest)
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
        yield f"offset {op.offset_bytes:g} B of a {op.layout} store is not a multiple of {STORE_GRAIN} B"


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
    *vendor_rules.RULES,
)

EMULATED = {"FIXP-03": "misplaced", "FIXP-06": "dropped", "FIXP-08": "dummy columns"}
"""Rules whose consequence the documents describe well enough to reproduce."""


def check(call: Call) -> Iterator[Finding]:
    """Yield every violation of the Fixpipe's rules by one instruction."""
    for row in RULES:
        yield from row.findings(call, f"Fixpipe {call.op.mode}")
