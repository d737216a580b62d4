"""Rounding advice: every mode of seed 3.5, every leaf of 5.3, and the measured truth beside the seed's answer."""

import json
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import narrowcast as nc
from narrowcast.advise.rounding_measure import measure_modes
from narrowcast.catalog.advice import QUESTIONS, ROOT, leaves, questions
from narrowcast.catalog.rounding import roundings
from narrowcast.cli import main
from narrowcast.errors import FormatError, UnknownNameError

RNG = np.random.default_rng(3)
BELL = RNG.standard_normal((64, 64)).astype(np.float32)

# Every leaf of 5.3: arguments, mode, the seed's reason, the seed's line.
LEAVES = {
    "training": (
        {"training": True},
        "rn",
        "training: nearest, ties to even, unbiased",
        "是 → rn / CAST_RINT (round to",
    ),
    "inference, unbiased": (
        {"training": False, "unbiased": True},
        "rn",
        "inference without bias",
        "是 → rn / CAST_RINT",
    ),
    "inference, speed": ({"training": False, "unbiased": False, "prefer": "speed"}, "rz", "truncation", "trunc, 最快"),
    "inference, accuracy": (
        {"training": False, "unbiased": False, "prefer": "accuracy"},
        "rna",
        "ties away from zero",
        "否 → rna / CAST_ROUND (精度好)",
    ),
    "hif8": ({"training": False, "target": "hif8"}, "rh", "hybrid rounding, made for it", "HiF8 场景 → rh"),
    "upper bound": ({"special": "upper-bound"}, "ru", "the upper bound of a quantization range", "上界截断 → ru"),
    "lower bound": ({"special": "lower-bound"}, "rd", "the lower bound of a quantization range", "下界截断 → rd"),
    "accumulation": ({"special": "accumulation"}, "ro", "round to odd keeps the precision", "混合精度累加 → ro"),
}


@pytest.mark.parametrize("leaf", LEAVES)
def test_every_leaf_of_5_3(leaf: str) -> None:
    arguments, mode, says, original = LEAVES[leaf]
    advice = nc.advise.rounding(**arguments)  # type: ignore[arg-type]
    assert advice.mode == mode and advice.open_question is None
    assert says in advice.says and original in advice.original
    assert advice.source == "seed:5.3"


def test_the_leaves_above_are_all_of_them() -> None:
    assert len(leaves()) == len(LEAVES)
    assert {row.mode for row in leaves()} == {"rn", "rz", "rna", "rh", "ru", "rd", "ro"}
    reached = {ROOT} | {b for q in QUESTIONS for _, b in q.branches if isinstance(b, str)}
    assert reached == set(questions)


MODES = {
    "rn": ("training", "training (unbiased)"),
    "rd": ("lower bound", "lower bound of a quantization range"),
    "ru": ("upper bound", "upper bound of a quantization range"),
    "rz": ("inference, speed", "inference quantization"),
    "rna": ("inference, accuracy", "deployment quantization"),
    "ro": ("accumulation", "a first narrowing whose result is rounded again"),
    "rh": ("hif8", ""),
}


@pytest.mark.parametrize("mode", MODES)
def test_every_mode_of_3_5_is_advised_with_its_use(mode: str) -> None:
    leaf, use = MODES[mode]
    advice = nc.advise.rounding(**LEAVES[leaf][0])  # type: ignore[arg-type]
    assert advice.mode == mode
    assert use in advice.typical_use and advice.typical_use == roundings[mode].use


def test_an_unanswered_question_is_shown_with_what_is_left() -> None:
    advice = nc.advise.rounding(training=False, target="e4m3")
    assert advice.mode is None and advice.open_question == "unbiased"
    assert [m for m, _ in advice.possible] == ["rn", "rz", "rna"]
    assert [s.answer for s in advice.steps] == ["no", "no", "no"]
    assert nc.advise.rounding().open_question == "training"


@pytest.mark.parametrize(
    ("target", "source", "arguments", "mode", "legal"),
    [
        ("e4m3", "fp32", {"training": False, "unbiased": False, "prefer": "speed"}, "rz", "rn"),
        ("e5m2", "fp32", {"training": False, "unbiased": False, "prefer": "accuracy"}, "rna", "rn"),
        ("hif8", "fp32", {"training": True}, "rn", "rna, rh"),
        ("bf16", "fp32", {"special": "accumulation"}, "ro", "rn, rd, ru, rna, rz"),
    ],
)
def test_an_illegal_leaf_is_shown_with_the_legal_modes(
    target: str, source: str, arguments: dict[str, object], mode: str, legal: str
) -> None:
    advice = nc.advise.rounding(target=target, source=source, **arguments)  # type: ignore[arg-type]
    assert advice.mode == mode and advice.is_legal is False
    assert f"{mode} is illegal for {source} -> {target} on chip 3510; legal there: {legal}." in advice.warnings


