"""Block scaling against other libraries, where they are installed."""

import ml_dtypes
import numpy as np
import pytest

import narrowcast as nc

RNG = np.random.default_rng(31)
SPREAD = (RNG.standard_normal((600, 64)) * np.exp2(RNG.integers(-100, 110, (600, 1)))).astype(np.float32)


@pytest.mark.parametrize("fmt", ["e4m3", "e5m2", "e2m1", "e3m2", "e2m3"])
def test_gfloat_floor(fmt: str) -> None:
    gfloat = pytest.importorskip("gfloat")
    formats = pytest.importorskip("gfloat.formats")
    element = getattr(formats, f"format_info_ocp_{fmt}")
    info = gfloat.BlockFormatInfo("mx", element, 32, formats.format_info_ocp_e8m0)
    x = SPREAD[:40]
    q = nc.mx.quantize(x, fmt, "ocp-floor")
    for row in range(len(x)):
        for block in range(2):
            part = x[row, 32 * block : 32 * block + 32].astype(np.float64)
            want = gfloat.quantize_block(info, part, gfloat.compute_scale_amax)
            got = nc.mx.dequantize(q)[row, 32 * block : 32 * block + 32]
            np.testing.assert_array_equal(got, np.asarray(want, dtype=np.float32))


@pytest.mark.parametrize("fmt", ["e4m3", "e5m2", "e2m1"])
@pytest.mark.parametrize(
    ("rule", "mode"), [("ocp-floor", "FLOOR"), ("ceil", "RCEIL"), ("ceil-log2", "CEIL"), ("even", "EVEN")]
)
@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16])
def test_torchao(fmt: str, rule: str, mode: str, dtype: type) -> None:
    torch = pytest.importorskip("torch")
    mx = pytest.importorskip("torchao.prototype.mx_formats.mx_tensor")
    element = {"e4m3": "float8_e4m3fn", "e5m2": "float8_e5m2", "e2m1": "float4_e2m1fn_x2"}[fmt]
    x = torch.from_numpy(SPREAD)
    if dtype is not np.float32:
        x = x.to(torch.bfloat16)
    scale, codes = mx.to_mx(x, getattr(torch, element), 32, getattr(mx.ScaleCalculationMode, mode))
    q = nc.mx.quantize(SPREAD.astype(dtype), fmt, rule)
    assert np.array_equal(q.scale, scale.view(torch.uint8).numpy())
    want = codes.view(torch.uint8).numpy()
    assert np.array_equal(nc.pack(q.codes, fmt) if fmt == "e2m1" else q.codes, want)
