"""The commands asm, disasm, run and trace."""

import json
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from narrowcast.cli import main

PROGRAM = """
%a = pto.tload %s : !pto.partition_tensor_view<128x128xi16> -> !pto.tile<i16, 128, 128, valid=63x63>
%b = pto.tload %sc : !pto.partition_tensor_view<63x1xf32> -> !pto.tile<f32, 64, 1, ColMajor, valid=63x1>
%c = pto.tload %of : !pto.partition_tensor_view<63x1xf32> -> !pto.tile<f32, 64, 1, ColMajor, valid=63x1>
%v = pto.tdequant %a, %b, %c : (!pto.tile<i16, 128, 128>, !pto.tile<f32, 64, 1, ColMajor>,
  !pto.tile<f32, 64, 1, ColMajor>) -> !pto.tile<f32, 128, 128, valid=63x63>
pto.tstore %v, %d : (!pto.tile<f32, 128, 128>, !pto.partition_tensor_view<128x128xf32>) -> ()
"""


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(7)
    arrays = {
        "src": rng.integers(-9999, 9999, (128, 128)).astype(np.int16),
        "scale": rng.uniform(1e-3, 1, 63).astype(np.float32),
        "offset": rng.uniform(-9, 9, 63).astype(np.float32),
    }
    for name, array in arrays.items():
        np.save(f"{name}.npy", array)
    (tmp_path / "prog.pto").write_text(PROGRAM)
    return arrays


RUN = ["run", "prog.pto", "--in", "s=src.npy", "sc=scale.npy", "of=offset.npy", "--out", "d=dst.npy"]


def test_run(files, capsys):
    assert main(RUN) == 0
    assert "wrote dst.npy: d, float32 128x128" in capsys.readouterr().out
    got = np.load("dst.npy")
    want = (files["src"][:63, :63].astype(np.float32) - files["offset"][:, None]) * files["scale"][:, None]
    assert np.array_equal(got[:63, :63], want)
    assert not got[63:].any() and not got[:, 63:].any()
    assert main(RUN) == 2
    assert "dst.npy" in capsys.readouterr().err
    assert main([*RUN, "--force", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["outputs"][0]["shape"] == [128, 128]


def test_a_word_belongs_to_the_option_before_it(files, capsys):
    """A memory that is only stored may be given its first content, and one may be both read and written."""
    np.save("first.npy", np.full((128, 128), 7.0, np.float32))
    assert main([*RUN[:6], "of=offset.npy", "d=first.npy", "--out", "d=dst.npy"]) == 0
    got = np.load("dst.npy")
    assert (got[63:] == 7).all() and (got[:, 63:] == 7).all() and (np.load("first.npy") == 7).all()
    memory = "!pto.memref<f32, 1, 8>"
    tile = "!pto.tile<f32, 1, 8>"
    lines = [f"%{t} = pto.tload %{m} : {memory} -> {tile}" for t, m in (("a", "x"), ("b", "y"))]
    lines += [f"pto.tstore %{t}, %{m} : ({tile}, {memory}) -> ()" for t, m in (("a", "y"), ("b", "x"))]
    Path("swap.pto").write_text("\n".join(lines))
    for name, value in (("x", 1), ("y", 2)):
        np.save(f"{name}.npy", np.full((1, 8), value, np.float32))
    assert main(["run", "--in", "x=x.npy", "y=y.npy", "--out=x=x2.npy", "y=y2.npy", "--json", "swap.pto"]) == 0
    assert (np.load("x2.npy")[0, 0], np.load("y2.npy")[0, 0]) == (2, 1)
    capsys.readouterr()
    assert main(["run", "swap.pto", "x=x.npy"]) == 2
    assert "unexpected extra argument" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([*RUN[:4], "--out", "d=dst.npy"], "%sc has no array (given: s). Pass --in sc=FILE."),
        (["run", "prog.pto", "--in", "s=src.npy", "--out", "x=dst.npy"], "stores no memory x (it stores: d)"),
        (["run", "prog.pto", "--in", "s=src.npy"], "no output is named"),
        (["run", "prog.pto", "--in", "s", "--out", "d=dst.npy"], "NAME=FILE; got 's'"),
        (["run", "prog.pto", "--in", "s=none.npy", "--out", "d=dst.npy"], "none.npy"),
        (["run", "src.npy", "--out", "d=dst.npy"], "src.npy: byte offset 0 is no text"),
        ([*RUN, "--chip", "b200"], "unknown chip"),
        ([*RUN, "--authority", "pto-spec"], "line 5, column 1: under pto-spec scale is one number in a register"),
    ],
)
def test_run_refuses(files, capsys, arguments, says):
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert says in error and len(error.strip().splitlines()) == 1
    assert main(["run", "prog.pto", "--in", "s=scale.npy", "sc=scale.npy", "of=offset.npy", "--out", "d=dst.npy"]) == 2
    assert "line 2, column 16: tload: %s holds float32" in capsys.readouterr().err


