"""Values to codes: one rounding from the exact value, on ranks.

A rank numbers the non-negative values of a format in ascending order. The rank just below the magnitude
follows from its exponent; the discarded bits decide whether to go one up; a carry into the next binade, into
another field width (HiF8) or into infinity is then simply the next rank.
"""

import numpy as np
import numpy.typing as npt

from narrowcast.errors import FormatError, UnsupportedCastError
from narrowcast.numerics.hybrid import hybrid_ranks
from narrowcast.numerics.unpacking import Array, Unpacked, unpack
from narrowcast.schema import Format, IntFormat, Magnitudes, Rounding, TaperedFormat, Ties

OVERFLOW_RULES: tuple[str, ...] = ("after-rounding", "before-rounding", "ieee")
"""``after-rounding``: a result above the largest finite value overflows. ``before-rounding``: a source above it
does. ``ieee``: as the first, but rz, ro and an inward directed mode give the largest finite value."""

_ONE = np.uint64(1)
_ZERO = np.uint64(0)


def encode(
    values: Array,
    target: Format,
    rounding: Rounding,
    *,
    saturate: bool,
    nan: str,
    hybrid_compare: str = "ge",
    overflow: str = "after-rounding",
) -> Array:
    """Round values to ``target`` and return their codes.

    Args:
        values: flat array of fp64, fp32, fp16, bf16 or integer values.
        target: the format to round to.
        rounding: the rounding mode; ``RH`` needs hif8 and fp32 or fp16 values.
        saturate: whether overflow gives the largest finite value.
        nan: ``"keep"``, ``"zero"`` or ``"error"``.
        hybrid_compare: ``"ge"``, ``"gt"`` or ``"ge-nonzero"``.
        overflow: one of ``OVERFLOW_RULES``.

    Returns:
        Codes, one unsigned integer of ``target.code_dtype`` per element.

    Raises:
        FormatError: NaN meets a format without NaN under ``"keep"``, or any NaN under ``"error"``.
    """
    parts = unpack(values)
    _check_nan(parts.nan, target, nan)
    if isinstance(target, IntFormat):
        return _encode_integer(parts, target, rounding, saturate)
    assert isinstance(target, Magnitudes)
    if rounding is Rounding.RH:
        if target.name != "hif8" or values.dtype.name not in ("float32", "float16"):
            raise UnsupportedCastError(
                f"hybrid rounding (rh) is defined for fp32 or fp16 -> hif8, not {values.dtype.name} -> {target.name}.",
                hint="Use rna, or convert the values to float32 first.",
                source="asc-devkit:Reg Cast",
            )
        nearest, _ = _round_ranks(parts, target, Rounding.RNA)
        ranks = hybrid_ranks(values, nearest, target, hybrid_compare)
        above = np.zeros(ranks.shape, dtype=np.bool_)
    else:
        ranks, above = _round_ranks(parts, target, rounding)
    over = (ranks >= target.overflow_rank) | parts.infinite
    if overflow == "before-rounding":
        over |= above
    return _assemble(parts, target, ranks, over, rounding, saturate, nan, overflow)


def _check_nan(nan_lanes: npt.NDArray[np.bool_], target: Format, policy: str) -> None:
    if policy == "zero" or not nan_lanes.any():
        return
    if policy == "error" or target.nan_code is None:
        first = int(np.argmax(nan_lanes))
        why = f"{target.name} has no NaN" if target.nan_code is None else 'the policy is nan="error"'
        raise FormatError(
            f"{int(nan_lanes.sum())} NaN, first at flat index {first}: {why}.",
            hint='Pass nan="zero" to encode NaN as 0, or remove it.',
            source=target.source,
        )


