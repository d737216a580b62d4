"""Integer sources: rounded once into floats, never rounded into integers."""

import numpy as np
import pytest

from tests.contract import assert_same, encode
from tests.oracle import MODES, expected
from tests.oracle.inputs import integers
from tests.test_exact_16bit import SMALL, WIDE

DTYPES = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")


@pytest.mark.parametrize("name", [*(n for n in SMALL if n[0] not in "su"), "fp16", "bf16", "fp19"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_integers_to_floats(dtype: str, name: str) -> None:
    values = integers(dtype)
    for mode in MODES:
        for saturate in (False, True):
            got = encode(values, name, mode, saturate=saturate)
            want = expected(values, name, mode, saturate=saturate)
            assert_same(got, want, values, f"{dtype} -> {name} {mode} saturate={saturate}")


@pytest.mark.parametrize("name", ["s4", "u4", "s8", "u8", *(w for w in WIDE if w[0] in "su")])
@pytest.mark.parametrize("dtype", DTYPES)
def test_integers_to_integers(dtype: str, name: str) -> None:
    values = integers(dtype)
    for mode in ("rn", "rz"):
        for saturate in (False, True):
            got = encode(values, name, mode, saturate=saturate)
            want = expected(values, name, mode, saturate=saturate)
            assert_same(got, want, values, f"{dtype} -> {name} saturate={saturate}")


def test_large_integers_are_rounded_once() -> None:
    """2**53 + 1 would lose its last bit in float64 and then sit on a tie."""
    ties = np.array([2**60 + 2**52, 2**60 + 2**52 + 1], np.int64)
    got = encode(ties, "bf16", "rn", saturate=False)
    assert_same(got, expected(ties, "bf16", "rn", saturate=False), ties, "int64 -> bf16 rn")
    assert got[1] == got[0] + 1
