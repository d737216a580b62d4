"""Program files: six planted violations and nothing else, positions of mistakes, tile programs, the command."""

import json
from pathlib import Path

import pytest

import narrowcast as nc
from narrowcast.checks import read_program
from narrowcast.cli import main
from narrowcast.storage.positioned_yaml import parse_yaml

SIX = """\
chip: "3510"
operations:
  - op: DataCopy            # 1: 30 fp16 elements are no whole grains
    name: load x
    origin: GM
    destination: UB
    format: fp16
    count: 30
    time: [0, 10]
  - op: VectorCast          # 2: mask of the wrong width
    name: quantize x
    source: fp16
    target: s8
    mode: rn
    count: 32
    mask_format: fp32
    reads: {memory: UB, offset_bytes: 0, bytes: 64}
    writes: {memory: UB, offset_bytes: 64, bytes: 32}
    time: [10, 20]
  - op: LoadParameters      # 3: not from L1
    name: scales
    origin: UB
    entries: 256
    time: [0, 5]
  - op: Mmad
    name: product
    gives: acc
    time: [0, 30]
  - op: Fixpipe             # 4: store to L1 off the 32-byte grid
    name: to L1
    mode: REQ8
    route: L1
    offset_bytes: 16
    takes: acc
    time: [30, 50]
  - op: Fixpipe             # 5: OUT while L1 is being written
    name: to GM
    mode: REQ8
    route: GM
    takes: acc
    time: [40, 60]
  - op: VectorCast          # 6: a rounding mode on an exact widening
    name: back to fp32
    source: e4m3
    target: fp32
    mode: rn
"""
PLANTED = ["VEC-11", "VEC-16", "FIXP-09", "FIXP-04", "FIXP-06", "VEC-15"]
REPAIRS = {
    "count: 30": "count: 32",
    "mask_format: fp32": "mask_format: fp16",
    "origin: UB": "origin: L1",
    "offset_bytes: 16": "offset_bytes: 64",
    "time: [40, 60]": "time: [50, 60]",
    "target: fp32\n    mode: rn": "target: fp32",
}


