"""Rows of number formats: a few facts each, the rest derived."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import cached_property

from narrowcast.schema.sets import Kind, Provenance, Rounding, Special, Ties


@dataclass(frozen=True, kw_only=True)
class Binade:
    """The values of one power of two: ``count`` equally spaced codes from 2**exponent."""

    exponent: int
    fraction_bits: int


@dataclass(frozen=True, kw_only=True)
class Format(ABC):
    """One number format. Subclasses add the facts of their family."""

    name: str
    bits: int
    title: str
    source: str
    aliases: tuple[str, ...] = ()
    dtype_code: int | None = None  # BSTART / B.DATR DataType
    ml_dtype: str | None = None  # attribute of ml_dtypes (or numpy) with the same codes
    default_rounding: Rounding = Rounding.RN
    ties: Ties = Ties.EVEN_CODE
    provenance: Provenance = Provenance.DOCUMENTED
    on_chip: tuple[str, ...] = ("3510", "2201")
    note: str = ""
    scale_target: float | None = None  # where `quantize` puts an absolute maximum; None: the largest value

    kind: Kind = field(init=False, default=Kind.FLOAT)

    @cached_property
    def code_bits(self) -> int:
        """Width of the unsigned integer that holds one code."""
        return next(w for w in (8, 16, 32, 64) if w >= self.bits)

    @cached_property
    def code_dtype(self) -> str:
        """NumPy name of the array type that holds codes, one per element."""
        return f"uint{self.code_bits}"

    @property
    def code_mask(self) -> int:
        """Largest code."""
        return (1 << self.bits) - 1

    @property
    def packs(self) -> bool:
        """Whether two codes share a byte in memory."""
        return self.bits == 4

    @property
    def is_integer(self) -> bool:
        """Whether the values are integers with a two's complement or plain binary code."""
        return self.kind is Kind.INTEGER

    # The family's derived facts; every subclass answers them.
    @property
    @abstractmethod
    def signed(self) -> bool:
        """Whether negative values exist."""

    @property
    @abstractmethod
    def max(self) -> float:
        """Largest finite value."""

    @property
    @abstractmethod
    def min(self) -> float:
        """Lowest finite value."""

    @property
    def nan_code(self) -> int | None:
        """The canonical NaN code, None where every code is a number."""
        return None

    @property
    def inf_code(self) -> int | None:
        """Code of +infinity, None where there is none."""
        return None

    @property
    def min_normal(self) -> float | None:
        """Smallest positive value with full precision for its binade."""
        return None

    @property
    def min_subnormal(self) -> float | None:
        """Smallest positive value, None where it equals ``min_normal``."""
        return None

    @property
    def has_negative_zero(self) -> bool:
        """Whether -0 has a code of its own."""
        return False

    @property
    @abstractmethod
    def layout(self) -> str:
        """Fields of a code from its most significant bit."""


@dataclass(frozen=True, kw_only=True)
class IntFormat(Format):
    """Two's complement (``s``) or plain binary (``u``) integers."""

    is_signed: bool
    mx_fraction_bits: int = 0  # as an MX element the code counts 2**-mx_fraction_bits
    kind: Kind = field(init=False, default=Kind.INTEGER)

    @property
    def signed(self) -> bool:
        return self.is_signed

    @property
    def max(self) -> int:
        return (1 << (self.bits - 1)) - 1 if self.is_signed else (1 << self.bits) - 1

    @property
    def min(self) -> int:
        return -(1 << (self.bits - 1)) if self.is_signed else 0

    @property
    def layout(self) -> str:
        return f"two's complement, {self.bits} bits" if self.is_signed else f"unsigned, {self.bits} bits"


