"""Expected codes of whole arrays: thresholds from fractions, inputs placed by bisection on integers."""

from fractions import Fraction
from functools import cache

import numpy as np

from tests.oracle.grids import INTEGERS, SCALE, Grid, grid
from tests.oracle.hybrid import hybrid_codes
from tests.oracle.integers import integer_codes
from tests.oracle.sources import Split, first_key, first_key_scaled, split

MODES = ("rn", "rna", "rd", "ru", "rz", "ro")
# what a mode does to the magnitude of a positive and of a negative number
ON_MAGNITUDE = {
    "rn": ("even", "even"),
    "rna": ("away", "away"),
    "rd": ("down", "up"),
    "ru": ("up", "down"),
    "rz": ("down", "down"),
    "ro": ("odd", "odd"),
}


def step_up(low: int, high: int, low_code: int, rule: str) -> tuple[int, bool]:
    """Return (threshold, strict): a magnitude in [low, high] becomes `high` when >= threshold, or > if strict."""
    middle = (low + high) // 2  # exact: scaled values are even
    if rule == "down":
        return high, False
    if rule == "up":
        return low, True
    if rule == "away":
        return middle, False
    odd = bool(low_code & 1)
    if rule == "even":
        return middle, not odd  # the tie leaves an odd neighbour and stays on an even one
    return (high, False) if odd else (low, True)  # "odd": anything inexact goes to the odd neighbour


@cache
def thresholds(name: str, rule: str, kind: str) -> np.ndarray:
    """Return ascending uint64 keys: how many are <= the input's key is the index of the result in the grid."""
    g = grid(name)
    if name == "e8m0" and rule == "even":
        rule = "away"  # one significant digit has no even neighbour: the tie goes to the larger magnitude
    keys = []
    for low, high, code in zip(g.scaled, g.scaled[1:], g.codes, strict=False):
        threshold, strict = step_up(low, high, code, rule)
        if kind == "int":
            key = first_key(Fraction(threshold, 2**SCALE), kind, strict=strict)
        else:
            key = first_key_scaled(threshold, SCALE, kind, strict=strict)
        if key >= 2**64:
            break  # beyond every uint64 source, as are all that follow
        keys.append(key)
    return np.array(keys, np.uint64)


@cache
def code_table(name: str, *, saturate: bool, negative: bool) -> np.ndarray:
    """Return the code for each index of the grid, the overflowed one (and e8m0's underflowed one) included."""
    g = grid(name)
    overflow = overflow_code(g, saturate=saturate)
    table = [*g.codes[:-1], overflow]
    if name == "e8m0":
        table[0] = 0x00  # below the range: the least value, saturating or not
        return np.full(len(table), 0xFF, np.int64) if negative else np.array(table, np.int64)
    if negative:
        table = [c if c == g.nan or (c == 0 and not g.negative_zero) else c | g.sign_bit for c in table]
    return np.array(table, np.int64)


def overflow_code(g: Grid, *, saturate: bool) -> int:
    """Return the code of a positive result above the largest finite value."""
    if saturate:
        return g.max_code
    if g.infinity is not None:
        return g.infinity
    return g.max_code if g.nan is None else g.nan  # FP4 and FP6 have neither and always saturate


def expected(
    values: np.ndarray,
    name: str,
    mode: str,
    *,
    saturate: bool,
    nan: str = "keep",
    compare: str = "ge",
    overflow: str = "after-rounding",
) -> np.ndarray:
    """Return the expected codes (int64, the low bits of the format) of a flat array.

    `overflow` "before-rounding": anything above the largest value has overflowed; "ieee": a mode that rounds a
    magnitude down, and round to odd, stop at the largest value however large a finite input is.

    NaN where the format has none gives 0, so callers either pass nan="zero" or leave NaN out.
    """
    values = np.ascontiguousarray(values).reshape(-1)
    parts = split(values)
    if name in INTEGERS:
        return integer_codes(parts, name, mode, saturate=saturate)
    if mode == "rh":
        codes = hybrid_codes(parts, saturate=saturate, compare=compare)
    else:
        codes = float_codes(parts, name, mode, saturate=saturate, overflow=overflow)
    code_of_nan = grid(name).nan
    zero = 0xFF if name == "e8m0" else 0  # zero is not a value of e8m0 either
    codes[parts.nan] = zero if nan == "zero" or code_of_nan is None else code_of_nan
    return codes


def float_codes(parts: Split, name: str, mode: str, *, saturate: bool, overflow: str) -> np.ndarray:
    rules = ON_MAGNITUDE[mode]
    index = np.searchsorted(thresholds(name, rules[0], parts.kind), parts.key, side="right")
    if rules[0] == rules[1]:
        below = index
    else:
        below = np.searchsorted(thresholds(name, rules[1], parts.kind), parts.key, side="right")
    last = len(grid(name).values) - 1
    if overflow == "before-rounding":
        beyond = parts.key >= np.uint64(first_key(grid(name).max, parts.kind, strict=True))
        index, below = np.where(beyond, last, index), np.where(beyond, last, below)
    elif overflow == "ieee":
        index = np.minimum(index, last - 1) if rules[0] in ("down", "odd") else index
        below = np.minimum(below, last - 1) if rules[1] in ("down", "odd") else below
    index = np.where(parts.infinite, last, index)
    below = np.where(parts.infinite, last, below)
    codes = np.where(
        parts.negative,
        code_table(name, saturate=saturate, negative=True)[below],
        code_table(name, saturate=saturate, negative=False)[index],
    )
    if name == "e8m0":
        codes[parts.key == 0] = 0xFF  # no zero in the format
    return codes
