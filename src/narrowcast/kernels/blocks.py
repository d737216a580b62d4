"""Block scaling in one pass, where a compiled kernel serves."""

from dataclasses import dataclass

from narrowcast.kernels.arrays import Array
from narrowcast.kernels.library import native, threads

MODES = ("rn", "rna")
"""Rounding modes with a kernel."""

ELEMENTS = ("e4m3", "e5m2", "e2m1", "e1m2", "e3m2", "e2m3")
"""Element formats with a kernel."""

_NUMBERS = {name: number for number, name in enumerate((*ELEMENTS, "e2m1x2", "e1m2x2"))}


@dataclass(frozen=True, eq=False)
class BlockRule:
    """A scale rule as a table over the exponent field of a block's largest magnitude, and the element format.

    Args:
        threshold: uint32[256], the fraction field from which ``high`` holds.
        low: uint8[256], scale byte below the threshold.
        high: uint8[256], scale byte from the threshold on.
        flush_byte0: byte 0 makes every element zero.
        drop_negative: an element of exactly -0 becomes +0.
        nan_code: code of every element of a block with byte 255.
        limit_code: what overflow becomes.
        element: name of the element format, one of ``ELEMENTS``.
    """

    threshold: Array
    low: Array
    high: Array
    flush_byte0: bool
    drop_negative: bool
    nan_code: int
    limit_code: int
    element: str


def quantize_blocks(rows: Array, codes: Array, scales: Array, block: int, mode: str, rule: BlockRule) -> bool:
    """Quantize rows of blocks with the compiled kernel.

    Args:
        rows: contiguous float32 ``[R, K]``, not empty.
        codes: contiguous uint8 of the same shape, overwritten; ``[R, ceil(K / 2)]`` takes two 4-bit codes a byte.
        scales: contiguous uint8 ``[R, ceil(K / block)]``, overwritten.
        block: elements per scale, a multiple of 32.
        mode: one of ``MODES``.
        rule: the scale rule and the element format.

    Returns:
        Whether the result stands: False without a compiled kernel, where a block is so small that fp32 subnormals may
        decide a code, or where an infinity counts as a number.
    """
    module = native()
    if module is None:
        return False
    seen = module.mx_rows(
        rows.reshape(-1),
        codes.reshape(-1),
        scales.reshape(-1),
        rows.shape[1],
        block,
        mode == "rna",
        rule.threshold,
        rule.low,
        rule.high,
        rule.flush_byte0,
        rule.drop_negative,
        rule.nan_code,
        rule.limit_code,
        _NUMBERS[rule.element + "x2" * (codes.shape[1] != rows.shape[1])],
        threads(rows.size),
    )
    return not seen & int(module.SEEN_UNDECIDED)