def _program(**changes):
    """A dequantization whose parts a test may spoil."""
    parts = {
        "code": "!pto.tile<i8, 4, 64>",
        "scale": "!pto.tile<f32, 8, 1, ColMajor, valid=4x1>",
        "offset": "!pto.tile<f32, 8, 1, ColMajor, valid=4x1>",
        "value": "!pto.tile<f32, 4, 64>",
        "memory": "4x64xi8",
        **changes,
    }
    return (
        "%a = pto.tload %s : !pto.partition_tensor_view<{memory}> -> {code}\n"
        "%b = pto.tload %sc : !pto.partition_tensor_view<4x1xf32> -> {scale}\n"
        "%c = pto.tload %sc : !pto.partition_tensor_view<4x1xf32> -> {offset}\n"
        "%v = pto.tdequant %a, %b, %c : ({code}, {scale}, {offset}) -> {value}\n"
        "pto.tstore %v, %d : ({value}, !pto.partition_tensor_view<4x64xf32>) -> ()\n"
    ).format(**parts)


@pytest.mark.parametrize(
    ("changes", "rule", "operand"),
    [
        ({"value": "!pto.tile<f32, 4, 64, valid=4x60>"}, "TDQ-02", "dst is 4x60, src 4x64"),
        ({"value": "!pto.tile<f16, 4, 64>"}, "TDQ-04", "dst is fp16"),
        ({"code": "!pto.tile<i8, 32, 64, ColMajor, valid=4x64>"}, "TDQ-01", "src is DN"),
        ({"scale": "!pto.tile<f32, 8, 1, ColMajor, valid=3x1>"}, "TDQ-03", "scale has 3 valid rows"),
        ({"offset": "!pto.tile<f32, 4, 8, valid=4x1>"}, "TDQ-06", "offset fp32 4x8"),
        ({"value": "!pto.tile<f32, 4, 63>"}, "TILE-02", "a row of 63 fp32 elements has 252 bytes"),
        ({"value": "!pto.tile<f32, 4, 64, valid=5x64>"}, "TILE-01", "valid rows 5 are not within 1..4"),
    ],
)
def test_broken_rules_name_operand_and_rule(tmp_path, monkeypatch, capsys, changes, rule, operand):
    monkeypatch.chdir(tmp_path)
    np.save("s.npy", np.zeros((4, 64), np.int8))
    np.save("sc.npy", np.ones(4, np.float32))
    arguments = ["run", "p.pto", "--in", "s=s.npy", "sc=sc.npy", "--out", "d=d.npy"]
    (tmp_path / "p.pto").write_text(_program())
    assert main(arguments) == 0
    capsys.readouterr()
    (tmp_path / "p.pto").write_text(_program(**changes))
    assert main([*arguments, "--force"]) == 2
    error = capsys.readouterr().err
    assert rule in error and operand in error and "line " in error
    assert len(error.strip().splitlines()) == 1


