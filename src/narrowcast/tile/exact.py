"""Exact arithmetic of the executable ISA specification: one rounding from the real value, and its status flags."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from narrowcast.catalog.formats import formats
from narrowcast.errors import unknown_name
from narrowcast.numerics import encode
from narrowcast.schema import Format, Rounding
from narrowcast.tile.types import Array

NV, DZ, OF, UF, NX = 1, 2, 4, 8, 16
"""Sticky status flags: invalid, division by zero, overflow, underflow, inexact."""

RMODES: dict[str, Rounding | None] = {
    "RNE": Rounding.RN,
    "RTZ": Rounding.RZ,
    "RTM": Rounding.RD,
    "RTP": Rounding.RU,
    "RNA": Rounding.RNA,
    "RTO": Rounding.RO,
    "RHB": None,
}
"""B.DATR RMode names to rounding modes; RHB (ties toward plus infinity) has no name of its own elsewhere."""

_FP32 = formats["fp32"]
_MIN_NORMAL = 2.0**-126


def rmode(name: str) -> str:
    """Return a known RMode name; ``Default`` is RNE."""
    upper = name.upper()
    if upper == "DEFAULT":
        return "RNE"
    if upper not in RMODES:
        raise unknown_name("rounding mode of the ISA specification", name, RMODES)
    return upper


@dataclass(frozen=True)
class Rounded:
    """Results and the flags each element raises."""

    values: Array
    flags: npt.NDArray[np.uint8]

    @property
    def sticky(self) -> int:
        """All flags together."""
        return int(np.bitwise_or.reduce(self.flags.reshape(-1))) if self.flags.size else 0


def round_to_fp32(exact: npt.NDArray[np.float64], mode: str) -> Rounded:
    """Round exact products to fp32 once.

    Above the largest value every mode gives infinity once the magnitude reaches 2**128 or rounding carries there.
    Tininess is judged before rounding. An exact zero is +0.

    Args:
        exact: real results, exact in float64.
        mode: RMode name.
    """
    flat = np.ascontiguousarray(exact).reshape(-1)
    rounding = RMODES[mode]
    if rounding is None:
        bits = _half_up(flat)
    else:
        bits = encode(flat, _FP32, rounding, saturate=False, nan="keep")
    values = bits.view(np.float32)
    inexact = values.astype(np.float64) != flat
    over = np.isinf(values) & np.isfinite(flat)
    tiny = (np.abs(flat) < _MIN_NORMAL) & inexact
    flags = np.where(inexact, NX, 0) | np.where(over, OF | NX, 0) | np.where(tiny, UF | NX, 0)
    values = np.where(flat == 0.0, np.float32(0.0), values)
    return Rounded(values.reshape(exact.shape), flags.astype(np.uint8).reshape(exact.shape))


def _half_up(flat: npt.NDArray[np.float64]) -> Array:
    """Round to the nearest fp32, ties toward plus infinity."""
    nearest = encode(flat, _FP32, Rounding.RNA, saturate=False, nan="keep")
    inward = encode(flat, _FP32, Rounding.RZ, saturate=False, nan="keep")
    below = np.abs(flat) - np.abs(inward.view(np.float32).astype(np.float64))
    with np.errstate(invalid="ignore"):
        above = np.abs(nearest.view(np.float32).astype(np.float64)) - np.abs(flat)
    return np.where((flat < 0) & (below == above) & (below > 0), inward, nearest)


def round_to_integer(
    values: npt.NDArray[np.float32], multiplier: float, zero_point: int, target: Format, mode: str, saturate: bool
) -> Rounded:
    """Round the exact ``values * multiplier + zero_point`` to an integer once, then clamp or wrap.

    NaN gives 0 and NV. Infinity gives a limit of the target, saturating or not, with OF and NX. Clamping and
    wrapping raise no flag.

    Args:
        values: fp32 inputs.
        multiplier: positive finite fp32 value.
        zero_point: integer.
        target: the integer format.
        mode: RMode name.
        saturate: clamp, else keep the low bits.

    Returns:
        Values in the target's range, int64.
    """
    with np.errstate(invalid="ignore"):
        wide = values.astype(np.float64)
    nan, infinite = np.isnan(wide), np.isinf(wide)
    product = np.where(nan | infinite, 0.0, wide) * multiplier  # 48 bits: exact
    whole = np.trunc(product)
    part = product - whole
    inexact = part != 0.0
    up = _goes_up(whole, part, zero_point, mode)
    step = up.astype(np.int64) - (part < 0.0)
    huge = np.abs(whole) >= 2.0**40  # far outside every target: only its sign and low bits matter
    small = np.where(huge, 0.0, whole).astype(np.int64) + zero_point + step
    limit = np.where(wide > 0, target.max, target.min)
    if saturate:
        result = np.where(huge, limit, np.clip(small, target.min, target.max))
    else:
        low = np.fmod(whole, 2.0**target.bits).astype(np.int64) + zero_point + step
        result = np.where(huge, low, small) & target.code_mask
        if target.signed:
            result = np.where(result > target.max, result - (1 << target.bits), result)
    result = np.where(infinite, limit, np.where(nan, 0, result))
    flags = np.where(inexact, NX, 0) | np.where(infinite, OF | NX, 0) | np.where(nan, NV, 0)
    return Rounded(result, flags.astype(np.uint8))


def _goes_up(
    whole: npt.NDArray[np.float64], part: npt.NDArray[np.float64], zero_point: int, mode: str
) -> npt.NDArray[np.bool_]:
    """Whether the sum rounds to the integer above its floor. ``part`` is what is left of the product's own integer."""
    inexact = part != 0.0
    # The floor's parity; where the part is negative the floor is one below.
    low_bit = (np.fmod(whole, 2.0).astype(np.int64) + zero_point - (part < 0.0)) & 1
    more = np.where(part < 0.0, part > -0.5, part > 0.5)
    tie = np.abs(part) == 0.5
    negative = whole + zero_point - (part < 0.0) < 0  # exact where it matters: a huge product has no part
    match mode:
        case "RNE":
            up = more | (tie & (low_bit == 1))
        case "RNA":
            up = more | (tie & ~negative)
        case "RHB":
            up = more | tie
        case "RTZ":
            up = negative
        case "RTM":
            up = np.zeros_like(inexact)
        case "RTP":
            up = np.ones_like(inexact)
        case _:
            up = low_bit == 0
    result: npt.NDArray[np.bool_] = up & inexact
    return result


