"""Invariants that hold for any input, found or refuted by hypothesis."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import narrowcast as nc
from tests.oracle.grids import FLOATS, grid

MODES = ("rn", "rna", "rd", "ru", "rz", "ro")
SIGNED = tuple(n for n in FLOATS if n not in ("e8m0", "fp19"))
INTEGERS = ("s4", "s8", "s16")

singles = st.floats(width=32, allow_nan=False, allow_infinity=False)
near_one = st.floats(min_value=-(2.0**17), max_value=2.0**17, width=32, allow_nan=False)
several = st.lists(st.one_of(singles, near_one), min_size=1, max_size=40)
modes = st.sampled_from(MODES)
quick = settings(max_examples=150, deadline=None)


def array(values: list[float]) -> np.ndarray:
    return np.array(values, np.float32)


@pytest.mark.parametrize("name", [*SIGNED, *INTEGERS])
@quick
@given(values=several, mode=modes, saturate=st.booleans())
def test_idempotent(name: str, values: list[float], mode: str, saturate: bool) -> None:
    """A value already rounded stays: encode(decode(encode(x))) == encode(x)."""
    once = nc.encode(array(values), name, rounding=mode, saturate=saturate)
    number = ~np.isnan(nc.decode(once, name))
    again = nc.encode(nc.decode(once, name)[number], name, rounding=mode, saturate=saturate)
    assert np.array_equal(again, once[number])


@pytest.mark.parametrize("name", [*SIGNED, "fp19", *INTEGERS])
@quick
@given(values=several, mode=modes)
def test_monotone(name: str, values: list[float], mode: str) -> None:
    """x <= y gives round(x) <= round(y), saturating."""
    ordered = np.sort(array(values))
    out = nc.round_to(ordered, name, rounding=mode)
    assert (np.diff(out.astype(np.float64)) >= 0).all()


@pytest.mark.parametrize("name", [*SIGNED, "fp19"])
@quick
@given(values=several, mode=modes, saturate=st.booleans())
def test_sign_symmetry(name: str, values: list[float], mode: str, saturate: bool) -> None:
    """round(-x) == -round(x) for nearest, truncation and odd; floor and ceiling change places."""
    mirror = {"rd": "ru", "ru": "rd"}.get(mode, mode)
    x = array(values)
    plus = nc.round_to(x, name, rounding=mode, saturate=saturate)
    minus = nc.round_to(-x, name, rounding=mirror, saturate=saturate)
    assert np.array_equal(plus, -minus, equal_nan=True)


def spacing(name: str, size: Fraction) -> Fraction:
    """Return the distance between the two grid values around a magnitude."""
    values = grid(name).values
    at = max(np.searchsorted(np.array([float(v) for v in values]), float(size), side="right") - 1, 0)
    return values[at + 1] - values[at]


@pytest.mark.parametrize("name", [n for n in SIGNED if n not in ("fp16", "bf16")])
@quick
@given(value=near_one, mode=modes)
def test_error_is_half_an_ulp_or_less_than_one(name: str, value: float, mode: str) -> None:
    """|error| <= ulp/2 for nearest modes, < ulp and on the right side for directed ones, inside the range."""
    x = Fraction(value)
    if abs(x) >= grid(name).max:
        return
    y = Fraction(float(nc.round_to(array([value]), name, rounding=mode)[0]))
    ulp = spacing(name, abs(x))
    assert abs(y - x) <= ulp / 2 if mode in ("rn", "rna") else abs(y - x) < ulp
    if mode == "rd":
        assert y <= x
    if mode == "ru":
        assert y >= x
    if mode == "rz":
        assert abs(y) <= abs(x)


@quick
@given(values=several)
def test_odd_results_are_odd_or_exact(values: list[float]) -> None:
    """Round to odd then round to nearest in a format two bits narrower equals rounding once: no double rounding."""
    x = array(values)
    assert np.array_equal(
        nc.encode(nc.round_to(x, "fp19", rounding="ro"), "e4m3", rounding="rn", saturate=False),
        nc.encode(x, "e4m3", rounding="rn", saturate=False),
    )


@pytest.mark.parametrize("name", SIGNED)
@quick
@given(values=several, mode=modes, saturate=st.booleans())
def test_round_to_is_encode_then_decode(name: str, values: list[float], mode: str, saturate: bool) -> None:
    x = array([*values, np.inf, -np.inf, 0.0, -0.0])
    fused = nc.round_to(x, name, rounding=mode, saturate=saturate)
    staged = nc.decode(nc.encode(x, name, rounding=mode, saturate=saturate), name)
    assert fused.dtype == staged.dtype == np.float32
    number = ~np.isnan(staged)
    assert np.array_equal(np.isnan(fused), ~number)
    assert np.array_equal(fused.view(np.uint32)[number], staged.view(np.uint32)[number])


@quick
@given(values=st.lists(st.integers(-8, 7), max_size=33))
def test_pack_round_trip(values: list[int]) -> None:
    codes = nc.encode(np.array(values, np.int64), "s4")
    packed = nc.pack(codes, "s4")
    assert packed.size == (len(values) + 1) // 2
    assert np.array_equal(nc.unpack(packed, "s4", len(values)), codes)


def test_hybrid_is_not_idempotent() -> None:
    """16.0 is a HiF8 value, and under the published `>=` it becomes 20."""
    once = nc.round_to(np.float32([16.0]), "hif8", rounding="rh")
    assert once.tolist() == [20.0]
    assert nc.round_to(once, "hif8", rounding="rh").tolist() == [24.0]


def test_hybrid_is_not_monotone() -> None:
    """A larger input may give a smaller result: the low bits of the source are the threshold."""
    x = np.float32([17.0, 17.5]).view(np.uint32) | np.uint32([0, 0x3FFF])
    x = x.view(np.float32)
    assert x[0] < x[1]
    y = nc.round_to(x, "hif8", rounding="rh")
    assert y[0] > y[1]


@quick
@given(values=several)
def test_hybrid_is_sign_symmetric_and_stays_beside_its_input(values: list[float]) -> None:
    """What does hold for `rh`: the sign is not looked at, and the result is one of the neighbours or one above."""
    x = array(values)
    plus = nc.round_to(x, "hif8", rounding="rh")
    assert np.array_equal(plus, -nc.round_to(-x, "hif8", rounding="rh"))
    down = nc.round_to(np.abs(x), "hif8", rounding="rz")
    ascending = np.array([float(v) for v in grid("hif8").values], np.float32)
    step = np.searchsorted(ascending, np.abs(plus)) - np.searchsorted(ascending, down)
    assert set(step.tolist()) <= {0, 1}
