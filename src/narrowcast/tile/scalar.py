"""TDEQUANT and TQUANT of the ISA specification: one multiplier and one integer zero point, exact, with flags."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from narrowcast.catalog.formats import formats
from narrowcast.errors import ShapeError
from narrowcast.operation import Choices, Control, Finding, Semantics
from narrowcast.operation.protocol import Inputs, execute
from narrowcast.tile.events import RecordEvent, record
from narrowcast.tile.exact import rmode, round_to_fp32, round_to_integer
from narrowcast.tile.spelling import Order
from narrowcast.tile.tile import Tile
from narrowcast.tile.types import Array, TileType, canonical, tile_type

LEGALITY = "Fault_TileLegality"
ONE = 0x3F800000
_SOURCE = "pto-spec:TDEQUANT, TQUANT"
_WORD = 1 << 64


def multiplier_word(value: float | int) -> int:
    """Return the register word of a multiplier: a float's fp32 bits, an int as it is."""
    if isinstance(value, int):
        return value
    return int(np.float32(value).view(np.uint32))


def multiplier_value(word: int) -> float:
    """Return the multiplier in a register word; its upper 32 bits are not examined."""
    return float(np.uint32(word & 0xFFFFFFFF).view(np.float32))


def scale_legal(word: int) -> bool:
    """Whether a register word holds a legal multiplier: positive, finite, not zero; subnormals are legal."""
    return 0 < word & 0xFFFFFFFF < 0x7F800000


def zero_point_legal(word: int, dtype: str) -> bool:
    """Whether a 64-bit register word is the extension of an 8-bit value of the format."""
    value = word - _WORD if word >> 63 else word
    row = formats[dtype]
    return row.min <= value <= row.max


def _legality(message: str, operand: str, name: str) -> Finding:
    return Finding(rule=LEGALITY, place=f"{name} {operand}", message=message, source=_SOURCE)


@dataclass(frozen=True, kw_only=True)
class _Scalar(ABC):
    """What both instructions have: two tiles of one valid shape, a multiplier word and a zero-point word."""

    dst: str
    src: str
    multiplier: int = ONE
    zero_point: int = 0
    rounding: str = "RNE"
    saturate: bool = False

    inputs: ClassVar[tuple[str, ...]] = ("src",)
    name: ClassVar[str] = ""
    source_dtypes: ClassVar[tuple[str, ...]] = ()
    target_dtypes: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        for field in ("dst", "src"):
            object.__setattr__(self, field, canonical(getattr(self, field)))
        object.__setattr__(self, "rounding", rmode(self.rounding))
        object.__setattr__(self, "zero_point", self.zero_point % _WORD)

    @property
    def switches(self) -> tuple[str, ...]:
        """None: the specification is executable."""
        return ()

    def type(self, operand: str) -> TileType:
        """Return the type of an operand by name."""
        return tile_type(getattr(self, operand))

    @property
    @abstractmethod
    def integer(self) -> str:
        """The integer format that bounds the zero point."""

    @property
    def offset(self) -> int:
        """The zero point as a number."""
        return self.zero_point - _WORD if self.zero_point >> 63 else self.zero_point

    def violations(self, semantics: Semantics) -> Iterable[Finding]:
        """What the specification's legality predicate refuses."""
        src, dst = self.type("src"), self.type("dst")
        if src.dtype not in self.source_dtypes:
            yield _legality(f"{src.dtype} is not {' or '.join(self.source_dtypes)}", "src", self.name)
        if dst.dtype not in self.target_dtypes:
            yield _legality(f"{dst.dtype} is not {' or '.join(self.target_dtypes)}", "dst", self.name)
        for operand, kind in (("src", src), ("dst", dst)):
            if kind.blocks is not Order.ROW or kind.boxed:
                yield _legality(f"{kind.layout} is not row-major", operand, self.name)
        if src.valid != dst.valid or src.cols != dst.cols:
            yield _legality(f"{dst.short} does not match src {src.short} in valid shape and columns", "dst", self.name)
        if not scale_legal(self.multiplier):
            yield _legality(
                f"multiplier word {self.multiplier:#x} is not a positive finite fp32 number", "scalar0", self.name
            )
        if self.integer in ("s8", "u8") and not zero_point_legal(self.zero_point, self.integer):
            yield _legality(f"zero point {self.offset} is not a {self.integer} value", "scalar1", self.name)
        yield from self._more()

    def _more(self) -> Iterator[Finding]:
        yield from ()

    def _source(self, inputs: Inputs) -> Array:
        values = np.asarray(inputs["src"])
        if values.shape != self.type("src").valid:
            raise ShapeError(f"src has shape {values.shape}; its valid region is {self.type('src').valid}.")
        return values


