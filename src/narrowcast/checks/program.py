"""A program as a list of steps with where and when each works."""

from dataclasses import dataclass
from typing import Any

from narrowcast.catalog.memories import memories
from narrowcast.checks.operations import DataCopy, LoadParameters
from narrowcast.errors import ShapeError


@dataclass(frozen=True, kw_only=True)
class Region:
    """A range of bytes in a memory."""

    memory: str
    offset_bytes: int = 0
    bytes: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "memory", self.memory if self.memory in ("UB0", "UB1") else memories[self.memory].name)
        if self.offset_bytes < 0 or self.bytes < 1:
            raise ShapeError(f"region of {self.bytes} B at {self.offset_bytes} in {self.memory}: no such range.")

    @property
    def end(self) -> int:
        """First byte behind it."""
        return self.offset_bytes + self.bytes

    def overlaps(self, other: "Region") -> bool:
        """Whether two ranges share a byte."""
        return self.memory == other.memory and self.offset_bytes < other.end and other.offset_bytes < self.end

    def __str__(self) -> str:
        return f"{self.memory}[{self.offset_bytes}:{self.end}]"


@dataclass(frozen=True, kw_only=True)
class Step:
    """One operation of a program.

    Attributes:
        op: an operation, a :class:`DataCopy` or :class:`LoadParameters`.
        name: for messages.
        time: start and end, in any one unit; None when the program does not say.
        reads, writes: ranges it touches.
        takes, gives: names of the tensors it consumes and makes.
        mask_format: format that its mask was built for.
        unit: pipe that runs it.
        place: file and line, or the name.
    """

    op: Any
    name: str = ""
    time: tuple[float, float] | None = None
    reads: tuple[Region, ...] = ()
    writes: tuple[Region, ...] = ()
    takes: tuple[str, ...] = ()
    gives: str | None = None
    mask_format: str | None = None
    unit: str = ""
    place: str = ""

    @property
    def kind(self) -> str:
        """Class of the operation."""
        return type(self.op).__name__

    @property
    def label(self) -> str:
        """How messages call it."""
        return self.name or self.kind

    @property
    def pipe(self) -> str:
        """The unit that runs it."""
        if self.unit:
            return self.unit
        if isinstance(self.op, DataCopy):
            return "MTE2" if self.op.origin == "GM" else "MTE3" if self.op.destination == "GM" else "MTE1"
        if isinstance(self.op, LoadParameters):
            return "FIX"
        return {"Fixpipe": "FIX", "Mmad": "M", "MmadMx": "M"}.get(self.kind, "V")

    def during(self, other: "Step") -> bool:
        """Whether both say when they run, and run at once."""
        if self.time is None or other.time is None:
            return False
        return self.time[0] < other.time[1] and other.time[0] < self.time[1]


@dataclass(frozen=True)
class Program:
    """Steps in order, for one chip.

    Attributes:
        steps: in program order.
        chip: the chip.
        authority: whom to believe.
        purpose: ``inference``, ``training`` or None.
        name: file it came from.
    """

    steps: tuple[Step, ...]
    chip: str = "3510"
    authority: str = "device"
    purpose: str | None = None
    name: str = ""
