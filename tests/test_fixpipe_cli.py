"""``narrowcast fixpipe`` and ``narrowcast matmul``: files in, files out, one line for what is refused."""

import json
from pathlib import Path

import numpy as np
import pytest

import narrowcast as nc
from narrowcast.cli import main

RNG = np.random.default_rng(21)


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    np.save("acc.npy", RNG.integers(-3000, 3000, (17, 40)).astype(np.int32))
    np.save("facc.npy", RNG.standard_normal((4, 32)).astype(np.float32))
    np.save("scale.npy", RNG.uniform(0.01, 0.1, 40).astype(np.float32))
    np.save("a.npy", RNG.integers(-128, 128, (8, 64)).astype(np.int8))
    np.save("b.npy", RNG.integers(-128, 128, (64, 16)).astype(np.int8))
    np.save("bias.npy", RNG.integers(-1000, 1000, 16).astype(np.int32))


def run(command: str) -> int:
    return main(command.split())


def shown(capsys: pytest.CaptureFixture[str], command: str) -> str:
    assert run(command) == 0, capsys.readouterr().err
    return capsys.readouterr().out


def test_the_documented_call(capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys, "fixpipe acc.npy --mode REQ8 --scale scale.npy --offset 3 --relu --layout NZ2ND -o out.npy")
    assert "17x40 s8, NZ2ND to GM: 680 elements" in text
    want = nc.fixpipe.run(np.load("acc.npy"), "REQ8", np.load("scale.npy"), offset=3, relu=True)
    out = np.load("out.npy")
    assert out.dtype == np.int8
    assert np.array_equal(out, want.values)
    form = json.loads(Path("out.npy.json").read_text())
    assert (form["format"], form["order"], form["shape"], form["stride"]) == ("s8", "rows", [17, 40], 40)
    again = nc.from_json(form["operation"])
    assert again == nc.fixpipe.Fixpipe(mode="REQ8", activation="relu")
    assert nc.Semantics.from_json(form["semantics"]) == nc.Semantics()


def test_existing_output_is_kept(capsys: pytest.CaptureFixture[str]) -> None:
    command = "fixpipe acc.npy --mode REQ8 --scale 1 -o out.npy"
    shown(capsys, command)
    first = Path("out.npy").read_bytes()
    assert run(f"{command} --scale 0.5") == 2
    assert "out.npy" in capsys.readouterr().err
    assert Path("out.npy").read_bytes() == first
    shown(capsys, f"{command} --scale 0.5 --force")


def test_journey_audit_and_json(capsys: pytest.CaptureFixture[str]) -> None:
    command = "fixpipe acc.npy --mode REQ8 --scale scale.npy --explain-element 3,17 --audit"
    text = shown(capsys, command)
    for stage in (
        "accumulator",
        "word",
        "multiplier",
        "product",
        "rounding",
        "s9 clamp",
        "offset",
        "s8 clamp",
        "address",
    ):
        assert stage in text
    assert "GM byte 137" in text
    form = json.loads(shown(capsys, f"{command} --json"))
    acc, scale = np.load("acc.npy"), np.load("scale.npy")
    code = nc.fixpipe.run(acc, "REQ8", scale).codes[3, 17]
    assert form["element"]["code"] == code
    assert form["element"]["steps"][0]["result"] == str(acc[3, 17])
    assert form["audit"]["operation"] == "Fixpipe"
    assert form["store"]["bytes"] == 680
    assert form["operation"]["op"] == "Fixpipe"


