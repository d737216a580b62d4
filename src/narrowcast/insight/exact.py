"""Exact numbers as people write them: decimal, hexadecimal floats, powers of two, codes."""

import re
from dataclasses import dataclass
from fractions import Fraction

from narrowcast.errors import FormatError

_DIGITS_SHOWN = 17
_SIGNIFICAND_SHOWN = 12
_EXPONENT_LIMIT = 5000  # beyond every format by far, and small enough for exact arithmetic

_CODE = re.compile(r"0x(?P<hex>[0-9a-f]+)|0b(?P<bin>[01]+)|0o(?P<oct>[0-7]+)")
_HEX_FLOAT = re.compile(r"0x(?P<whole>[0-9a-f]*)\.?(?P<part>[0-9a-f]*)p(?P<exponent>[+-]?\d+)")
_DECIMAL = re.compile(r"(?P<whole>\d*)\.?(?P<part>\d*)(?:e(?P<exponent>[+-]?\d+))?")
_POWER = re.compile(r"(?:(?P<factor>[^*]+)\*)?2(?:\^|\*\*)(?P<exponent>[+-]?\d+)")
_LEGAL = "0x7e or 0b1010 (a code), 448, -1e-9, 3/8, 0x1.8p3, 1.5*2^-15, inf or nan"


@dataclass(frozen=True)
class Number:
    """A real number, an infinity, NaN, or a signed zero.

    Attributes:
        fraction: the exact value, None for infinity and NaN.
        negative: the sign, which zero has too.
        nan: whether it is NaN.
    """

    fraction: Fraction | None
    negative: bool = False
    nan: bool = False

    @property
    def infinite(self) -> bool:
        """Whether it is an infinity."""
        return self.fraction is None and not self.nan

    @property
    def special(self) -> str | None:
        """Name what is no real number: ``nan``, ``inf``, ``-inf``."""
        if self.nan:
            return "nan"
        if self.fraction is None:
            return "-inf" if self.negative else "inf"
        return None

    @property
    def decimal(self) -> str:
        """Write every digit."""
        return self.special or self._sign_of_zero(decimal_text(self.fraction or Fraction(0)))

    @property
    def short(self) -> str:
        """Write at most 17 digits; ``~`` marks a value that has more."""
        return self.special or self._sign_of_zero(short_text(self.fraction or Fraction(0)))

    @property
    def power(self) -> str:
        """Write the significand times a power of two."""
        return self.special or self._sign_of_zero(power_text(self.fraction or Fraction(0)))

    def _sign_of_zero(self, text: str) -> str:
        return f"-{text}" if self.negative and self.fraction == 0 else text


NAN = Number(None, nan=True)


def parse(text: str) -> int | Number:
    """Read what a person typed: a code as an int, anything else as an exact :class:`Number`.

    Args:
        text: ``0x7e``, ``0b1111110`` (codes); ``448``, ``-1e-9``, ``3/8``, ``0x1.8p3``, ``1.5*2^-15``,
            ``inf``, ``-inf``, ``nan`` (values).

    Raises:
        FormatError: text of another form.

    Example:
        >>> parse("0x7e"), parse("-1.5*2^-15").power
        (126, '-1.5 * 2^-15')
    """
    plain = re.sub(r"[\s_]", "", text.lower())
    if code := _CODE.fullmatch(plain):
        base = {"hex": 16, "bin": 2, "oct": 8}
        return next(int(digits, base[name]) for name, digits in code.groupdict().items() if digits)
    negative = plain.startswith("-")
    body = plain[1:] if plain[:1] in ("+", "-") else plain
    if body == "nan":
        return NAN
    if body in ("inf", "infinity"):
        return Number(None, negative)
    magnitude = _magnitude(body)
    if magnitude is None:
        hint = f"Write {_LEGAL}."
        if _CODE.fullmatch(body):
            hint = "A code has no sign: its sign is one of its bits."
        raise FormatError(f"{text!r} is neither a code nor a number.", hint=hint)
    return Number(-magnitude if negative else magnitude, negative)


