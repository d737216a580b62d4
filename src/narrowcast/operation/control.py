"""What the program set: the control bits that casts and the Fixpipe obey."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Self

from narrowcast.errors import EncodingError

RESET_WORD = 0x1000000000000008
"""Reset value of CTRL: bit 60 set, so the global bits decide, and they say saturate."""


@dataclass(frozen=True)
class Control:
    """CTRL bits by name, at their reset values.

    Args:
        ctrl48: float results: 0 saturate (inf to the largest finite value, NaN to 0), 1 keep inf and NaN.
        ctrl50: with ``ctrl48=0``: 1 keeps NaN for e8m0, e5m2 and e4m3.
        ctrl53: integer arithmetic saturates when 1; casts ignore it.
        ctrl59: integer results: 0 saturate, 1 keep the low bits.
        ctrl60: 0 each instruction decides, 1 the global bits decide.

    Source: asc-devkit:SetCtrlSpr.
    """

    ctrl48: int = 0
    ctrl50: int = 0
    ctrl53: int = 0
    ctrl59: int = 0
    ctrl60: int = 1

    def __post_init__(self) -> None:
        for item in fields(self):
            value = getattr(self, item.name)
            if value not in (0, 1):
                message = f"{item.name} is {value!r}; a control bit is 0 or 1."
                raise EncodingError(message, source="asc-devkit:SetCtrlSpr")

    def float_saturates(self, instruction: bool) -> bool:
        """Whether a float -> narrower float conversion saturates, given the instruction's own choice."""
        return self.ctrl48 == 0 if self.ctrl60 else instruction

    def integer_saturates(self, instruction: bool) -> bool:
        """Whether a conversion to integer saturates, given the instruction's own choice."""
        return self.ctrl59 == 0 if self.ctrl60 else instruction

    @property
    def word(self) -> int:
        """The 64-bit register, other bits at reset."""
        word = RESET_WORD
        for item in fields(self):
            bit = int(item.name.removeprefix("ctrl"))
            word = (word & ~(1 << bit)) | (getattr(self, item.name) << bit)
        return word

    @classmethod
    def from_word(cls, word: int) -> Self:
        """Read the named bits of a 64-bit register value."""
        if not 0 <= word < 1 << 64:
            raise EncodingError(f"CTRL is 64 bits; {word:#x} does not fit.")
        bits = {item.name: (word >> int(item.name.removeprefix("ctrl"))) & 1 for item in fields(cls)}
        return replace(cls(), **bits)

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return asdict(self)

    @classmethod
    def from_json(cls, form: Mapping[str, Any]) -> Self:
        """Build from the JSON form."""
        return cls(**form)
