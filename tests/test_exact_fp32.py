"""Structured fp32 inputs, at least 100 000 per format and mode: decision points +-2 ulp, edges, specials, spread."""

import numpy as np
import pytest

import narrowcast as nc
from tests.contract import assert_same, castable, encode
from tests.oracle import MODES, expected
from tests.oracle.inputs import structured
from tests.test_exact_16bit import SMALL, WIDE

NAMES = (*SMALL, *WIDE)


@pytest.mark.parametrize("saturate", [False, True], ids=["keep-inf", "saturate"])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", NAMES)
def test_structured_inputs(name: str, mode: str, saturate: bool) -> None:
    values = castable(structured(name, "float32"), name)
    assert values.size >= 99_900
    got = encode(values, name, mode, saturate=saturate)
    assert_same(got, expected(values, name, mode, saturate=saturate), values, f"fp32 -> {name} {mode}")


@pytest.mark.parametrize("compare", ["ge", "gt", "ge-nonzero"])
@pytest.mark.parametrize("saturate", [False, True], ids=["keep-inf", "saturate"])
def test_hybrid(saturate: bool, compare: str) -> None:
    """Neighbours of the discarded bits' own thresholds: every exponent, the window and the low bits set apart."""
    rng = np.random.default_rng(11)
    exponents = rng.integers(127 - 25, 127 + 18, 200_000, dtype=np.uint32)
    low = rng.integers(0, 2**14, exponents.size, dtype=np.uint32)
    near = (low.astype(np.int64) + rng.integers(-1, 2, exponents.size)) & 0x3FFF
    kept = np.array([3, 2, 1, 0], np.int64)[rng.integers(0, 4, exponents.size)]
    top = rng.integers(0, 2**3, exponents.size) >> (3 - kept)
    window = (top << 14 | near) << (23 - 14 - kept)  # the first 14 discarded bits are near the low 14
    bits = (exponents.astype(np.int64) << 23 | (window & 0x7FC000) | low).astype(np.uint32)
    bits |= rng.integers(0, 2, exponents.size, dtype=np.uint32) << np.uint32(31)
    for values in (bits.view(np.float32), structured("hif8", "float32")):
        got = encode(values, "hif8", "rh", saturate=saturate, compare=compare)
        want = expected(values, "hif8", "rh", saturate=saturate, compare=compare)
        assert_same(got, want, values, f"fp32 -> hif8 rh {compare}")


@pytest.mark.parametrize("name", NAMES)
def test_nan_becomes_zero_when_asked(name: str) -> None:
    values = structured(name, "float32")
    for saturate in (False, True):
        got = encode(values, name, "rn", saturate=saturate, nan="zero")
        want = expected(values, name, "rn", saturate=saturate, nan="zero")
        assert_same(got, want, values, f"fp32 -> {name} rn nan=zero")


def test_default_rounding_is_ties_away_for_hif8_and_ties_even_elsewhere() -> None:
    for name in SMALL:
        values = castable(structured(name, "float32"), name)
        mode = "rna" if name == "hif8" else "rn"
        assert np.array_equal(nc.encode(values, name), nc.encode(values, name, rounding=mode, saturate=True))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ["fp16", "bf16"])
def test_ieee_overflow_of_directed_modes(name: str, mode: str) -> None:
    """The other claim of switch directed_overflow: inward modes stop at the largest finite value."""
    values = structured(name, "float32")
    got = encode(values, name, mode, saturate=False, overflow="ieee")
    want = expected(values, name, mode, saturate=False, overflow="ieee")
    assert_same(got, want, values, f"fp32 -> {name} {mode} overflow=ieee")


@pytest.mark.parametrize("mode", MODES)
def test_e4m3_overflow_before_rounding(mode: str) -> None:
    """The other claim of switch e4m3_overflow: every |x| > 448 overflows."""
    values = structured("e4m3", "float32")
    for saturate in (False, True):
        got = encode(values, "e4m3", mode, saturate=saturate, overflow="before-rounding")
        want = expected(values, "e4m3", mode, saturate=saturate, overflow="before-rounding")
        assert_same(got, want, values, f"fp32 -> e4m3 {mode} overflow=before-rounding")
    assert encode(np.float32([450]), "e4m3", "rn", saturate=False, overflow="before-rounding").tolist() == [0x7F]
