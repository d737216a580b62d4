"""HiF4 of chip A6 against the tile library's test data, and against the staged model of the format's vectors."""

from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

import narrowcast as nc
from narrowcast.tile import tquant_hif4
from tests import vectors

FILE = "pto_gen_a6_tquant"


def test_the_test_data_of_chip_a6() -> None:
    data = vectors.load(FILE)
    cases = sorted({key.rsplit("/", 1)[0] for key in data})
    assert len(cases) == 8
    compared = 0
    for case in cases:
        rows, columns = (int(n) for n in case.split("_bf16_")[1].split("_")[0].split("x"))
        got = {name: data[f"{case}/{name}.bin"] for name in ("golden_ea", "golden_eb", "golden_ec", "golden_exp_dst")}
        x = data[f"{case}/input1.bin"].view(ml_dtypes.bfloat16).reshape(rows, columns)
        q = tquant_hif4(x)
        assert np.array_equal(q.packed.reshape(-1), data[f"{case}/golden_fp4.bin"]), case
        assert np.array_equal(q.e6m2.reshape(-1), got["golden_ea"].view("<u2")), case
        assert np.array_equal(q.level2.reshape(-1), got["golden_eb"]), case
        assert np.array_equal(q.level3.reshape(-1), got["golden_ec"].view("<u2")), case
        assert np.array_equal(_as_generated(q), got["golden_exp_dst"]), case
        for name, run in (("golden_max8", 8), ("golden_max4", 4)):  # the intermediate maxima the data also holds
            largest = np.abs(x.astype(np.float32)).reshape(-1, run).max(axis=-1)
            assert np.array_equal(data[f"{case}/{name}.bin"].view(ml_dtypes.bfloat16).astype(np.float32), largest)
        scale = data[f"{case}/golden_scale.bin"].view(ml_dtypes.bfloat16).astype(np.float32)[::2]
        assert np.array_equal(scale, _scales(q)), case
        compared += x.size
    assert compared > 100_000


def _as_generated(q: nc.tile.HiF4) -> np.ndarray:
    """Exponents as the generator writes them: it takes 128 group scales at a time, and steps on by only 64 of them."""
    group = np.arange(q.e6m2.size)
    slipped = q.e6m2.reshape(-1)[group // 128 * 64 + group % 128].reshape(q.e6m2.shape)
    return replace(q, e6m2=slipped).exponents


def test_the_generator_slips_only_beyond_128_groups() -> None:
    q = tquant_hif4(np.random.default_rng(1).standard_normal((64, 128)).astype(ml_dtypes.bfloat16))
    assert np.array_equal(_as_generated(q), q.exponents)


def _scales(q: nc.tile.HiF4) -> np.ndarray:
    """Multiplier of each four elements, from the codes alone."""
    value = np.ldexp(1 + (q.e6m2 & 3) / 4, (q.e6m2 >> 2).astype(int) - 48)
    reciprocal = (1 / value).astype(np.float32).astype(ml_dtypes.bfloat16).astype(np.float32)
    eight = (q.level2[..., None].astype(int) >> (np.arange(16) // 2)) & 1
    four = (q.level3[..., None].astype(int) >> np.arange(16)) & 1
    return np.ldexp(reciprocal[..., None], -(eight + four)).reshape(-1)


def test_the_staged_model() -> None:
    data = vectors.load("mx_hif4")
    name = "a6_staged_rne"
    src = data["src"].view(ml_dtypes.bfloat16)
    usable = np.isfinite(src.astype(np.float32)).all(axis=1) & (src.astype(np.float32) != 0).any(axis=1)
    groups = np.flatnonzero(usable)[: usable.sum() // 16 * 16]
    q = tquant_hif4(src[groups])
    assert np.array_equal(q.e6m2[:, 0], data[f"{name}__e6m2"][groups].reshape(-1))
    assert np.array_equal(q.codes, data[f"{name}__e1m2"][groups])


def test_values_come_back() -> None:
    x = np.random.default_rng(0).standard_normal((64, 256)).astype(ml_dtypes.bfloat16)
    x[3, :64] = 0
    q = tquant_hif4(x)
    real = x.astype(np.float64)
    noise = np.square(q.dequantize() - real).sum()
    assert 10 * np.log10(np.square(real).sum() / noise) > 21
    assert not q.dequantize()[3, :64].any() and q.e6m2[3, 0] == 0


@pytest.mark.parametrize(
    ("values", "error", "message"),
    [
        (np.zeros((16, 64), np.float32), nc.FormatError, "bfloat16 values; got float32"),
        (np.zeros((16, 65), ml_dtypes.bfloat16), nc.ShapeError, "multiple of 64"),
        (np.zeros((3, 64), ml_dtypes.bfloat16), nc.ShapeError, "of 1024; got shape"),
        (np.full((16, 64), np.inf, ml_dtypes.bfloat16), nc.FormatError, "NaN and infinity"),
    ],
)
def test_bad_input(values: np.ndarray, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        tquant_hif4(values)
