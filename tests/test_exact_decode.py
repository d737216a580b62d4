"""Every code of every format of at most 19 bits decodes as the oracle says."""

import numpy as np
import pytest

import narrowcast as nc
from tests.contract import bits_of
from tests.golden import read
from tests.oracle import decode_all
from tests.oracle.grids import CANONICAL_NAN, FLOATS, grid, integer_range

SMALL_INTEGERS = ("s4", "u4", "s8", "u8", "s16", "u16")


def all_codes(name: str) -> np.ndarray:
    """Return every code in the format's own code type."""
    bits = bits_of(name)
    dtype = np.dtype(nc.formats[name].code_dtype)
    return np.arange(2**bits, dtype=np.uint32).astype(dtype)


def assert_same_floats(got: np.ndarray, want: np.ndarray) -> None:
    """Bits equal, except that any NaN equals any NaN."""
    assert got.dtype == want.dtype == np.float32
    assert np.array_equal(np.isnan(got), np.isnan(want))
    number = ~np.isnan(want)
    differ = np.flatnonzero(got.view(np.uint32)[number] != want.view(np.uint32)[number])
    assert differ.size == 0, f"{differ.size} differ, first at code {np.flatnonzero(number)[differ[0]]:#x}"


@pytest.mark.parametrize("name", [*FLOATS, *SMALL_INTEGERS])
def test_every_code(name: str) -> None:
    codes = all_codes(name)
    assert_same_floats(nc.decode(codes, name), decode_all(name))


def test_published_hif8_table() -> None:
    rows = read("decode_hif8")
    assert len(rows) == 127
    codes = np.array([int(r["code"], 16) for r in rows], np.uint8)
    values = np.array([float.fromhex(r["value"]) for r in rows], np.float32)
    assert_same_floats(nc.decode(codes, "hif8"), values)
    assert_same_floats(nc.decode(codes[1:] | 0x80, "hif8"), -values[1:])


def test_fp32_codes_are_its_bits() -> None:
    bits = np.array([0, 0x80000000, 1, 0x7F7FFFFF, 0x7F800000, 0xFF800000, 0x7FC00000, 0x3F800001], np.uint32)
    assert_same_floats(nc.decode(bits, "fp32"), bits.view(np.float32))
    assert nc.encode(bits.view(np.float32), "fp32", saturate=False).tolist() == bits.tolist()


@pytest.mark.parametrize("name", [*FLOATS, *SMALL_INTEGERS])
def test_decoded_codes_encode_to_themselves(name: str) -> None:
    """Exact values are kept by every mode but `rh`; codes of one NaN class become the canonical NaN."""
    codes = all_codes(name)
    values = nc.decode(codes, name)
    number = ~np.isnan(values)
    for mode in ("rn", "rna", "rd", "ru", "rz", "ro"):
        again = nc.encode(values[number], name, rounding=mode, saturate=False)
        assert np.array_equal(again, codes[number])
    if not number.all():
        again = nc.encode(values[~number], name, saturate=False)
        assert (again == CANONICAL_NAN[name]).all()


@pytest.mark.parametrize("name", FLOATS)
def test_row_limits_are_those_of_the_grid(name: str) -> None:
    row, g = nc.formats[name], grid(name)
    assert row.bits == g.bits
    assert float(row.max) == float(g.max)
    if name != "e8m0":
        assert float(row.min_subnormal) == float(g.values[1])
        assert float(row.min) == -float(g.max)
    assert row.nan_code == g.nan
    assert row.max_code == g.max_code
    assert row.inf_code == g.infinity


@pytest.mark.parametrize(
    ("name", "value"),
    [("fp16", 2.0**-14), ("bf16", 2.0**-126), ("hif8", 2.0**-15), ("e4m3", 2.0**-6), ("e5m2", 2.0**-14), ("e2m1", 1.0)],
)
def test_row_least_normal(name: str, value: float) -> None:
    assert float(nc.formats[name].min_normal) == value


@pytest.mark.parametrize("name", [*SMALL_INTEGERS, "s32", "u32", "s64"])
def test_integer_row_limits(name: str) -> None:
    assert (nc.formats[name].min, nc.formats[name].max) == integer_range(name)


def test_wide_integers_decode_to_integers() -> None:
    for name, dtype in (("s32", np.int32), ("u32", np.uint32), ("s64", np.int64)):
        values = np.array([np.iinfo(dtype).min, -1 if np.iinfo(dtype).min else 7, 0, np.iinfo(dtype).max], dtype)
        back = nc.decode(nc.encode(values, name), name)
        assert back.dtype == dtype
        assert np.array_equal(back, values)
