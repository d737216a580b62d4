"""The Fixpipe's pages come from its rows, and the tutorial's script runs."""

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from safetensors.numpy import save_file

import narrowcast as nc
from narrowcast.catalog.fixpipe_modes import fixpipe_modes
from narrowcast.catalog.fixpipe_stages import ROWS as STAGES
from narrowcast.catalog.fixpipe_switches import ROWS as SWITCHES
from narrowcast.cli import main
from narrowcast.insight.quant_word import explain_word

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def writers() -> ModuleType:
    spec = importlib.util.spec_from_file_location("fixpipe_tables", ROOT / "docs" / "fixpipe_tables.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_mode_has_its_page(writers: ModuleType) -> None:
    for name in fixpipe_modes:
        text = (ROOT / "docs" / "fixpipe" / writers.page_name(name)).read_text(encoding="utf-8")
        assert f"<!-- generated: fixpipe-mode {name} -->" in text
    assert len(list((ROOT / "docs" / "fixpipe").glob("*.md"))) == len(fixpipe_modes)


def test_the_picture_is_current(writers: ModuleType) -> None:
    assert writers.PICTURE.read_text(encoding="utf-8") == writers.draw(), "run python docs/fixpipe_tables.py"


def test_every_switch_stands_at_one_stage() -> None:
    placed = [name for stage in STAGES for name in stage.switches]
    assert sorted(placed) == sorted({row.name for row in SWITCHES})


def test_word_in_every_reading(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "0x00004C803FC00000", "--as", "quant-word"]) == 0
    text = capsys.readouterr().out
    assert "x * 1.5, rounded to -256..255, then + 100; S8 results" in text
    assert "001100100" in text
    reading = explain_word(0xF000_4013_3DCC_CCCD)
    assert len(reading.warnings) == 2
    assert dict(reading.others)["chip 2201"] == "shift right by 4 first (REQ8)"
    assert dict(explain_word(0x3E03F800000).others)["pto-spec, s4"] == "scale 1.0, offset -1"
    assert "subnormal" in explain_word(0x2000).warnings[0]
    assert "infinite or NaN" in explain_word(0x7F800000).warnings[0]
    assert explain_word(0x7FE040000000).summary.endswith("then -1; S8 results")
    assert main(["explain", "0x00004C803FC00000", "--as", "quant-word", "--json"]) == 0
    assert '"word": "0x00004C803FC00000"' in capsys.readouterr().out
    for bad in (["nine", "--as", "quant-word"], ["1", "--as", "word"], [hex(1 << 64), "--as", "quant-word"]):
        assert main(["explain", *bad]) == 2
        assert len(capsys.readouterr().err.splitlines()) == 1


def test_the_tutorial_runs_on_a_model_of_that_shape(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    shapes = {
        "stft_conv.weight": (258, 1, 256), "conv1.weight": (128, 129, 3), "conv2.weight": (64, 128, 3),
        "conv3.weight": (64, 64, 3), "conv4.weight": (128, 64, 3), "lstm_cell.weight_ih": (512, 128),
    }  # fmt: skip
    model = {name: rng.standard_normal(shape, dtype=np.float32) * np.float32(0.05) for name, shape in shapes.items()}
    for name, size in (("conv1", 128), ("conv2", 64), ("conv3", 64), ("conv4", 128), ("lstm_cell", 512)):
        key = "lstm_cell.bias_ih" if name == "lstm_cell" else f"{name}.bias"
        model[key] = rng.standard_normal(size, dtype=np.float32) * np.float32(0.05)
    save_file(model, tmp_path / "model.safetensors")
    script = ROOT / "examples" / "int8_linear.py"
    command = [
        sys.executable,
        "-W",
        "ignore",
        str(script),
        str(tmp_path / "model.safetensors"),
        "--folder",
        str(tmp_path),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "path A" in done.stdout
    assert "NumPy int8" in done.stdout
    # The command gives the bytes that the script saved.
    arguments = ["matmul", str(tmp_path / "x.npy"), str(tmp_path / "w.npy"), "--bias", str(tmp_path / "bias.npy")]
    arguments += ["--mode", "REQ8", "--scale", str(tmp_path / "scale.npy"), "-o", str(tmp_path / "y.npy")]
    assert main(arguments) == 0
    assert np.array_equal(np.load(tmp_path / "y.npy"), np.load(tmp_path / "expected.npy"))


def test_a_quantized_layer_stays_close_to_float() -> None:
    """Seen from outside: s8 operands and s8 output cost a few percent, fp16 output less."""
    rng = np.random.default_rng(0)
    x = np.maximum(rng.standard_normal((64, 128), dtype=np.float32), 0)
    weight = rng.standard_normal((96, 128), dtype=np.float32)
    exact = x.astype(np.float64) @ weight.T
    qx, qw = nc.quantize(x, "s8"), nc.quantize(weight, "s8", blocks=nc.Blocks.per_row)
    step = qx.scale.reshape(()) * qw.scale.reshape(-1)
    acc = nc.cube.mmad(qx.codes, qw.codes.T)
    largest = np.float32(np.abs(exact).max() / 127)
    s8 = nc.fixpipe.run(acc, "REQ8", step / largest).values * largest
    half = nc.fixpipe.run(acc, "DEQF16", step).values
    assert np.linalg.norm(s8 - exact) / np.linalg.norm(exact) < 0.02
    assert np.linalg.norm(half - exact) / np.linalg.norm(exact) < 0.012
