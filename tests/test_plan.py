"""The planner: the worked examples, the seed's table, what is missing and said so, sweeps, refusals."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

import narrowcast as nc
from narrowcast.advise import Axis, plan, sweep
from narrowcast.catalog.planner import CONSTANTS, LIMITS, MATRIX, RECIPES, SKUS
from narrowcast.cli import main
from narrowcast.errors import EncodingError, ShapeError, UnknownNameError, UnsupportedCastError

# acc, out, operands, cycles of A, A per channel, B-UB dual, B-UB, B-GM.
WORKED = [
    ("s32", "s8", "s8", 8608, 10048, 15637, 18109, 30101),
    ("fp32", "e4m3", "e4m3", 8608, 10048, 9482, 17674, 29666),
    ("fp32", "hif8", "hif8", 8608, 10048, 9482, 17674, 29666),
    ("fp32", "s8", "e4m3", 8608, 10048, 20261, 20773, 30390),
    ("fp32", "fp16", "fp16", 13859, 15299, 13444, 18003, 29995),
]


@pytest.mark.parametrize(("acc", "out", "operands", "a", "per_channel", "dual", "single", "gm"), WORKED)
def test_worked_examples_of_4096_cubed(
    acc: str, out: str, operands: str, a: int, per_channel: int, dual: int, single: int, gm: int
) -> None:
    result = nc.plan(4096, 4096, 4096, acc, out, inputs=operands, gm_limit="l2")
    assert [round(p.cycles or 0) for p in result.paths] == [a, dual, single, gm]
    channel = nc.plan(4096, 4096, 4096, acc, out, inputs=operands, gm_limit="l2", scale="per-channel")
    assert round(channel.path("A").cycles or 0) == per_channel
    assert all(p.hidden for p in result.paths)
    assert (result.tile, result.tiles, result.elements) == ((128, 256), 16, 524288)


def test_worked_example_in_microseconds_bytes_and_hiding() -> None:
    result = nc.plan(4096, 4096, 4096, gm_limit="l2")
    assert result.cube_cycles == 262144
    assert [round(p.microseconds or 0, 1) for p in result.paths] == [5.2, 9.5, 11.0, 18.2]
    assert [round(p.hide_from_k or 0) for p in result.paths] == [134, 244, 283, 470]
    assert [round(p.gm_bytes / 1e6, 1) for p in result.paths] == [16.8, 16.8, 16.8, 151.0]
    assert round(result.path("A").tail_cycles or 0) == 538
    assert round(result.path("B-UB dual").tail_cycles or 0) == 1847
    channel = nc.plan(4096, 4096, 4096, gm_limit="l2", scale="per-channel")
    assert round(channel.path("A").hide_from_k or 0) == 157
    parts = {t.unit: round(t.cycles or 0) for t in result.path("B-GM").terms}
    assert parts == {"FIXP": 27303, "MTE2": 23831, "V": 14709, "MTE3": 6242}


def test_worked_example_of_a_decode_step() -> None:
    result = nc.plan(128, 4096, 4096, gm_limit="l2")
    assert (result.tile, result.cube_cycles) == ((64, 256), 8192)
    cycles = {p.name: round(p.cycles or 0) for p in result.paths}
    assert (cycles["A"], cycles["B-UB dual"], cycles["B-GM"]) == (282, 970, 2299)


def test_worked_example_against_the_published_drain() -> None:
    result = nc.plan(8192, 8192, 8192, "fp32", "bf16", inputs="e2m1", gm_limit="l2", tile=(256, 256))
    assert round(result.path("A").cycles or 0) == 54605
    assert round(result.path("A").microseconds or 0, 1) == 33.1
    assert not result.overlaps and any("take turns" in n for n in result.notes)


SEED_RATES = [
    ("GM", "s32", "s32", False, 32), ("GM", "s32", "s8", False, 64), ("L1", "s32", "s32", False, 64),
    ("L1", "s32", "s8", False, 128), ("UB", "s32", "s32", False, 32), ("UB", "fp32", "fp32", True, 64),
]  # fmt: skip


@pytest.mark.parametrize(("route", "acc", "out", "dual", "rate"), SEED_RATES)
def test_seed_table_2_4_is_taken_literally(route: str, acc: str, out: str, dual: bool, rate: int) -> None:
    from narrowcast.advise.rates import drain_rates
    from narrowcast.catalog.planner import limits

    cell = drain_rates(route, acc, out, dual=dual, limit=limits["none"])["seed"]
    assert (cell.table, cell.elements_per_cycle, cell.source) == ("seed", rate, "seed:2.4")


def test_where_tables_differ_both_are_shown() -> None:
    term = nc.plan(4096, 4096, 4096, route="L1").path("A").terms[0]
    assert "524288 / 64" in term.formula
    assert term.other_tables == (("seed", 128.0, 16 * 26 + 524288 / 128),)
    other = nc.plan(4096, 4096, 4096, route="L1", table="seed").path("A").terms[0]
    assert "524288 / 128" in other.formula and other.other_tables[0][:2] == ("vendor", 64.0)


@pytest.mark.parametrize(
    ("acc", "out", "path", "words"),
    [
        ("fp32", "fp16", "A", "seed:2.4 has no cell for fp32 -> fp16"),
        ("s32", "s8", "B-UB dual", "seed:2.4 has no cell for s32 -> s32 dual to UB"),
        ("fp32", "e4m3", "B-UB", "seed:2.4 has no cell for fp32 -> fp32"),
    ],
)
def test_a_missing_cell_says_so(acc: str, out: str, path: str, words: str) -> None:
    found = nc.plan(4096, 4096, 4096, acc, out, table="seed").path(path)
    assert found.cycles is None and found.available
    assert words in found.missing[0]


def test_inferred_and_borrowed_cells_are_named() -> None:
    half = nc.plan(4096, 4096, 4096, "fp32", "fp16").path("A").terms[0]
    assert "neither table has fp16 to OUT" in half.source and "inferred" in half.source
    byte = nc.plan(4096, 4096, 4096).path("A").terms[0]
    assert "the appendix has no OUT rows; seed 2.4" in byte.source


@pytest.mark.parametrize(("name", "cycles"), [("none", 16384), ("l2", 26887), ("hbm", 67650), ("starved", 116508)])
def test_gm_limit_is_a_switch_of_its_own(name: str, cycles: int) -> None:
    store = nc.plan(4096, 4096, 4096, gm_limit=name).path("B-GM").terms[0]
    assert round((store.cycles or 0) - 16 * 26) == cycles
    assert nc.plan(4096, 4096, 4096).gm_limit == "none"


@pytest.mark.parametrize("scale", ["per-token", "per-group"])
def test_the_fixpipe_has_no_scale_per_row_or_group(scale: str) -> None:
    result = nc.plan(4096, 4096, 4096, "fp32", "e4m3", scale=scale)
    assert "not " + scale in result.path("A").why_not
    assert result.best is not None and result.best.name.startswith("B-UB")


def test_paths_that_do_not_exist_say_why() -> None:
    assert "the Fixpipe has no mode s32 -> e4m3" in nc.plan(64, 64, 64, "s32", "e4m3").path("A").why_not
    assert "no vector recipe for s32 -> e4m3" in nc.plan(64, 64, 64, "s32", "e4m3").path("B-UB").why_not
    assert nc.plan(64, 64, 64, "s32", "e4m3").best is None
    assert "converts nothing" in nc.plan(64, 64, 64, "s32", "s32").path("B-GM").why_not


def test_options_change_what_they_name() -> None:
    base = nc.plan(4096, 4096, 4096, scale="per-channel")
    hoisted = nc.plan(4096, 4096, 4096, scale="per-channel", hoisted=True)
    assert (base.path("A").cycles or 0) - (hoisted.path("A").cycles or 0) == 15 * (26 + 64)
    quick = nc.plan(4096, 4096, 4096, "fp32", "s8", recipe="fp32-mulscast").path("B-UB dual")
    assert quick.cycles is not None and any("rounds more than once" in n for n in quick.notes)
    ideal = nc.plan(4096, 4096, 4096, ideal=True).path("B-UB dual").terms[1]
    assert round(ideal.cycles or 0) == 4096 * 3 + 16 * 66
    strided = nc.plan(4096, 4096, 4096, strided=True).path("A")
    assert strided.cycles == 16 * 26 + 524288 / 16
    assert nc.plan(4096, 4096, 4096, tile=(256, 256), unit_flag=True).overlaps
    assert nc.plan(4096, 4096, 4096, sku="950DT-28").tiles == 19


def test_limiting_unit_and_advice() -> None:
    short = nc.plan(4096, 4096, 64)
    assert short.path("A").limiting == "FIXP" and short.path("B-UB").limiting == "FIXP"
    assert "A: nothing else comes within 10%" in short.advice
    long = nc.plan(4096, 4096, 4096)
    assert long.path("A").limiting == "Cube" and "538 cycles for A" in long.advice
    level = nc.plan(4096, 4096, 64, "fp32", "fp16", gm_limit="l2", inputs="fp16")
    assert level.best is not None


def test_every_row_names_its_source() -> None:
    for row in (*SKUS, *MATRIX, *RECIPES, *LIMITS, *CONSTANTS):
        assert row.source, row
    for p in nc.plan(4096, 4096, 4096, scale="per-channel").paths:
        assert all("[" in t.source or t.source for t in p.terms)


def test_sweep_takes_less_than_a_second() -> None:
    start = time.process_time()
    found = sweep("K=64..8192/64", 4096, 4096, 0)
    assert time.process_time() - start < 1
    assert len(found.plans) == 128
    hidden = [v for v, p in zip(found.axis.values, found.plans, strict=True) if p.path("A").hidden]
    assert hidden[0] == 192  # the first multiple of 64 above 134
    json.dumps(found.to_json(), allow_nan=False)


@pytest.mark.parametrize(
    ("text", "values"), [("K=64..512", (64, 128, 256, 512)), ("n=8,24", (8, 24)), ("M=5..9/2", (5, 7, 9))]
)
def test_axis_is_read(text: str, values: tuple[int, ...]) -> None:
    assert Axis.parse(text).values == values


REFUSED: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"m": 0}, ShapeError, "m is 0"),
    ({"k": -4}, ShapeError, "k is -4"),
    ({"n": 2.5}, ShapeError, "n is 2.5"),
    ({"sku": "950PX"}, UnknownNameError, "unknown SKU '950PX'. Did you mean 950PR"),
    ({"table": "guess"}, UnknownNameError, "unknown rate table"),
    ({"gm_limit": "l3"}, UnknownNameError, "Did you mean l2"),
    ({"route": "L0"}, UnknownNameError, "unknown route"),
    ({"scale": "per-chanel"}, UnknownNameError, "Did you mean per-channel"),
    ({"out": "e4m4"}, UnknownNameError, "e4m3"),
    ({"acc": "fp16"}, UnsupportedCastError, "accumulates in s32 or fp32"),
    ({"inputs": "fp16"}, UnsupportedCastError, "the plan contradicts itself: fp16 operands accumulate in fp32"),
    ({"inputs": "s4"}, UnsupportedCastError, "Convert s4 to s8 first"),
    ({"tile": (512, 512)}, ShapeError, "L0C has 262144 B"),
    ({"tile": (0, 16)}, ShapeError, "two positive sides"),
    ({"recipe": "fp32-half"}, UnsupportedCastError, "not for s32 -> s8"),
]


@pytest.mark.parametrize(("change", "error", "words"), REFUSED, ids=lambda v: str(v))
def test_bad_input_is_named(change: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error) as caught:
        plan(**{"m": 4096, "n": 4096, "k": 4096, **change})
    assert words in str(caught.value)


@pytest.mark.parametrize("text", ["K", "K=", "K=8..4", "K=0..4", "K=1..9/0", "K=1..100000/1", "K=a..b"])
def test_bad_sweeps_are_refused(text: str) -> None:
    with pytest.raises(EncodingError):
        Axis.parse(text)
    with pytest.raises(UnknownNameError, match="unknown size to sweep"):
        Axis.parse("L=1..2")


def test_command_prints_plans_and_sweeps(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["plan", "4096x4096x4096", "--gm-limit", "l2"]) == 0
    out = capsys.readouterr().out
    for words in ("8608", "15637", "30101", "134 (hidden)", "16 tiles x 26 + 524288 / 64", "seed:2.4"):
        assert words in out
    assert main(["plan", "4096x4096x4096", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["best"] == "A"
    page = tmp_path / "plan.html"
    assert main(["plan", "4096x4096x4096", "--sweep", "K=64..8192", "--plot", str(page)]) == 0
    out = capsys.readouterr().out
    assert "8192" in out and "*" in out
    text = page.read_text(encoding="utf-8")
    assert "hides behind the product from K = 256" in text and text.count("Plotly.react") >= 1
    assert main(["plan", "4096x4096x4096", "--sweep", "K=64..8192", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["values"][-1] == 8192


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["4096by4096"], "no size of the product; write MxNxK"),
        (["4096x4096x64", "--sku", "951"], "unknown SKU"),
        (["4096x4096x64", "--plot", "x.html"], "add --sweep"),
        (["4096x4096x64", "--tile", "12"], "no size of a tile; write MxN"),
    ],
)
def test_command_refuses(arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", *arguments]) == 2
    assert words in capsys.readouterr().err
