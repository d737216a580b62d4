"""Every published or exactly computed result of the Fixpipe, under the authority or switch that gives it."""

import numpy as np
import pytest

import narrowcast as nc
from narrowcast import fixpipe
from narrowcast.catalog.fixpipe_modes import fixpipe_modes
from tests.golden import read

ROWS = read("fixpipe")
MAIN = [row for row in ROWS if row["status"] != "alternative"]


def accumulator(text: str) -> np.ndarray:
    """The value twice: 4-bit results come in whole bytes."""
    if text.startswith("0x"):
        return np.array([2 * [int(text, 16)]], dtype=np.uint32).view(np.float32)
    return np.array([2 * [int(text)]], dtype=np.int32)


def semantics_of(row: dict[str, str]) -> nc.Semantics:
    changes = dict(item.split("=") for item in row["overrides"].split())
    return nc.Semantics(row["authority"], chip=row["chip"]).override(**changes)


def store(row: dict[str, str]) -> fixpipe.Store:
    op = fixpipe.Fixpipe(mode=row["mode"], activation="relu" if row["relu"] == "1" else None)
    inputs = {"acc": accumulator(row["acc"])}
    if row["word"]:
        inputs["words"] = np.array([int(row["word"], 16)], dtype=np.uint64)
    control = nc.Control(ctrl48=int(row["ctrl48"]), ctrl50=int(row["ctrl50"]))
    return nc.execute(op, inputs, semantics_of(row), control)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["id"])
def test_conversion(row: dict[str, str]) -> None:
    if row["expected"] == "error":
        with pytest.raises(nc.EncodingError):
            store(row)
        return
    result = store(row)
    assert result.format == row["target"]
    mask = nc.formats[row["target"]].code_mask
    assert int(result.codes[0, 0]) == int(row["expected"]) & mask, row["rule"]


def test_all_69_are_there() -> None:
    assert [row["id"] for row in MAIN] == [f"T{i:02d}" for i in range(1, 70)]


@pytest.mark.parametrize("row", MAIN, ids=lambda row: row["id"])
def test_journey_ends_at_the_stored_code(row: dict[str, str]) -> None:
    """The explanation of an element and the store of it are one arithmetic."""
    op = fixpipe.Fixpipe(mode=row["mode"], activation="relu" if row["relu"] == "1" else None)
    inputs = {"acc": accumulator(row["acc"])}
    if row["word"]:
        inputs["words"] = np.array([int(row["word"], 16)], dtype=np.uint64)
    control = nc.Control(ctrl48=int(row["ctrl48"]), ctrl50=int(row["ctrl50"]))
    way = fixpipe.journey(op, inputs, 0, 0, semantics_of(row), control)
    assert way.code == int(store(row).codes[0, 0])
    assert way.steps[0].stage == "accumulator"
    assert way.steps[-1].stage == "address"


@pytest.mark.parametrize("row", read("fixpipe_words"), ids=lambda row: row["word"])
def test_word(row: dict[str, str]) -> None:
    param = fixpipe.QuantParam(float(row["scale"]), int(row["offset"]), signed=row["dst"] == "S8")
    assert param.word == int(row["word"], 16)
    again = fixpipe.QuantParam.from_word(param.word)
    assert (again.scale, again.offset, again.signed) == (param.truncated_scale, param.offset, param.signed)


def test_every_mode_has_a_golden_row_or_says_why() -> None:
    covered = {fixpipe_modes[row["mode"]].name for row in ROWS}
    # Bypasses change nothing; the other three differ from a covered mode in one row field each.
    assert set(fixpipe_modes) - covered == {"S32", "FP32", "QF32_2_S4", "QF32_2_E5M2", "QF32_2_BF16", "DEQS16"}
