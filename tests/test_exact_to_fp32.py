"""fp32 as a target: from float64 and from integers wider than its significand."""

from fractions import Fraction

import numpy as np
import pytest

import narrowcast as nc
from tests.contract import assert_same
from tests.oracle import MODES
from tests.oracle.inputs import every, finite, integers
from tests.oracle.reference import round_integer
from tests.oracle.sources import first_key, infinity_key, join, value_of

TOP = infinity_key("float32")


def to_single(value: Fraction, negative: bool, mode: str, *, saturate: bool) -> int:
    """Return the fp32 bits of a finite value: the ordered keys are rounded like integers."""
    size = abs(value)
    above = first_key(size, "float32", strict=False)
    place = Fraction(above)
    if value_of(above, "float32") != size:
        low, high = value_of(above - 1, "float32"), value_of(above, "float32")
        place = above - 1 + (size - low) / (high - low)
    key = abs(round_integer(-place if negative else place, mode))
    if key >= TOP:
        key = TOP - 1 if saturate else TOP
    return key | (1 << 31 if negative else 0)


def doubles() -> np.ndarray:
    """Return float64 values at fp32 values and midpoints +-1 ulp, at its edges, and of any bits."""
    rng = np.random.default_rng(7)
    keys = np.concatenate([rng.integers(0, TOP, 700), [0, 1, 2, 2**23 - 1, 2**23, TOP - 2, TOP - 1, TOP - 1]])
    centres = []
    for key in keys.tolist():
        low, high = value_of(key, "float32"), value_of(key + 1, "float32")
        centres += [first_key(v, "float64", strict=False) for v in (low, (low + high) / 2)]
    centres += [first_key(Fraction(2) ** 128 * k, "float64", strict=False) for k in (1, 2, 2**20)]
    near = np.unique(np.array(centres)[:, None] + np.arange(-1, 2))
    near = np.concatenate([near[near >= 0], rng.integers(0, infinity_key("float64"), 300)])
    return finite(np.concatenate([join(near, np.full(near.shape, s), "float64") for s in (False, True)]))


@pytest.mark.parametrize("mode", MODES)
def test_doubles(mode: str) -> None:
    values = doubles()
    for saturate in (False, True):
        got = encode_single(values, mode, saturate)
        want = [to_single(Fraction(float(v)), bool(np.signbit(v)), mode, saturate=saturate) for v in values]
        assert_same(got, np.array(want), values, f"fp64 -> fp32 {mode}")


def encode_single(values: np.ndarray, mode: str, saturate: bool) -> np.ndarray:
    codes = nc.encode(values, "fp32", rounding=mode, saturate=saturate)
    assert codes.dtype == np.uint32
    return codes.astype(np.int64)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", ["int32", "uint32", "int64", "uint64"])
def test_integers(dtype: str, mode: str) -> None:
    values = np.random.default_rng(8).choice(integers(dtype), 2500)
    got = encode_single(values, mode, False)
    want = [to_single(Fraction(int(v)), v < 0, mode, saturate=False) for v in values]
    assert_same(got, np.array(want), values, f"{dtype} -> fp32 {mode}")


@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
def test_narrower_floats_widen_exactly(kind: str) -> None:
    values = finite(every(kind))
    got = encode_single(values, "rz", False).astype(np.uint32).view(np.float32)
    assert np.array_equal(got.view(np.uint32), values.astype(np.float32).view(np.uint32))
