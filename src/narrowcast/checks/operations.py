"""Steps of a program that move data: not operations that compute, so they live with the checks."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from narrowcast.catalog.formats import formats
from narrowcast.catalog.machine import buffer
from narrowcast.catalog.memories import PARAMETER_BUFFERS, memories
from narrowcast.errors import ShapeError
from narrowcast.fixpipe.rules import parameter_alignment, parameters_from_l1
from narrowcast.operation import Effect, Finding, Rule, Semantics, rule

GRAIN = 32  # bytes
_LEAST = {32: 8, 16: 16, 8: 32, 4: 64}  # elements of one grain by width


@dataclass(frozen=True, kw_only=True)
class DataCopy:
    """A transfer between memories.

    Args:
        origin: where from.
        destination: where to.
        format: element format.
        count: elements.
        origin_bytes: source address.
        destination_bytes: destination address.
        pads: a transfer that pads its tail itself (DataCopyPad).
    """

    origin: str
    destination: str
    format: str
    count: int
    origin_bytes: int = 0
    destination_bytes: int = 0
    pads: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "origin", memories[self.origin].name)
        object.__setattr__(self, "destination", memories[self.destination].name)
        object.__setattr__(self, "format", formats[self.format].name)
        if self.count < 1:
            raise ShapeError(f"DataCopy of {self.count} elements; it takes 1 or more.")

    @property
    def bytes(self) -> int:
        """Bytes moved."""
        return -(-self.count * formats[self.format].bits // 8)

    def violations(self, semantics: Semantics) -> Iterator[Finding]:
        """Rules of a transfer."""
        for each in COPY_RULES:
            yield from each.findings(self)


@dataclass(frozen=True, kw_only=True)
class LoadParameters:
    """A load of the Fixpipe's parameters into one of its buffers.

    Args:
        buffer: ``Quantization-pre``, ``RELU-pre`` or ``Bias``.
        entries: parameters.
        origin: where they come from.
        source_bytes: address there.
        target_bytes: address in the buffer.
    """

    buffer: str = "Quantization-pre"
    entries: int
    origin: str = "L1"
    source_bytes: int = 0
    target_bytes: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "origin", memories[self.origin].name)
        object.__setattr__(self, "buffer", memories[self.buffer].name)
        if self.buffer not in PARAMETER_BUFFERS:
            raise ShapeError(f"{self.buffer} holds no parameters; it is one of {', '.join(PARAMETER_BUFFERS)}.")
        if self.entries < 1:
            raise ShapeError(f"LoadParameters of {self.entries} entries; it takes 1 or more.")

    @property
    def bytes(self) -> int:
        """Bytes loaded."""
        return self.entries * (8 if self.buffer == "Quantization-pre" else 4)

    def violations(self, semantics: Semantics) -> Iterator[Finding]:
        """Rules of a parameter load."""
        for each in LOAD_RULES:
            yield from each.findings(self)


@rule(
    "VEC-11",
    states="DataCopy moves whole grains of 32 bytes: FP32 x 8, FP16 x 16, INT8 x 32.",
    cause="the transfer hardware moves 32-byte grains",
    effect=Effect.WRONG_RESULT,
    fix="Pad the tail to the grain, or use DataCopyPad.",
    source="seed:5.2#1",
)
def whole_grains(copy: DataCopy) -> Iterator[str]:
    bits = formats[copy.format].bits
    if copy.pads or copy.count * bits % (8 * GRAIN) == 0:
        return
    least = _LEAST.get(bits, 8 * GRAIN // bits)
    missing = -copy.count % least
    yield (
        f"{copy.count} {copy.format} elements are {copy.count * bits / 8:g} B, not a multiple of {GRAIN} B; "
        f"{copy.format} moves {least} at a time, so {missing} more"
    )


@rule(
    "VEC-19",
    states="An address in UB or L1 is a multiple of 32 bytes.",
    cause="on-chip memories are addressed in 32-byte grains",
    effect=Effect.HARDWARE_EXCEPTION,
    fix="Align the address to 32 B.",
    source="asc-devkit:DataCopy",
)
def aligned_copy(copy: DataCopy) -> Iterator[str]:
    for name, address in ((copy.origin, copy.origin_bytes), (copy.destination, copy.destination_bytes)):
        if name != "GM" and address % GRAIN:
            yield f"address {address} B in {name} is not a multiple of {GRAIN} B"


def _origin(load: LoadParameters) -> Iterator[str]:
    if load.origin != "L1":
        yield f"{load.buffer} is loaded from {load.origin}"


def _alignment(load: LoadParameters) -> Iterator[str]:
    row = buffer(load.buffer)
    if load.source_bytes % row.source_alignment:
        yield f"L1 source {load.source_bytes} B is not a multiple of {row.source_alignment} B"
    if load.target_bytes % row.destination_alignment:
        yield f"address {load.target_bytes} B in {load.buffer} is not a multiple of {row.destination_alignment} B"


def _of_a_load(row: Rule[Any], predicate: Callable[[LoadParameters], Iterator[str]]) -> Rule[LoadParameters]:
    """The Fixpipe's own rule, applied where the load is a step of its own."""
    return Rule(row.id, row.states, row.cause, row.effect, row.fix, row.source, predicate)


@rule(
    "PROG-01",
    states="Parameters fit in their buffer.",
    cause="Quantization-pre holds 512 entries of 8 bytes, RELU-pre 512 of 4, Bias 1024 of 4",
    effect=Effect.HARDWARE_EXCEPTION,
    fix="Split N into chunks of at most 512 columns.",
    source="seed:2.2; asc-devkit:DataCopy L1 to Fixpipe buffer",
)
def parameters_fit(load: LoadParameters) -> Iterator[str]:
    size = memories[load.buffer].size or 0
    if load.target_bytes + load.bytes > size:
        end = load.target_bytes + load.bytes
        yield f"{load.entries} entries from byte {load.target_bytes} end at {end}; {load.buffer} has {size} B"


COPY_RULES: tuple[Rule[DataCopy], ...] = (whole_grains, aligned_copy)
LOAD_RULES: tuple[Rule[LoadParameters], ...] = (
    _of_a_load(parameters_from_l1, _origin),
    _of_a_load(parameter_alignment, _alignment),
    parameters_fit,
)
STEPS = {"DataCopy": DataCopy, "LoadParameters": LoadParameters}