@dataclass(frozen=True, kw_only=True)
class Magnitudes(Format):
    """Sign and magnitude: codes of one sign, ordered by value, form binades of equal spacing.

    ``binades`` lists the normal and tapered binades from the lowest exponent; below the first one values are
    multiples of the first spacing down to zero. A *rank* numbers the non-negative values from 0, so rounding
    works on ranks and one table turns a rank into a code.
    """

    @property
    @abstractmethod
    def binades(self) -> tuple[Binade, ...]:
        """Binades from the lowest exponent."""

    @property
    def subnormal_exponent(self) -> int:
        """Exponent of the spacing below the first binade."""
        first = self.binades[0]
        return first.exponent - first.fraction_bits

    @property
    def has_zero(self) -> bool:
        return True

    @property
    @abstractmethod
    def overflow_rank(self) -> int:
        """First rank that is not a finite value."""

    def rank_to_code(self, rank: int) -> int:
        """Code of the non-negative value number ``rank``."""
        return rank

    @property
    def sign_bit(self) -> int:
        """Mask of the sign bit, 0 for an unsigned format."""
        return 1 << (self.bits - 1) if self.signed else 0

    @cached_property
    def base_ranks(self) -> tuple[int, ...]:
        """Rank of the first value of each binade."""
        ranks = [1 << self.binades[0].fraction_bits]
        if not self.has_zero:
            ranks = [0]
        for b in self.binades[:-1]:
            ranks.append(ranks[-1] + (1 << b.fraction_bits))
        return tuple(ranks)

    def rank_value(self, rank: int) -> float:
        """Value of a finite rank, as an exact Python float."""
        if self.has_zero and rank < self.base_ranks[0]:
            return rank * 2.0**self.subnormal_exponent
        index = max(i for i, base in enumerate(self.base_ranks) if base <= rank)
        b = self.binades[index]
        steps = (1 << b.fraction_bits) + rank - self.base_ranks[index]
        return steps * 2.0 ** (b.exponent - b.fraction_bits)

    @property
    def max(self) -> float:
        return self.rank_value(self.overflow_rank - 1)

    @property
    def min(self) -> float:
        return -self.max if self.signed else 0.0

    @property
    def max_code(self) -> int:
        """Code of the largest finite value."""
        return self.rank_to_code(self.overflow_rank - 1)

    @property
    def max_exponent(self) -> int:
        """Exponent of the largest finite value."""
        return self.binades[-1].exponent

    @property
    def min_normal(self) -> float:
        return 2.0 ** self.binades[0].exponent

    @property
    def min_subnormal(self) -> float | None:
        return 2.0**self.subnormal_exponent if self.binades[0].fraction_bits and self.has_zero else None

    @property
    def eps(self) -> float:
        """Spacing just above 1.0."""
        return next(2.0**-b.fraction_bits for b in self.binades if b.exponent == 0)


@dataclass(frozen=True, kw_only=True)
class FloatFormat(Magnitudes):
    """Sign, biased exponent, fraction: ten facts, from which everything else follows."""

    exponent_bits: int
    fraction_bits: int
    bias: int
    special: Special
    is_signed: bool = True

    @property
    def signed(self) -> bool:
        return self.is_signed

    @property
    def has_negative_zero(self) -> bool:
        return self.is_signed

    @cached_property
    def binades(self) -> tuple[Binade, ...]:
        top = (1 << self.exponent_bits) - (2 if self.special is Special.IEEE else 1)
        return tuple(
            Binade(exponent=field_ - self.bias, fraction_bits=self.fraction_bits) for field_ in range(1, top + 1)
        )

    @property
    def overflow_rank(self) -> int:
        ranks = 1 << (self.exponent_bits + self.fraction_bits)
        if self.special is Special.IEEE:
            return ranks - (1 << self.fraction_bits)
        return ranks - (1 if self.special is Special.NAN_MAX else 0)

    @property
    def nan_code(self) -> int | None:
        if self.special is Special.IEEE:
            quiet = 1 << (self.fraction_bits - 1)
            return self.overflow_rank | quiet
        return self.overflow_rank if self.special is Special.NAN_MAX else None

    @property
    def inf_code(self) -> int | None:
        return self.overflow_rank if self.special is Special.IEEE else None

    @property
    def layout(self) -> str:
        sign = "S." if self.is_signed else ""
        return f"{sign}{'E' * self.exponent_bits}.{'M' * self.fraction_bits}".rstrip(".")