@dataclass(frozen=True, kw_only=True)
class TDequantScalar(_Scalar):
    """TDEQUANT of the ISA specification as data.

    Formula: ``dst = round((src - zero_point) * multiplier)``, exact until the one rounding to fp32.

    Args:
        dst: type of the fp32 result tile.
        src: type of the s8 or u8 code tile.
        multiplier: register word, fp32 bits.
        zero_point: register word, or the signed number.
        rounding: RMode name.
        saturate: must stay False.

    Source: pto-spec:TDEQUANT.
    """

    name: ClassVar[str] = "TDEQUANT"
    source_dtypes: ClassVar[tuple[str, ...]] = ("s8", "u8")
    target_dtypes: ClassVar[tuple[str, ...]] = ("fp32",)

    @property
    def integer(self) -> str:
        return self.type("src").dtype

    def _more(self) -> Iterator[Finding]:
        if self.saturate:
            yield _legality("Sat is inapplicable and must be 0", "control", self.name)

    def run(self, inputs: Inputs, choices: Choices, control: Control, out: Any = None) -> Any:
        """Return ``dst`` (fp32 values of the valid region) and the sticky ``flags``."""
        exact = (self._source(inputs).astype(np.float64) - self.offset) * multiplier_value(self.multiplier)
        rounded = round_to_fp32(exact, self.rounding)
        return {"dst": rounded.values, "flags": np.uint8(rounded.sticky)}


@dataclass(frozen=True, kw_only=True)
class TQuantScalar(_Scalar):
    """TQUANT of the ISA specification as data.

    Formula: ``dst = round(src * multiplier + zero_point)``, exact until the one rounding, then clamped or wrapped.

    Args:
        dst: type of the s8 or u8 result tile.
        src: type of the fp32 tile.
        multiplier: register word, fp32 bits.
        zero_point: register word, or the signed number.
        rounding: RMode name.
        saturate: clamp instead of keeping the low bits.

    Source: pto-spec:TQUANT.
    """

    name: ClassVar[str] = "TQUANT"
    source_dtypes: ClassVar[tuple[str, ...]] = ("fp32",)
    target_dtypes: ClassVar[tuple[str, ...]] = ("s8", "u8")

    @property
    def integer(self) -> str:
        return self.type("dst").dtype

    def run(self, inputs: Inputs, choices: Choices, control: Control, out: Any = None) -> Any:
        """Return ``dst`` (integers of the valid region) and the sticky ``flags``."""
        target = formats[self.integer]
        rounded = round_to_integer(
            self._source(inputs), multiplier_value(self.multiplier), self.offset, target, self.rounding, self.saturate
        )
        dtype = np.int8 if target.signed else np.uint8
        return {"dst": rounded.values.astype(dtype), "flags": np.uint8(rounded.sticky)}


def issue(op: TDequantScalar | TQuantScalar, dst: Tile, src: Tile, events: tuple[RecordEvent, ...]) -> RecordEvent:
    """Run a scalar form on tiles; the event carries the status flags."""
    result = execute(op, {"src": src.numpy()}, Semantics("pto-spec"))
    dst.store(result["dst"])
    return record(op.name, "V", (src,), (dst,), events, int(result["flags"]))


def scalar(value: Any, what: str) -> float | int:
    """Return a number, or say that a register operand is one."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise ShapeError(
            f"under pto-spec {what} is one number in a register; got {type(value).__name__}.",
            hint="Parameter tiles belong to the device, seed and pto-isa authorities.",
            source=_SOURCE,
        )
    return int(value) if isinstance(value, int | np.integer) else float(value)
