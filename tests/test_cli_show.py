"""``show``: complete, aligned, inside the terminal, and the same facts as JSON."""

import json

import numpy as np
import pytest

from narrowcast import numerics
from narrowcast.catalog import casts
from narrowcast.catalog.formats import formats
from narrowcast.catalog.rounding import roundings
from narrowcast.cli import main

VIEWS = [
    ["formats"],
    ["rounding"],
    ["casts"],
    ["casts", "--chip", "3510"],
    ["casts", "--chip", "2201"],
    *(["formats", "--format", name] for name in formats),
    *(["rounding", "--format", name] for name in formats),
    *(["casts", "--format", name] for name in formats),
]


def show(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["show", *arguments]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("view", VIEWS, ids=" ".join)
def test_views_fit_and_nothing_is_cut(
    view: list[str], width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    text = show(capsys, *view)
    assert max(map(len, text.split("\n"))) <= width
    assert "\u2026" not in text, "an ellipsis: something was cut"
    assert text == "\n".join(line.rstrip() for line in text.split("\n"))


def test_a_pipe_gets_every_column(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    assert main(["show", "formats"]) == 0
    shown = capsys.readouterr()
    assert shown.err == ""
    header = " ".join(shown.out.split("\n")[:2])
    for title in ("format", "layout", "bias", "max", "inf", "nan", "zero", "aliases", "provenance"):
        assert title in header
    lines = {line.split()[0]: line for line in shown.out.split("\n") if line.strip()}
    for row in formats.values():
        assert row.name in lines
        for alias in row.aliases:
            assert alias in lines[row.name]


def test_left_out_columns_are_named_on_stderr(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["show", "formats"]) == 0
    assert capsys.readouterr().err.startswith("not shown in 80 columns: ")


def test_formats_json_is_the_catalog(capsys: pytest.CaptureFixture[str]) -> None:
    rows = json.loads(show(capsys, "formats", "--json"))
    assert [r["name"] for r in rows] == list(formats)
    by_name = {r["name"]: r for r in rows}
    assert by_name["e4m3"]["max"] == 448 and by_name["e4m3"]["nan"] == "0x7F" and by_name["e4m3"]["inf"] is None
    assert by_name["hif8"]["min_subnormal"] == 2.0**-22 and by_name["hif8"]["zero"] == "0"
    assert by_name["s64"]["max"] == 2**63 - 1
    assert by_name["fp32"]["bias"] == 127 and "float32" in by_name["fp32"]["aliases"]


@pytest.mark.parametrize("name", [n for n, r in formats.items() if r.bits <= 8])
def test_a_small_format_shows_its_whole_code_table_in_value_order(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    row = formats[name]
    form = json.loads(show(capsys, "formats", "--format", name, "--json"))
    codes = [int(c["hex"], 16) for c in form["codes"]]
    assert sorted(codes) == list(range(1 << row.bits))
    values = [float(numerics.decode_table(row)[c]) for c in codes]
    numbers = [v for v in values if v == v]
    assert numbers == sorted(numbers) and all(v != v for v in values[len(numbers) :])
    assert [float(c["value"]) for c in form["codes"]][: len(numbers)] == numbers
    text = show(capsys, "formats", "--format", name)
    digits = (row.bits + 3) // 4
    for code in codes:
        assert f"0x{code:0{digits}X} " in text


def test_aliases_name_the_format(capsys: pytest.CaptureFixture[str]) -> None:
    assert show(capsys, "formats", "--format", "fp8_e4m3fn_t") == show(capsys, "formats", "--format", "e4m3")


def test_wide_formats_say_how_to_read_a_code(capsys: pytest.CaptureFixture[str]) -> None:
    assert "narrowcast explain 0x... --format fp16" in show(capsys, "formats", "--format", "half")


def test_rounding_json(capsys: pytest.CaptureFixture[str]) -> None:
    rows = json.loads(show(capsys, "rounding", "--json"))
    assert [r["mode"] for r in rows] == list(roundings)
    assert {r["mode"]: r["ascendc"] for r in rows}["rna"] == "CAST_ROUND"


@pytest.mark.parametrize("name", ["e4m3", "hif8", "s8", "fp16", "e2m1"])
def test_rounding_examples_are_what_encode_gives(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    import narrowcast as nc

    rows = json.loads(show(capsys, "rounding", "--format", name, "--json"))
    outcomes = set()
    for row in rows:
        if row["mode"] == "rh" and name != "hif8":
            assert row["examples"] == {}
            continue
        for value, result in row["examples"].items():
            encoded = nc.round_to(np.float32([float(value)]), name, rounding=row["mode"])
            assert float(encoded[0]) == float(result)
        outcomes.add(tuple(row["examples"].values()))
    assert len(outcomes) == len([r for r in rows if r["examples"]]), "two modes look the same"


def test_rounding_of_a_format_names_the_chips_modes(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    text = show(capsys, "rounding", "--format", "hif8")
    assert "fp32   -> hif8: rna rh" in text and "no conversion to hif8" in text


def test_casts_json_is_the_catalog(capsys: pytest.CaptureFixture[str]) -> None:
    rows = json.loads(show(capsys, "casts", "--json"))
    assert len(rows) == len(casts.ROWS)
    keys = ("interface", "chip", "source", "target")
    assert [tuple(r[k] for k in keys) for r in rows] == [tuple(getattr(r, k) for k in keys) for r in casts.ROWS]
    only = json.loads(show(capsys, "casts", "--format", "hifloat8_t", "--chip", "a5", "--json"))
    assert only and all("hif8" in (r["source"], r["target"]) and r["chip"] == "3510" for r in only)


def test_casts_text(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    line = next(t for t in show(capsys, "casts", "--format", "hif8").split("\n") if t.startswith("fp32"))
    assert line.split()[:4] == ["fp32", "hif8", "rna", "rh"]
    assert "no conversion from or to fp19" in show(capsys, "casts", "--format", "fp19")


def test_a_chip_without_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "casts", "--chip", "kirinx90"]) == 2
    assert "there is: 3510, 2201" in capsys.readouterr().err