@dataclass(frozen=True, kw_only=True)
class TaperedFormat(Magnitudes):
    """HiF8: a prefix code trades exponent bits against fraction bits around 1.0.

    ``segments`` maps a range of ``abs(exponent)`` to its code prefix and field widths; below them lie powers
    of two without a fraction.
    """

    exponent_limit: int  # largest abs(exponent) with a dot prefix
    subnormal_low: int  # exponent of the smallest positive value
    kind: Kind = field(init=False, default=Kind.TAPERED)

    @property
    def signed(self) -> bool:
        return True

    @staticmethod
    def exponent_field_bits(exponent: int) -> int:
        """Width of the exponent field (sign included) for a normal exponent."""
        return abs(exponent).bit_length()

    def fraction_bits_at(self, exponent: int) -> int:
        """Width of the fraction for a normal exponent: 3, 2 or 1 bits, 0 below ``-exponent_limit``."""
        if exponent < -self.exponent_limit:
            return 0
        return min(3, 5 - self.exponent_field_bits(exponent))

    @cached_property
    def binades(self) -> tuple[Binade, ...]:
        return tuple(
            Binade(exponent=e, fraction_bits=self.fraction_bits_at(e))
            for e in range(self.subnormal_low, self.exponent_limit + 1)
        )

    @property
    def overflow_rank(self) -> int:
        return self.base_ranks[-1] + (1 << self.binades[-1].fraction_bits) - 1

    @cached_property
    def rank_codes(self) -> tuple[int, ...]:
        """Code of each rank, infinity last."""
        codes = [0]
        for b in self.binades:
            for fraction in range(1 << b.fraction_bits):
                codes.append(self._code(b.exponent, b.fraction_bits, fraction))
        return tuple(codes)

    def _code(self, exponent: int, fraction_bits: int, fraction: int) -> int:
        if exponent < -self.exponent_limit:
            return exponent - self.subnormal_low + 1
        width = self.exponent_field_bits(exponent)
        prefix = {0: 0b0001, 1: 0b001, 2: 0b01, 3: 0b10, 4: 0b11}[width]
        # The exponent is sign and magnitude; its leading 1 is implied by the prefix.
        stored = 0
        if width:
            magnitude = abs(exponent) - (1 << (width - 1))
            stored = (int(exponent < 0) << (width - 1)) | magnitude
        return (((prefix << width) | stored) << fraction_bits) | fraction

    def rank_to_code(self, rank: int) -> int:
        return self.rank_codes[rank]

    @property
    def nan_code(self) -> int:
        return self.sign_bit

    @property
    def inf_code(self) -> int:
        return self.rank_codes[self.overflow_rank]

    @property
    def min_normal(self) -> float:
        return 2.0**-self.exponent_limit

    @property
    def min_subnormal(self) -> float:
        return 2.0**self.subnormal_low

    @property
    def layout(self) -> str:
        return "S.dot prefix.sign-magnitude exponent.fraction (3/3/3/2/1 bits for |E| = 0/1/2-3/4-7/8-15)"


@dataclass(frozen=True, kw_only=True)
class ScaleFormat(Magnitudes):
    """E8M0: an unsigned power of two, no zero, no sign, no fraction."""

    bias: int
    kind: Kind = field(init=False, default=Kind.SCALE)

    @property
    def signed(self) -> bool:
        return False

    @property
    def has_zero(self) -> bool:
        return False

    @cached_property
    def binades(self) -> tuple[Binade, ...]:
        return tuple(Binade(exponent=c - self.bias, fraction_bits=0) for c in range(self.code_mask))

    @property
    def overflow_rank(self) -> int:
        return self.code_mask

    @property
    def nan_code(self) -> int:
        return self.code_mask

    @property
    def min(self) -> float:
        return self.min_normal

    @property
    def layout(self) -> str:
        return "E" * self.bits
