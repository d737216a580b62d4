"""``narrowcast mx`` and the comparison behind it."""

import json
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import narrowcast as nc
from narrowcast.cli import main
from narrowcast.mx import compare_rules
from narrowcast.storage import save_tensors

RNG = np.random.default_rng(41)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    weight = RNG.standard_normal((16, 100)).astype(np.float32)
    weight[3, 32:64] = 0
    weight[3, 40] = 1.99
    weight[5, :32] = 1.5 * 2.0**-120
    path = tmp_path / "model.safetensors"
    save_tensors(
        path,
        {
            "layer.weight": weight,
            "conv.weight": RNG.standard_normal((4, 8, 3)).astype(ml_dtypes.bfloat16),
            "layer.bias": np.ones(16, dtype=np.float32),
            "ids": np.arange(8).reshape(2, 4),
        },
    )
    return path


def test_table(model: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "150")
    rules = "ocp-floor,ceil,cann-2:dst_type_max=7,msmodelslim-bf16"
    assert main(["mx", str(model), "--format", "e2m1", "--rules", rules]) == 0
    out, err = capsys.readouterr()
    assert "SQNR of e2m1 in blocks of 32 under each scale rule" in out
    assert "16x100 (+28)" in out and "4x8x3 (+29)" in out
    assert "cann-2:dst_type_max=7" in out
    assert "msmodelslim-bf16: scale rule msmodelslim-bf16 takes bf16 for e2m1; got fp32." in out
    assert "not compared: ids (int64), layer.bias (shape [16])." in out
    assert "clipped: scaled values beyond 6" in out
    assert err == ""


def test_json_and_flatten(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["mx", str(model), "--format", "float8_e4m3fn", "--rules", "cann-0,ocp-floor", "--json", "--flatten"]
    assert main([*arguments, "--worst", "1"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["schema"], document["format"], document["block"]) == ("narrowcast.mx/1", "e4m3", 32)
    assert [t["padded"] for t in document["tensors"]] == [28, 8]
    cann, floor = document["total"]
    assert (cann["rule"], cann["rounding"]) == ("cann-0", "rn")
    assert (cann["flushed"] - floor["flushed"], cann["flushed_blocks"], floor["flushed_blocks"]) == (32, 1, 0)
    assert cann["worst"][0]["why"] == "32 flushed to zero"
    assert (cann["worst"][0]["row"], cann["worst"][0]["block"], cann["worst"][0]["byte"]) == ([5], 0, 0)
    assert document["tensors"][0]["best"] == "cann-0", "numbers this small do not reach the sum"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--rules", "ocp-flor"], "Did you mean ocp-floor"),
        (["--format", "e5m2", "--rules", "cann-2"], "cann-2 does not apply to e5m2"),
        (["--block", "48"], "block 48: an MX block is a positive multiple of 32"),
        (["--rules", ""], "no scale rule to compare"),
        (["--format", "e9"], "unknown format 'e9'"),
    ],
)
def test_refusals(model: Path, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["mx", str(model), *arguments]) == 2
    err = capsys.readouterr().err
    assert message in err and err.count("\n") == 1


def test_no_tensor(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save_tensors(tmp_path / "m.safetensors", {"bias": np.ones(4, dtype=np.float32)})
    assert main(["mx", str(tmp_path / "m.safetensors")]) == 2
    assert "no tensor of at least two axes in fp32, fp16 or bf16 in m.safetensors" in capsys.readouterr().err


@pytest.mark.parametrize("fmt", nc.mx.element_formats())
def test_errors_are_those_of_quantizing(fmt: str) -> None:
    x = RNG.standard_normal((50, 78)).astype(np.float32)
    rules = [r for r in ("ocp-floor", "ceil", "mse2", "cann-0") if fmt in nc.mx.scale_rules[r].formats]
    result = compare_rules([("w", x)], fmt, rules)
    for rule in result.total:
        q = nc.mx.quantize(x, fmt, rule.rule)
        error = x.astype(np.float64) - nc.mx.dequantize(q)
        np.testing.assert_allclose(rule.noise, np.square(error).sum(), rtol=1e-9)
        np.testing.assert_allclose(rule.signal, np.square(x.astype(np.float64)).sum(), rtol=1e-9)
        assert rule.max_error == np.abs(error).max()
        worst = rule.worst[0]
        part = slice(32 * worst.block, 32 * worst.block + 32)
        ratio = np.square(x[worst.row][part].astype(np.float64)).sum() / np.square(error[worst.row][part]).sum()
        np.testing.assert_allclose(worst.sqnr_db, 10 * np.log10(ratio))
        assert worst.byte == q.scale[(*worst.row, worst.block)]
        assert rule.elements == x.size and rule.blocks == q.scale.size
    assert result.tensors[0].best == min(result.total, key=lambda r: r.noise).rule


def test_ties_are_counted() -> None:
    x = np.float32([[6, 5, 3.5, 2.5, 1.75, 1.25, 0.75, 0.25, -0.25, 0.3, 0.5, 1, 0]])
    assert compare_rules([("w", x)], "e2m1", ["ocp-floor"]).total[0].ties == 8
    x = np.float32([[448, 17, 19, 18, -17]])
    assert compare_rules([("w", x)], "e4m3", ["ocp-floor"]).total[0].ties == 3


def test_large_tensors_are_cut() -> None:
    x = RNG.standard_normal((1200, 1024)).astype(np.float32)
    x[1100, 500] = np.nan
    result = compare_rules([("w", x)], "e4m3", ["ocp-floor"])
    assert result.total[0].nan_blocks == 1
    assert result.total[0].elements == x.size
    assert all(b.row[0] < 1200 for b in result.total[0].worst)
