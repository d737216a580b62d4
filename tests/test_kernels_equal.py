"""Every kernel against the specification, bit for bit, on the level that runs."""

from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from narrowcast import kernels, numerics
from narrowcast.catalog.formats import formats
from narrowcast.errors import FormatError
from narrowcast.schema import Format, Rounding
from tests.kernel_inputs import bits_of, holds_values, thresholds, upper_halves, without_nan

NAMES = [fmt.name for fmt in formats.values()]
PLAIN_MODES = [r for r in Rounding if r is not Rounding.RH]


def modes(fmt: Format) -> list[Rounding]:
    return list(Rounding) if fmt.name == "hif8" else PLAIN_MODES


def assert_equal(values: np.ndarray, fmt: Format, mode: Rounding, **rule: Any) -> None:
    """Compare codes, and rounded values where float32 holds them."""
    if rule["nan"] == "keep" and fmt.nan_code is None:
        values = without_nan(values)
    want = numerics.encode(values, fmt, mode, **rule)
    got = kernels.encode(values, fmt, mode, **rule)
    wrong = np.flatnonzero(want != got)
    assert got.dtype == want.dtype and wrong.size == 0, (
        f"{fmt.name} {mode.value} {rule}: {wrong.size} codes differ, first "
        f"{values[wrong[0]]!r}: {int(got[wrong[0]]):#x}, expected {int(want[wrong[0]]):#x}"
    )
    if not holds_values(fmt):
        return
    rounded, expected = kernels.round_to(values, fmt, mode, **rule), numerics.decode(want, fmt)
    wrong = np.flatnonzero(bits_of(rounded) != bits_of(expected))
    assert wrong.size == 0, (
        f"round_to {fmt.name} {mode.value} {rule}: {wrong.size} differ, first "
        f"{values[wrong[0]]!r}: {rounded[wrong[0]]!r}, expected {expected[wrong[0]]!r}"
    )


def switches(mode: Rounding) -> Iterator[dict[str, str]]:
    for nan in ("keep", "zero"):
        for overflow in numerics.OVERFLOW_RULES:
            for compare in numerics.COMPARES if mode is Rounding.RH else ("ge",):
                yield {"nan": nan, "overflow": overflow, "hybrid_compare": compare}


@pytest.mark.parametrize("saturate", [True, False])
@pytest.mark.parametrize("name", NAMES)
def test_every_upper_half(name: str, saturate: bool) -> None:
    fmt = formats[name]
    for mode in modes(fmt):
        assert_equal(upper_halves(4), fmt, mode, saturate=saturate, nan="keep")


@pytest.mark.parametrize("name", [n for n in NAMES if formats[n].bits <= 16])
def test_every_threshold(name: str) -> None:
    fmt = formats[name]
    for mode in modes(fmt):
        for saturate in (True, False):
            assert_equal(thresholds(name), fmt, mode, saturate=saturate, nan="keep")


@pytest.mark.parametrize("name", NAMES)
def test_every_switch(name: str) -> None:
    fmt = formats[name]
    for mode in modes(fmt):
        for rule in switches(mode):
            for saturate in (True, False):
                assert_equal(upper_halves(64), fmt, mode, saturate=saturate, **rule)


@pytest.mark.parametrize("compare", numerics.COMPARES)
def test_hybrid_on_thresholds_of_its_own(compare: str) -> None:
    """The low 14 bits equal to, just below and just above the discarded ones, in every binade."""
    upper = np.arange(0x3300, 0x4800, dtype=np.uint32) << np.uint32(16)
    rng = np.random.default_rng(3)
    cases = []
    for dropped in (20, 21, 22, 23):
        middle = upper | rng.integers(0, 1 << 16, upper.size).astype(np.uint32)
        field = (middle >> np.uint32(dropped - 14)) & np.uint32(0x3FFF)
        for offset in (-1, 0, 1):
            low = (field.astype(np.int64) + offset).clip(0, 0x3FFF).astype(np.uint32)
            cases.append((middle & ~np.uint32(0x3FFF)) | low)
    bits = np.concatenate(cases)
    values = np.concatenate([bits, bits | np.uint32(0x80000000)]).view(np.float32)
    for saturate in (True, False):
        assert_equal(values, formats["hif8"], Rounding.RH, saturate=saturate, nan="keep", hybrid_compare=compare)


