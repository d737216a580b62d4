"""float64 sources are rounded once from their own 53 bits, never through float32."""

import numpy as np
import pytest

import narrowcast as nc
from tests.contract import assert_same, castable, encode
from tests.oracle import MODES, expected
from tests.oracle.inputs import structured
from tests.test_exact_16bit import SMALL

NAMES = (*SMALL, "fp16", "bf16", "s16", "s32", "s64")


@pytest.mark.parametrize("saturate", [False, True], ids=["keep-inf", "saturate"])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", NAMES)
def test_one_ulp_around_every_decision(name: str, mode: str, saturate: bool) -> None:
    values = castable(structured(name, "float64", at_least=20_000, ulps=1), name)
    got = encode(values, name, mode, saturate=saturate)
    assert_same(got, expected(values, name, mode, saturate=saturate), values, f"fp64 -> {name} {mode}")


def test_a_detour_through_float32_would_change_these() -> None:
    assert nc.encode([1.0625 - 2.0**-40], "hif8").tolist() == [0x08]
    assert nc.encode([40960 - 2.0**-20], "hif8", saturate=False).tolist() == [0x6E]
    assert nc.encode([17 + 2.0**-40], "e4m3").tolist() == [0x59]
    assert nc.encode([1 + 2.0**-11 + 2.0**-50], "fp16").tolist() == [0x3C01]


def test_the_examples_of_the_readme() -> None:
    values = [17 + 2**-10, 464.0, 465.0, -1e-9]
    assert nc.encode(values, "e4m3").tolist() == [0x59, 0x7E, 0x7E, 0x80]
    assert nc.encode(values, "e4m3", saturate=False).tolist() == [0x59, 0x7E, 0x7F, 0x80]
    assert np.array_equal(nc.decode(nc.encode(values[:1], "e4m3"), "e4m3"), np.array([18.0], np.float32))
