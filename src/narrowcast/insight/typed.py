"""A typed value as a code of the format it is cast from."""

from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from narrowcast import numerics
from narrowcast.errors import FormatError
from narrowcast.insight.anatomy import code_number, read_code
from narrowcast.insight.exact import Number, parse
from narrowcast.insight.placing import decide, place
from narrowcast.schema import Format, IntFormat, Magnitudes, Rounding


def in_source(value: str | float | int, fmt: Format) -> tuple[int, Fraction | None]:
    """Find the code of a typed value in the format it is said to have.

    Args:
        value: text, a Python number, or text of a code.
        fmt: the format; floats round to nearest, ties to even.

    Returns:
        The code, and what writing the value so changed: None for a code, and for a finite value that became
        infinity.

    Raises:
        FormatError: text that is no value, or a value the format cannot take.
    """
    typed = parse(value if isinstance(value, str) else repr(value if isinstance(value, int) else float(value)))
    if isinstance(typed, int):
        read_code(typed, fmt)
        return typed, None
    if isinstance(fmt, IntFormat):
        return _integer_code(typed, value, fmt), Fraction(0)
    assert isinstance(fmt, Magnitudes)
    code = _nearest_code(typed, value, fmt)
    held = code_number(code, fmt)
    if typed.fraction is None or held.fraction is None:
        return code, None if typed.fraction is not None else Fraction(0)
    return code, held.fraction - typed.fraction


def values_of(code: int, fmt: Format) -> npt.NDArray[Any]:
    """Give the one-element array of values that a code of the source format stands for."""
    codes = np.array([code], dtype=fmt.code_dtype)
    if fmt.name == "bf16":
        import ml_dtypes

        return codes.view(ml_dtypes.bfloat16)
    if fmt.ml_dtype is not None and (fmt.name in ("fp16", "fp32") or (fmt.is_integer and fmt.bits >= 8)):
        return codes.view(fmt.ml_dtype)
    return numerics.decode(codes, fmt)  # exact: float32 holds every value of a narrower format


def _integer_code(typed: Number, value: object, fmt: IntFormat) -> int:
    number = typed.fraction
    if number is None or number.denominator != 1 or not fmt.min <= number <= fmt.max:
        raise FormatError(f"{value} is no value of {fmt.name} (integers {fmt.min} to {fmt.max}).")
    return int(number) & fmt.code_mask


def _nearest_code(typed: Number, value: object, fmt: Magnitudes) -> int:
    sign = fmt.sign_bit if typed.negative else 0
    if (sign == 0 and typed.negative) or (typed.nan and fmt.nan_code is None):
        raise FormatError(f"{value} is no value of {fmt.name}.", source=fmt.source)
    if typed.nan:
        return fmt.nan_code or 0
    rank = fmt.overflow_rank
    if typed.fraction is not None:
        at = place(abs(typed.fraction), fmt)
        if at is not None:
            rank = at.rank + decide(Rounding.RN, at, typed.negative, fmt.ties)[0]
    if rank < fmt.overflow_rank:
        magnitude = fmt.rank_to_code(rank)
        return magnitude if magnitude == 0 and not fmt.has_negative_zero else magnitude | sign
    if fmt.inf_code is None:
        raise FormatError(f"{value} is beyond the largest value of {fmt.name}, {fmt.max:g}.", source=fmt.source)
    return fmt.inf_code | sign
