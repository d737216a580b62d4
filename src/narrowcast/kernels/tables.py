"""Tables of the specification's answers, built once for each rule.

The 14-bit index keeps an fp32's sign, exponent and four fraction bits, and folds every lower bit into one. A mode
that asks only for a format's kept bits, the next one, and whether anything follows cannot tell two fp32 with one
index apart, as long as the format keeps at most three fraction bits in a binade.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import ml_dtypes
import numpy as np

from narrowcast import numerics
from narrowcast.catalog.formats import formats
from narrowcast.kernels.arrays import Array
from narrowcast.schema import Format, IntFormat, Magnitudes, Rounding

_KEPT = 32  # a few rules are in use at a time; an fp32 value table takes 64 KiB


class Rule(NamedTuple):
    """What decides the code of a value: the target and every policy, by name, so that it is cheap to look up."""

    target: str
    rounding: str
    saturate: bool
    nan: str
    hybrid_compare: str = "ge"
    overflow: str = "after-rounding"

    @property
    def format(self) -> Format:
        """The target's row."""
        return formats[self.target]

    @property
    def refuses_nan(self) -> bool:
        """Whether a NaN is an error."""
        return self.nan == "error" or (self.nan == "keep" and self.format.nan_code is None)

    @property
    def spoken(self) -> "Rule":
        """The same rule for elements that are no error."""
        policy = "zero" if self.refuses_nan else self.nan
        return Rule(self.target, self.rounding, self.saturate, policy, self.hybrid_compare, self.overflow)

    def apply(self, values: Array) -> Array:
        """Ask the specification for the codes of a flat array."""
        return numerics.encode(
            values,
            self.format,
            Rounding(self.rounding),
            saturate=self.saturate,
            nan=self.spoken.nan,
            hybrid_compare=self.hybrid_compare,
            overflow=self.overflow,
        )


def fits_index14(rule: Rule) -> bool:
    """Whether 14 bits of an fp32 decide every code."""
    target = rule.format
    if rule.rounding == "rh" or target.bits > 8:
        return False
    if isinstance(target, IntFormat):
        # Four bits below the top one hold an integer up to 15, its half and the rest; overflow that wraps needs more.
        return target.bits <= 4 and rule.saturate
    assert isinstance(target, Magnitudes)
    return max(b.fraction_bits for b in target.binades) <= 3


@lru_cache(maxsize=1)
def _representatives() -> Array:
    """One fp32 for each 14-bit index."""
    index = np.arange(1 << 14, dtype=np.uint32)
    bits = ((index >> np.uint32(1)) << np.uint32(19)) | ((index & np.uint32(1)) << np.uint32(18))
    return bits.view(np.float32)


@lru_cache(maxsize=_KEPT)
def codes14(rule: Rule) -> Array:
    """Code of each 14-bit index, uint8[16384]."""
    return rule.apply(_representatives())


@lru_cache(maxsize=_KEPT)
def values14(rule: Rule) -> Array:
    """Rounded value of each 14-bit index, float32[16384]."""
    return numerics.decode(codes14(rule), rule.format)


@lru_cache(maxsize=_KEPT)
def codes_of_patterns(source: str, rule: Rule) -> Array:
    """Code of every bit pattern of an 8-bit or 16-bit source."""
    dtype = np.dtype(ml_dtypes.bfloat16 if source == "bfloat16" else source)
    patterns = np.arange(1 << (8 * dtype.itemsize), dtype=f"uint{8 * dtype.itemsize}")
    return rule.apply(patterns.view(dtype))


@lru_cache(maxsize=_KEPT)
def values_of_codes(name: str) -> Array:
    """Value of every code of a format of at most 8 bits, float32[256]; NaN where there is no code."""
    table = np.full(256, np.nan, dtype=np.float32)
    values = numerics.decode_table(formats[name])
    table[: values.size] = values
    return table


@dataclass(frozen=True)
class Limits:
    """What an arithmetic kernel needs to know of a rule beside the grid."""

    over: int  # code of +infinity under the rule
    over_bits: int  # and its value, as fp32 bits
    nan: int  # code of NaN
    nan_bits: int


@lru_cache(maxsize=_KEPT)
def limits(rule: Rule) -> Limits:
    """Ask the specification what infinity and NaN become."""
    codes = rule.apply(np.array([np.inf, np.nan], dtype=np.float32))
    values = numerics.decode(codes, rule.format)
    bits = values.astype(np.float32).view(np.uint32)
    return Limits(over=int(codes[0]), over_bits=int(bits[0]), nan=int(codes[1]), nan_bits=int(bits[1]))