def test_layouts_and_chunks(capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys, "fixpipe acc.npy --mode REQ8 --scale 0.1 --layout NZ --accept-dummy -o nz.npy")
    assert "dummy     136 elements hold no result" in text
    assert np.load("nz.npy").ndim == 1
    np.save("wide.npy", np.ones((1, 1100), np.int32))
    np.save("many.npy", np.full(1100, 0.5, np.float32))
    assert "3 instructions of at most 512 columns" in shown(capsys, "fixpipe wide.npy --mode REQ8 --scale many.npy")
    np.save("l0c.npy", nc.fixpipe.to_fractal(np.load("acc.npy")))
    shown(capsys, "fixpipe l0c.npy --acc-layout NZ --rows 17 --columns 40 --mode REQ8 --scale 0.1 -o one.npy")
    shown(capsys, "fixpipe acc.npy --mode REQ8 --scale 0.1 -o two.npy")
    assert np.array_equal(np.load("one.npy"), np.load("two.npy"))
    np.save("batch.npy", np.ones((2, 4, 16), np.int32))
    assert "2x4x16 s8" in shown(capsys, "fixpipe batch.npy --mode REQ8 --scale 1")
    np.save("even.npy", np.ones((4, 32), np.int32))
    shown(capsys, "fixpipe even.npy --mode S32 --route UB --dual M -o ub.npy")
    assert np.load("ub.npy").shape == (2, 64)


def test_float_modes_control_and_authority(capsys: pytest.CaptureFixture[str]) -> None:
    shown(capsys, "fixpipe facc.npy --mode QF32_2_E4M3 --scale 1000 --ctrl 48,50 -o f8.npy")
    out = np.load("f8.npy")
    assert out.dtype == np.uint8
    assert 0x7F in out
    shown(capsys, "fixpipe acc.npy --mode DEQF16 --scale 0.5 --authority seed --set nd_tail=trim -o h.npy")
    assert np.load("h.npy").dtype == np.float16
    shown(capsys, "fixpipe acc.npy --mode REQ8 --scale 1 --target u8 --slope 0.5 -o u.npy")
    assert np.load("u.npy").dtype == np.uint8
    np.save("w.npy", nc.fixpipe.quant_words([0.5], 1, True))
    shown(capsys, "fixpipe acc.npy --mode REQ8 --words w.npy --relu --clip 50 -o c.npy")
    assert np.load("c.npy").max() == 50


def test_emulation(capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys, "fixpipe acc.npy --mode REQ8 --scale 1 --layout NZ --emulate")
    assert "emulated  FIXP-08" in text
    assert run("fixpipe acc.npy --mode REQ8 --scale 1 --route GM+L1 --emulate -o x.npy") == 2
    assert "dropped" in capsys.readouterr().err


def test_matmul(capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys, "matmul a.npy b.npy --bias bias.npy --mode REQ8 --scale 0.002 --relu -o out.npy")
    assert "8x64 s8 by 64x16 s8 -> s32 accumulators" in text
    acc = nc.cube.mmad(np.load("a.npy"), np.load("b.npy"), bias=np.load("bias.npy"))
    assert np.array_equal(np.load("out.npy"), nc.fixpipe.run(acc, "REQ8", 0.002, relu=True).values)
    shown(capsys, "matmul a.npy b.npy -o plain.npy")
    assert np.array_equal(np.load("plain.npy"), nc.cube.mmad(np.load("a.npy"), np.load("b.npy")))


def test_matmul_bias_goes_where_the_authority_has_it(capsys: pytest.CaptureFixture[str]) -> None:
    base = "matmul a.npy b.npy --bias bias.npy --mode DEQF16 --scale 0.5 --set nd_tail=trim"
    shown(capsys, f"{base} -o device.npy")
    shown(capsys, f"{base} --authority seed -o seed.npy")
    assert np.array_equal(np.load("device.npy"), np.load("seed.npy"))  # before the scale, either way


def test_matmul_formats(capsys: pytest.CaptureFixture[str]) -> None:
    np.save("h.npy", RNG.standard_normal((4, 8)).astype(np.float16))
    np.save("e.npy", nc.encode(RNG.standard_normal((4, 8)), "e4m3"))
    np.save("f.npy", nc.encode(RNG.standard_normal((8, 4)), "e5m2"))
    np.save("ht.npy", np.load("h.npy").T.copy())
    shown(capsys, "matmul h.npy ht.npy -o o.npy")
    assert np.load("o.npy").dtype == np.float32
    shown(capsys, "matmul e.npy f.npy --a-format e4m3 --b-format e5m2 --mode QF32_2_HiF8 --scale 1 -o p.npy")
    assert np.load("p.npy").dtype == np.uint8


