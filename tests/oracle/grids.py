"""The value grid of each format: magnitudes in ascending order with their codes, from a decoder of our own."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property

TWO = Fraction(2)
SCALE = 160  # 2**-159 is below half of the least value of any format here

# name: exponent bits, fraction bits, bias, what the top exponent holds
#   "ieee": infinity and NaN; "nan-max": only all-ones is NaN; "none": finite values only
IEEE_LIKE = {
    "fp16": (5, 10, 15, "ieee"),
    "bf16": (8, 7, 127, "ieee"),
    "fp19": (8, 10, 127, "ieee"),
    "e5m2": (5, 2, 15, "ieee"),
    "e4m3": (4, 3, 7, "nan-max"),
    "e3m2": (3, 2, 3, "none"),
    "e2m3": (2, 3, 1, "none"),
    "e2m1": (2, 1, 1, "none"),
    "e1m2": (1, 2, 1, "none"),
}
FLOATS = (*IEEE_LIKE, "hif8", "e8m0")
# name: bits, signed
INTEGERS = {
    "s4": (4, True),
    "u4": (4, False),
    "s8": (8, True),
    "u8": (8, False),
    "s16": (16, True),
    "u16": (16, False),
    "s32": (32, True),
    "u32": (32, False),
    "s64": (64, True),
}
CANONICAL_NAN = {
    "fp16": 0x7E00,
    "bf16": 0x7FC0,
    "fp19": 0x3FE00,
    "e4m3": 0x7F,
    "e5m2": 0x7E,
    "hif8": 0x80,
    "e8m0": 0xFF,
}


@dataclass(frozen=True)
class Grid:
    """Magnitudes of one format.

    values: ascending magnitudes. The last one is the first that does not fit (the next value of the same grid with
        an unbounded exponent); a result there has overflowed. For e8m0 the first one is, likewise, below the range.
    codes: their codes; of the ones outside the range only the last bit means anything.
    """

    name: str
    bits: int
    values: tuple[Fraction, ...]
    codes: tuple[int, ...]
    nan: int | None
    infinity: int | None
    sign_bit: int
    negative_zero: bool

    @cached_property
    def scaled(self) -> tuple[int, ...]:
        """The values as even integers, in units of 2**-SCALE: fractions are slow for the large grids."""
        return tuple(v.numerator << (SCALE - v.denominator.bit_length() + 1) for v in self.values)

    @property
    def max(self) -> Fraction:
        return self.values[-2]

    @property
    def max_code(self) -> int:
        return self.codes[-2]


def hif8_magnitude(code: int) -> Fraction:
    """Value of a positive finite HiF8 code, from its dot prefix."""
    text = f"{code:07b}"
    if text.startswith("0000"):
        step = int(text[4:], 2)
        return TWO ** (step - 23) if step else Fraction(0)
    if text.startswith("0001"):
        return 1 + Fraction(int(text[4:], 2), 8)
    for prefix, exponent_bits in (("001", 1), ("01", 2), ("10", 3), ("11", 4)):
        if text.startswith(prefix):
            field = text[len(prefix) : len(prefix) + exponent_bits]
            fraction = text[len(prefix) + exponent_bits :]
            size = int("1" + field[1:], 2)  # the top bit of the exponent's magnitude is implied
            exponent = -size if field[0] == "1" else size
            return TWO**exponent * (1 + Fraction(int(fraction, 2), 2 ** len(fraction)))
    raise AssertionError(text)


def ieee_magnitude(code: int, fraction_bits: int, bias: int) -> Fraction:
    """Value of a positive finite code of a format with gradual underflow."""
    exponent, fraction = divmod(code, 2**fraction_bits)
    if exponent == 0:
        return Fraction(fraction, 2**fraction_bits) * TWO ** (1 - bias)
    return (1 + Fraction(fraction, 2**fraction_bits)) * TWO ** (exponent - bias)


@cache
def grid(name: str) -> Grid:
    """Return the grid of a floating format."""
    if name == "hif8":
        codes = sorted((c for c in range(0x80) if c != 0x6F), key=hif8_magnitude)
        values = [*map(hif8_magnitude, codes), Fraction(3, 2) * 2**15]
        return Grid(name, 8, tuple(values), (*codes, 0x6F), 0x80, 0x6F, 0x80, negative_zero=False)
    if name == "e8m0":
        values = [TWO ** (c - 127) for c in range(-1, 256)]
        return Grid(name, 8, tuple(values), tuple(range(-1, 256)), 0xFF, None, 0, negative_zero=False)
    exponent_bits, fraction_bits, bias, top = IEEE_LIKE[name]
    all_ones = 2 ** (exponent_bits + fraction_bits) - 1
    finite = {
        "ieee": (2**exponent_bits - 1) << fraction_bits,
        "nan-max": all_ones,
        "none": all_ones + 1,
    }[top]
    values = [ieee_magnitude(c, fraction_bits, bias) for c in range(finite + 1)]
    return Grid(
        name,
        1 + exponent_bits + fraction_bits,
        tuple(values),
        tuple(range(finite + 1)),
        CANONICAL_NAN.get(name),
        finite if top == "ieee" else None,
        all_ones + 1,
        negative_zero=True,
    )


def integer_range(name: str) -> tuple[int, int]:
    """Return the least and greatest value of an integer format."""
    bits, signed = INTEGERS[name]
    return (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
