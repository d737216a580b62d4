"""Take one code apart: its fields, what each of them says, and the exact value."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from narrowcast.errors import FormatError
from narrowcast.insight.exact import NAN, Number
from narrowcast.schema import FloatFormat, Format, IntFormat, Magnitudes, ScaleFormat, TaperedFormat


@dataclass(frozen=True)
class BitField:
    """A group of neighbouring bits, most significant first, and what it says."""

    name: str
    bits: str
    means: str


@dataclass(frozen=True)
class Reading:
    """One code of a format, read."""

    format: str
    code: int
    hex: str
    kind: str  # zero, subnormal, normal, infinity, nan, integer
    fields: tuple[BitField, ...]
    number: Number

    @property
    def bits(self) -> str:
        """The code in binary, fields separated by dots."""
        return ".".join(field.bits for field in self.fields)

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form; exact values are strings."""
        return {
            "format": self.format,
            "code": self.code,
            "hex": self.hex,
            "bits": self.bits,
            "kind": self.kind,
            "value": self.number.decimal,
            "power": self.number.power,
            "fields": [{"name": f.name, "bits": f.bits, "means": f.means} for f in self.fields],
        }


def code_hex(code: int, fmt: Format) -> str:
    """Write a code with the digits its format has."""
    return f"0x{code:0{(fmt.bits + 3) // 4}X}"


def read_code(code: int, fmt: Format) -> Reading:
    """Read a code of ``fmt``.

    Args:
        code: the bits, as an unsigned integer.
        fmt: the format's row.

    Raises:
        FormatError: the code has more bits than the format.

    Example:
        >>> from narrowcast.catalog.formats import formats
        >>> reading = read_code(0x7E, formats["e4m3"])
        >>> reading.bits, reading.number.power
        ('0.1111.110', '1.75 * 2^8')
    """
    if not 0 <= code <= fmt.code_mask:
        raise FormatError(
            f"{code:#x} has {code.bit_length()} bits; a code of {fmt.name} has {fmt.bits} "
            f"(0x0 to {code_hex(fmt.code_mask, fmt)}).",
            source=fmt.source,
        )
    number = code_number(code, fmt)
    kind = _kind(number, fmt)
    return Reading(fmt.name, code, code_hex(code, fmt), kind, tuple(_fields(code, fmt, kind)), number)


def code_number(code: int, fmt: Format) -> Number:
    """Compute the exact value of a code."""
    if isinstance(fmt, IntFormat):
        value = code - (1 << fmt.bits) if code > fmt.max else code
        return Number(Fraction(value), value < 0)
    assert isinstance(fmt, Magnitudes)
    negative = bool(code & fmt.sign_bit)
    if code == fmt.nan_code:
        return NAN
    rank = code_rank(code & ~fmt.sign_bit, fmt)
    if rank is None or rank >= fmt.overflow_rank:
        infinite = (code & ~fmt.sign_bit) == fmt.inf_code
        return Number(None, negative) if infinite else NAN
    magnitude = Fraction(fmt.rank_value(rank))
    return Number(-magnitude if negative else magnitude, negative)


def code_rank(magnitude_code: int, fmt: Magnitudes) -> int | None:
    """Number a code without its sign among the non-negative values, None where it is no value."""
    if isinstance(fmt, TaperedFormat):
        codes = fmt.rank_codes
        return codes.index(magnitude_code) if magnitude_code in codes else None
    return magnitude_code


def _kind(number: Number, fmt: Format) -> str:
    if number.nan:
        return "nan"
    if number.fraction is None:
        return "infinity"
    if fmt.is_integer:
        return "integer"
    if number.fraction == 0:
        return "zero"
    assert isinstance(fmt, Magnitudes)
    return "subnormal" if abs(number.fraction) < Fraction(fmt.min_normal) else "normal"


