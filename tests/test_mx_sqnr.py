"""Signal-to-noise ratios of block and tensor scaling on fixed draws, against a published table."""

from functools import cache

import numpy as np
import pytest

import narrowcast as nc
from tests.vectors import load

SHAPE = (1024, 4096)
MX = {
    "MX e2m1 alg2 dmax6": ("e2m1", "cann-2:dst_type_max=6", "rn"),
    "MX e2m1 alg2 dmax7": ("e2m1", "cann-2:dst_type_max=7", "rn"),
    "MX e2m1 floor, ties-away": ("e2m1", "ocp-floor", "rna"),
    "MX e2m1 floor, toward -inf": ("e2m1", "ocp-floor", "rd"),
    "MXINT8": ("s8", "ocp-floor", "rn"),
} | {
    f"MX {fmt} {name}": (fmt, rule, "rn")
    for fmt in ("e4m3", "e5m2", "e3m2", "e2m3", "e2m1", "e1m2")
    for name, rule in (("floor", "ocp-floor"), ("ceil", "ceil"))
}
TENSOR = {
    "E4M3 per-tensor amax/448": ("e4m3", nc.Blocks.per_tensor, None),
    "E5M2 per-tensor amax/57344": ("e5m2", nc.Blocks.per_tensor, None),
    "E4M3 1x128": ("e4m3", nc.Blocks((1, 128)), None),
    "INT8 per-token": ("s8", nc.Blocks.per_row, None),
    "HiF8 unscaled TA": ("hif8", nc.Blocks.per_tensor, 0.0),
    "HiF8 per-tensor amax/15 TA": ("hif8", nc.Blocks.per_tensor, None),
    "HiF8 per-tensor amax/56 TA": ("hif8", nc.Blocks.per_tensor, 56.0),
    "HiF8 per-tensor amax/224 TA": ("hif8", nc.Blocks.per_tensor, 224.0),
    "HiF8 per-tensor amax/32768 TA": ("hif8", nc.Blocks.per_tensor, 32768.0),
}


@cache
def draws() -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(0)
    gauss = rng.standard_normal(SHAPE).astype(np.float32)
    laplace = rng.laplace(size=SHAPE).astype(np.float32)
    student = rng.standard_t(4, size=SHAPE).astype(np.float32)
    outliers = gauss.copy()
    outliers[:, ::128] *= 30
    return gauss, laplace, student, outliers


def sqnr(x: np.ndarray, back: np.ndarray) -> float:
    signal = x.astype(np.float64)
    return float(10 * np.log10(np.square(signal).sum() / np.square(signal - back).sum()))


def table() -> dict[str, np.ndarray]:
    arrays = load("mx_sqnr_table")
    return dict(zip(arrays["names"].tolist(), arrays["sqnr_db"], strict=True))


def test_every_row_of_ours_is_in_the_table() -> None:
    assert set(table()) - {"NVFP4 g16", "NVFP4+PTS", "HiF4 g64"} == set(MX) | set(TENSOR)


@pytest.mark.parametrize("name", list(MX))
def test_block_scaling(name: str) -> None:
    fmt, rule, rounding = MX[name]
    got = [sqnr(x, nc.mx.dequantize(nc.mx.quantize(x, fmt, rule, rounding=rounding))) for x in draws()]
    np.testing.assert_allclose(got, table()[name], atol=0.02)


@pytest.mark.parametrize("name", list(TENSOR))
def test_tensor_scaling(name: str) -> None:
    fmt, blocks, target = TENSOR[name]
    got = []
    for x in draws():
        scale = None if target is None else np.float32(np.abs(x).max() / target if target else 1.0)
        got.append(sqnr(x, nc.quantize(x, fmt, blocks, scale=scale).dequantize()))
    np.testing.assert_allclose(got, table()[name], atol=0.02)
