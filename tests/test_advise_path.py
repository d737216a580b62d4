"""Scenario choice: the eleven scenarios of seed 4, why the others not, and each emulating call runs."""

import importlib
import json

import numpy as np
import pytest

import narrowcast as nc
from narrowcast.catalog.scenarios import ROWS, scenarios
from narrowcast.cli import main
from narrowcast.errors import UnknownNameError

for package in ("cube", "fixpipe", "mx", "vector"):
    importlib.import_module(f"narrowcast.{package}")

# Scenario: source, target, after a product, words of its API on 3510, whether chip 2201 has it.
CASES = {
    1: ("s32", "s8", True, "Fixpipe(dst, l0c, FixpipeParamsC310", True),
    2: ("fp32", "fp16", False, "Cast(dst, src, RoundMode::CAST_ROUND, count)", True),
    3: ("fp32", "bf16", False, "Cast(dst, src, RoundMode::CAST_RINT, count)", True),
    4: ("fp32", "e4m3", False, "Float2E4m3", False),
    5: ("fp32", "hif8", False, "Float2Hif8", False),
    6: ("fp16", "s8", False, "Half2Int8", True),
    7: ("fp16", "s4", False, "Half2Int4x2", False),
    8: ("bf16", "e2m1", False, "Bfloat162E2m1x2", False),
    9: ("e4m3", "fp32", False, "E4m32Float", False),
    10: ("fp16", "fp32", False, "RoundMode::CAST_NONE", True),
}


@pytest.mark.parametrize("number", CASES)
def test_scenario_of_seed_4(number: int) -> None:
    source, target, after, api, _ = CASES[number]
    advice = nc.advise.path(source, target, after_matmul=after)
    assert advice.scenario is not None and advice.scenario.number == number
    assert api in advice.scenario.api["3510"]
    assert f"场景 {number}" in advice.scenario.original
    assert len(advice.alternatives) == 10 and all(a.why_not for a in advice.alternatives)


def test_scenario_11_is_the_mx_product() -> None:
    row = scenarios["11"]
    assert row.name == "mx-matmul" and "Matmul(l0c, l0a, l0b, mx_params)" in row.api["3510"]
    other = next(a for a in nc.advise.path("e2m1", "fp32").alternatives if a.number == 11)
    assert "it multiplies MX operands" in other.why_not[0]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_every_scenario_row_is_whole_and_its_emulation_runs(row: object) -> None:
    row = scenarios[row.name]  # type: ignore[attr-defined]
    assert row.parameters and row.constraints and row.cost and row.snippet and row.place
    names = {"nc": nc, "np": np}
    exec(row.emulation, names)
    assert names["result"] is not None
    guarded = "__NPU_ARCH__ == 3510" in row.snippet
    assert guarded == ("2201" not in row.api), "types of one chip are guarded, others not"


@pytest.mark.parametrize("number", [n for n, case in CASES.items() if not case[4] and n != 7])
def test_chip_2201_lacks_the_types_of_3510(number: int) -> None:
    source, target, after, *_ = CASES[number]
    advice = nc.advise.path(source, target, after_matmul=after, chip="2201")
    assert advice.scenario is None
    mine = next(a for a in advice.alternatives if a.number == number)
    assert any("chip 2201 does not have it (it exists on 3510)" in w for w in mine.why_not)


def test_path_a_is_preferred_after_a_product() -> None:
    advice = nc.advise.path("fp32", "e4m3", after_matmul=True)
    assert advice.scenario is not None and (advice.scenario.number, advice.mode) == (1, "QF32_2_E4M3")
    vector = next(a for a in advice.alternatives if a.number == 4)
    assert (
        vector.possible and "it takes vector cycles that the Fixpipe does for nothing [seed:5.2#7]" in vector.why_not[0]
    )
    away = nc.advise.path("fp32", "e4m3")
    cube = next(a for a in away.alternatives if a.number == 1)
    assert away.scenario is not None and away.scenario.number == 4
    assert "the data is not in L0C: the Fixpipe reads accumulators only" in cube.why_not


def test_a_scale_the_fixpipe_lacks_goes_to_the_vector_core() -> None:
    advice = nc.advise.path("fp32", "e4m3", after_matmul=True, scale="per-token")
    assert advice.scenario is not None and advice.scenario.number == 4
    assert any("the Fixpipe has no per-token scale" in w for a in advice.alternatives for w in a.why_not)
    assert any("accumulators to UB first" in n for n in advice.notes)


def test_chains_where_no_scenario_fits() -> None:
    advice = nc.advise.path("fp32", "s8")
    assert advice.scenario is None and advice.chain == ("fp32", "fp16", "s8")
    assert "rounds twice" in advice.notes[0]
    assert nc.advise.path("fp32", "e2m1", scale="per-group").chain == ("fp32", "bf16", "e2m1")
    nowhere = nc.advise.path("fp32", "e4m3", chip="2201")
    assert nowhere.chain == () and "neither a scenario nor two casts" in nowhere.notes[0]


def test_notes_ask_for_what_is_missing() -> None:
    assert any("add --after-matmul" in n for n in nc.advise.path("s32", "s8").notes)
    assert any("pair it with MX scales" in n for n in nc.advise.path("bf16", "e2m1").notes)
    assert any("s32 -> fp16 -> s8" in n for n in nc.advise.path("s32", "s8", after_matmul=True).notes)


def test_bad_names() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean"):
        nc.advise.path("s32", "s9")
    with pytest.raises(UnknownNameError, match="unknown chip"):
        nc.advise.path("s32", "s8", chip="9999")
    with pytest.raises(UnknownNameError, match="per-token"):
        nc.advise.path("s32", "s8", scale="per-tokens")


def test_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["advise", "path", "--from", "s32", "--to", "s8", "--after-matmul", "--chip", "3510", "--snippet"]) == 0
    out = capsys.readouterr().out
    for words in (
        "1, Quantize a matrix product",
        "REQ8",
        "FIXP-06",
        "nc.fixpipe.run",
        "QuantMode_t::REQ8",
        "no: takes",
    ):
        assert words in out
    assert main(["advise", "path", "--from", "fp32", "--to", "s8", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["chain"] == ["fp32", "fp16", "s8"]
    assert main(["advise"]) == 0
    assert "Commands:" in capsys.readouterr().out