REFUSED = [
    ("fixpipe acc.npy --mode REQ9 --scale 1", "Did you mean REQ8"),
    ("fixpipe acc.npy --mode REQ8", "needs a parameter word"),
    ("fixpipe acc.npy --mode REQ8 --scale nan", "seed:5.1#2"),
    ("fixpipe acc.npy --mode REQ8 --scale 1e-40", "subnormal"),
    ("fixpipe acc.npy --mode REQ8 --scale 1 --offset 300", "outside -256..255"),
    ("fixpipe acc.npy --mode REQ8 --scale none.npy", "neither a number nor a file"),
    ("fixpipe acc.npy --mode REQ8 --scale bias.npy", "N = 40 columns need 1 or 40"),
    ("fixpipe facc.npy --mode REQ8 --scale 1", "takes s32 accumulators"),
    ("fixpipe acc.npy --mode REQ8 --scale 1 --route L1", "FIXP-12"),
    ("fixpipe acc.npy --mode REQ8 --scale 1 --layout NZ --offset-bytes 4 --accept-dummy", "FIXP-03"),
    ("fixpipe acc.npy --mode REQ8 --scale 1 --set nd_tail", "SWITCH=VALUE"),
    ("fixpipe acc.npy --mode REQ8 --scale 1 --set nd_tail=keep", "nd_tail"),
    ("fixpipe acc.npy --mode REQ8 --scale 1 --ctrl 49", "CTRL bit 49"),
    ("fixpipe acc.npy --mode REQ8 --scale 1 --explain-element 17,0", "lies outside"),
    ("fixpipe acc.npy --mode REQ8 --scale 1 --explain-element 1", "write M,N"),
    ("fixpipe acc.npy --mode REQ8 --scale 1 --words w.npy", "not both"),
    ("fixpipe acc.npy --mode REQ8 --scale 1 --relu --slope 1", "not both"),
    ("fixpipe none.npy --mode REQ8 --scale 1", "none.npy"),
    ("matmul a.npy a.npy", "inner sizes differ"),
    ("matmul acc.npy b.npy", "Name it: --a-format"),
    ("matmul a.npy b.npy --bias scale.npy", "starts from int32"),
]


@pytest.mark.parametrize(("command", "message"), REFUSED, ids=[m for _, m in REFUSED])
def test_one_line_and_exit_code_2(command: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(f"{command} -o out.npy") == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    lines = [line for line in captured.err.splitlines() if "warning:" not in line]
    assert len(lines) == 1
    assert message in lines[0]
    assert not Path("out.npy").exists()
    assert not Path("out.npy.json").exists()


def test_matmul_audit_asks_about_the_order_of_sums(capsys: pytest.CaptureFixture[str]) -> None:
    """2**24 + 1 + 1: one at a time every 1 is lost."""
    np.save("one.npy", np.float32([[2.0**24, 1, 1]]))
    np.save("ones.npy", np.ones((3, 16), np.float32))
    text = shown(capsys, "matmul one.npy ones.npy --audit")
    assert "cube_accumulation: 16 of 16 elements change" in text
    form = json.loads(shown(capsys, "matmul one.npy ones.npy --audit --json"))
    assert form["product"] == {"op": "Mmad", "a_format": "fp32", "b_format": "fp32", "acc_layout": "plain"}


def test_words_and_scales_are_not_mixed_up(capsys: pytest.CaptureFixture[str]) -> None:
    np.save("words.npy", nc.fixpipe.quant_words([0.5] * 40, 0, True))
    for command in ("--words scale.npy", "--scale words.npy", "--words words.npy --offset 3"):
        assert run(f"fixpipe acc.npy --mode REQ8 {command}") == 2
        assert len([x for x in capsys.readouterr().err.splitlines() if "warning:" not in x]) == 1