def _fields(code: int, fmt: Format, kind: str) -> Iterator[BitField]:
    text = f"{code:0{fmt.bits}b}"
    match fmt:
        case IntFormat(is_signed=True):
            yield BitField("sign", text[0], f"weighs -2^{fmt.bits - 1}")
            yield BitField("rest", text[1:], f"{int(text[1:], 2)}")
        case IntFormat():
            yield BitField("integer", text, str(code))
        case ScaleFormat():
            means = "NaN" if kind == "nan" else f"{code} - {fmt.bias} = {code - fmt.bias}"
            yield BitField("exponent", text, means)
        case TaperedFormat():
            yield _sign(text[0], kind)
            yield from _tapered_fields(text[1:], fmt, kind)
        case FloatFormat():
            if fmt.is_signed:
                yield _sign(text[0], kind)
            split = len(text) - fmt.fraction_bits
            yield _exponent(text[int(fmt.is_signed) : split], fmt, kind)
            yield _fraction(text[split:], kind, hidden=kind == "normal")
        case _:
            yield BitField("code", text, kind)


def _sign(bit: str, kind: str) -> BitField:
    return BitField("sign", bit, "negative" if bit == "1" else "positive")


def _exponent(bits: str, fmt: FloatFormat, kind: str) -> BitField:
    if kind in ("nan", "infinity"):
        means = "all ones: infinity or NaN" if fmt.inf_code is not None else "all ones"
    elif int(bits, 2) == 0:
        means = f"0: no hidden bit, exponent {1 - fmt.bias}"
    else:
        means = f"{int(bits, 2)} - bias {fmt.bias} = {int(bits, 2) - fmt.bias}"
    return BitField("exponent", bits, means)


def _fraction(bits: str, kind: str, *, hidden: bool) -> BitField:
    if kind == "nan":
        return BitField("fraction", bits, "marks NaN")
    if kind == "infinity":
        return BitField("fraction", bits, "0: infinity")
    part = Number(Fraction(int(bits, 2), 1 << len(bits)))
    return BitField("fraction", bits, f"significand {'1 + ' if hidden else ''}{part.short}")


def _tapered_fields(body: str, fmt: TaperedFormat, kind: str) -> Iterator[BitField]:
    if body.startswith("0000"):
        yield BitField("dot", "0000", "power of two below the normal range")
        if kind == "nan":
            yield BitField("exponent", body[4:], "0 with the sign: NaN")
        elif kind == "zero":
            yield BitField("exponent", body[4:], "0: zero")
        else:
            stored = int(body[4:], 2)
            yield BitField(
                "exponent", body[4:], f"{stored} - {1 - fmt.subnormal_low} = {stored + fmt.subnormal_low - 1}"
            )
        return
    prefix, width = next((p, w) for p, w in _DOTS if body.startswith(p))
    fraction_bits = len(body) - len(prefix) - width
    yield BitField("dot", prefix, f"{_count(width, 'exponent bit')}, {_count(fraction_bits, 'fraction bit')}")
    rest = body[len(prefix) :]
    if width:
        magnitude = (1 << (width - 1)) | int(rest[1:width] or "0", 2)
        sign = "negative" if rest[0] == "1" else "positive"
        yield BitField("exponent sign", rest[0], sign if width > 1 else f"{sign}; the magnitude is a hidden 1")
        if width > 1:
            yield BitField("exponent magnitude", rest[1:width], f"with its hidden leading 1: {magnitude}")
    fraction = rest[width:]
    if kind == "infinity":
        yield BitField("fraction", fraction, "the slot of 1.5 * 2^15 is infinity")
    else:
        yield _fraction(fraction, kind, hidden=True)


# HiF8's dot prefix -> width of the exponent field. With width 1 the magnitude 1 is the hidden bit alone.
_DOTS = (("11", 4), ("10", 3), ("01", 2), ("001", 1), ("0001", 0))


def _count(number: int, noun: str) -> str:
    return f"{number or 'no'} {noun}{'s' * (number != 1)}"


def codes_in_value_order(fmt: Format) -> list[Reading]:
    """Read every code of a format of at most 8 bits, from the lowest value up; -0 before 0, NaN last."""

    def key(reading: Reading) -> tuple[int, Fraction, int]:
        number = reading.number
        if number.nan:
            return 2, Fraction(0), reading.code
        if number.fraction is None:
            return (-1 if number.negative else 1), Fraction(0), 0
        return 0, number.fraction, -int(number.negative)

    return sorted((read_code(code, fmt) for code in range(1 << fmt.bits)), key=key)