def test_a_chip_without_the_cast_says_so() -> None:
    advice = nc.advise.rounding(training=True, source="fp32", target="e4m3", chip="2201")
    assert "no rounding cast fp32 -> e4m3 is on record for chip 2201" in advice.warnings[0]
    chain = nc.advise.rounding(training=True, source="fp32", target="s8")
    assert any("reaches s8 from fp16 only" in w for w in chain.warnings)


def test_truncation_loses_on_the_users_own_values() -> None:
    advice = nc.advise.rounding(training=False, unbiased=False, prefer="speed", target="fp16", data=BELL)
    assert advice.mode == "rz" and advice.is_legal and advice.best == "rn"
    said = " ".join(advice.warnings)
    assert "measured on your values, rz loses 6." in said and "to rn" in said
    assert "rz is biased on your values: it moves magnitudes toward zero" in said
    assert "No performance table varies with the rounding mode" in said


def test_measures_equal_direct_arithmetic() -> None:
    by_mode = {m.mode: m for m in measure_modes(BELL, "e4m3")}
    scale = by_mode["rz"].scale
    assert scale == float(np.float32(np.abs(BELL).max()) / np.float32(448))
    wide = BELL.astype(np.float64)
    for mode, m in by_mode.items():
        error = nc.round_to(BELL / np.float32(scale), "e4m3", rounding=mode).astype(np.float64) * scale - wide
        assert m.bias == pytest.approx(error.mean())
        assert m.worst_error == np.abs(error).max() == abs(error[m.worst_index])
        assert m.sqnr_db == pytest.approx(10 * np.log10(np.square(wide).sum() / np.square(error).sum()))
    assert by_mode["rz"].shrinkage < -0.01 and abs(by_mode["rn"].shrinkage) < 0.002
    assert by_mode["rd"].bias < -0.01 < 0.01 < by_mode["ru"].bias


def test_directed_modes_are_biased_and_said_to_be() -> None:
    advice = nc.advise.rounding(special="lower-bound", target="fp16", data=BELL)
    assert any("rd is biased on your values: mean error -" in w for w in advice.warnings)


def test_nothing_to_warn_about_when_the_seed_is_right() -> None:
    assert nc.advise.rounding(training=True, target="fp16", data=BELL).warnings == ()
    assert nc.advise.rounding(training=False, target="hif8", data=BELL).is_legal


def test_measured_sources_and_corners() -> None:
    for dtype in (np.float16, np.float64, ml_dtypes.bfloat16):
        advice = nc.advise.rounding(training=True, target="e4m3", data=BELL.astype(dtype))
        assert advice.measured and advice.measured[0].mode in ("rn", "rna")
    some = BELL.copy()
    some[0, 0], some[0, 1] = np.nan, np.inf
    assert nc.advise.rounding(training=True, target="s8", data=some).measured
    assert nc.advise.rounding(training=True, target="s8", data=np.zeros(4, np.float32)).measured[0].scale > 0


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"special": "upper"}, UnknownNameError, "Did you mean upper-bound"),
        ({"prefer": "fast"}, UnknownNameError, "unknown preference"),
        ({"target": "e4m4"}, UnknownNameError, "Did you mean"),
        ({"target": "e4m3", "chip": "3511"}, UnknownNameError, "Did you mean 3510"),
        ({"data": [1.0]}, FormatError, "name the format to round to"),
        ({"data": [1], "target": "e4m3"}, FormatError, "floating-point values"),
        ({"data": [np.nan], "target": "e4m3"}, FormatError, "no finite value"),
        ({"data": [1.0], "target": "e4m3", "scale": 0.0}, FormatError, "positive and finite"),
    ],
)
def test_bad_input(arguments: dict[str, object], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        nc.advise.rounding(**arguments)  # type: ignore[arg-type]


def test_command(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["advise", "rounding", "--inference", "--no-unbiased", "--prefer", "speed"]) == 0
    out = capsys.readouterr().out
    assert "rz: speed first: truncation" in out and "[seed:5.3]" in out and "是否是训练场景?" in out
    np.save(tmp_path / "x.npy", BELL)
    arguments = ["advise", "rounding", "--training", "--to", "hif8", "--data", str(tmp_path / "x.npy")]
    assert main(arguments) == 0
    out = capsys.readouterr().out
    assert "measured" in out and "not on this chip" in out and "rn is illegal for fp32 -> hif8" in out
    assert main([*arguments, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["best"] in ("rna", "rh")
    assert main(["advise", "rounding", "--data", str(tmp_path / "none.npy"), "--to", "s8"]) == 2
    assert "no such file" in capsys.readouterr().err