@pytest.mark.parametrize("source", ["float16", "bfloat16", "int16", "uint16", "int8", "uint8"])
def test_every_pattern_of_a_short_source(source: str) -> None:
    dtype = np.dtype(ml_dtypes.bfloat16 if source == "bfloat16" else source)
    patterns = np.arange(1 << 8 * dtype.itemsize, dtype=f"uint{8 * dtype.itemsize}").view(dtype)
    for name in ("hif8", "e4m3", "e2m1", "s4", "s8", "u8", "fp16", "bf16", "s16", "s32", "fp32", "e8m0"):
        fmt = formats[name]
        for mode in (Rounding.RN, Rounding.RNA, Rounding.RZ, Rounding.RO):
            assert_equal(patterns, fmt, mode, saturate=True, nan="zero")
            assert_equal(patterns, fmt, mode, saturate=False, nan="zero")
    if source == "float16":
        for compare in numerics.COMPARES:
            assert_equal(patterns, formats["hif8"], Rounding.RH, saturate=False, nan="keep", hybrid_compare=compare)


@pytest.mark.parametrize("source", ["float64", "int32", "uint32", "int64", "uint64"])
def test_wide_sources(source: str) -> None:
    rng = np.random.default_rng(4)
    if source == "float64":
        near = thresholds("e4m3").astype(np.float64)
        tiny = np.ldexp(rng.standard_normal(2000), rng.integers(-1080, 1020, 2000))
        edge = np.array([np.inf, -np.inf, np.nan, 0.0, -0.0, 3.5e38, -3.5e38, 5e-324])
        values = np.concatenate([near, np.nextafter(near, np.inf), np.nextafter(near, -np.inf), tiny, edge])
    else:
        info = np.iinfo(source)
        values = rng.integers(info.min, info.max, 4000, dtype=source, endpoint=True)
        values = np.concatenate([values, values >> 40 if info.bits == 64 else values >> 20])
    for fmt in formats.values():
        for mode in PLAIN_MODES:
            for saturate in (True, False):
                assert_equal(values, fmt, mode, saturate=saturate, nan="zero")


@pytest.mark.parametrize("name", NAMES)
def test_decode_every_code(name: str) -> None:
    fmt = formats[name]
    if fmt.bits <= 16:
        codes = np.arange(1 << fmt.bits).astype(fmt.code_dtype)
    else:
        codes = np.random.default_rng(5).integers(0, fmt.code_mask, 5000, dtype=np.uint64, endpoint=True)
        codes = codes.astype(fmt.code_dtype)
    for repeat in (1, 5, 80):  # short arrays go code by code, long ones through registers
        many = np.tile(codes, repeat)
        got, want = kernels.decode(many, fmt), numerics.decode(many, fmt)
        assert got.dtype == want.dtype
        assert np.array_equal(bits_of(got), bits_of(want))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "bfloat16"])
@pytest.mark.parametrize(("name", "nan"), [("s8", "keep"), ("e2m1", "keep"), ("s32", "keep"), ("hif8", "error")])
def test_refused_nan(name: str, nan: str, dtype: str) -> None:
    values = np.ones((3, 5), dtype=ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    values[1, 2] = values[2, 0] = np.nan
    for layout in (values, values.T, np.asfortranarray(values), values[::2]):
        with pytest.raises(FormatError, match="NaN, first at flat index"):
            kernels.encode(layout, formats[name], Rounding.RN, saturate=True, nan=nan)
    with pytest.raises(FormatError, match="2 NaN, first at flat index 7"):
        kernels.encode(values, formats[name], Rounding.RN, saturate=True, nan=nan)
