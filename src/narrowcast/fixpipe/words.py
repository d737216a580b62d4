"""The 64-bit parameter word of the Fixpipe, and the words other chips and models use instead."""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from narrowcast.errors import EncodingError, unknown_name

FP19_MASK = 0xFFFFE000
"""The pipe reads bits 31:13 of the scale and ignores the rest."""

SMALLEST_NORMAL = 2.0**-126
SIGNED_BIT = 46
OFFSET_FIELD = 37
SHIFT_FIELD = 32
MCB_BIT = 36
OFFSET_RANGE = (-256, 255)


@dataclass(frozen=True)
class QuantParam:
    """Scale, offset and result sign of one column (or of all): one entry of the Quantization-pre buffer.

    Word (chip 3510): scale in 31:13 (fp32 with 10 fraction bits), two's complement offset in 45:37, bit 46 set
    for S8 results. Other bits are ignored.

    Args:
        scale: fp32 multiplier of the accumulator; finite and not subnormal. Zero is legal.
        offset: integer in -256..255, live for the 8-bit and 4-bit integer modes.
        signed: S8 rather than U8 results.

    Raises:
        EncodingError: a scale or offset the word cannot hold.

    Source: asc-devkit:on-the-fly quantization, table 2; seed:5.1#2.

    Example:
        >>> hex(QuantParam(1.5, 100).word)
        '0x4c803fc00000'
    """

    scale: float
    offset: int = 0
    signed: bool = True

    def __post_init__(self) -> None:
        check_scales(np.float32(self.scale))
        object.__setattr__(self, "scale", float(np.float32(self.scale)))
        offset = check_offsets(np.asarray(self.offset))
        object.__setattr__(self, "offset", int(offset))

    @property
    def word(self) -> int:
        """The 64-bit word, with the scale truncated to 19 bits."""
        return int(quant_words(np.float32(self.scale), np.int64(self.offset), self.signed))

    @property
    def truncated_scale(self) -> float:
        """The scale the pipe multiplies by: fp32 with the low 13 bits cleared."""
        return float(truncate_scale(np.float32(self.scale)))

    @classmethod
    def from_word(cls, word: int) -> Self:
        """Decode a word; bits the pipe ignores are dropped."""
        if not 0 <= word < 1 << 64:
            raise EncodingError(f"a parameter word has 64 bits; {word:#x} does not fit.")
        scale, offset, signed = split_words(np.array([word], dtype=np.uint64))
        return cls(float(scale[0]), int(offset[0]), bool(signed[0]))


def truncate_scale(scale: npt.ArrayLike) -> npt.NDArray[np.float32]:
    """Clear the 13 low bits of fp32 scales: 0.1 becomes 0.0999755859375."""
    bits = np.asarray(scale, dtype=np.float32).view(np.uint32) & np.uint32(FP19_MASK)
    return np.asarray(bits).view(np.float32)


def check_scales(scale: npt.ArrayLike, *, name: str = "scale") -> None:
    """Refuse infinite, NaN and subnormal parameters, naming the first."""
    array = np.atleast_1d(np.asarray(scale, dtype=np.float32))
    magnitude = np.abs(truncate_scale(array))
    raw = np.abs(array)
    bad = ~np.isfinite(raw) | ((raw > 0) & (magnitude < np.float32(SMALLEST_NORMAL)))
    if bad.any():
        index = int(np.argmax(bad))
        what = "subnormal" if np.isfinite(raw.reshape(-1)[index]) else "not finite"
        raise EncodingError(
            f"{name} {array.reshape(-1)[index]!s} at index {index} is {what}; the pipe uses parameters as they are, "
            "so the result would be wrong.",
            hint="Use a normal fp32 value (at least 2**-126) or zero.",
            source="seed:5.1#2",
        )


