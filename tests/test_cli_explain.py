"""``explain`` as typed: what it prints, negative numbers, and what it refuses."""

import json

import pytest

from narrowcast.cli import main

KEYS = (
    "typed source source_error target rounding saturate below above position tie steps hybrid result "
    "error saturating not_saturating on_chip on_chip_note provenance open"
)


def explain(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["explain", *arguments]) == 0, capsys.readouterr().err
    return capsys.readouterr().out


def test_a_code(capsys: pytest.CaptureFixture[str]) -> None:
    text = explain(capsys, "0x7e", "--format", "e4m3")
    assert "e4m3 0x7E = 448 = 1.75 * 2^8" in text
    assert "0.1111.110" in text and "15 - bias 7 = 8" in text
    assert "documented [" in text


def test_the_fields_of_hif8(capsys: pytest.CaptureFixture[str]) -> None:
    text = explain(capsys, "0xd3", "--format", "hifloat8_t")
    for part in ("dot", "exponent sign", "exponent magnitude", "fraction", "-0.109375"):
        assert part in text


def test_a_negative_value_is_no_option(capsys: pytest.CaptureFixture[str]) -> None:
    text = explain(capsys, "-1e-9", "--to", "hif8", "--rounding", "rh")
    assert "fp32 0xB089705F" in text and "-1e-9 rounded to fp32" in text
    assert "hybrid, E = -30 is below -23: zero" in text and "hif8 0x00 = 0" in text
    assert "hif8_hybrid_compare: does not touch this result" in text
    for value in ("-inf", "-nan", "-0", "-0x1p-3", "-.5"):
        explain(capsys, value, "--to", "hif8")
        explain(capsys, "--to", "hif8", value)


def test_hybrid_shows_threshold_and_discarded_bits(capsys: pytest.CaptureFixture[str]) -> None:
    text = explain(capsys, "0x41801234", "--to", "hif8", "--rounding", "rh")
    assert "discarded  00000000100100" in text  # bits 20 to 7 of the source
    assert "threshold  01001000110100" in text  # bits 13 to 0
    assert "does not hold: toward zero" in text
    assert "the source's 14 low bits" in text


def test_a_tie(capsys: pytest.CaptureFixture[str]) -> None:
    text = explain(capsys, "17", "--to", "e4m3")
    assert "above     0x59  18" in text and "below     0x58  16" in text
    assert "an exact tie: half of the gap from 0x58" in text
    assert "to the neighbour whose code ends in 0" in text


def test_overflow_shows_both_saturations(capsys: pytest.CaptureFixture[str]) -> None:
    text = explain(capsys, "-500", "--to", "e4m3", "--no-saturate")
    assert "e4m3 0x7F = nan, not saturating" in text and "e4m3 0xFE = -448 = -1.75 * 2^8, saturating" in text


def test_a_value_with_format_is_cast(capsys: pytest.CaptureFixture[str]) -> None:
    assert explain(capsys, "17", "--format", "e4m3") == explain(capsys, "17", "--to", "e4m3")


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    form = json.loads(explain(capsys, "17", "--to", "e4m3", "--json"))
    assert (form["position"], form["tie"], form["result"]["hex"], form["error"]) == ("1/2", "17", "0x58", "-1")
    assert " ".join(form) == KEYS, "the documented keys, in order"
    code = json.loads(explain(capsys, "0x7e", "--format", "e4m3", "--json"))
    assert code["value"] == "448" and [f["name"] for f in code["fields"]] == ["sign", "exponent", "fraction"]


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize(
    "arguments",
    [
        ("-1e-9", "--to", "hif8", "--rounding", "rh"),
        ("0x41801234", "--to", "hif8", "--rounding", "rh"),
        ("450", "--to", "e4m3", "--no-saturate"),
        ("3.3e38", "--to", "bf16", "--rounding", "ru"),
        ("1e-45", "--to", "e8m0"),
        ("-32768.5", "--to", "s16"),
        ("0x7fffffffffffffff", "--from", "s64", "--to", "fp32"),
        ("0x7fffffff", "--format", "fp32"),
    ],
    ids=" ".join,
)
def test_lines_fit(
    arguments: tuple[str, ...], width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    text = explain(capsys, *arguments)
    assert max(map(len, text.split("\n"))) <= width


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["0x1ff", "--format", "e4m3"], "has 9 bits; a code of e4m3 has 8"),
        (["abc", "--to", "e4m3"], "neither a code nor a number"),
        (["-0x7e", "--format", "e4m3"], "A code has no sign"),
        (["nan", "--to", "s8"], "--nan zero"),
        (["1", "--to", "e4m3", "--rounding", "rh"], "hybrid rounding"),
        (["1", "--to", "hif8", "--rounding", "rh", "--from", "bf16"], "hybrid rounding"),
        (["1", "--to", "e4m3", "--from", "fp99"], "unknown format 'fp99'"),
        (["1.5", "--to", "e4m3", "--from", "s8"], "is no value of s8"),
        (["--roundnig", "rh", "1", "--to", "e4m3"], "--roundnig"),
        (["1", "--to", "e4m3", "--nan", "perhaps"], "unknown NaN policy 'perhaps'"),
    ],
    ids=lambda v: " ".join(v) if isinstance(v, list) else None,
)
def test_refused(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", *arguments]) == 2
    shown = capsys.readouterr()
    assert shown.out == "" and message in shown.err and shown.err.count("\n") == 1
