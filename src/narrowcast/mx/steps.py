"""A scale rule as a table, read off the rule itself: what the compiled kernel needs to apply it.

In every binade of the largest magnitude the byte takes at most one step. The table holds the byte on either side and
the fraction at which it steps, found by bisection; a rule with more steps has no table and stays with NumPy.
"""

from functools import lru_cache

import numpy as np

from narrowcast.kernels.blocks import ELEMENTS, MODES, BlockRule
from narrowcast.mx.bits import FRACTION, FRACTION_BITS
from narrowcast.mx.rules import NAN_BYTE, scale_bytes
from narrowcast.mx.scheme import Scheme
from narrowcast.numerics.unpacking import Array
from narrowcast.schema import FloatFormat

_KEPT = 64


@lru_cache(maxsize=_KEPT)
def block_rule(scheme: Scheme, source: str) -> BlockRule | None:
    """Return the kernel's form of a scheme, None where it has none.

    Args:
        scheme: the resolved call.
        source: format name of the values.
    """
    target = scheme.target
    if (
        not isinstance(target, FloatFormat)
        or target.name not in ELEMENTS
        or scheme.rounding.value not in MODES
        or scheme.simulates
    ):
        return None
    if scheme.rule.name == "mse2":
        return None
    found = steps(scheme, source)
    if found is None:
        return None
    threshold, low, high = found
    over = target.max_code
    if not scheme.saturate:
        over = next(code for code in (target.inf_code, target.nan_code, over) if code is not None)
    return BlockRule(
        threshold=threshold,
        low=low,
        high=high,
        flush_byte0=scheme.flushes_byte0,
        drop_negative=scheme.element_row.drops_negative_zero,
        nan_code=scheme.nan_code,
        limit_code=over,
        element=target.name,
    )


def _byte_at(scheme: Scheme, source: str, largest: Array) -> Array:
    return scale_bytes(scheme.rule.name, largest, scheme.context(source))


def steps(scheme: Scheme, source: str) -> tuple[Array, Array, Array] | None:
    """Return the fraction where each exponent field's byte steps, and the bytes below and from there on."""
    base = np.arange(256, dtype=np.uint32) << np.uint32(FRACTION_BITS)
    first = np.zeros(256, dtype=np.uint32)
    last = np.full(256, FRACTION, dtype=np.uint32)
    low, high = _byte_at(scheme, source, base | first), _byte_at(scheme, source, base | last)
    below, threshold = first.copy(), last.copy()
    while (threshold - below > 1).any():
        middle = (below + threshold) // np.uint32(2)
        stepped = _byte_at(scheme, source, base | middle) == high
        threshold = np.where(stepped, middle, threshold)
        below = np.where(stepped, below, middle)
    threshold = np.where(low == high, first, threshold).astype(np.uint32)
    before = _byte_at(scheme, source, base | np.maximum(threshold, np.uint32(1)) - np.uint32(1))
    single = (low == high) | (before == low)
    return (threshold, low, high) if bool(single.all()) and int(high[255]) == NAN_BYTE else None
