"""Row quantization, absolute maxima and 4-bit packing."""

import numpy as np
import pytest

from narrowcast import kernels
from narrowcast.catalog.formats import formats
from narrowcast.schema import IntFormat


def integer(name: str) -> IntFormat:
    fmt = formats[name]
    assert isinstance(fmt, IntFormat)
    return fmt


def ties(scale: np.ndarray, columns: int, seed: int) -> np.ndarray:
    """Values whose quotient by the row's scale is half an integer, or one fp32 step beside it."""
    rng = np.random.default_rng(seed)
    halves = rng.integers(-140, 140, (scale.size, columns)) + 0.5
    exact = (halves * scale[:, None].astype(np.float64)).astype(np.float32)
    step = rng.integers(-1, 2, exact.shape)
    return np.where(
        step < 0,
        np.nextafter(exact, np.float32(-np.inf)),
        np.where(step, np.nextafter(exact, np.float32(np.inf)), exact),
    )


def reference(values: np.ndarray, scale: np.ndarray, name: str, offset: np.ndarray) -> np.ndarray:
    """round half even of the fp32 quotient in Python integers, then the offset, then the clamp."""
    fmt = integer(name)
    with np.errstate(all="ignore"):
        quotient = values / scale[:, None]
    codes = np.zeros(values.shape, dtype=np.uint8)
    for index, q in np.ndenumerate(quotient):
        if np.isnan(q):
            whole = 0
        elif np.isinf(q):
            whole = int(np.copysign(2**40, q))
        else:
            whole = round(float(q))
        codes[index] = min(max(whole + int(offset[index[0]]), fmt.min), fmt.max) & fmt.code_mask
    return codes


@pytest.mark.parametrize("name", ["s8", "u8", "s4", "u4"])
@pytest.mark.parametrize("columns", [1, 3, 31, 32, 33, 200])
def test_quantize_rows_at_ties(name: str, columns: int) -> None:
    rng = np.random.default_rng(columns)
    scale = np.exp2(rng.uniform(-20, 20, 9)).astype(np.float32)
    values = ties(scale, columns, columns)
    values[3, 0], values[4, 0], values[5, 0], values[6, 0] = np.inf, -np.inf, np.nan, 3e38
    offset = rng.integers(-130, 255, 9).astype(np.int32)
    want = reference(values, scale, name, offset)
    assert np.array_equal(kernels.quantize_rows(values, scale, integer(name), offset), want)
    none = reference(values, scale, name, np.zeros(9, dtype=np.int32))
    assert np.array_equal(kernels.quantize_rows(values, scale, integer(name)), none)


def test_quantize_rows_of_any_layout() -> None:
    rng = np.random.default_rng(0)
    base = rng.standard_normal((130, 2000), dtype=np.float32)
    scale = np.full(130, 0.013, dtype=np.float32)
    want = kernels.quantize_rows(base, scale, integer("s8"))
    for values in (np.asfortranarray(base), base.astype(">f4"), np.repeat(base, 2, axis=1)[:, ::2]):
        assert np.array_equal(kernels.quantize_rows(values, scale, integer("s8")), want)
    out = np.zeros((2000, 130), dtype=np.uint8)
    kernels.quantize_rows(base, np.broadcast_to(np.float32(0.013), 130), integer("s8"), out=out.T)
    assert np.array_equal(out.T, want)
    assert kernels.quantize_rows(base[:, :0], scale, integer("s8")).shape == (130, 0)
    assert kernels.quantize_rows(base[:0], scale[:0], integer("s8")).shape == (0, 2000)


def test_quantize_rows_on_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.random.default_rng(1).standard_normal((700, 3333), dtype=np.float32)
    scale = np.linspace(0.001, 0.1, 700, dtype=np.float32)
    monkeypatch.setenv("NARROWCAST_THREADS", "1")
    alone, largest = kernels.quantize_rows(values, scale, integer("s8")), kernels.absmax_rows(values)[0]
    monkeypatch.setenv("NARROWCAST_THREADS", "2")
    assert np.array_equal(kernels.quantize_rows(values, scale, integer("s8")), alone)
    assert np.array_equal(kernels.absmax_rows(values)[0], largest)
    assert np.array_equal(largest, np.abs(values).max(axis=1))


@pytest.mark.parametrize("columns", [1, 7, 8, 9, 1000])
def test_absmax_ignores_and_reports_what_is_not_finite(columns: int) -> None:
    values = np.random.default_rng(columns).standard_normal((6, columns), dtype=np.float32)
    assert kernels.absmax_rows(values)[1:] == (False, False)
    values[1, 0], values[2, columns // 2] = np.nan, -np.inf
    largest, nan, inf = kernels.absmax_rows(values)
    finite = np.where(np.isfinite(values), np.abs(values), 0)
    assert (nan, inf) == (True, True) and np.array_equal(largest, finite.max(axis=1))
    assert kernels.absmax_rows(values[2:])[1:] == (False, True)
    assert kernels.absmax_rows(values.T)[0].shape == (columns,)


@pytest.mark.parametrize("size", [0, 1, 2, 3, 31, 32, 63, 64, 65, 127, 128, 129, 255, 256, 1000, 100003])
def test_pack_and_unpack(size: int) -> None:
    codes = np.random.default_rng(size).integers(0, 16, size).astype(np.uint8)
    low, high = codes[0::2], np.zeros((size + 1) // 2, dtype=np.uint8)
    high[: size // 2] = codes[1::2]
    want = low | (high << 4)
    packed = kernels.pack(codes)
    assert np.array_equal(packed, want)
    assert np.array_equal(kernels.unpack(packed, size), codes)
    into, back = np.zeros_like(want), np.zeros_like(codes)
    assert kernels.pack(codes, out=into) is into and np.array_equal(into, want)
    assert kernels.unpack(packed, size, out=back) is back and np.array_equal(back, codes)


@pytest.mark.parametrize("columns", [1, 2, 5, 64, 65])
def test_pack_rows_of_any_layout(columns: int) -> None:
    codes = np.random.default_rng(columns).integers(0, 16, (3, 4, columns)).astype(np.uint8)
    want = np.stack([kernels.pack(row) for row in codes.reshape(-1, columns)]).reshape(3, 4, -1)
    for values in (codes, np.asfortranarray(codes), np.repeat(codes, 2, axis=2)[..., ::2]):
        packed = kernels.pack(values)
        assert np.array_equal(packed, want)
        assert np.array_equal(kernels.unpack(packed, columns), codes)
        assert np.array_equal(kernels.unpack(np.asfortranarray(packed), columns), codes)


@pytest.mark.slow
def test_more_than_two_to_the_31_elements() -> None:
    """Untouched zero pages take no memory, so only the indices are large."""
    if kernels.level() == "numpy":
        pytest.skip("no compiled kernels: NumPy's own indices are 64-bit")
    try:
        values = np.zeros((1, (1 << 31) + 100), dtype=np.float32)
    except MemoryError:
        pytest.skip("this machine reserves memory it does not have to")
    values[0, -1] = 5.0
    assert kernels.absmax_rows(values)[0].tolist() == [5.0]
