"""``narrowcast survey`` and ``narrowcast quantize`` as a user runs them."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from narrowcast.checkpoint import load_quantized
from narrowcast.cli import main
from narrowcast.storage import SafeTensorsWriter, save_tensors


@pytest.fixture
def model(tmp_path: Path) -> Path:
    rng = np.random.default_rng(2)
    path = tmp_path / "model.safetensors"
    weight = rng.standard_normal((16, 32)).astype(np.float32)
    save_tensors(path, {"fc.weight": weight, "fc.bias": np.ones(16, np.float32), "steps": np.arange(2)})
    return path


def test_survey_prints_every_figure_and_the_pick(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["survey", str(model)]) == 0
    shown = capsys.readouterr()
    for words in ("SQNR", "max", "rated", "flushed", "normal", "s8 *", "pick", "dB ahead of", "keep F32", "keep I64"):
        assert words in shown.out, words
    assert "as picked:" in shown.out and "absmax / target" in shown.out
    assert shown.err == ""


def test_survey_brief_json_and_page(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["survey", str(model), "--brief", "--formats", "s8,hif8", "--no-scale"]) == 0
    assert "unscaled cast" in capsys.readouterr().out
    page = tmp_path / "report.html"
    assert main(["survey", str(model), "--json", "--html", str(page), "--min-sqnr", "60"]) == 0
    shown = capsys.readouterr()
    document = json.loads(shown.out)
    assert document["rule"]["min_sqnr_db"] == 60
    assert document["tensors"][0]["pick"] is None
    assert str(page) in shown.err and page.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert main(["survey", str(model), "--html", str(page)]) == 2
    assert "--force" in capsys.readouterr().err
    assert main(["survey", str(model), "--html", str(page), "--force"]) == 0
    assert f"report: {page}" in capsys.readouterr().out


def test_quantize_says_what_it_did_and_kept(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out.safetensors"
    assert main(["quantize", str(model), "--to", "hif8", "-o", str(out)]) == 0
    text = capsys.readouterr().out
    for words in ("fc.weight", "SQNR", "kept as stored", "fc.bias", "1-D", "not floating point", str(out)):
        assert words in text, words
    assert load_quantized(out, "fc.weight").format == "hif8"
    assert main(["quantize", str(model), "--to", "s4", "-o", str(out), "--force", "--json", "--all"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [t["name"] for t in document["quantized"]] == ["fc.weight", "fc.bias"]
    assert [t["name"] for t in document["kept"]] == ["steps"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["quantize", "MODEL", "-o", "OUT"], "--to"),
        (["quantize", "MODEL", "--to", "hif9", "-o", "OUT"], "Did you mean hif8"),
        (["quantize", "MODEL", "--to", "fp16", "-o", "OUT"], "Use hif8"),
        (["quantize", "MODEL", "--to", "hif8", "-o", "MODEL"], "exists already"),
        (["quantize", "MODEL", "--to", "hif8", "-o", "none/OUT"], "mkdir -p"),
        (["quantize", "CUT", "--to", "hif8", "-o", "OUT"], "truncated"),
        (["quantize", "NONE", "--to", "hif8", "-o", "OUT"], "cannot read"),
        (["quantize", "MODEL", "--to", "hif8", "-o", "OUT", "--nonfinite", "x"], "non-finite policy"),
        (["quantize", "MODEL", "--to", "hif8", "-o", "OUT", "--keep", "fc.wight"], "Did you mean fc.weight"),
        (["survey", "MODEL", "--formats", "hif8,e4m4"], "Did you mean e4m3"),
        (["survey", "MODEL", "--formats", ","], "no format"),
        (["survey", "CUT", "--html", "OUT"], "truncated"),
    ],
)
def test_refusals_are_one_clear_line_and_leave_nothing(
    arguments: list[str], words: str, model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = model.parent
    (folder / "cut.safetensors").write_bytes(model.read_bytes()[:-8])
    names = {"MODEL": "model.safetensors", "CUT": "cut.safetensors", "NONE": "none.safetensors", "OUT": "out"}
    before = sorted(os.listdir(folder))
    paths = {key: str(folder / name) for key, name in names.items()} | {"none/OUT": str(folder / "none" / "out")}
    assert main([paths.get(word, word) for word in arguments]) == 2
    shown = capsys.readouterr()
    assert words in shown.err and shown.err.count("\n") == 1, shown.err
    assert shown.out == ""
    assert sorted(os.listdir(folder)) == before


@pytest.mark.skipif(os.name != "posix", reason="sends SIGINT")
def test_ctrl_c_half_way_leaves_nothing(tmp_path: Path) -> None:
    source, out = tmp_path / "big.safetensors", tmp_path / "out.safetensors"
    with SafeTensorsWriter(source, {f"w{i}": ("F32", (1024, 4096)) for i in range(24)}) as file:
        for i in range(24):
            file.write(f"w{i}", np.full((1024, 4096), i + 1, np.float32))
    command = [sys.executable, "-m", "narrowcast", "quantize", str(source), "--to", "hif8", "-o", str(out)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < deadline and not list(tmp_path.glob(".out*partial")):
        time.sleep(0.005)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 2, err
    assert "interrupted" in err
    assert os.listdir(tmp_path) == ["big.safetensors"]


@pytest.mark.parametrize("command", ["survey", "quantize"])
def test_help_is_light_and_states_the_rule(command: str) -> None:
    code = f"import sys; from narrowcast.cli import main; main([{command!r}, '--help']); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.splitlines()[-1].split())
    assert not loaded & {"numpy", "ml_dtypes", "safetensors", "plotly", "jinja2"}
    text = " ".join(done.stdout.split())
    assert "absmax / target" in text and "Examples" in text
    if command == "survey":
        assert "the fewest bits, then the highest SQNR" in text
