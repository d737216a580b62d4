"""Diagnosis: every pitfall of seed 5.4 and those users report, with message, evidence, the fix and the fix tried."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import narrowcast as nc
from narrowcast.catalog.pitfalls import ROWS, pitfalls
from narrowcast.cli import main
from narrowcast.insight.detectors_chain import ChainStep
from narrowcast.insight.diagnosis import examine
from narrowcast.operation import Finding
from tests.planted import PLANTS, slices

RNG = np.random.default_rng(2)
X = RNG.standard_normal((16, 64)).astype(np.float32)


def only(x: Any = None, **arguments: Any) -> Finding:
    found = nc.diagnose(x, **arguments)
    assert len(found) == 1, [f.rule for f in found]
    return found[0]


def told(finding: Finding, rule: str, *words: str) -> dict[str, Any]:
    row = pitfalls[rule]
    assert finding.rule == rule and finding.source == row.source
    assert finding.message.startswith(row.name)
    for word in words:
        assert word in finding.message + finding.fix, (word, finding.message, finding.fix)
    assert finding.evidence["first_index"] is not None
    return dict(finding.evidence)


def test_seed_5_4_1_overflow_raises_a_scale() -> None:
    e = told(only(X, to="s8", scale=0.01), "PIT-01", "lie beyond 1.27", "Raise the scale from 0.01 to", "127 * scale")
    first = tuple(e["first_index"])
    assert abs(X[first]) > 1.27 and e["first_value"] == pytest.approx(X[first])
    assert e["count"] == np.count_nonzero((X > 1.275) | (X < -1.285))
    assert e["before"]["saturated"] > 0.1 and e["after"]["saturated"] == 0
    assert e["after"]["sqnr_db"] > e["before"]["sqnr_db"] + 20


def test_seed_5_4_1_overflow_lowers_a_multiplier() -> None:
    finding = only(X, to="s8", multiplier=100.0)
    told(finding, "PIT-01", "Lower the multiplier from 100 to", "127/multiplier", "whose scale is this multiplier")
    assert "Raise the scale from" not in finding.fix


def test_seed_5_4_1_overflow_of_codes_alone() -> None:
    e = told(only(codes=np.full(100, 127, np.int8), to="s8"), "PIT-01", "100.0% of the codes are the largest")
    assert e["before"] == {} and "without the values" in e["tried"]


def test_seed_5_4_2_all_zero_lowers_a_scale() -> None:
    e = told(only(X, to="s8", scale=20.0), "PIT-02", "became 0", "the scale is 20", "Lower the scale from 20 to")
    assert e["before"]["flushed"] == 1 and e["after"]["flushed"] < 0.05
    told(only(X, to="s8", multiplier=0.05), "PIT-02", "Raise the multiplier from 0.05 to")
    told(only(codes=np.zeros(64, np.int8), to="s8"), "PIT-02", "all 64 codes stand for 0")


def test_seed_5_4_2_outliers_want_a_scale_per_row() -> None:
    wild = X * np.float32(0.001)
    wild[3, 5] = 30
    e = told(nc.diagnose(wild, to="s8")[0], "PIT-02", "one scale per row or group")
    assert e["tried"] == "one scale per row" and e["after"]["flushed"] < 0.1 < 0.9 < e["before"]["flushed"]


def test_seed_5_4_3_asymmetric_data_takes_u8_and_offset() -> None:
    e = told(only(np.abs(X), to="s8"), "PIT-03", "all but positive", "Use U8 with an offset", "of u8")
    assert e["codes_used"] <= 128 and e["after"]["sqnr_db"] > e["before"]["sqnr_db"] + 4
    told(only(-np.abs(X) - 1, to="s8"), "PIT-03", "all but negative")
    assert nc.diagnose(np.abs(X), nc.quantize(np.abs(X), "u8")) == []


def test_seed_5_4_4_bf16_loses_updates() -> None:
    e = told(only(X, updates=X * 1e-4), "PIT-04", "change nothing in bf16", "Accumulate in FP32", "of the way")
    assert e["before"]["progress"] < 0.1 and e["after"]["progress"] > 0.8
    assert nc.diagnose(X, updates=X * 0.1) == []
    told(only(X, updates=X * 1e-5, to="fp16"), "PIT-04", "change nothing in fp16")


@pytest.mark.parametrize("format", ["e2m1", "e1m2"])
def test_seed_5_4_5_fp4_takes_mx_scales(format: str) -> None:
    wild = X.copy()
    wild[0, 0] = 400
    e = told(nc.diagnose(wild, to=format)[0], "PIT-05", "off by more than half", "Add MX scales")
    assert e["before"]["off_by_half"] > 0.9 and e["after"]["off_by_half"] < 0.5
    assert nc.diagnose(wild, nc.mx.quantize(wild, format)) == []


def test_seed_5_4_6_subnormal_in_the_operations_format() -> None:
    small = X.copy()
    small[2, 3] = 1e-39
    e = told(only(small, to="e4m3"), "PIT-06", "1 of 1024 values are subnormal in fp32", "flush_subnormals")
    assert e["first_index"] == [2, 3] and (e["before"]["subnormal"], e["after"]["subnormal"]) == (1, 0)
    small[2, 3] = 1e-5
    assert nc.diagnose(small, to="e4m3") == []
    told(only(small, to="s8", arithmetic="fp16"), "PIT-06", "subnormal in fp16 (below 6.1e-05)")


def test_seed_5_4_7_error_grows_along_a_chain() -> None:
    e = told(only(X, chain=["s4", "e4m3", "s8"]), "PIT-07", "s4 -> e4m3 -> s8 loses", "merge the steps into one")
    assert [s["to"] for s in e["steps"]] == ["s4", "e4m3", "s8"]
    assert e["after"]["sqnr_db"] > e["before"]["sqnr_db"] + 10
    assert nc.diagnose(X, chain=["e4m3"]) == [] and nc.diagnose(X, chain=["fp32", "e4m3"]) == []


def test_seed_5_4_8_dummy_columns_are_garbage() -> None:
    q = nc.quantize(X[:, :20], "s8")
    stored = np.concatenate([q.codes, np.full((16, 12), 77, np.uint8)], axis=1)
    e = told(
        only(X[:, :20], codes=stored, to="s8", scale=q.scale), "PIT-08", "N is 20, rows hold 32 columns", "192 of the",
        "Pad N from 20 to 32 and read 20 columns", "NZ2DN",
    )  # fmt: skip
    assert e["first_index"] == [0, 20] and e["after"]["dummy_nonzero"] == 0 < e["before"]["dummy_nonzero"]
    told(only(codes=stored, to="s8", columns=20), "PIT-08")
    stored[:, 20:] = 0
    assert nc.diagnose(X[:, :20], codes=stored, to="s8", scale=q.scale) == []


def test_zero_scale() -> None:
    rows = X.copy()
    rows[4] = 0
    scale = (np.abs(rows).max(axis=1, keepdims=True) / 127).astype(np.float32)
    e = told(only(rows, to="s8", scale=scale), "USR-01", "1 of 16 scales are not positive", "2**-23")
    assert e["first_index"] == [4, 0] and e["after"]["bad"] == 0
    told(nc.diagnose(X, to="s8", scale=np.float32(np.nan))[0], "USR-01", "first nan")


def test_scale_underflow_in_fp16() -> None:
    tiny = X * np.float32(1e-6)
    scale = np.abs(tiny).max(axis=1, keepdims=True) / 127
    e = told(only(tiny, to="s8", scale=scale, scale_format="fp16"), "USR-02", "fp16 scales lie below 2**-14", "in fp32")
    assert e["needed"] == pytest.approx(float(scale[tuple(e["first_index"])]), rel=1e-4) and e["stored"] != e["needed"]
    assert nc.diagnose(tiny, to="s8", scale=scale) == []


def test_swapped_nibbles() -> None:
    q = nc.quantize(X, "s4", nc.Blocks.per_row)
    packed = nc.pack(q.codes, "s4")
    swapped = (packed << 4) | (packed >> 4)
    e = told(
        only(X, codes=swapped, packed=True, to="s4", scale=q.scale), "USR-03", "with the nibbles swapped the codes fit"
    )
    assert e["gain_db"] > 10 and e["after"]["sqnr_db"] > 10 > e["before"]["sqnr_db"]
    assert nc.diagnose(X, codes=packed, packed=True, to="s4", scale=q.scale) == []


def test_scales_on_the_wrong_axis() -> None:
    square = X[:, :16] * np.exp2(RNG.integers(-6, 7, (16, 1))).astype(np.float32)
    q = nc.quantize(square, "s8", nc.Blocks.per_row)
    told(
        only(square, codes=q.codes, to="s8", scale=q.scale.reshape(1, -1)),
        "USR-04",
        "with the scales along rows",
        "[M, 1]",
    )
    assert nc.diagnose(square, codes=q.codes, to="s8", scale=q.scale) == []


def test_nan_and_infinity() -> None:
    bad = X.copy()
    bad[1, 2], bad[1, 3] = np.nan, np.inf
    e = told(only(bad, to="s8"), "USR-05", "2 of 1024 input values are NaN or infinite, in 1 rows, first at [1, 2]")
    assert e["after"]["not_finite"] == 0
    q = nc.mx.quantize(X, "e4m3")
    scale = q.scale.copy()
    scale[3, 1] = 0xFF
    told(only(X, q=replace(q, scale=scale)), "USR-05", "E8M0 scale codes are 0xFF (NaN)", "first at [3, 1]")
    told(nc.diagnose(codes=np.array([[0x7F, 1, 2]], np.uint8), to="e4m3")[0], "USR-05", "codes are NaN or infinite")


def test_uint8_read_as_int8() -> None:
    q = nc.quantize(X, "u8")
    told(
        only(X, codes=q.codes.view(np.int8), to="s8", scale=q.scale, offset=q.offset), "USR-06",
        "read as u8 the codes fit the values", "Read the codes in the format they were written in",
    )  # fmt: skip
    q = nc.quantize(X, "s8")
    told(only(X, codes=q.codes ^ np.uint8(128), to="s8", scale=q.scale), "USR-06", "with the top bit flipped")


def test_double_rounding() -> None:
    near = X.copy()
    near[5, 6] = (1 + 1 / 16) * (1 + 2.0**-12)
    steps = [ChainStep("bf16"), ChainStep("e4m3", scale=1.0)]
    e = told(nc.diagnose(near, chain=steps)[0], "USR-07", "of bf16 -> e4m3 differ from one cast", "round to odd")
    assert e["before"]["differ_from_one_cast"] >= 1 and e["after"]["differ_from_one_cast"] == 0
    assert e["different_with_round_to_odd"] == 0 < e["count"]
    # With scales of their own the two ends of a chain would differ everywhere.
    e = told(only(X, chain=["bf16", "e4m3"]), "USR-07", "of bf16 -> e4m3 differ from one cast")
    assert 0 < e["count"] < 0.05 * X.size and e["different_with_round_to_odd"] > 0, "a scale in between moves the ties"


def test_scale_taken_for_a_multiplier() -> None:
    q = nc.quantize(X, "s8")
    told(nc.diagnose(q.dequantize(), codes=q.codes, to="s8", scale=1 / q.scale)[0], "USR-08", "reciprocal of the scale")
    told(nc.diagnose(q.dequantize(), codes=q.codes, to="s8", multiplier=q.scale)[0], "USR-08", "of the multiplier")


def test_every_row_is_planted_somewhere_and_whole() -> None:
    assert set(PLANTS) == {row.id for row in ROWS}
    for row in ROWS:
        assert row.fix and row.cause and row.symptom and row.source
        assert bool(row.original) == row.id.startswith("PIT")
    assert [r.source for r in ROWS if r.id.startswith("PIT")] == [f"seed:5.4#{i}" for i in range(1, 9)]


def test_a_wrong_reading_silences_what_follows_from_it() -> None:
    rows = X.copy()
    rows[0] = 0
    scale = (np.abs(rows).max(axis=1, keepdims=True) / 127).astype(np.float32)
    assert [f.rule for f in nc.diagnose(rows, to="s8", scale=scale)] == ["USR-01"]


def test_healthy_tensors_of_every_shape() -> None:
    for x in (X, X[0], X.reshape(4, 4, 64), np.zeros((4, 4), np.float32), np.float32([[1.0]])):
        assert nc.diagnose(x, to="s8") == [] or x.size == 1
    for dtype in (np.float16, np.float64, ml_dtypes.bfloat16):
        assert nc.diagnose(X.astype(dtype), to="hif8") == []
    for empty in (np.zeros((0, 4), np.float32), np.zeros((4, 0), np.float32)):
        assert nc.diagnose(empty, to="s8") == []
    assert nc.diagnose(X, to="fp32") == [] == nc.diagnose(np.arange(-99, 100), to="s8")
    q = nc.quantize(X, "s8")
    assert [f.rule for f in nc.diagnose(X, codes=q.codes, to="s8", scale=q.scale, columns=40)] == ["PIT-08"]
    q = nc.quantize(X, "e4m3", nc.Blocks((4, 16)))
    assert nc.diagnose(X, q) == []


BAD: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({}, nc.FormatError, "no format"),
    ({"to": "s8"}, nc.FormatError, "nothing to examine"),
    ({"x": X, "to": "s9"}, nc.UnknownNameError, "Did you mean"),
    ({"x": X, "to": "s8", "scale": 1, "multiplier": 1}, nc.FormatError, "both a scale and a multiplier"),
    ({"x": X, "codes": np.zeros((3, 3), np.int8), "to": "s8"}, nc.ShapeError, "codes have shape"),
    ({"x": X, "to": "s8", "scale": np.ones(5)}, nc.ShapeError, "fit no blocks"),
    ({"codes": np.zeros((4, 4), np.int8), "to": "s8", "columns": 9}, nc.ShapeError, "columns is 9"),
    ({"codes": np.array([300]), "to": "e2m1"}, nc.FormatError, "do not fit in the 4 bits"),
    ({"codes": np.array([300], np.uint16), "to": "e4m3"}, nc.FormatError, "does not fit in the 8 bits"),
    ({"x": X, "q": nc.quantize(X, "s8"), "scale": 1.0}, nc.FormatError, "brings its own"),
    ({"x": X, "q": nc.quantize(X, "s8"), "to": "s4"}, nc.FormatError, "holds s8"),
    ({"chain": ["bf16", "s8"]}, nc.FormatError, "needs the values"),
    ({"x": X, "chain": ["bf17"]}, nc.UnknownNameError, "bf16"),
    ({"x": X, "updates": np.ones((3, 3))}, nc.ShapeError, "updates have shape"),
    ({"x": np.array(["a"]), "to": "s8"}, nc.FormatError, "give numbers"),
    ({"x": np.array([1j]), "to": "s8"}, nc.FormatError, "give numbers"),
    ({"x": X, "to": "s8", "columns": 20}, nc.FormatError, "columns describes codes, and none are given"),
    ({"x": X, "to": "s4", "packed": True}, nc.FormatError, "packed describes codes"),
    ({"x": X[:, :20], "codes": np.zeros(X.shape, np.int8), "to": "s8", "columns": 30}, nc.ShapeError, "values have 20"),
    ({"codes": np.zeros(4, np.uint8), "to": "s8", "packed": True}, nc.FormatError, "s8 codes are not packed"),
    ({"codes": np.array([300]), "to": "s4", "packed": True}, nc.FormatError, "packed codes are bytes"),
    ({"codes": np.int8(3), "to": "s8", "columns": 1}, nc.ShapeError, "the codes have 0"),
    ({"x": X, "to": "s8", "scale": np.ones((2, 1, 1))}, nc.ShapeError, "shape"),
]


@pytest.mark.parametrize(("arguments", "error", "words"), BAD, ids=range(len(BAD)))
def test_bad_input(arguments: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        nc.diagnose(**arguments)


def test_case_files(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", X)
    case = tmp_path / "chain.yaml"
    case.write_text("values: x.npy\nchain:\n  - {from: fp32, to: s4}\n  - {from: s4, to: e4m3}\n  - s8\n")
    assert main(["diagnose", str(case)]) == 1
    case.write_text("values: [1.0, 2.0, 3.0, 200.0]\nto: s8\nscale: 0.1\n")
    assert main(["diagnose", str(case)]) == 1


MISTAKES = [
    (
        "values: x.npy\nchain:\n- {to: fp16}\n- {from: bf16, to: s8}\n",
        "4:10: the chain contradicts itself: step 2 starts",
    ),
    ("values: x.npy\nchain: [bf16, e4m4]\n", "2:15: unknown format 'e4m4'. Did you mean"),
    ("values: x.npy\nchian: [bf16]\n", "2:1: unknown key of a case 'chian'. Did you mean chain"),
    ("values: y.npy\n", "1:9:"),
    ("to: s8\n", "a case needs 'values'"),
    ("values: x.npy\ncolumns: many\n", "2:10: columns is 'many'"),
    ("values: x.npy\nchain: []\n", "2:8: chain is a list"),
    ("values: x.npy\nchain:\n- {to: bf16, rounding: up}\n", "3:24: unknown rounding 'up'"),
    ("values: x.npy\nchain:\n- {to: bf16, scale: -1}\n", "3:21: scale is -1; it is a positive number"),
    ("values: {a: 1}\n", "1:9: values is neither a file nor numbers"),
]


@pytest.mark.parametrize(("text", "words"), MISTAKES, ids=range(len(MISTAKES)))
def test_mistakes_in_a_case_file(text: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.save(tmp_path / "x.npy", X)
    case = tmp_path / "case.yaml"
    case.write_text(text)
    assert main(["diagnose", str(case)]) == 2
    assert words in capsys.readouterr().err


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.save(tmp_path / "x.npy", X)
    x = str(tmp_path / "x.npy")
    assert main(["diagnose", x, "--to", "s8"]) == 0
    assert "Nothing wrong." in capsys.readouterr().out
    assert main(["diagnose", x, "--to", "s8", "--scale", "0.01", "--html", str(tmp_path / "d.html")]) == 1
    out = capsys.readouterr().out
    assert "PIT-01" in out and "Raise the scale" in out and "sqnr_db" in out and "->" in out
    page = (tmp_path / "d.html").read_text(encoding="utf-8")
    assert "Overflow clipping" in page and "with the fix" in page and page.count('<script id="plotly">') == 1
    assert main(["diagnose", x, "--to", "s8", "--multiplier", "100", "--json"]) == 1
    form = json.loads(capsys.readouterr().out)
    assert form["findings"][0]["rule"] == "PIT-01" and form["quality"]["saturated"] > 0.1
    assert main(["diagnose", x, "--chain", "s4,s8"]) == 1
    assert main(["diagnose", x, "--to", "s8", "--html", str(tmp_path / "d.html")]) == 2
    q = nc.quantize(X, "s8")
    np.save(tmp_path / "q.npy", q.codes)
    np.save(tmp_path / "s.npy", q.scale)
    capsys.readouterr()
    arguments = ["--codes", str(tmp_path / "q.npy"), "--scale", str(tmp_path / "s.npy"), "--to", "s8"]
    assert main(["diagnose", x, *arguments]) == 0
    case = tmp_path / "case.yaml"
    case.write_text("values: x.npy\nto: s8\n")
    assert main(["diagnose", str(case), "--to", "s8"]) == 2
    assert "is a whole case" in capsys.readouterr().err


def test_pages_of_every_pitfall_render() -> None:
    from narrowcast.report.diagnosis_page import diagnosis_page

    rng = np.random.default_rng(1)
    for i, (rule, plant) in enumerate(PLANTS.items()):
        arguments = plant(slices()[i], rng)
        page = diagnosis_page(examine(**arguments), "<b>x</b>")
        assert f'id="{rule}"' in page and "&lt;b&gt;x&lt;/b&gt;" in page and "<b>x</b>" not in page
    assert "Findings: none" in diagnosis_page(examine(X, to="s8"), "x")
