"""A NaN that a rule refuses: whether there is one, and the error that describes it."""

import numpy as np

from narrowcast.errors import FormatError
from narrowcast.kernels.arrays import BLOCK, Array
from narrowcast.kernels.tables import Rule


def holds_nan(values: Array) -> bool:
    """Whether a 16-bit float array holds a NaN; integers hold none."""
    infinity = {"float16": 0x7C00, "bfloat16": 0x7F80}.get(values.dtype.name)
    if infinity is None:
        return False
    if not values.flags.c_contiguous or not values.dtype.isnative:
        return bool(np.isnan(values).any())
    bits = values.reshape(-1).view(np.uint16)
    return any(
        (bits[at : at + BLOCK] & np.uint16(0x7FFF)).max(initial=0) > infinity for at in range(0, bits.size, BLOCK)
    )


def nan_error(values: Array, rule: Rule) -> FormatError:
    """Describe the NaN in ``values``: how many, where the first is, and why they are refused."""
    lanes = np.isnan(values)
    target = rule.format
    why = f"{target.name} has no NaN" if target.nan_code is None else 'the policy is nan="error"'
    return FormatError(
        f"{int(lanes.sum())} NaN, first at flat index {int(np.argmax(lanes))}: {why}.",
        hint='Pass nan="zero" to encode NaN as 0, or remove it.',
        source=target.source,
    )