def _spacing(target: Magnitudes, top: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Exponent of the spacing at ``top``, and what to add to the kept multiple to get a rank."""
    first = target.binades[0].exponent
    spacing = [target.subnormal_exponent]
    offset = [0]
    if not target.has_zero:  # a virtual binade below the first, so that a value may round up into it
        spacing, offset = [first - 1], [-2]
    for binade, base in zip(target.binades, target.base_ranks, strict=True):
        spacing.append(binade.exponent - binade.fraction_bits)
        offset.append(base - (1 << binade.fraction_bits))
    index = np.clip(top - (first - 1), 0, len(spacing) - 1)
    return np.array(spacing)[index], np.array(offset)[index]


def _split(parts: Unpacked, spacing: npt.NDArray[np.int64]) -> tuple[Array, Array, Array]:
    """Kept multiple of the spacing, discarded remainder, and half of the spacing in the remainder's units."""
    down = spacing - parts.exponent
    # More than 63 discarded places leave nothing kept, and a remainder far below one half.
    right = np.clip(down, 0, 63).astype(np.uint64)
    left = np.clip(-down, 0, 63).astype(np.uint64)
    kept = (parts.significand >> right) << left
    remainder = parts.significand & ((_ONE << right) - _ONE)
    half = np.where(right > 0, _ONE << (np.maximum(right, _ONE) - _ONE), _ONE)
    return kept, remainder, half


def goes_up(
    rounding: Rounding,
    odd: npt.NDArray[np.bool_],
    remainder: Array,
    half: Array,
    negative: npt.NDArray[np.bool_],
    ties: Ties = Ties.EVEN_CODE,
) -> npt.NDArray[np.bool_]:
    """Decide whether the magnitude moves to the next value. The remainder is in units where ``half`` is a tie."""
    inexact = remainder != _ZERO
    match rounding:
        case Rounding.RN:
            tie_up = odd if ties is Ties.EVEN_CODE else np.ones_like(odd)
            up = (remainder > half) | ((remainder == half) & tie_up)
        case Rounding.RNA:
            up = remainder >= half
        case Rounding.RZ:
            up = np.zeros_like(inexact)
        case Rounding.RD:
            up = inexact & negative
        case Rounding.RU:
            up = inexact & ~negative
        case Rounding.RO:
            up = inexact & ~odd
        case Rounding.RH:
            raise UnsupportedCastError("hybrid rounding (rh) exists only into hif8.", source="asc-devkit:Reg Cast")
    result: npt.NDArray[np.bool_] = up & inexact
    return result


def _round_ranks(
    parts: Unpacked, target: Magnitudes, rounding: Rounding
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Rank of each rounded magnitude, and whether the magnitude lies above the largest finite value."""
    top = parts.top
    beyond = top > target.max_exponent
    spacing, offset = _spacing(target, top)
    kept, remainder, half = _split(parts, spacing)
    # An exponent above the format's is settled before its bits can overflow the lane.
    below = np.where(beyond, target.overflow_rank, kept.astype(np.int64) + offset)
    if not target.has_zero:  # nothing lies below the virtual binade, so its values clamp to the first code
        far_below = top < target.binades[0].exponent - 1
        below = np.where(far_below, -1, below)
        remainder = np.where(far_below, _ZERO, remainder)
    up = goes_up(rounding, (below & 1) == 1, remainder, half, parts.negative, target.ties) & ~beyond
    above = beyond | ((below == target.overflow_rank - 1) & (remainder != _ZERO)) | (below >= target.overflow_rank)
    return below + up, above


def _assemble(
    parts: Unpacked,
    target: Magnitudes,
    ranks: npt.NDArray[np.int64],
    over: npt.NDArray[np.bool_],
    rounding: Rounding,
    saturate: bool,
    nan: str,
    overflow: str,
) -> Array:
    largest = target.overflow_rank - 1
    codes = np.clip(ranks, 0, largest).astype(np.uint64)
    if isinstance(target, TaperedFormat):
        codes = np.array(target.rank_codes, dtype=np.uint64)[codes]
    over_code = target.max_code
    if not saturate:
        over_code = next(c for c in (target.inf_code, target.nan_code, target.max_code) if c is not None)
    codes = np.where(over, np.uint64(over_code), codes)
    if overflow == "ieee" and not saturate:
        codes = np.where(over & ~parts.infinite & _inward(rounding, parts.negative), np.uint64(target.max_code), codes)
    signless = codes == np.uint64(target.nan_code) if target.nan_code is not None else np.zeros_like(over)
    if not target.has_negative_zero:
        signless |= codes == _ZERO
    codes = np.where(parts.negative & ~signless, codes | np.uint64(target.sign_bit), codes)
    if not target.has_zero:
        assert target.nan_code is not None
        nothing = parts.negative | ((parts.significand == _ZERO) & ~parts.infinite)
        codes = np.where(nothing, np.uint64(target.nan_code), codes)
    nan_code = target.nan_code if nan != "zero" or not target.has_zero else 0
    codes = np.where(parts.nan, np.uint64(nan_code or 0), codes)
    return codes.astype(target.code_dtype)


def _inward(rounding: Rounding, negative: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Lanes where a directed mode points away from infinity."""
    match rounding:
        case Rounding.RZ | Rounding.RO:
            return np.ones_like(negative)
        case Rounding.RD:
            return ~negative
        case Rounding.RU:
            return negative
        case _:
            return np.zeros_like(negative)


def _encode_integer(parts: Unpacked, target: IntFormat, rounding: Rounding, saturate: bool) -> Array:
    top = parts.top
    kept, remainder, half = _split(parts, np.zeros_like(parts.exponent))
    # Low bits of a magnitude of 2**64 and more: the shift in _split stops at 63, so settle them here.
    kept = np.where(parts.exponent > 63, _ZERO, kept)
    odd = (kept & _ONE) == _ONE
    magnitude = kept + goes_up(rounding, odd, remainder, half, parts.negative).astype(np.uint64)
    magnitude = np.where(parts.infinite | parts.nan, _ZERO, magnitude)
    codes = np.where(parts.negative, _ZERO - magnitude, magnitude)
    huge = (top > 63) | parts.infinite
    limit = np.where(parts.negative, np.uint64(-target.min), np.uint64(target.max))
    clamp = (huge | (magnitude > limit)) if saturate else parts.infinite
    clamp &= ~parts.nan
    low, high = np.uint64(target.min & target.code_mask), np.uint64(target.max)
    codes = np.where(clamp, np.where(parts.negative, low, high), codes)
    return (codes & np.uint64(target.code_mask)).astype(target.code_dtype)