def saved(folder: Path, text: str, name: str = "program.yaml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_six_planted_violations_and_nothing_else(tmp_path: Path) -> None:
    path = saved(tmp_path, SIX)
    found = nc.check(path)
    assert [f.rule for f in found] == PLANTED
    assert [f.place.rpartition(".yaml:")[2] for f in found] == [
        "3:5 load x", "10:5 quantize x", "20:5 scales", "29:5 to L1", "36:5 to GM", "42:5 back to fp32",
    ]  # fmt: skip
    assert all(f.fix and f.source and "(" in f.message for f in found)


def test_each_repair_takes_one_finding_away(tmp_path: Path) -> None:
    for i, (wrong, right) in enumerate(REPAIRS.items()):
        assert SIX.count(wrong) == 1
        rules = [f.rule for f in nc.check(saved(tmp_path, SIX.replace(wrong, right)))]
        assert rules == PLANTED[:i] + PLANTED[i + 1 :], wrong
    text = SIX
    for wrong, right in REPAIRS.items():
        text = text.replace(wrong, right)
    assert nc.check(saved(tmp_path, text)) == []


def test_other_chip_and_purpose_of_the_file(tmp_path: Path) -> None:
    text = "chip: a2a3\npurpose: training\noperations:\n- {op: VectorCast, source: fp32, target: hif8}\n"
    assert [f.rule for f in nc.check(saved(tmp_path, text))] == ["VEC-12"]
    text = "purpose: training\noperations:\n- {op: VectorCast, source: fp32, target: bf16, mode: rz}\n"
    assert [f.rule for f in nc.check(saved(tmp_path, text))] == ["VEC-18"]
    text = "operations:\n- {op: VectorCast, source: bf16, target: e2m1, count: 64, writes: {memory: UB, bytes: 64}}\n"
    assert [f.rule for f in nc.check(saved(tmp_path, text))] == ["VEC-13"]


HEAD = "operations:\n"
MISTAKES = [
    ("operatons:\n- op: Mmad\n", "1:1: unknown key of a program 'operatons'", "Did you mean operations"),
    (HEAD + "- op: VectorCast\n  sorce: fp32\n  target: fp16\n", "3:3: unknown key of VectorCast 'sorce'", "source"),
    (HEAD + "- op: VectorCats\n", "2:7: unknown operation 'VectorCats'", "Did you mean VectorCast"),
    (HEAD + "- op: VectorCast\n  source: fp32\n", "2:3: VectorCast needs 'target'", ""),
    (HEAD + "- op: VectorCast\n  source: fp32\n  target: fp61\n", "4:11: unknown format 'fp61'", "or fp16"),
    (HEAD + "- op: VectorCast\n  source: fp32\n  target: fp16\n  count: many\n", "5:10: count is 'many'", ""),
    (HEAD + "- op: Mmad\n  unit: X\n", "3:9: unknown unit 'X'", "FIX"),
    (HEAD + "- op: Mmad\n  unit: MTE4\n", "3:9: unknown unit 'MTE4'", "Did you mean MTE"),
    (HEAD + "- op: Mmad\n  time: [5, 1]\n", "3:9: time is [5, 1]; it is [start, end]", ""),
    (HEAD + "- op: Mmad\n  reads: {memory: UBB, bytes: 1}\n", "unknown memory 'UBB'", "Did you mean UB"),
    (HEAD + "- op: Mmad\n  reads: {memory: UB, bytes: 0}\n", "3:10: region of 0 B", ""),
    (HEAD + "- op: Mmad\n  reads: [7]\n", "3:11: a region is a mapping; got 7", "memory"),
    (HEAD + "- op: Mmad\n  takes: 7\n", "3:10: takes is 7", ""),
    (HEAD + "- op: Fixpipe\n  mode: REQ9\n", "3:9: unknown Fixpipe mode 'REQ9'", "REQ8"),
    (
        HEAD + "- op: DataCopy\n  origin: GM\n  destination: UB\n  format: fp16\n  count: -1\n",
        "6:10: DataCopy of -1",
        "",
    ),
    (HEAD + "- 7\n", "2:3: an operation is a mapping", "VectorCast"),
    ("operations: []\n", "1:13: operations is a list of at least one", ""),
    ("chip: 9999\n" + HEAD + "- op: Mmad\n", "1:7: unknown chip", "3510"),
    ("purpose: trainig\n" + HEAD + "- op: Mmad\n", "1:10: unknown purpose 'trainig'", "Did you mean training"),
    ("a: [1, 2\n", "2:1:", "not YAML"),
    ("operations:\n- op: Mmad\n   name: x\n", "3:8:", "not YAML"),
    ("operations: 1\noperations: 2\n", "2:1: key 'operations' is there twice", ""),
    ("[1]: 2\n", "1:1: a key is a word", ""),
    ("", "is empty", ""),
    ("- 1\n", "1:1: a program is a mapping; got a list", "operations"),
    ("chip: '3510'\n", "a program needs 'operations'", ""),
]


@pytest.mark.parametrize(("text", "message", "hint"), MISTAKES, ids=range(len(MISTAKES)))
def test_a_mistake_is_named_with_line_and_column(text: str, message: str, hint: str, tmp_path: Path) -> None:
    with pytest.raises(nc.EncodingError) as caught:
        read_program(saved(tmp_path, text))
    said = str(caught.value)
    assert message in said and hint in said
    assert "program.yaml" in said


def test_files_that_are_no_programs(tmp_path: Path) -> None:
    with pytest.raises(nc.EncodingError, match="no such file"):
        read_program(tmp_path / "none.yaml")
    with pytest.raises(nc.EncodingError, match=r"a program is .yaml, .yml, .json, .pto, not"):
        read_program(tmp_path / "x.txt")
    (tmp_path / "b.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(nc.EncodingError, match="not UTF-8"):
        read_program(tmp_path / "b.yaml")


def test_a_bomb_of_aliases_is_refused() -> None:
    text = "a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n"
    text += "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 9))
    with pytest.raises(nc.EncodingError, match="more than"):
        parse_yaml(text)


TILES = """\
%a = pto.tload %s : (!pto.partition_tensor_view<16x64xi8>) -> !pto.tile<i8, 16, 64>
%sc = pto.tload %f : (!pto.partition_tensor_view<{rows}x1xf32>) -> !pto.tile<f32, {rows}, 1, ColMajor>
%d = pto.tdequant %a, %sc, %sc : (!pto.tile<i8, 16, 64>, !pto.tile<f32, {rows}, 1, ColMajor>,
     !pto.tile<f32, {rows}, 1, ColMajor>) -> !pto.tile<f32, 16, 64>
pto.tstore %d, %o : (!pto.tile<f32, 16, 64>, !pto.partition_tensor_view<16x64xf32>) -> ()
"""


def test_tile_programs(tmp_path: Path) -> None:
    good = saved(tmp_path, TILES.format(rows=16), "good.pto")
    assert nc.check(good) == []
    bad = nc.check(saved(tmp_path, TILES.format(rows=8), "bad.pto"))
    assert bad and all("bad.pto:3" in f.place for f in bad)
    assert any("rows" in f.message for f in bad)


def test_tile_casts(tmp_path: Path) -> None:
    text = """\
%a = pto.tload %s : (!pto.partition_tensor_view<16x64xf32>) -> !pto.tile<f32, 16, 64>
%d = pto.tcvt %a {rmode = rz} : (!pto.tile<f32, 16, 64>) -> !pto.tile<f16, 16, WIDTH>
"""
    assert nc.check(saved(tmp_path, text.replace("WIDTH", "64"), "good.pto")) == []
    found = nc.check(saved(tmp_path, text.replace("WIDTH", "32"), "bad.pto"))
    assert found and "bad.pto:2" in found[0].place


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = saved(tmp_path, SIX)
    assert main(["check", str(path)]) == 1
    out = capsys.readouterr().out
    assert "6 findings" in out and all(rule in out for rule in PLANTED)
    assert main(["check", str(path), "--json"]) == 1
    form = json.loads(capsys.readouterr().out)
    assert [f["rule"] for f in form["findings"]] == PLANTED
    assert set(form["findings"][0]) == {"rule", "place", "message", "evidence", "fix", "source"}
    clean = saved(tmp_path, HEAD + "- {op: VectorCast, source: fp32, target: fp16}\n", "clean.yaml")
    assert main(["check", str(clean)]) == 0
    assert "1 operation on chip 3510: nothing wrong." in capsys.readouterr().out
    assert main(["check", str(clean), "--chip", "951"]) == 2
    assert main(["check", str(saved(tmp_path, "x: 1\n", "bad.yaml"))]) == 2
    assert "bad.yaml:1:1" in capsys.readouterr().err