def to_exponent(values: npt.NDArray[np.float32], mode: str, saturate: bool) -> Rounded:
    """Convert values to E8M0 codes: log2 rounded to an integer, plus 127.

    Nearest modes go up above a significand of sqrt(2); RTZ goes toward exponent 0; RTO makes the exponent odd.

    Args:
        values: fp32 values (bf16 and fp16 widened).
        mode: RMode name.
        saturate: limits 0x00 and 0xFE instead of 0xFF.

    Returns:
        Codes, uint8.
    """
    with np.errstate(invalid="ignore"):
        wide = values.astype(np.float64)
    bad = np.isnan(wide) | (wide <= 0.0)
    infinite = np.isposinf(wide)
    usable = np.where(bad | infinite, 1.0, wide)
    significand, exponent = np.frexp(usable)
    significand, exponent = 2.0 * significand, exponent - 1
    inexact = significand != 1.0
    match mode:
        case "RTM":
            up = np.zeros_like(inexact)
        case "RTP":
            up = np.ones_like(inexact)
        case "RTZ":
            up = exponent < 0
        case "RTO":
            up = (exponent & 1) == 0
        case _:
            up = significand * significand > 2.0
    rounded = exponent + (up & inexact)
    over = infinite | (rounded > 127)
    under = rounded < -127
    codes = np.clip(rounded + 127, 0, 254)
    codes = np.where(over, 0xFE if saturate else 0xFF, codes)
    codes = np.where(under & ~infinite, 0x00 if saturate else 0xFF, codes)
    codes = np.where(bad, 0xFF, codes)
    flags = np.where(inexact, NX, 0) | np.where(over, OF | NX, 0) | np.where(under, UF | NX, 0)
    flags = np.where(infinite, OF | NX, np.where(bad, NV, flags))
    return Rounded(codes.astype(np.uint8), flags.astype(np.uint8))
