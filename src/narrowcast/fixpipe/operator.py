"""The vendor's operator that builds parameter words on the host."""

import numpy as np
import numpy.typing as npt

from narrowcast.errors import EncodingError, ShapeError, UnsupportedCastError, unknown_name
from narrowcast.fixpipe.addressing import Array
from narrowcast.fixpipe.words import FP19_MASK, OFFSET_RANGE, check_scales, quant_words


def trans_quant_param(
    scale: npt.ArrayLike, offset: npt.ArrayLike | None = None, round_mode: int = 0, dtype: str = "uint64"
) -> Array:
    """Build parameter words as aclnnTransQuantParam V2 and V3 do.

    Formula: ``word = (bits(scale) & 0xFFFFE000) | (clamp(rint(offset), -256, 255) & 0x1FF) << 37 | 1 << 46``. Bit 46
    (S8 results) is always set: a consumer that stores U8 clears it. Unlike :class:`QuantParam`, the operator clamps
    an offset it cannot hold.

    Args:
        scale: fp32, any shape of one axis.
        offset: fp32, one or as many as scales; None for none.
        round_mode: 0 drops the scale's low 13 bits; 1 (V3) rounds them, ties to even: the vendor names the rounding
            and not the rule, so it is assumed.
        dtype: ``uint64`` or ``int64``, the operator's two output types; the bits are the same.

    Returns:
        Words, shape of the scales.

    Raises:
        EncodingError: an infinite, NaN or subnormal scale, or a NaN offset.
        ShapeError: offsets that do not match.

    Source: aclnnTransQuantParamV2, aclnnTransQuantParamV3.

    Example:
        >>> [hex(w) for w in trans_quant_param([0.3], round_mode=1)], [hex(w) for w in trans_quant_param([0.3])]
        (['0x40003e99a000'], ['0x40003e998000'])
    """
    if dtype not in ("uint64", "int64"):
        raise unknown_name("output type", dtype, ("uint64", "int64"))
    if round_mode not in (0, 1):
        raise UnsupportedCastError(f"round_mode is {round_mode}; 0 truncates the scale, 1 rounds it.")
    scales = np.atleast_1d(np.asarray(scale, dtype=np.float32))
    check_scales(scales)
    if round_mode == 1:
        bits = scales.view(np.uint32)
        half_less_one = np.uint32((1 << 12) - 1)
        scales = ((bits + half_less_one + ((bits >> np.uint32(13)) & np.uint32(1))) & np.uint32(FP19_MASK)).view(
            np.float32
        )
        check_scales(scales)
    whole = np.zeros(1, dtype=np.int64)
    if offset is not None:
        offsets = np.atleast_1d(np.asarray(offset, dtype=np.float32))
        if offsets.shape not in ((1,), scales.shape):
            raise ShapeError(f"offset has shape {offsets.shape}; scales of shape {scales.shape} need that or (1,).")
        if np.isnan(offsets).any():
            raise EncodingError(f"offset at index {int(np.argmax(np.isnan(offsets)))} is NaN.")
        whole = np.clip(np.rint(offsets), *OFFSET_RANGE).astype(np.int64)
    return quant_words(scales, whole, True).view(dtype)
