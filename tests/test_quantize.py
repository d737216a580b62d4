"""``quantize``: scales over blocks, the denominator conventions, policies, extreme data, and files of one QTensor."""

from fractions import Fraction
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import narrowcast as nc

W = np.random.default_rng(7).standard_normal((6, 70), dtype=np.float32)
W[2] = 0
LAYOUTS = [
    nc.Blocks.per_tensor,
    nc.Blocks.per_row,
    nc.Blocks.per_channel(1, 2),
    nc.Blocks.per_group(32),
    nc.Blocks((4, 32)),
]


def test_codes_are_the_quotients_rounded_once() -> None:
    x = np.float32([[1.0, -2.0, 0.3], [7.0, 0.0, -0.05]])
    q = nc.quantize(x, "s8", blocks=nc.Blocks.per_row)
    assert q.scale.tolist() == [[float(np.float32(2) / np.float32(127))], [float(np.float32(7) / np.float32(127))]]
    for row in range(2):
        exact = [round(Fraction(float(v)) / Fraction(float(q.scale[row, 0]))) for v in x[row]]
        assert q.codes.view(np.int8)[row].tolist() == exact


@pytest.mark.parametrize(
    ("fmt", "convention", "absmax", "scale"),
    [
        ("s8", "qmax", 127.0, 1.0),
        ("s8", "half-range", 127.5, 1.0),
        ("s4", "qmax", 7.0, 1.0),
        ("s4", "half-range", 7.5, 1.0),
        ("e4m3", "qmax", 448.0, 1.0),
        ("e2m1", "qmax", 6.0, 1.0),
        ("hif8", "qmax", 15.0, 1.0),
    ],
)
def test_what_the_absolute_maximum_maps_to(fmt: str, convention: str, absmax: float, scale: float) -> None:
    q = nc.quantize(np.float32([absmax, -0.25]), fmt, denominator=convention)
    assert q.scale == scale and q.record.scale_from == "absmax"


@pytest.mark.parametrize("blocks", LAYOUTS, ids=lambda b: str(b.shape))
@pytest.mark.parametrize("fmt", ["s4", "u4", "s8", "u8", "s16", "u16", "hif8", "e4m3", "e5m2", "e2m1", "e1m2", "fp16"])
def test_a_file_holds_everything(fmt: str, blocks: nc.Blocks, tmp_path: Path) -> None:
    q = nc.quantize(W, fmt, blocks=blocks)
    assert not q.dequantize()[2].any() and np.isfinite(q.dequantize()).all()
    q.save(tmp_path / "q.safetensors")
    back = nc.QTensor.load(tmp_path / "q.safetensors")
    assert (back.format, back.blocks, back.record, back.scale_format) == (q.format, q.blocks, q.record, q.scale_format)
    assert set(back.arrays()) == set(q.arrays())
    assert all(np.array_equal(back.arrays()[name], array) for name, array in q.arrays().items())
    with pytest.raises(nc.OutputError, match="exists"):
        q.save(tmp_path / "q.safetensors")


def test_a_zero_row_has_a_harmless_scale() -> None:
    q = nc.quantize(np.float32([[0, 0], [1, 2]]), "e4m3", blocks=nc.Blocks.per_row)
    assert q.scale[0, 0] == 2.0**-23 and q.codes[0].tolist() == [0, 0]


def test_asymmetric_parameters() -> None:
    q = nc.quantize(np.float32([[-1, 3], [0, 5]]), "u8", blocks=nc.Blocks.per_row)
    assert q.scale.reshape(-1).tolist() == [
        float(np.float32(4) / np.float32(255)),
        float(np.float32(5) / np.float32(255)),
    ]
    assert q.offset is not None and q.offset.reshape(-1).tolist() == [64, 0]
    assert q.codes.tolist() == [[0, 255], [0, 255]]


def test_a_given_scale_and_offset_saturate_infinity_by_policy() -> None:
    x = np.float32([np.inf, -np.inf, np.nan, 0, 1.5])
    with pytest.raises(nc.FormatError, match=r"3 non-finite values, first inf at index \[0\]"):
        nc.quantize(x, "u8", scale=1.0, offset=133)
    q = nc.quantize(x, "u8", scale=1.0, offset=133, nonfinite="saturate")
    assert q.codes.tolist() == [255, 0, 133, 133, 135]


def test_data_whose_scale_overflows_fp32_is_refused() -> None:
    for fmt in ("s8", "u8", "hif8"):
        with pytest.raises(
            nc.FormatError, match=r"block \[\] has values up to 1e\+300: its scale would be beyond fp32"
        ):
            nc.quantize([1e300, 1.0], fmt)
    with pytest.raises(nc.FormatError, match="beyond fp32"):
        nc.quantize([1e300, 1e300], "s8", method="percentile")


@pytest.mark.parametrize("method", ["absmax", "percentile", "mse"])
def test_data_near_the_end_of_fp32(method: str) -> None:
    x = np.float32([-3e38, 3e38, 1e38])
    for fmt in ("s8", "e4m3", "e2m1"):
        back = nc.quantize(x, fmt, method=method).dequantize()
        assert np.isfinite(back).all() and np.abs(back - x).max() < 6e37


def test_a_range_wider_than_fp32_has_a_scale() -> None:
    q = nc.quantize(np.float32([-3e38, 3e38]), "u8")
    assert q.offset == 128 and q.codes.tolist() == [0, 255]
    assert np.abs(q.dequantize() / np.float32([-3e38, 3e38]) - 1).max() < 1.001 / 255


def test_the_least_squared_error_is_not_above_absmax() -> None:
    x = (W**3).astype(np.float32)
    for fmt in ("s4", "e2m1", "hif8"):
        errors = [
            float(np.square(nc.quantize(x, fmt, nc.Blocks.per_row, method=m).dequantize() - x, dtype=np.float64).sum())
            for m in ("absmax", "mse")
        ]
        assert errors[1] <= errors[0]


@pytest.mark.parametrize("dtype", [">f4", np.float16, ml_dtypes.bfloat16, np.float64, np.int8, ml_dtypes.float8_e5m2])
def test_any_source_type(dtype: object) -> None:
    x = np.array([1, 2, -3]).astype(dtype)  # type: ignore[call-overload]
    assert nc.quantize(x, "s8").codes.tolist() == [42, 85, 129]
    assert nc.quantize([1, 2, -3], "s8").codes.tolist() == [42, 85, 129]


def test_empty_and_single_values() -> None:
    assert nc.quantize(np.float32([]), "s8").codes.shape == (0,)
    assert nc.quantize(np.zeros((0, 4), np.float32), "s8", nc.Blocks.per_row).scale.shape == (0, 1)
    assert nc.quantize(3.0, "s8").codes == 127


def test_blocks_are_a_shape_however_spelled() -> None:
    x = np.arange(64, dtype=np.float32).reshape(2, 32)
    for spelled in ((1, 32), [1, 32], np.array([1, 32]), nc.Blocks((1, np.int64(32))), nc.Blocks([1, 32])):  # type: ignore[arg-type]
        q = nc.quantize(x, "s8", blocks=spelled)  # type: ignore[arg-type]
        assert q.blocks == nc.Blocks((1, 32)) and hash(q.blocks) == hash(nc.Blocks((1, 32)))
    assert nc.Blocks(32) == nc.Blocks((32,))  # type: ignore[arg-type]
    for wrong in ((0,), (1.5,), (True,), "32", (1, "x")):
        with pytest.raises(nc.ShapeError, match="positive integers"):
            nc.Blocks(wrong)  # type: ignore[arg-type]
