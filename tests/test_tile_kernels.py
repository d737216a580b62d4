"""Rows of integer codes to fp32 and back: every layout and tail gives the bits of the plain formula."""

import numpy as np
import pytest

from narrowcast import kernels
from narrowcast.catalog.formats import formats
from narrowcast.schema import IntFormat

pytestmark = pytest.mark.kernels

SPECIAL = np.float32([0.0, -0.0, 1.0, -1.5, 1e-45, -1e-40, 3.4e38, -3.4e38, np.inf, -np.inf, np.nan, 0.1])


def same(got: np.ndarray, want: np.ndarray) -> bool:
    nan = np.isnan(got) & np.isnan(want)
    return bool(np.all((np.ascontiguousarray(got).view(np.uint32) == want.view(np.uint32)) | nan))


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.int32])
@pytest.mark.parametrize("columns", [1, 3, 7, 8, 9, 31, 32, 33, 200])
def test_dequantize_rows(dtype, columns):
    rng = np.random.default_rng(columns)
    rows = SPECIAL.size**2
    info = np.iinfo(dtype)
    codes = rng.integers(max(info.min, -(2**20)), min(info.max, 2**20) + 1, (rows, columns)).astype(dtype)
    scale, offset = np.repeat(SPECIAL, SPECIAL.size), np.tile(SPECIAL, SPECIAL.size)
    with np.errstate(all="ignore"):
        want = (codes.astype(np.float32) - offset[:, None]) * scale[:, None]
    assert same(kernels.dequantize_rows(codes, scale, offset), want)
    wide = np.zeros((rows, columns + 5), np.float32)
    inside = np.zeros((rows, columns + 2), dtype)
    inside[:, 1:-1] = codes
    kernels.dequantize_rows(inside[:, 1:-1], scale, offset, out=wide[:, 3:-2])
    assert same(wide[:, 3:-2], want) and not wide[:, :3].any() and not wide[:, -2:].any()
    swapped = codes.astype(codes.dtype.newbyteorder())
    assert same(kernels.dequantize_rows(swapped, scale, offset), want)
    turned = np.asfortranarray(codes)
    assert same(kernels.dequantize_rows(turned, scale, offset), want)


def test_dequantize_rows_beyond_the_cache():
    codes = np.arange(1 << 24, dtype=np.int32).astype(np.int8).reshape(1, -1)
    raw = np.empty(4 * codes.size + 4, np.uint8)
    out = raw[4:].view(np.float32).reshape(codes.shape)
    got = kernels.dequantize_rows(codes, np.float32([0.25]), np.float32([3]), out=out)
    assert np.array_equal(got[0, :1000], (codes[0, :1000].astype(np.float32) - 3) * 0.25)
    assert np.array_equal(got[0, -1000:], (codes[0, -1000:].astype(np.float32) - 3) * 0.25)


@pytest.mark.parametrize("name", ["s8", "u8"])
@pytest.mark.parametrize("columns", [1, 5, 31, 32, 33, 200])
def test_multiply_rows(name, columns):
    fmt = formats[name]
    assert isinstance(fmt, IntFormat)
    rng = np.random.default_rng(columns)
    values = (rng.integers(-600, 600, (SPECIAL.size**2, columns)) / 2).astype(np.float32)
    values[rng.random(values.shape) < 0.2] = np.float32(np.nan)
    values[rng.random(values.shape) < 0.1] = np.float32(np.inf)
    multiplier, offset = np.repeat(SPECIAL, SPECIAL.size), np.tile(SPECIAL, SPECIAL.size)
    for shift in (offset, None):
        with np.errstate(all="ignore"):
            real = values * multiplier[:, None]
            if shift is not None:
                real = real + shift[:, None]
        real = np.where(np.isnan(real), 0, np.clip(np.rint(real), fmt.min, fmt.max))
        want = (real.astype(np.int64) & 255).astype(np.uint8)
        assert np.array_equal(kernels.multiply_rows(values, multiplier, fmt, shift), want)
        wide = np.zeros((values.shape[0], columns + 3), np.uint8)
        kernels.multiply_rows(values, multiplier, fmt, shift, out=wide[:, 1:-2])
        assert np.array_equal(wide[:, 1:-2], want) and not wide[:, -2:].any()


def test_empty_rows():
    none = np.zeros(0, np.float32)
    fmt = formats["s8"]
    assert isinstance(fmt, IntFormat)
    assert kernels.dequantize_rows(np.zeros((0, 4), np.int8), none, none).shape == (0, 4)
    assert kernels.multiply_rows(np.zeros((3, 0), np.float32), np.ones(3, np.float32), fmt).shape == (3, 0)
