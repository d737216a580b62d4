"""Every fp16 and every bf16 input, to every format of at most 8 bits, in every mode, saturating and not."""

import numpy as np
import pytest

from tests.contract import assert_same, castable, encode
from tests.oracle import MODES, expected
from tests.oracle.inputs import every, without_nan
from tests.oracle.sources import split

SMALL = ("s4", "u4", "s8", "u8", "hif8", "e4m3", "e5m2", "e2m1", "e1m2", "e3m2", "e2m3", "e8m0")
WIDE = ("fp16", "bf16", "fp19", "s16", "u16", "s32", "u32", "s64")


@pytest.mark.parametrize("saturate", [False, True], ids=["keep-inf", "saturate"])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", [*SMALL, *WIDE])
@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
def test_every_input(kind: str, name: str, mode: str, saturate: bool) -> None:
    values = castable(every(kind), name)
    got = encode(values, name, mode, saturate=saturate)
    assert_same(got, expected(values, name, mode, saturate=saturate), values, f"{kind} -> {name} {mode}")


@pytest.mark.parametrize("saturate", [False, True], ids=["keep-inf", "saturate"])
@pytest.mark.parametrize("name", [*SMALL, *WIDE])
@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
def test_nan_becomes_zero_when_asked(kind: str, name: str, saturate: bool) -> None:
    values = every(kind)
    got = encode(values, name, "rn", saturate=saturate, nan="zero")
    want = expected(values, name, "rn", saturate=saturate, nan="zero")
    assert_same(got, want, values, f"{kind} -> {name} rn nan=zero")
    zero = encode(np.zeros(1, np.float32), name, "rn", saturate=saturate)
    assert (got[split(values).nan] == zero).all()


@pytest.mark.parametrize("compare", ["ge", "gt", "ge-nonzero"])
@pytest.mark.parametrize("saturate", [False, True], ids=["keep-inf", "saturate"])
def test_every_half_to_hif8_hybrid(saturate: bool, compare: str) -> None:
    values = every("float16")
    got = encode(values, "hif8", "rh", saturate=saturate, compare=compare)
    want = expected(values, "hif8", "rh", saturate=saturate, compare=compare)
    assert_same(got, want, values, f"fp16 -> hif8 rh {compare}")


def test_singles_born_as_bf16_always_round_up_under_hybrid_ge() -> None:
    """Their low 14 bits are zero, so the threshold is zero: the page's `>=` moves even exact values."""
    values = without_nan(every("bfloat16")).astype(np.float32)
    for compare in ("ge", "gt", "ge-nonzero"):
        got = encode(values, "hif8", "rh", saturate=False, compare=compare)
        want = expected(values, "hif8", "rh", saturate=False, compare=compare)
        assert_same(got, want, values, f"fp32 -> hif8 rh {compare}")
    got = encode(np.array([16.0, 256.0, 32768.0, 2.0**-16], np.float32), "hif8", "rh", saturate=False)
    assert got.tolist() == [0x41, 0x61, 0x6F, 0x7E]
