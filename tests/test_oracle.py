"""The oracle itself: its fast form against its scalar form and against published tables."""

from fractions import Fraction

import numpy as np
import pytest

from tests.oracle import FLOATS, INTEGERS, MODES, decode_all, expected, grid, reference
from tests.oracle.encode import ON_MAGNITUDE, thresholds
from tests.oracle.inputs import every, finite, integers, structured
from tests.oracle.reference import reference_hybrid
from tests.oracle.sources import first_key, split, value_of

# asc-devkit, HiF8 data type page: finite codes in ascending order of value with the value's first and last
HIF8_ORDER = bytes.fromhex(
    "0001020304050607"
    "7E7F7C7D7A7B7879767774757273707"
    "15C5D5E5F58595A5B54555657505152533"
    "8393A3B3C3D3E3F3031323334353637"
    "18191A1B1C1D1E1F08090A0B0C0D0E0F1011121314151617"
    "2021222324252627"
    "28292A2B2C2D2E2F"
    "404142434445464748494A4B4C4D4E4F"
    "606162636465666768696A6B6C6D6E"
)


def test_hif8_order_of_values() -> None:
    assert bytes(grid("hif8").codes[:-1]) == HIF8_ORDER


@pytest.mark.parametrize("name", FLOATS)
def test_grids_ascend_and_parity_alternates(name: str) -> None:
    g = grid(name)
    assert all(a < b for a, b in zip(g.values, g.values[1:], strict=False))
    assert all((a ^ b) & 1 for a, b in zip(g.codes, g.codes[1:], strict=False))


@pytest.mark.parametrize(
    ("name", "largest", "least_normal", "least"),
    [
        ("fp16", 65504, Fraction(1, 2**14), Fraction(1, 2**24)),
        ("bf16", (2 - Fraction(1, 2**7)) * 2**127, Fraction(1, 2**126), Fraction(1, 2**133)),
        ("hif8", 32768, Fraction(1, 2**15), Fraction(1, 2**22)),
        ("e4m3", 448, Fraction(1, 2**6), Fraction(1, 2**9)),
        ("e5m2", 57344, Fraction(1, 2**14), Fraction(1, 2**16)),
        ("e2m1", 6, 1, Fraction(1, 2)),
        ("e1m2", Fraction(7, 4), 1, Fraction(1, 4)),
        ("e3m2", 28, Fraction(1, 4), Fraction(1, 16)),
        ("e2m3", Fraction(15, 2), 1, Fraction(1, 8)),
    ],
)
def test_limits(name: str, largest: Fraction, least_normal: Fraction, least: Fraction) -> None:
    g = grid(name)
    assert (g.max, g.values[1]) == (largest, least)
    assert least_normal in g.values


@pytest.mark.parametrize("kind", ["float16", "bfloat16", "float32", "float64", "int"])
def test_first_key_is_the_least_value_not_below(kind: str) -> None:
    rng = np.random.default_rng(1)
    for _ in range(400):
        t = Fraction(int(rng.integers(1, 2**40)), 2 ** int(rng.integers(0, 60)))
        for strict in (False, True):
            key = first_key(t, kind, strict=strict)
            beyond = (lambda v: v > t) if strict else (lambda v: v >= t)  # noqa: B023
            assert beyond(value_of(key, kind))
            assert key == 0 or not beyond(value_of(key - 1, kind))


@pytest.mark.parametrize("kind", ["float16", "bfloat16", "float32", "float64"])
def test_key_order_is_value_order(kind: str) -> None:
    x = finite(structured("e4m3", kind))
    parts = split(x)
    for i in np.random.default_rng(2).choice(x.size, 2000):
        assert value_of(int(parts.key[i]), kind) == abs(Fraction(float(x[i])))
        assert parts.negative[i] == np.signbit(x[i].astype(np.float64))


def scalar(x: np.generic) -> tuple[Fraction, bool]:
    return Fraction(float(x)), bool(np.signbit(np.float64(x)))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", [*FLOATS, "s4", "u4", "s8", "u8", "s16", "u16", "s32", "u32", "s64"])
def test_fast_form_equals_scalar_form(name: str, mode: str) -> None:
    rng = np.random.default_rng(3)
    for kind in ("float32", "float64", "float16", "bfloat16"):
        if kind != "float32" and name in ("bf16", "fp19", "s16", "u16", "s32", "u32", "s64"):
            continue
        x = finite(structured(name, kind))
        x = rng.choice(x[: x.size * 2 // 3], 150).astype(x.dtype)
        for saturate in (False, True):
            want = [reference(v, name, mode, saturate=saturate, negative_zero=z) for v, z in map(scalar, x)]
            got = expected(x, name, mode, saturate=saturate)
            if name == "s64":
                want = [w - 2**64 if w >= 2**63 else w for w in want]
            assert got.tolist() == want


@pytest.mark.parametrize("name", ["e4m3", "hif8", "e8m0", "fp16", "s4", "u8", "s16"])
def test_fast_form_equals_scalar_form_for_integers(name: str) -> None:
    for dtype in ("int8", "uint16", "int32", "int64", "uint64"):
        x = np.random.default_rng(4).choice(integers(dtype), 200)
        for mode in MODES:
            want = [reference(Fraction(int(v)), name, mode, saturate=False) for v in x]
            assert expected(x, name, mode, saturate=False).tolist() == want


@pytest.mark.parametrize("compare", ["ge", "gt", "ge-nonzero"])
@pytest.mark.parametrize("saturate", [False, True])
def test_hybrid_fast_form_equals_scalar_form(compare: str, saturate: bool) -> None:
    step = 1 if compare == "ge" and not saturate else 9
    halves = finite(every("float16"))[::step]
    singles = finite(structured("hif8", "float32"))[:: 9 + step]
    singles = np.concatenate([singles, np.arange(1.0, 70000.0, 11.0 * step, np.float32)])
    for x, source in ((halves, "fp16"), (singles, "fp32")):
        bits = x.view(f"u{x.itemsize}").tolist()
        want = [reference_hybrid(b, source, saturate=saturate, compare=compare) for b in bits]
        got = expected(x, "hif8", "rh", saturate=saturate, compare=compare)
        assert got.tolist() == want


def test_infinities_are_not_finite_overflow() -> None:
    x = np.array([np.inf, -np.inf], np.float32)
    assert expected(x, "s8", "rn", saturate=False).tolist() == [127, 128]
    assert expected(x, "e4m3", "rz", saturate=False).tolist() == [0x7F, 0x7F]
    assert expected(x, "hif8", "rz", saturate=False).tolist() == [0x6F, 0xEF]
    assert expected(x, "e2m1", "rz", saturate=False).tolist() == [0x7, 0xF]


def test_decode_of_special_codes() -> None:
    assert np.isnan(decode_all("hif8")[0x80])
    assert np.isnan(decode_all("e4m3")[[0x7F, 0xFF]]).all()
    assert decode_all("e5m2")[0xFC] == -np.inf
    assert np.signbit(decode_all("e2m1")[8])
    assert np.isnan(decode_all("e8m0")[255])
    assert decode_all("e8m0")[0] == 2.0**-127


def test_thresholds_ascend() -> None:
    for name in FLOATS:
        for rules in ON_MAGNITUDE.values():
            keys = thresholds(name, rules[0], "float32").astype(object)
            assert (np.diff(keys) >= 0).all()
    assert set(INTEGERS) >= {"s4", "u4", "s8", "u8", "s16", "u16"}