def _magnitude(body: str) -> Fraction | None:
    if match := _HEX_FLOAT.fullmatch(body):
        digits = match["whole"] + match["part"]
        return (
            Fraction(int(digits, 16)) * _power(2, int(match["exponent"]) - 4 * len(match["part"])) if digits else None
        )
    if match := _POWER.fullmatch(body):
        factor = _magnitude(match["factor"]) if match["factor"] else Fraction(1)
        return None if factor is None else factor * _power(2, int(match["exponent"]))
    if "/" in body:
        above, _, below = body.partition("/")
        return Fraction(int(above), int(below)) if above.isdecimal() and below.isdecimal() and int(below) else None
    if match := _DECIMAL.fullmatch(body):
        digits = match["whole"] + match["part"]
        return Fraction(int(digits)) * _power(10, int(match["exponent"] or 0) - len(match["part"])) if digits else None
    return None


def _power(base: int, exponent: int) -> Fraction:
    if abs(exponent) > _EXPONENT_LIMIT:
        raise FormatError(
            f"an exponent of {exponent} is far outside every format.",
            hint="Use inf or 0 to see what overflow and underflow give.",
        )
    return Fraction(base) ** exponent


def floor_log2(value: Fraction) -> int:
    """Compute floor(log2(value)) of a positive fraction, exactly."""
    guess = value.numerator.bit_length() - value.denominator.bit_length()
    return guess if Fraction(2) ** guess <= value else guess - 1


def _digits(value: Fraction) -> tuple[str, int] | None:
    """Decimal digits of a positive fraction and the exponent of the first one; None where they never end."""
    rest, fives = value.denominator, 0
    twos = (rest & -rest).bit_length() - 1
    rest >>= twos
    while rest % 5 == 0:
        rest //= 5
        fives += 1
    if rest != 1:
        return None
    places = max(twos, fives)
    digits = str(value.numerator * 10**places // value.denominator)
    return digits.rstrip("0"), len(digits) - 1 - places


def _lay_out(digits: str, exponent: int) -> str:
    if 0 <= exponent < 21:
        whole = digits[: exponent + 1].ljust(exponent + 1, "0")
        part = digits[exponent + 1 :]
        return f"{whole}.{part}" if part else whole
    if -5 <= exponent < 0:
        return f"0.{'0' * (-exponent - 1)}{digits}"
    return f"{digits[0]}.{digits[1:]}e{exponent:+03d}" if len(digits) > 1 else f"{digits}e{exponent:+03d}"


def decimal_text(value: Fraction) -> str:
    """Write a fraction exactly: all digits where its decimal expansion ends, else ``a/b``."""
    if value == 0:
        return "0"
    digits = _digits(abs(value))
    return str(value) if digits is None else ("-" if value < 0 else "") + _lay_out(*digits)


def short_text(value: Fraction, digits: int = _DIGITS_SHOWN) -> str:
    """Write a fraction with at most ``digits`` significant digits; ``~`` marks a rounded one."""
    if value == 0:
        return "0"
    magnitude = abs(value)
    sign = "-" if value < 0 else ""
    exact = _digits(magnitude)
    if exact is not None and len(exact[0]) <= digits:
        return sign + _lay_out(*exact)
    kept = min(digits, 9)
    exponent = len(str(magnitude.numerator)) - len(str(magnitude.denominator))
    while Fraction(10) ** exponent > magnitude:
        exponent -= 1
    while Fraction(10) ** (exponent + 1) <= magnitude:
        exponent += 1
    rounded = str(round(magnitude / Fraction(10) ** (exponent - kept + 1)))
    exponent += len(rounded) - kept
    return f"~{sign}{_lay_out(rounded.rstrip('0'), exponent)}"


def power_text(value: Fraction) -> str:
    """Write a fraction as significand times a power of two: ``1.75 * 2^8``, or ``13421773 * 2^-27``."""
    if value in (0, 1, -1):
        return str(value)
    sign = "-" if value < 0 else ""
    exponent = floor_log2(abs(value))
    significand = abs(value) / Fraction(2) ** exponent
    if significand == 1:
        return f"{sign}2^{exponent}"
    text = decimal_text(significand)
    if len(text) > _SIGNIFICAND_SHOWN and not value.denominator & (value.denominator - 1):
        twos = (value.numerator & -value.numerator).bit_length() - value.denominator.bit_length()
        return f"{sign}{abs(value) / Fraction(2) ** twos} * 2^{twos}"
    return f"{sign}{text} * 2^{exponent}"