def test_run_writes_types_numpy_cannot_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.pto").write_text(
        "%a = pto.tload %x : !pto.memref<bf16, 2, 16> -> !pto.tile<bf16, 2, 16>\n"
        "%b = pto.tcvt %a : !pto.tile<bf16, 2, 16> -> !pto.tile<f32, 2, 16>\n"
        "pto.tstore %a, %y : (!pto.tile<bf16, 2, 16>, !pto.memref<bf16, 2, 16>) -> ()\n"
        "pto.tstore %b, %z : (!pto.tile<f32, 2, 16>, !pto.memref<f32, 2, 16>) -> ()\n"
    )
    values = np.arange(32).reshape(2, 16).astype(ml_dtypes.bfloat16)
    np.save("x.npy", values)
    assert main(["run", "p.pto", "--in", "x=x.npy", "--out", "y=y.npy", "z=z.npy"]) == 0
    assert np.array_equal(np.load("y.npy"), values.view(np.uint16))
    assert np.array_equal(np.load("z.npy"), values.astype(np.float32))


@pytest.mark.filterwarnings("ignore:The encoding of TDEQUANT")
def test_asm_and_disasm(files, capsys, tmp_path):
    assert main(["asm", "prog.pto", "-o", "words.bin"]) == 0
    assert capsys.readouterr().out == "wrote words.bin: 36 words, 144 bytes\n"
    assert main(["disasm", "words.bin"]) == 0
    text = capsys.readouterr().out
    (tmp_path / "bundle.txt").write_text(text)
    assert main(["asm", "bundle.txt", "-o", "again.bin"]) == 0
    assert (tmp_path / "again.bin").read_bytes() == (tmp_path / "words.bin").read_bytes()
    capsys.readouterr()
    assert main(["asm", "bundle.txt", "--json"]) == 0
    form = json.loads(capsys.readouterr().out)
    words = form["words"]
    assert form["assumed"] is True
    assert words[0] == {"value": "90011181", "bits": 32, "text": "BSTART.TLOAD S16"}
    assert main(["disasm", "--words", "9EB19181", "--json"]) == 0
    form = json.loads(capsys.readouterr().out)
    assert form["words"][0]["fields"] == {"DataType": 19, "Mode": 3, "Function": 11}
    assert form["assumed"] is False
    assert main(["disasm", "--words", "9EB19181 08104E13 00395E13 00000001", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["assumed"] is True


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["disasm", "--words", "06119181"], "selector 0x061"),
        (["disasm", "--words", "9A421181"], "TDEQUANT as encoded up to 0.57.0"),
        (["disasm", "short.bin"], "byte offset 0: the word needs 4 bytes, 3 are left"),
        (["disasm"], "give a FILE or --words"),
        (["asm", "bad.pto"], "line 1, column 6: unknown tile operation 'pto.foo'"),
        (["asm", "short.bin"], "byte offset"),
    ],
)
def test_asm_and_disasm_refuse(tmp_path, monkeypatch, capsys, arguments, says):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "short.bin").write_bytes(b"\x81\x91\xb1")
    (tmp_path / "bad.pto").write_text("%a = pto.foo %b : !pto.tile<f32, 1, 8> -> !pto.tile<f32, 1, 8>")
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert says in error and len(error.strip().splitlines()) == 1


def test_trace(capsys):
    assert main(["trace", "tdequant", "--src", "s8", "--shape", "4x100", "--chip", "3510"]) == 0
    out = capsys.readouterr().out
    assert "tdequant 4x100 on chip 3510 [pto-isa:a5/TDeQuant.hpp]" in out
    assert "vlds v_src, src[0], UNPK4_B8" in out and "vmul v, v, v_scale, MODE_ZEROING" in out
    assert main(["trace", "tquant", "--to", "u8", "--shape", "1x8", "--chip", "a2a3", "--json"]) == 0
    form = json.loads(capsys.readouterr().out)
    assert form["chip"] == "2201" and form["steps"][4]["op"] == "vconv_f322s32r"
    assert main(["trace", "tdequant", "--shape", "1x2", "--lanes"]) == 0
    out = capsys.readouterr().out
    assert "[0, 1]" in out and "masked" in out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["trace", "tdequant", "--shape", "4"], "RxC, e.g. 4x100; got '4'"),
        (["trace", "tdequant", "--shape", "4x8", "--src", "u8"], "TDQ-05"),
        (["trace", "tdequant", "--shape", "4x8", "--chip", "cpu-sim"], "no micro-operations"),
        (["trace", "tmov", "--shape", "4x8"], "tmov"),
    ],
)
def test_trace_refuses(capsys, arguments, says):
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert says in error and len(error.strip().splitlines()) == 1
