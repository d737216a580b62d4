"""The Basic ``Cast`` of the vector core as a function."""

import numpy as np
import numpy.typing as npt

from narrowcast.operation import Control, Semantics, execute
from narrowcast.schema import Rounding
from narrowcast.vector.arrays import Array, source_format
from narrowcast.vector.operation import VectorCast, refuse_now


def cast(
    src: npt.ArrayLike,
    target: str,
    mode: str | Rounding | None = None,
    *,
    source: str | None = None,
    count: int | None = None,
    mask: npt.ArrayLike | None = None,
    deq_scale: float | None = None,
    packed: bool = False,
    control: Control | None = None,
    semantics: Semantics | None = None,
    out: Array | None = None,
) -> Array:
    """Convert an array as the Basic ``Cast`` of a chip does: only pairs and modes the chip has.

    Formula: ``dst[i] = round(src[i])``, one rounding; for s32 -> fp16
    ``round(fp32(src[i]) * 2^-17 * deq_scale * 2^17)``, each product in fp32.

    Overflow: the instruction asks for saturation, so it saturates where CTRL[60] = 0; where CTRL[60] = 1 (reset)
    CTRL[48] = 0 (reset) saturates float results and CTRL[59] = 0 (reset) integer ones. A saturating conversion
    turns infinity into the largest finite value and NaN into 0 (CTRL[50] = 1 keeps NaN in e4m3 and e5m2). Integers
    turn infinity into their limit and NaN into 0 in any case; FP4 always saturates; fp32 never does.

    Args:
        src: array of any shape. Its dtype names the source format.
        target: target format name or alias.
        mode: ``rn rna rd ru rz ro rh``, ``none``, or a vendor name such as ``CAST_RINT`` and ``CAST_NONE``. None is
            the conversion's default: its only mode, ``rna`` for hif8, else ``rn``. s32 -> fp16 ignores it.
        source: format of ``src`` where its dtype does not tell: unsigned integers are then codes of that format,
            one per element (hif8, e1m2, ...), other arrays its values.
        count: convert only the first ``count`` elements, in flat order; even for 4-bit types.
        mask: elements to convert, a boolean per source element, or the 64-bit words of one repeat, two for
            16-bit elements, one for 32- and 64-bit ones (:mod:`narrowcast.vector.masks`). Not with ``count``.
        deq_scale: the scale of s32 -> fp16, an fp16 number.
        packed: give 4-bit results two per byte (uint8, even element in the low nibble).
        control: control bits, by default at reset.
        semantics: whom to believe and the chip, by default the device and 3510.
        out: destination. Elements beyond ``count`` or not in ``mask`` keep what it holds.

    Returns:
        The values in the target's own array type where NumPy or ml_dtypes has one (float16, bfloat16,
        float8_e4m3fn, int8, int4, float4_e2m1fn, ...), and uint8 codes for hif8 and e1m2; one element each unless
        ``packed``. Same shape as ``src``; with ``count`` the first ``count`` elements, 1-D. Without ``out``,
        elements not in ``mask`` are zero: the device would leave memory as it was.

    Raises:
        UnsupportedCastError: the chip has no such pair or mode; the message says what it has.
        ShapeError: a mask, count or ``out`` of another length.
        ConstraintError: an odd number of 4-bit elements, a mask that splits a byte, a scale missing or superfluous.
        FormatError: values the source format does not have.

    Source: the rows of ``narrowcast.catalog.casts``; asc-devkit:Memory Cast; seed 3.1-3.3.

    Example:
        >>> import numpy as np
        >>> cast(np.float32([0.50048828125, 1e6]), "fp16", "CAST_ODD").view(np.uint16)
        array([14337, 31743], dtype=uint16)
    """
    array = np.asarray(src)
    op = VectorCast(
        source=source_format(array, source),
        target=target,
        mode=mode.value if isinstance(mode, Rounding) else mode,
        count=count,
        deq_scale=deq_scale,
        packed=packed,
    )
    semantics = semantics or Semantics()
    refuse_now(op, semantics)
    result: Array = execute(op, {"src": array, "mask": mask}, semantics, control, out)
    return result
