"""Micro-operations: the ones the documents name, and the same bits when they are executed."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from narrowcast.errors import UnsupportedCastError
from narrowcast.operation import Semantics, execute
from narrowcast.tile import TCvt, TDequant, TQuant, trace

CHIPS = ("3510", "2201", "kirinx90")


def bits(values):
    raw = np.ascontiguousarray(values).view(f"uint{8 * values.dtype.itemsize}")
    return np.where(np.isnan(values), raw.dtype.type(0), raw) if values.dtype.kind == "f" else raw


@given(
    st.sampled_from(["s8", "s16"]),
    st.sampled_from(CHIPS),
    st.integers(1, 4),
    st.integers(1, 150),
    st.integers(0, 2**32 - 1),
)
@settings(max_examples=60, deadline=None)
def test_dequantize_by_micro_operations(dtype, chip, rows, cols, seed):
    rng = np.random.default_rng(seed)
    op = TDequant.on(dtype, rows, cols)
    info = np.iinfo(np.int8 if dtype == "s8" else np.int16)
    inputs = {
        "src": rng.integers(info.min, info.max + 1, (rows, cols)).astype(info.dtype),
        "scale": rng.normal(size=rows).astype(np.float32),
        "offset": rng.integers(0, 2**32, rows, dtype=np.uint32).view(np.float32),
    }
    got = trace(op, chip).run(inputs)
    assert np.array_equal(bits(got), bits(execute(op, inputs, Semantics("pto-isa", chip=chip))))


@given(st.booleans(), st.sampled_from(CHIPS), st.integers(1, 4), st.integers(1, 150), st.integers(0, 2**32 - 1))
@settings(max_examples=60, deadline=None)
def test_quantize_by_micro_operations(asymmetric, chip, rows, cols, seed):
    rng = np.random.default_rng(seed)
    op = TQuant.on("u8" if asymmetric else "s8", rows, cols, "multiplier")
    inputs = {
        "src": rng.integers(0, 2**32, (rows, cols), dtype=np.uint32).view(np.float32) if seed % 2 else
        (rng.integers(-600, 600, (rows, cols)) / 2).astype(np.float32),
        "parameter": np.ones(rows, np.float32),
        "offset": rng.integers(0, 255, rows).astype(np.float32) if asymmetric else None,
    }  # fmt: skip
    want = execute(op, inputs, Semantics("pto-isa", chip=chip))
    got = trace(op, chip).run(inputs)
    assert np.array_equal(got, want["dst"] if isinstance(want, dict) else want)


def test_the_documented_sequence():
    steps = trace(TDequant.on("s8", 1, 100)).steps
    load = ["vlds UNPK4_B8", "vcvt s8>s32 PART_P0", "vcvt s32>f32 ROUND_Z"]
    compute = ["vsub MODE_ZEROING", "vmul MODE_ZEROING", "vsts NORM_B32"]
    broadcast = ["vlds BRC_B32", "vlds BRC_B32"]
    assert [f"{s.name} {s.detail}" for s in steps] == [*broadcast, *load, *compute, *load, *compute]
    assert [s.lanes for s in steps if s.name == "vsts"] == [64, 36]
    words = " ".join(f"{s.name} {s.detail}" for s in trace(TDequant.on("s8", 1, 8), "kirinx90").steps)
    assert "US_B8" in words and "PART_P2" in words and "vintlv" in words
    assert trace(TDequant.on("s16", 1, 8)).steps[2].detail == "UNPK_B16"
    assert [s.name for s in trace(TDequant.on("s8", 1, 8), "2201").steps] == [
        "vconv_s82f16", "vconv_f162f32", "ld", "ld", "vadds", "vmuls",
    ]  # fmt: skip


def test_tail_predicate_of_the_header():
    op = TDequant.on("s8", 3, 100)
    rng = np.random.default_rng(0)
    inputs = {"src": rng.integers(-9, 9, (3, 100)).astype(np.int8), "scale": [1.0, 2.0, 3.0], "offset": [0.5, 1.5, 2.5]}
    header = Semantics("pto-isa").override(tdequant_tail_predicate="whole-register")
    wide = trace(op, semantics=header)
    assert [s.lanes for s in wide.steps if s.name == "vsts"] == [64] * 6
    assert np.array_equal(wide.run(inputs), execute(op, inputs, header))
    assert not np.array_equal(wide.run(inputs), trace(op).run(inputs))


def test_lanes_name_their_elements():
    found = trace(TDequant.on("s8", 2, 70))
    last = [lane for lane in found.lanes() if lane.step == len(found.steps) - 1]
    assert [lane.element for lane in last if lane.active] == [(1, 64 + k) for k in range(6)]
    assert len(last) == 64
    assert found.to_json()[0]["detail"] == "BRC_B32"
    assert str(found.steps[0]) == "vlds v_scale, scale[0], BRC_B32"


def test_what_has_no_trace():
    with pytest.raises(UnsupportedCastError, match="no micro-operations"):
        trace(TCvt.on("fp32", "fp16", 1, 16))
    with pytest.raises(UnsupportedCastError, match="no micro-operations"):
        trace(TDequant.on("s8", 1, 8), "cpu-sim")
    with pytest.raises(UnsupportedCastError, match="no chip divides"):
        trace(TQuant.on("s8", 1, 8))
