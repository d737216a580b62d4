"""Integer TQUANT: vectors, both formulas at their ties, the scratch chain, and the way back."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from narrowcast.errors import ConstraintError, ShapeError, UnsupportedCastError
from narrowcast.operation import Semantics, audit, execute, from_json, to_json
from narrowcast.tile import Tile, TileType, TQuant, TQuantScalar, tdequant, tquant
from tests import vectors

SIMULATOR = Semantics("pto-isa", chip="cpu-sim")
CHIPS = (SIMULATOR, Semantics("pto-isa"), Semantics(), Semantics("pto-isa", chip="2201"))


def run(values, target, *, valid=None, fill=0, semantics=None, **parameters):
    """Quantize rows through tiles and return the static code tile."""
    src = Tile(values.copy(), valid=valid)
    dst = Tile(dtype=target, shape=values.shape, valid=valid)
    dst.memory[:] = fill
    rows = dst.valid[0]
    tiles = {name: Tile.per_row(np.asarray(v)[:rows]) for name, v in parameters.items()}
    scratch = Tile(dtype="fp32", shape=values.shape)
    tquant(dst, src, **tiles, scratch=scratch, semantics=semantics)
    return dst.array()


@pytest.mark.parametrize("semantics", CHIPS)
def test_simulator_vectors(semantics):
    arrays = vectors.load("pto_cpu_tquant_int8")
    for i in range(len(arrays["src"])):
        src, scale, offset = (arrays[name][i].view(np.float32) for name in ("src", "scale", "offset"))
        known = ~arrays["sym_nan_ub"][i]
        got = run(src, "s8", multiplier=scale, semantics=semantics)
        assert np.array_equal(got[known], arrays["sym_dst"][i][known])
        known = ~arrays["asym_nan_ub"][i]
        got = run(src, "u8", multiplier=scale, offset=offset, semantics=semantics)
        assert np.array_equal(got[known], arrays["asym_dst"][i][known])
        part = run(src, "s8", valid=(11, 37), fill=0xA5, multiplier=scale, semantics=semantics).view(np.uint8)
        known = ~arrays["sym_nan_ub"][i]
        assert np.array_equal(part[known], arrays["sym_dst_v11x37"][i][known])


INTEGER_CASES = ("128x128", "256x128", "64x128", "32x72")


@pytest.mark.parametrize("shape", INTEGER_CASES)
@pytest.mark.parametrize("form", ["sym", "asym"])
def test_golden_data(shape, form):
    arrays = vectors.load("pto_gen_a5_tquant")
    rows, cols = map(int, shape.split("x"))
    prefix = f"TQUANTTEST.case_int8_{form}_fp32_{shape}_nd/"
    if f"{prefix}input.bin" not in arrays:
        assert (shape, form) == ("32x72", "sym")
        return
    values = np.zeros((rows, -(-cols // 32) * 32), np.float32)
    values[:, :cols] = arrays[f"{prefix}input.bin"].reshape(rows, cols)
    parameters = {"multiplier": arrays[f"{prefix}inv_scale_fp32.bin"]}
    if form == "asym":
        parameters["offset"] = arrays[f"{prefix}offset_fp32.bin"]
    target, name = ("s8", "golden_s8") if form == "sym" else ("u8", "golden_u8")
    got = run(values, target, valid=(rows, cols), semantics=Semantics("pto-isa"), **parameters)
    assert np.array_equal(got[:, :cols].reshape(-1), arrays[f"{prefix}{name}.bin"])


def test_the_two_formulas_differ_where_the_row_says():
    half = np.full((1, 32), 0.5, np.float32)
    assert run(half, "u8", scale=[1.0], offset=[1.0])[0, 0] == 1
    assert run(half, "u8", multiplier=[1.0], offset=[1.0])[0, 0] == 2
    op = TQuant.on("u8", 1, 32)
    assert from_json(json.loads(json.dumps(to_json(op)))) == op
    report = audit(op, {"src": half, "parameter": [1.0], "offset": [1.0]})
    (entry,) = report.entries
    assert (entry.switch, entry.alternative, entry.changed) == ("tquant_formula", "instruction", 32)
    documents = Semantics().override(tquant_formula="documents")
    assert run(half, "u8", multiplier=[1.0], offset=[1.0], semantics=documents)[0, 0] == 1


@given(st.integers(-130, 260), st.sampled_from([2.0**k for k in range(-20, 20)]), st.integers(0, 255))
@settings(max_examples=120, deadline=None)
def test_ties_are_exact(k, scale, offset):
    values = np.zeros((1, 32), np.float32)
    values[0, :2] = np.float32(k + 0.5) * np.float32(scale), -np.float32(k + 0.5) * np.float32(scale)
    even = k + (k & 1)
    want = np.clip([even, -even], -128, 127)
    assert run(values, "s8", scale=[scale])[0, :2].tolist() == want.tolist()
    assert run(values, "s8", multiplier=[1 / scale])[0, :2].tolist() == want.tolist()
    shifted = np.clip([even + offset, -even + offset], 0, 255)
    assert run(values, "u8", scale=[scale], offset=[offset])[0, :2].tolist() == shifted.tolist()
    total = np.array([k + 0.5 + offset, -k - 0.5 + offset])
    assert (
        run(values, "u8", multiplier=[1 / scale], offset=[offset])[0, :2].tolist()
        == np.clip(np.rint(total), 0, 255).tolist()
    )


@given(
    st.floats(2.0**-60, 2.0**60, width=32),
    st.integers(0, 255),
    st.lists(
        st.one_of(st.floats(-150, 300, width=32), st.integers(-130, 260).map(lambda k: k + 0.5)),
        min_size=1,
        max_size=40,
    ),
    st.booleans(),
)
@settings(max_examples=150, deadline=None)
def test_way_back_within_half_a_step(scale, offset, units, asymmetric):
    scale = np.float32(scale)
    values = np.zeros((1, 64), np.float32)
    values[0, : len(units)] = np.asarray(units, np.float32) * scale
    target = "u8" if asymmetric else "s8"
    parameters = {"scale": [scale]} | ({"offset": [offset]} if asymmetric else {})
    codes = run(values, target, **parameters)
    back = Tile(dtype="fp32", shape=(1, 64))
    zero = [offset if asymmetric else 0]
    tdequant(back, Tile(codes), Tile.per_row([scale]), Tile.per_row(zero), semantics=SIMULATOR)
    low, high = (0, 255) if asymmetric else (-128, 127)
    wanted = np.rint(values / scale) + zero[0]
    inside = (wanted >= low) & (wanted <= high)
    exact = values.astype(np.float64)
    error = np.abs(back.numpy().astype(np.float64) - exact)
    ulp = np.spacing(np.maximum(np.abs(values), np.abs(back.numpy()))).astype(np.float64)
    assert (error <= scale.astype(np.float64) / 2 + 2 * ulp)[inside].all()


def test_chip_2201_destroys_its_source_and_scratch():
    values = np.float32([[1.5, 2.5, 300.0, -1e9, 3e9, np.nan, np.inf, 0.0] * 4])
    src, scratch = Tile(values.copy()), Tile(dtype="fp32", shape=(1, 32))
    dst = Tile(dtype="s8", shape=(1, 32))
    tquant(dst, src, multiplier=Tile.per_row([1.0]), scratch=scratch, semantics=Semantics(chip="2201"))
    assert scratch.memory.view(np.int32)[:8].tolist() == [2, 2, 300, -(10**9), 2**31 - 1, 0, 2**31 - 1, 0]
    assert src.memory.view(np.float16)[:8].tolist() == [2, 2, 300, -65504, 65504, 0, 65504, 0]
    assert dst.numpy()[0, :8].tolist() == [2, 2, 127, -128, 127, 0, 127, 0]
    untouched = Tile(values.copy())
    tquant(dst, untouched, multiplier=Tile.per_row([1.0]))
    assert np.array_equal(untouched.numpy(), values, equal_nan=True)


def _tiles(**changes):
    return {
        "dst": Tile(dtype="s8", shape=(4, 64)),
        "src": Tile(np.zeros((4, 64), np.float32)),
        "scale": Tile.per_row(np.ones(4)),
        **changes,
    }


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"src": Tile(np.zeros((8, 64), np.float32), valid=(4, 64), layout="DN")}, "TQU-01"),
        ({"src": Tile(np.zeros((4, 64), np.float32), valid=(4, 60))}, "TQU-02"),
        ({"scale": Tile.per_row(np.ones(3))}, "TQU-03"),
        ({"src": Tile(np.zeros((4, 64), np.float16))}, "TQU-04"),
        ({"dst": Tile(dtype="u8", shape=(4, 64))}, "TQU-05"),
        ({"offset": Tile.per_row(np.ones(4))}, "TQU-05"),
        ({"semantics": Semantics(chip="2201")}, "TQU-06"),
    ],
)
def test_rules_are_named(changes, rule):
    with pytest.raises(ConstraintError, match=rule) as caught:
        tquant(**_tiles(**changes))
    assert len(str(caught.value).splitlines()) == 1


def test_exactly_one_parameter():
    with pytest.raises(ShapeError, match="exactly one; got none"):
        tquant(**_tiles(scale=None))
    with pytest.raises(ShapeError, match="exactly one; got both"):
        tquant(**_tiles(multiplier=Tile.per_row(np.ones(4))))


def test_executed_specification():
    table = vectors.json_file("pto_spec_executed_vectors")
    for row in table["quant"]:
        target = row["dst_type"].lower()
        src = np.array([[int(row["x_bits"], 16)]], np.uint32).view(np.float32)
        op = TQuantScalar(
            dst=str(TileType.of(target, (1, 32), (1, 1))),
            src=str(TileType.of("fp32", (1, 32), (1, 1))),
            multiplier=int(row["scale_bits"], 16),
            zero_point=row["zero_point"],
            rounding=row["rounding"],
            saturate=bool(row["sat"]),
        )
        result = execute(op, {"src": src}, Semantics("pto-spec"))
        word = int(result["dst"][0, 0]) % (1 << 64)
        assert (word, int(result["flags"])) == (int(row["result_word"], 16), row["flags"])


def test_scalar_form_on_tiles():
    specification = Semantics("pto-spec")
    src, dst = Tile(np.full((1, 32), 200.0, np.float32)), Tile(dtype="s8", shape=(1, 32))
    tquant(dst, src, multiplier=1.0, semantics=specification)
    assert dst.numpy()[0, 0] == 127
    tquant(dst, src, multiplier=1.0, saturate=False, semantics=specification)
    assert dst.numpy()[0, 0] == -56
    with pytest.raises(UnsupportedCastError, match="has no scale"):
        tquant(dst, src, scale=Tile.per_row([1.0]), semantics=specification)


def test_specification_and_simulator_differ_by_double_rounding():
    values = np.full((1, 32), 0x3EFFFFFF, np.uint32).view(np.float32)
    multiplier = float(np.uint32(0x3F800001).view(np.float32))
    assert run(values, "s8", multiplier=[multiplier], semantics=SIMULATOR)[0, 0] == 0
    dst = Tile(dtype="s8", shape=(1, 32))
    tquant(dst, Tile(values), multiplier=multiplier, semantics=Semantics("pto-spec"))
    assert dst.numpy()[0, 0] == 1
