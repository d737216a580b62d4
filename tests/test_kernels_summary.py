"""One pass for sums, extremes and counts: against NumPy in double, at block edges, with NaN, in any layout."""

import math

import ml_dtypes
import numpy as np
import pytest

from narrowcast import kernels
from narrowcast.kernels.summary import summarize

RNG = np.random.default_rng(4)
SIZES = [0, 1, 3, 7, 8, 9, 31, 2047, 2048, 2049, 4096 + 5, (1 << 16) - 1, (1 << 16) + 3, 200_001]


def mixed(size: int, seed: int) -> np.ndarray:
    """Values over many binades with zeros of both signs and subnormals."""
    rng = np.random.default_rng(seed)
    x = (rng.standard_normal(size) * np.exp2(rng.integers(-140, 100, size))).astype(np.float32)
    x[rng.random(size) < 0.05] = 0.0
    x[rng.random(size) < 0.02] = -0.0
    return x


def verify(x: np.ndarray, exponents: bool = True) -> None:
    found = summarize(x, exponents)
    flat = x.astype(np.float32).reshape(-1)
    finite = flat[np.isfinite(flat)]
    wide = finite.astype(np.float64)
    assert found.elements == flat.size
    assert found.nans == np.count_nonzero(np.isnan(flat)) and found.infinities == np.count_nonzero(np.isinf(flat))
    assert found.zeros == np.count_nonzero(finite == 0)
    assert found.subnormals == np.count_nonzero((finite != 0) & (np.abs(finite) < 2.0**-126))
    assert found.total == pytest.approx(math.fsum(wide), rel=1e-9, abs=1e-12 * float(np.abs(wide).sum()))
    assert found.total_square == pytest.approx(math.fsum(wide * wide), rel=1e-12)
    if finite.size:
        assert (found.minimum, found.maximum) == (float(finite.min()), float(finite.max()))
        assert found.absmax == float(np.abs(finite).max())
        assert found.mean == pytest.approx(float(wide.mean()), rel=1e-9, abs=1e-12 * found.absmax)
        assert found.rms == pytest.approx(float(np.sqrt(np.mean(wide * wide))))
    else:
        assert (found.mean, found.rms, found.deviation, found.absmax) == (0, 0, 0, 0)
    if exponents:
        assert found.exponents is not None
        wanted = np.bincount((flat.view(np.uint32) >> np.uint32(23)) & np.uint32(255), minlength=256)
        assert np.array_equal(found.exponents, wanted)
    else:
        assert found.exponents is None


@pytest.mark.parametrize("size", SIZES)
def test_figures_equal_direct_arithmetic(size: int) -> None:
    verify(mixed(size, size))
    verify(mixed(size, size + 1), exponents=False)
    verify(RNG.standard_normal(size).astype(np.float32))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("at", [0, 7, 8, 2047, 2048, 4999])
def test_non_finite_values_are_counted_and_left_out(bad: float, at: int) -> None:
    x = mixed(5000, 3)
    x[at] = bad
    verify(x)
    verify(np.full(5000, bad, np.float32))


def test_large_values_do_not_overflow() -> None:
    verify(np.full(10_000, np.finfo(np.float32).max, np.float32))
    assert summarize(np.float32([3e38, 3e38])).deviation == 0


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_16_bit_values(dtype: type) -> None:
    verify(RNG.standard_normal((300, 400)).astype(dtype))


def test_any_layout() -> None:
    x = mixed(6000, 9).reshape(60, 100)
    for view in (x.T, x[::2, ::3], x.astype(">f4"), np.asfortranarray(x), x[0, 0]):
        verify(np.asarray(view))
    shifted = np.zeros(4 * 1000 + 1, np.uint8)[1:].view(np.float32)
    shifted[:] = mixed(1000, 1)
    verify(shifted)
    x.flags.writeable = False
    verify(x)


def test_the_sums_do_not_depend_on_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    x = mixed((1 << 21) + 77, 5)
    results = []
    for threads in ("1", "2", "3"):
        monkeypatch.setenv("NARROWCAST_THREADS", threads)
        found = summarize(x, True)
        assert found.exponents is not None
        results.append((found.total, found.total_square, found.zeros, found.exponents.tolist()))
    assert results[0] == results[1] == results[2]
    assert kernels.summarize is summarize