def check_offsets(offset: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Convert to integers, round half to even; refuse what nine signed bits cannot hold."""
    whole = np.rint(np.asarray(offset, dtype=np.float64))
    low, high = OFFSET_RANGE
    bad = ~((whole >= low) & (whole <= high))
    if bad.any():
        index = int(np.argmax(np.atleast_1d(bad)))
        raise EncodingError(
            f"offset {np.atleast_1d(offset)[index]:g} at index {index} is outside {low}..{high} "
            "(9 signed bits, 45:37).",
            hint="Choose a smaller offset; the field does not wrap.",
            source="asc-devkit:on-the-fly quantization, table 2",
        )
    return whole.astype(np.int64)


def quant_words(scale: npt.ArrayLike, offset: npt.ArrayLike, signed: bool) -> npt.NDArray[np.uint64]:
    """Build words from arrays of scales and offsets (broadcast together).

    Raises:
        EncodingError: a scale or offset the word cannot hold.
    """
    check_scales(scale)
    whole = check_offsets(np.asarray(offset))
    bits = (np.asarray(scale, dtype=np.float32).view(np.uint32) & np.uint32(FP19_MASK)).astype(np.uint64)
    field = (whole & 0x1FF).astype(np.uint64) << np.uint64(OFFSET_FIELD)
    return np.asarray(bits | field | np.uint64(int(signed) << SIGNED_BIT))


def split_words(
    words: npt.NDArray[np.uint64], *, offset_signed: bool = True
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Return scale (19 bits), offset and sign flag of each word."""
    scale = truncate_scale((words & np.uint64(0xFFFFFFFF)).astype(np.uint32).view(np.float32))
    field = ((words >> np.uint64(OFFSET_FIELD)) & np.uint64(0x1FF)).astype(np.int64)
    if offset_signed:
        field = np.where(field > 255, field - 512, field)
    return scale, field, ((words >> np.uint64(SIGNED_BIT)) & np.uint64(1)).astype(np.bool_)


@dataclass(frozen=True)
class QuantParam2201:
    """The word of chip 2201: as 3510, plus a right shift N in 35:32 (stored N - 1) and its enable MCB in bit 36.

    With MCB set, REQ8 shifts the S32 accumulator right by N and saturates it to S16 before the multiply. Chip
    3510 ignores both fields, so a word carried over gives another result there.

    Source: asc-devkit:on-the-fly quantization, table 1.
    """

    scale: float
    offset: int = 0
    signed: bool = True
    shift: int = 1
    shifts: bool = False

    SHIFT_RANGE: ClassVar[tuple[int, int]] = (1, 16)

    def __post_init__(self) -> None:
        low, high = self.SHIFT_RANGE
        if not low <= self.shift <= high:
            raise EncodingError(f"shift {self.shift} is outside {low}..{high} (4 bits, stored less one).")
        QuantParam(self.scale, self.offset, self.signed)

    @property
    def word(self) -> int:
        """The 64-bit word."""
        base = QuantParam(self.scale, self.offset, self.signed).word
        return base | (self.shift - 1) << SHIFT_FIELD | int(self.shifts) << MCB_BIT

    @classmethod
    def from_word(cls, word: int) -> Self:
        """Decode a word."""
        base = QuantParam.from_word(word)
        return cls(base.scale, base.offset, base.signed, ((word >> SHIFT_FIELD) & 0xF) + 1, bool(word >> MCB_BIT & 1))


@dataclass(frozen=True)
class SpecQuantParam:
    """The word of the executable specification: no sign flag, an offset as wide as the intermediate, a shift.

    Args:
        scale: positive normal fp19; the shift mode has none.
        offset: 5, 9 or 17 signed bits from bit 37, by target; none for ``float`` and ``shift``.
        target: ``s4``, ``s8``, ``s16``, ``float`` (any floating-point result) or ``shift``.
        shift: 1..16, stored less one in 35:32; the shift mode's only field.

    Source: pto-spec:matrix-postprocess.

    Example:
        >>> hex(SpecQuantParam(1.0, -1, "s4").word)
        '0x3e03f800000'
    """

    scale: float
    offset: int = 0
    target: str = "s8"
    shift: int = 1

    OFFSET_BITS: ClassVar[dict[str, int]] = {"s4": 5, "s8": 9, "s16": 17, "float": 0, "shift": 0}

    def __post_init__(self) -> None:
        if self.target not in self.OFFSET_BITS:
            raise unknown_name("target of a specification's parameter word", self.target, self.OFFSET_BITS)
        scale = np.float32(self.scale)
        if self.target != "shift" and not (scale >= SMALLEST_NORMAL and np.isfinite(scale)):
            raise EncodingError(
                f"scale {self.scale} is not a positive normal number, which this word needs.",
                hint="Use another authority for a zero or negative scale.",
                source="pto-spec:matrix-postprocess",
            )
        bits = self.OFFSET_BITS[self.target]
        if not -(1 << bits >> 1) <= self.offset < max(1, 1 << bits >> 1):
            raise EncodingError(f"offset {self.offset} does not fit {bits} signed bits.", source="pto-spec")
        if not 1 <= self.shift <= (16 if self.target == "shift" else 1):
            raise EncodingError(f"shift {self.shift}: the shift mode takes 1..16, the others none.", source="pto-spec")

    @property
    def word(self) -> int:
        """The 64-bit word."""
        bits = self.OFFSET_BITS[self.target]
        scale = 0 if self.target == "shift" else int(truncate_scale(np.float32(self.scale)).view(np.uint32))
        return scale | (self.shift - 1) << SHIFT_FIELD | (self.offset & ((1 << bits) - 1)) << OFFSET_FIELD

    @classmethod
    def from_word(cls, word: int, target: str) -> Self:
        """Decode a word for a target; a bit outside its fields is refused."""
        if target not in cls.OFFSET_BITS:
            raise unknown_name("target of a specification's parameter word", target, cls.OFFSET_BITS)
        if not 0 <= word < 1 << 64:
            raise EncodingError(f"a parameter word has 64 bits; {word:#x} does not fit.")
        bits = cls.OFFSET_BITS[target]
        used = 0xF << SHIFT_FIELD if target == "shift" else FP19_MASK | ((1 << bits) - 1) << OFFSET_FIELD
        if word & ~used:
            raise EncodingError(
                f"word {word:#018x} has bits {word & ~used:#x} set, which are reserved for target {target}.",
                hint="Build it with SpecQuantParam; the specification's word has no sign flag.",
                source="pto-spec:matrix-postprocess",
            )
        raw = word >> OFFSET_FIELD & ((1 << bits) - 1)
        offset = raw - (1 << bits) if bits and raw >> (bits - 1) else raw
        scale = np.array([word & FP19_MASK], dtype=np.uint32).view(np.float32)
        return cls(float(scale[0]), offset, target, (word >> SHIFT_FIELD & 0xF) + 1)
