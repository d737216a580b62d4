"""Sums of products in the Cube's accumulators.

S32 sums are exact. The order and width of FP32 accumulation is published nowhere, so it is a named choice.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from narrowcast.errors import FormatError
from narrowcast.quant.arrays import first_index

Array = npt.NDArray[Any]

ORDERS = ("fp32-sequential", "fp32-k16", "fp32-k32", "fp32-k64", "fp64", "exact", "blas")
"""``fp32-sequential``: one exact product at a time, rounded into the accumulator. ``fp32-k16/32/64``: an exact dot
product of that many, then one rounding. ``fp64``: a float64 sum, rounded once. ``exact``: the exact sum, rounded once.
``blas``: NumPy's float32 product, whatever its order; the fastest."""

_STEP = {"fp32-sequential": 1, "fp32-k16": 16, "fp32-k32": 32, "fp32-k64": 64}  # exact: all of K

_BLOCK = 1 << 14  # results
_CHUNK = 1024  # |sum| <= 1024 * 2**14 = 2**24: a float32 GEMM of s8 values is exact
_S32 = np.iinfo(np.int32)


def integer_product(a: Array, b: Array, initial: Array | None) -> Array:
    """Return ``initial + a @ b`` as int32, exactly.

    Args:
        a: int8 [M, K].
        b: int8 [K, N].
        initial: int32, broadcasts to [M, N].

    Raises:
        FormatError: a sum that S32 cannot hold, naming K and the first element.
    """
    m, k = a.shape
    n = b.shape[1]
    largest = k * 2**14 + (int(np.max(np.abs(initial.astype(np.int64)), initial=0)) if initial is not None else 0)
    wide = np.int32 if largest <= _S32.max else np.int64
    total: Array = np.zeros((m, n), dtype=wide) if k == 0 else _chunk(a[:, :_CHUNK], b[:_CHUNK]).astype(wide)
    for start in range(_CHUNK, k, _CHUNK):
        # The float sum is a whole number below 2**24: the conversion is part of the addition.
        part = _chunk(a[:, start : start + _CHUNK], b[start : start + _CHUNK])
        np.add(total, part, out=total, casting="unsafe", dtype=wide)
    if initial is not None:
        total += initial
    if total.dtype == np.int64:
        bad = (total < _S32.min) | (total > _S32.max)
        if bad.any():
            i, j = first_index(bad)
            raise FormatError(
                f"K = {k}: {int(bad.sum())} sums do not fit S32, first {int(total[i, j])} at [{i}, {j}].",
                hint="Split K and add the parts in a wider type.",
            )
        total = total.astype(np.int32)
    return total


def _chunk(a: Array, b: Array) -> Array:
    return np.asarray(a.astype(np.float32) @ b.astype(np.float32))


def float_product(a: Array, b: Array, initial: Array | None, order: str, *, product_bits: int = 48) -> Array:
    """Return ``initial + a @ b`` as float32 in the named order.

    Args:
        a: float32 or float64 [M, K] whose products with ``b`` are exact in float64.
        b: likewise [K, N].
        initial: float32, broadcasts to [M, N].
        order: one of ``ORDERS``.
        product_bits: significant bits of a product: up to 24 saves most of the work of ``fp32-sequential``.
    """
    shape = (a.shape[0], b.shape[1])
    start = np.zeros(shape, dtype=np.float32) if initial is None else np.broadcast_to(initial, shape).astype(np.float32)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        if order == "blas":
            return np.asarray(start + a.astype(np.float32) @ b.astype(np.float32))
        wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
        if order == "fp64":
            return np.asarray((start + wide_a @ wide_b).astype(np.float32))
        narrow = product_bits <= 24 and _fits_float32(wide_a, wide_b, product_bits)
        rows = max(1, _BLOCK // max(1, shape[1]))
        for top in range(0, shape[0], rows):  # blocks of results stay in the cache over all of K
            some = slice(top, top + rows)
            if narrow and order == "fp32-sequential":
                start[some] = _one_by_one(start[some], a[some], b)
                continue
            step = _STEP.get(order, max(1, a.shape[1]))
            for k in range(0, a.shape[1], step):
                start[some] = _add_exact_dot(start[some], wide_a[some, k : k + step], wide_b[k : k + step])
    return start


def _fits_float32(a: Array, b: Array, bits: int) -> bool:
    """Whether float32 holds every product exactly: none overflows, and none loses its last bit below the range."""
    most, least = 1.0, 1.0
    for side in (np.abs(a), np.abs(b)):
        if not np.isfinite(side).all():
            return False
        most *= float(side.max(initial=0.0))
        least *= float(np.where(side > 0, side, np.inf).min(initial=np.inf))
    return most < 2.0**127 and least >= 2.0 ** (bits - 150)


def _one_by_one(acc: Array, a: Array, b: Array) -> Array:
    """Add products that float32 holds exactly, so that each sum is rounded once."""
    left, right = a.astype(np.float32), b.astype(np.float32)
    product = np.empty(acc.shape, dtype=np.float32)
    for k in range(left.shape[1]):
        np.multiply(left[:, k, None], right[None, k, :], out=product)
        acc = np.add(acc, product, out=acc)
    return acc


def _add_exact_dot(acc: Array, a: Array, b: Array) -> Array:
    """Round ``acc + sum(a * b)`` to float32 once. The sum is kept in two float64, far beyond any rounding point."""
    high, low = acc.astype(np.float64), np.zeros(acc.shape)
    for k in range(a.shape[1]):
        high, error = _two_sum(high, a[:, k, None] * b[None, k, :])
        low += error
    special = ~np.isfinite(high)
    high, low = _two_sum(high, np.where(special, 0.0, low))
    # Round to odd first, so that the second rounding to float32 cannot meet a false tie.
    even = (high.view(np.uint64) & np.uint64(1)) == 0
    toward = np.where(low > 0, np.inf, -np.inf)
    high = np.where((low != 0) & even & ~special, np.nextafter(high, toward), high)
    return np.asarray(high.astype(np.float32))


def _two_sum(x: Array, y: Array) -> tuple[Array, Array]:
    """Sum and its rounding error, exactly."""
    total = x + y
    back = total - x
    return total, (x - (total - back)) + (y - back)
