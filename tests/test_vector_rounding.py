"""ceil, floor, round, rint, trunc and the high-level Round."""

from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

import narrowcast as nc
from narrowcast.catalog.casts import INTEGRAL_ROWS, integrals
from tests.oracle.inputs import every, finite
from tests.oracle.reference import round_integer

FUNCTIONS = tuple(integrals)
MODES = {"ceil": "ru", "floor": "rd", "round": "rna", "rint": "rn", "trunc": "rz", "round_half_even": "rn"}
BF16 = np.dtype(ml_dtypes.bfloat16)
TYPES = {"fp16": np.dtype(np.float16), "bf16": BF16, "fp32": np.dtype(np.float32)}
WIDE = np.float32(
    [0.5, -0.5, 1.5, 2.5, -2.5, 0.49999997, -0.49999997, 8388607.5, 8388609, 1e38, -1e38, 1e-45, -1e-45, 3.7, -3.2]
)


def apply(function: str, x: np.ndarray, **kw: object) -> np.ndarray:
    return getattr(nc.vector, function)(x, **kw)


@pytest.mark.parametrize("kind", ["fp16", "bf16", "fp32"])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_every_value(function: str, kind: str) -> None:
    if kind == "bf16" and function == "round_half_even":
        with pytest.raises(nc.UnsupportedCastError, match="does not take bf16"):
            apply(function, np.zeros(1, BF16))
        return
    x = WIDE if kind == "fp32" else finite(every(TYPES[kind].name))
    got = apply(function, x)
    assert got.dtype == TYPES[kind]
    want = [round_integer(Fraction(float(v)), MODES[function]) for v in x]
    assert [int(v) for v in got.astype(np.float64)] == want
    negative = np.signbit(x.astype(np.float64))
    assert np.array_equal(np.signbit(got.astype(np.float64)), negative), "a zero result has the source's sign"


def test_seed_and_high_level_round_differ_at_ties() -> None:
    x = np.float32([2.5, -2.5, 0.5, 3.5])
    assert nc.vector.round(x).tolist() == [3, -3, 1, 4]
    assert nc.vector.rint(x).tolist() == [2, -2, 0, 4]
    assert nc.vector.round_half_even(x).tolist() == [2, -2, 0, 4]


@pytest.mark.parametrize("kind", ["fp16", "bf16"])
def test_special_values_of_16_bit_types(kind: str) -> None:
    x = np.array([np.inf, -np.inf, np.nan]).astype(TYPES[kind])
    largest = nc.formats[kind].max
    assert nc.vector.rint(x).astype(float).tolist() == [largest, -largest, 0]
    for kept in (
        nc.vector.rint(x, control=nc.Control(ctrl48=1)),
        nc.vector.rint(x, semantics=nc.Semantics().override(integral_special="keep")),
    ):
        assert kept[:2].astype(float).tolist() == [np.inf, -np.inf]
        assert np.isnan(kept[2])


def test_fp32_never_saturates() -> None:
    x = np.float32([np.inf, -np.inf, np.nan, np.finfo(np.float32).max])
    got = nc.vector.ceil(x)
    assert got[:2].tolist() == [np.inf, -np.inf]
    assert np.isnan(got[2])
    assert got[3] == x[3]


def test_sign_of_zero_is_a_switch_and_chip_2201_has_its_own_answer() -> None:
    x = np.float32([-0.3, -0.0])
    assert np.signbit(nc.vector.rint(x)).tolist() == [True, True]
    positive = nc.Semantics().override(integral_zero_sign="positive")
    assert np.signbit(nc.vector.rint(x, semantics=positive)).tolist() == [False, False]
    assert np.signbit(nc.vector.rint(x, semantics=nc.Semantics(chip="2201"))).tolist() == [False, False]


def test_types_and_chips() -> None:
    old = nc.Semantics(chip="2201")
    assert nc.vector.ceil(np.float16([0.5]), semantics=old).tolist() == [1]
    with pytest.raises(nc.UnsupportedCastError, match=r"bf16 on chip 2201 \(takes: fp16, fp32\).*chip 3510"):
        nc.vector.ceil(np.zeros(1, BF16), semantics=old)
    with pytest.raises(nc.UnsupportedCastError, match="s32"):
        nc.vector.floor(np.int32([1]))
    with pytest.raises(nc.UnsupportedCastError, match="float64"):
        nc.vector.floor(np.array([1.5]))
    for row in INTEGRAL_ROWS:
        assert row.reference


def test_shapes_out_and_untouched_input() -> None:
    x = np.float32([[0.5, 1.5], [2.5, -0.5]])
    x.flags.writeable = False
    out = np.zeros((2, 2), np.float32)
    assert nc.vector.rint(x, out=out) is out
    assert out.tolist() == [[0, 2], [2, 0]]
    assert nc.vector.rint(x[::-1, ::-1]).tolist() == [[0, 2], [2, 0]]
    assert nc.vector.rint(np.float32(2.5)).shape == ()
    assert nc.vector.rint(np.zeros((0, 3), np.float16)).shape == (0, 3)
    big = np.full(200_001, 1.5, np.float32)
    assert (nc.vector.round(big) == 2).all()
    assert nc.vector.rint(x.astype(">f4")).tolist() == [[0, 2], [2, 0]]
    with pytest.raises(nc.ShapeError, match="shape"):
        nc.vector.rint(x, out=np.zeros(4, np.float32))
