"""Registers beside the parameter word: the ReLU slope, the clip bounds and the table addresses."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from narrowcast.catalog import machine
from narrowcast.catalog.formats import formats
from narrowcast.errors import EncodingError, FormatError
from narrowcast.fixpipe.words import FP19_MASK, check_scales, truncate_scale
from narrowcast.quant import decode, encode


@dataclass(frozen=True)
class ReluAlpha:
    """RELU_ALPHA: the multiplier that replaces the scale for negative accumulators (leaky ReLU).

    Word: fp19 in 31:13; the post-stage slope in 63:45 is not used by chip 3510. A vector slope (PReLU) is the low
    half alone, one 32-bit word a column in the RELU-pre buffer.

    Args:
        slope: fp32, normal or zero; 13 low bits are dropped.

    Source: asc-devkit:asc_set_l0c2gm_relu_alpha.

    Example:
        >>> hex(ReluAlpha(0.1).word)
        '0x3dccc000'
    """

    slope: float

    def __post_init__(self) -> None:
        check_scales(np.float32(self.slope), name="slope")
        object.__setattr__(self, "slope", float(truncate_scale(np.float32(self.slope))))

    @property
    def word(self) -> int:
        """The 64-bit word."""
        return int(np.float32(self.slope).view(np.uint32))

    @classmethod
    def from_word(cls, word: int) -> Self:
        """Decode a word; the post-stage field must be empty.

        Raises:
            EncodingError: a post-stage slope.
        """
        if word >> 45:
            raise EncodingError(
                f"word {word:#018x} has a post-stage slope (63:45); chip 3510 has no post stage.",
                source="seed:5.1#7; asc-devkit:asc_set_l0c2gm_relu_alpha",
            )
        return cls(float(np.array([word & FP19_MASK], dtype=np.uint32).view(np.float32)[0]))


@dataclass(frozen=True)
class ClipRelu:
    """FIX_CLIP_RELU: the upper bound of clip-ReLU, written in the destination's format.

    Word: pre-stage bound in 15:0; the post-stage bound in 31:16 is not used by chip 3510.

    Args:
        bound: upper bound, a value of the destination.
        target: destination format of at most 16 bits.

    Source: asc-devkit:SetFixPipeClipRelu.

    Example:
        >>> hex(ClipRelu(1.0, "fp16").word)
        '0x3c00'
    """

    bound: float
    target: str

    def __post_init__(self) -> None:
        row = formats[self.target]
        if row.bits > 16:
            raise FormatError(f"the clip register holds 16 bits; {row.name} has {row.bits}.")
        code = encode(np.array([self.bound], dtype=np.float32), row.name, nan="error")
        if float(decode(code, row.name)[0]) != self.bound:
            raise FormatError(
                f"clip bound {self.bound} is no {row.name} value.",
                hint=f"The nearest is {float(decode(code, row.name)[0])}.",
                source="asc-devkit:SetFixPipeClipRelu",
            )
        object.__setattr__(self, "target", row.name)

    @property
    def word(self) -> int:
        """The register's value."""
        return int(encode(np.array([self.bound], dtype=np.float32), self.target)[0])

    @classmethod
    def from_word(cls, word: int, target: str) -> Self:
        """Decode the pre-stage bound.

        Raises:
            EncodingError: a post-stage bound.
        """
        if word >> 16:
            raise EncodingError(
                f"word {word:#x} has a post-stage bound (31:16); chip 3510 has no post stage.", source="seed:5.1#7"
            )
        row = formats[target]
        return cls(float(decode(np.array([word & row.code_mask], dtype=row.code_dtype), row.name)[0]), target)


@dataclass(frozen=True)
class TableAddress:
    """FPC: where in the Fixpipe buffer the tables of slopes and of parameter words begin.

    Word: ReLU table address / 64 in 7:0, quantization table address / 128 in 15:8.

    Args:
        relu: byte address of the slopes, a multiple of 64.
        quantization: byte address of the words, a multiple of 128.

    Source: asc-devkit:SetFixPipeConfig.

    Example:
        >>> TableAddress(quantization=256).of_word(20)
        416
    """

    relu: int = 0
    quantization: int = 0

    def __post_init__(self) -> None:
        for name, value in (("RELU-pre", self.relu), ("Quantization-pre", self.quantization)):
            row = machine.buffer(name)
            assert row.table_unit is not None
            if value % row.table_unit or not 0 <= value < row.size:
                raise EncodingError(
                    f"table address {value} B in the {name} buffer is not a multiple of {row.table_unit} B below "
                    f"{row.size} B.",
                    source=row.source,
                )

    @property
    def word(self) -> int:
        """The register's value."""
        return self.relu // 64 | self.quantization // 128 << 8

    @classmethod
    def from_word(cls, word: int) -> Self:
        """Decode the register."""
        return cls(relu=(word & 0xFF) * 64, quantization=(word >> 8 & 0xFF) * 128)

    def of_word(self, column: int) -> int:
        """Byte address of the parameter word of a column."""
        return self._entry("Quantization-pre", self.quantization, column)

    def of_slope(self, column: int) -> int:
        """Byte address of the ReLU slope of a column."""
        return self._entry("RELU-pre", self.relu, column)

    @staticmethod
    def _entry(name: str, start: int, column: int) -> int:
        row = machine.buffer(name)
        address = start + column * row.entry_bytes
        if not 0 <= address <= row.size - row.entry_bytes:
            raise EncodingError(
                f"column {column} from {start} B lies outside the {row.size} B of the {name} buffer.",
                hint=f"Load at most {row.entries} columns at a time.",
                source=row.source,
            )
        return address
