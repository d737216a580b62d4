"""Accumulators to their destination format in one pass: multiply by one scale, or one a column, and narrow."""

from dataclasses import dataclass

import numpy as np

from narrowcast.kernels.arrays import Array
from narrowcast.kernels.library import native, threads
from narrowcast.kernels.tables import Rule, limits
from narrowcast.schema import Rounding

SEEN_SUBNORMAL = 8
_PADDING = 64  # a row's last group loads whole vectors of parameters
_FLOAT8 = {("e4m3", Rounding.RN): 0, ("e5m2", Rounding.RN): 1, ("hif8", Rounding.RNA): 2}
_COMPARES = {"ge": 0, "gt": 1, "ge-nonzero": 2}


@dataclass(frozen=True)
class Multipliers:
    """What accumulators are multiplied by, and the integer that is added after.

    Args:
        scale: float32, one or one a column.
        offset: int32, one or one a column.
        alpha: multipliers of negative accumulators, None where there are none.
        relu: negative accumulators give +0.
    """

    scale: Array
    offset: Array
    alpha: Array | None = None
    relu: bool = False

    def arrays(self, columns: int) -> tuple[Array, Array, Array]:
        """The three arrays as the compiled module wants them: one element each, or a padded one a column."""
        fields = [(self.scale, np.float32), (self.offset, np.int32)]
        if self.alpha is not None:
            fields.append((self.alpha, np.float32))
        per_column = any(field.size > 1 for field, _ in fields)
        size = columns + _PADDING if per_column else 1
        made = []
        for field, dtype in fields:
            padded = np.zeros(size, dtype=dtype)
            padded[: columns if per_column else 1] = field
            made.append(padded)
        if self.alpha is None:
            made.append(np.zeros(0, dtype=np.float32))
        return made[0], made[1], made[2]


def available() -> bool:
    """Whether the compiled module may serve: it is there, and this thread rounds to nearest."""
    module = native()
    return module is not None and bool(module.nearest_even())


def to_integers(
    acc: Array,
    by: Multipliers,
    inner: tuple[int, int],
    bounds: tuple[int, int],
    mask: int,
    out: Array,
    fractal_rows: int = 0,
) -> bool:
    """Requantize accumulators to integers of at most 8 bits.

    Formula: ``clamp(clamp(rint(acc * scale), *inner) + offset, *bounds) & mask``; the product is rounded to float32,
    and a NaN counts as 0.

    Args:
        acc: int32 or float32 [rows, columns], or L0C's fractals flat.
        by: multipliers and offsets.
        inner: limits of the rounded product.
        bounds: limits of the result.
        mask: bits of a code.
        out: uint8 [rows, columns].
        fractal_rows: rows of a column of fractals, 0 for a plain matrix.

    Returns:
        Whether an FP32 accumulator was subnormal.
    """
    columns = out.shape[1]
    scale, offset, alpha = by.arrays(columns)
    module = native()
    assert module is not None
    seen = module.requant_integer(
        _bytes(acc), out.reshape(-1), scale, offset, alpha, by.relu, acc.dtype == np.int32, columns, fractal_rows,
        *inner, *bounds, mask, threads(out.size),
    )  # fmt: skip
    return bool(seen & SEEN_SUBNORMAL)


def serves(rule: Rule) -> bool:
    """Whether :func:`to_floats` has a kernel for a rule."""
    if rule.rounding == "rh":
        return True
    half = rule.target in ("fp16", "bf16") and rule.rounding == "rn"
    return rule.overflow == "after-rounding" and (half or (rule.target, Rounding(rule.rounding)) in _FLOAT8)


def to_floats(acc: Array, by: Multipliers, rule: Rule, out: Array, fractal_rows: int = 0) -> bool:
    """Scale accumulators and narrow the products, each rounded to float32 and then once more.

    Args:
        acc: int32 or float32 [rows, columns], or L0C's fractals flat.
        by: multipliers; offsets are not used.
        rule: the conversion of a product.
        out: codes [rows, columns].
        fractal_rows: rows of a column of fractals, 0 for a plain matrix.

    Returns:
        Whether an FP32 accumulator was subnormal.
    """
    columns = out.shape[1]
    scale, offset, alpha = by.arrays(columns)
    module = native()
    assert module is not None
    ends = limits(rule)
    common = (
        _bytes(acc), out.reshape(-1), scale, offset, alpha, by.relu, acc.dtype == np.int32, columns, fractal_rows,
    )  # fmt: skip
    workers = threads(out.size)
    if rule.target in ("fp16", "bf16"):
        seen = module.requant_half(*common, rule.target == "fp16", ends.over, ends.nan, workers)
        return bool(seen & SEEN_SUBNORMAL)
    compare = _COMPARES[rule.hybrid_compare] if rule.rounding == "rh" else -1
    kind = _FLOAT8.get((rule.target, Rounding(rule.rounding)), 0)
    over_is_nan = ends.over == rule.format.nan_code
    seen = module.requant_float8(*common, kind, ends.over, ends.nan, over_is_nan, compare, workers)
    return bool(seen & SEEN_SUBNORMAL)


def _bytes(acc: Array) -> Array:
    return acc.reshape(-1).view(np.uint8)
