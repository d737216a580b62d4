"""TDEQUANT under every authority and chip, against the vectors that produced them."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from narrowcast.errors import ConstraintError, ShapeError, UnsupportedCastError
from narrowcast.operation import Semantics, audit, execute, from_json, to_json
from narrowcast.tile import TDequant, TDequantScalar, Tile, TileType, tdequant
from narrowcast.tile.scalar import scale_legal, zero_point_legal
from tests import vectors

UNTOUCHED = 0xDEADBEEF
SIMULATOR = Semantics("pto-isa", chip="cpu-sim")
LIBRARY = Semantics("pto-isa", chip="3510")


def bits_equal(got, want):
    """Compare fp32 bits, NaN by class."""
    got, want = np.ascontiguousarray(got).view(np.uint32), np.ascontiguousarray(want).view(np.uint32)
    nan = np.isnan(got.view(np.float32)) & np.isnan(want.view(np.float32))
    return bool(np.all((got == want) | nan))


def prefilled(rows, cols, valid):
    tile = Tile(dtype="fp32", shape=(rows, cols), valid=valid)
    tile.memory.view(np.uint32)[:] = UNTOUCHED
    return tile


@pytest.mark.parametrize("semantics", [SIMULATOR, LIBRARY, Semantics(), Semantics("seed"), Semantics("device", "2201")])
@pytest.mark.parametrize("columns", [64, 128])
def test_simulator_vectors_s8(columns, semantics):
    arrays = vectors.load("pto_cpu_tdequant_s8")
    src, scale, offset = (arrays[f"c{columns}_{name}"] for name in ("src", "scale", "offset"))
    regions = {64: ((16, 64), (13, 50), (1, 1)), 128: ((16, 128), (13, 114), (1, 1))}[columns]
    for valid in regions:
        want = arrays[f"c{columns}_dst_v{valid[0]}x{valid[1]}"]
        for i in range(len(src)):
            dst = prefilled(16, columns, valid)
            rows = [Tile.per_row(p[i][: valid[0]]) for p in (scale, offset)]
            tdequant(dst, Tile(src[i], valid=valid), *rows, semantics=semantics)
            assert bits_equal(dst.array(), want[i])


def test_simulator_vectors_u8():
    arrays = vectors.load("pto_cpu_tdequant_u8")
    for i, src in enumerate(arrays["c64_src"]):
        dst = prefilled(16, 64, (16, 64))
        rows = [Tile.per_row(arrays[f"c64_{p}"][i]) for p in ("scale", "offset")]
        tdequant(dst, Tile(src), *rows, semantics=SIMULATOR)
        assert bits_equal(dst.array(), arrays["c64_dst_v16x64"][i])
        with pytest.raises(ConstraintError, match="TDQ-05"):
            tdequant(dst, Tile(src), *rows)


@pytest.mark.parametrize("columns", [1, 3, 8])
def test_parameter_columns(columns):
    arrays = vectors.load("pto_cpu_tdequant_s8")
    for i, src in enumerate(arrays["p8_src"]):
        rows = [Tile(arrays[f"p8_{p}"][i], valid=(16, columns)) for p in ("scale", "offset")]
        clamped, first = prefilled(16, 64, (16, 64)), prefilled(16, 64, (16, 64))
        tdequant(clamped, Tile(src), *rows, semantics=SIMULATOR)
        assert bits_equal(clamped.array(), arrays[f"p8_dst_pv{columns}"][i])
        tdequant(first, Tile(src), *rows, semantics=LIBRARY)
        assert bits_equal(first.array(), arrays["p8_dst_pv1"][i])


def test_simulator_goldens():
    arrays = vectors.load("pto_gen_cpu_tdequant")
    for case in ("case1", "case2"):
        get = {k.split("/")[1][:-4]: v for k, v in arrays.items() if k.startswith(f"TDEQUANTTest.{case}/")}
        dst = Tile(dtype="fp32", shape=(64, 64))
        rows = [Tile.per_row(get[p]) for p in ("scale", "offset")]
        tdequant(dst, Tile(get["input"].reshape(64, 64)), *rows, semantics=SIMULATOR)
        assert bits_equal(dst.array().reshape(-1), get["golden"])
        assert bits_equal(dst.array().reshape(-1), get["output"])


# dst tile, src tile, parameter tile, valid rows x columns: the case list of the generator.
A2A3 = {
    1: ((32, 32), (32, 32), (32, 32), (32, 32)),
    2: ((32, 32), (32, 32), (32, 32), (32, 32)),
    3: ((64, 64), (32, 64), (48, 32), (31, 31)),
    4: ((32, 32), (16, 32), (24, 16), (15, 15)),
    5: ((64, 128), (32, 128), (48, 32), (31, 62)),
    6: ((4, 256), (4, 256), (4, 16), (4, 255)),
    7: ((2, 128), (2, 128), (2, 128), (2, 128)),
    8: ((2, 128), (2, 128), (2, 128), (2, 127)),
    9: ((2, 512), (2, 512), (2, 512), (2, 511)),
    10: ((1, 12288), (1, 12288), (1, 12288), (1, 12288)),
    11: ((1, 12288), (1, 12288), (1, 12288), (1, 12288)),
}


@pytest.mark.parametrize("case", sorted(A2A3))
def test_chip_2201_goldens(case):
    arrays = vectors.load("pto_gen_a2a3_tdequant")
    get = {k.split("/")[1][:-4]: v for k, v in arrays.items() if k.startswith(f"TDEQUANTTest.case{case}/")}
    dst_shape, src_shape, para_shape, valid = A2A3[case]
    dst = Tile(dtype="fp32", shape=dst_shape, valid=valid)
    rows = [
        Tile(get[f"{p}Input"].reshape(para_shape), valid=(min(valid[0], para_shape[0]), para_shape[1]))
        for p in ("scale", "offset")
    ]
    tdequant(dst, Tile(get["srcInput"].reshape(src_shape), valid=valid), *rows, semantics=Semantics("pto-isa", "2201"))
    want = get["golden"].reshape(dst_shape)
    assert bits_equal(dst.numpy(), np.ascontiguousarray(want[: valid[0], : valid[1]]))


def test_tail_predicate_is_an_option_and_audited():
    src = np.arange(2 * 128, dtype=np.int16).reshape(2, 128).astype(np.int8)
    kinds = {"dtype": "fp32", "shape": (2, 128), "valid": (2, 100)}
    rows = [Tile.per_row([2.0, 3.0]), Tile.per_row([1.0, 1.0])]
    tight, loose = Tile(**kinds), Tile(**kinds)
    tdequant(tight, Tile(src, valid=(2, 100)), *rows, semantics=LIBRARY)
    wide = LIBRARY.override(tdequant_tail_predicate="whole-register")
    tdequant(loose, Tile(src, valid=(2, 100)), *rows, semantics=wide)
    assert not tight.array()[:, 100:].any()
    assert loose.array()[1, 100:].tolist() == ((src[1, 100:].astype(np.float32) - 1) * 3).tolist()
    assert np.array_equal(tight.numpy(), loose.numpy())
    op = TDequant(
        dst=str(tight.type), src=str(Tile(src, valid=(2, 100)).type), scale=str(rows[0].type), offset=str(rows[1].type)
    )
    report = audit(op, {"src": src, "scale": rows[0].array(), "offset": rows[1].array()}, LIBRARY)
    entry = next(e for e in report.entries if e.switch == "tdequant_tail_predicate")
    assert entry.changed == 2 * 28 - int(np.count_nonzero(src[:, 100:] == 1)) and entry.first_index[1] == 100


def test_parameter_column_is_audited():
    parameter = str(TileType.of("fp32", (4, 8), (4, 2)))
    plain = TDequant.on("s8", 4, 64)
    op = TDequant(dst=plain.dst, src=plain.src, scale=parameter, offset=parameter)
    assert from_json(json.loads(json.dumps(to_json(op)))) == op
    scale = np.tile(np.float32([2, 4, 0, 0, 0, 0, 0, 0]), (4, 1))
    inputs = {"src": np.ones((4, 64), np.int8), "scale": scale, "offset": np.zeros((4, 8), np.float32)}
    (entry,) = audit(op, inputs).entries
    assert (entry.switch, entry.changed, entry.first_index) == ("tdequant_parameter_column", 4 * 63, (0, 1))
    assert execute(op, inputs)[0, :3].tolist() == [2.0, 4.0, 4.0]
    assert audit(plain, {**inputs, "scale": np.ones(4, np.float32), "offset": np.zeros(4, np.float32)}).clean


def test_kirinx90():
    op = TDequant.on("s8", 2, 32)
    inputs = {"src": np.ones((2, 32), np.int8), "scale": np.float32([1, 2]), "offset": np.float32([0, 0])}
    chip = Semantics("pto-isa", chip="kirinx90")
    assert execute(op, inputs, chip)[1, 0] == 2.0
    with pytest.raises(UnsupportedCastError, match="kirinx90 has no TDEQUANT"):
        execute(op, inputs, chip.override(tdequant_kirinx90="absent"))


@given(st.integers(0, 2**32 - 1), st.sampled_from(["s8", "s16"]), st.integers(1, 9), st.integers(1, 200))
@settings(max_examples=60, deadline=None)
def test_two_roundings(seed, dtype, rows, cols):
    rng = np.random.default_rng(seed)
    src = rng.integers(-128 if dtype == "s8" else -32768, 128, (rows, cols)).astype(
        np.int8 if dtype == "s8" else np.int16
    )
    scale, offset = rng.integers(0, 2**32, (2, rows), dtype=np.uint32).view(np.float32)
    got = execute(TDequant.on(dtype, rows, cols), {"src": src, "scale": scale, "offset": offset})
    with np.errstate(all="ignore"):
        want = (src.astype(np.float32) - offset[:, None]) * scale[:, None]
    assert bits_equal(got[:rows, :cols], want)


def _tiles(**changes):
    tiles = {
        "dst": Tile(dtype="fp32", shape=(4, 64)),
        "src": Tile(np.zeros((4, 64), np.int8)),
        "scale": Tile.per_row(np.ones(4)),
        "offset": Tile.per_row(np.zeros(4)),
    }
    return {**tiles, **changes}


@pytest.mark.parametrize(
    ("changes", "rule", "names"),
    [
        ({"src": Tile(np.zeros((32, 64), np.int8).T, layout="DN")}, "TDQ-01", "src is DN"),
        ({"src": Tile(np.zeros((4, 64), np.int8), valid=(4, 63))}, "TDQ-02", "dst is 4x64, src 4x63"),
        ({"scale": Tile.per_row(np.ones(3))}, "TDQ-03", "scale has 3 valid rows, dst 4"),
        ({"dst": Tile(dtype="fp16", shape=(4, 64))}, "TDQ-04", "dst is fp16"),
        ({"src": Tile(np.zeros((4, 64), np.uint8))}, "TDQ-05", "src is u8"),
        ({"offset": Tile(np.zeros((4, 8), np.float32), valid=(4, 1))}, "TDQ-06", "offset fp32 4x8"),
    ],
)
def test_constraints_have_the_documents_reasons(changes, rule, names):
    with pytest.raises(ConstraintError, match=rule) as caught:
        tdequant(**_tiles(**changes))
    assert names in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1
    assert any(f.rule == rule for f in caught.value.findings)


def test_what_each_target_checks():
    short = _tiles(scale=Tile(np.ones((8, 1), np.float32), valid=(3, 1), layout="DN"))
    tdequant(**short, semantics=Semantics("pto-isa", "2201"))
    for semantics in (Semantics("device", "2201"), LIBRARY, Semantics("seed")):
        with pytest.raises(ConstraintError, match="TDQ-03"):
            tdequant(**short, semantics=semantics)
    tdequant(**_tiles(src=Tile(np.zeros((4, 64), np.int8), valid=(4, 63))), semantics=SIMULATOR)
    missing = _tiles(src=Tile(np.zeros((4, 32), np.int8)))
    with pytest.raises(ConstraintError, match="TDQ-08"):
        tdequant(**missing, semantics=SIMULATOR)


def test_executed_specification():
    table = vectors.json_file("pto_spec_executed_vectors")
    for row in table["dequant"]:
        value = np.asarray(row["q"]).astype(np.int8 if row["src_type"] == "S8" else np.uint8).reshape(1, 1)
        src = Tile.holding(value)
        op = TDequantScalar(
            dst=str(TileType.of("fp32", src.type.shape, (1, 1))),
            src=str(src.type),
            multiplier=int(row["scale_bits"], 16),
            zero_point=row["zero_point"],
            rounding=row["rounding"],
        )
        result = execute(op, {"src": value}, Semantics("pto-spec"))
        assert (int(result["dst"].view(np.uint32)[0, 0]), int(result["flags"])) == (
            int(row["result_bits"], 16),
            row["flags"],
        )
        assert from_json(json.loads(json.dumps(to_json(op)))) == op
    for word, legal in table["scale_legal"]:
        assert scale_legal(int(word, 16)) == (legal == "TRUE")
    for word, dtype, legal in table["zero_point_legal"]:
        assert zero_point_legal(int(word, 16), dtype) == (legal == "TRUE")


def test_scalar_form_on_tiles():
    specification = Semantics("pto-spec")
    src = Tile(np.arange(32, dtype=np.int8)[None], valid=(1, 15))
    dst = Tile(dtype="fp32", shape=(1, 32), valid=(1, 15))
    event = tdequant(dst, src, 0.1, 3, semantics=specification)
    assert event.flags == 16
    assert dst.numpy().view(np.uint32)[0, 0] == 0xBE99999A
    with pytest.raises(ConstraintError, match="Fault_TileLegality TDEQUANT scalar0: multiplier word 0x0"):
        tdequant(dst, src, 0.0, 3, semantics=specification)
    with pytest.raises(ConstraintError, match="zero point 200 is not a s8 value"):
        tdequant(dst, src, 1.0, 200, semantics=specification)
    with pytest.raises(ShapeError, match="one number in a register"):
        tdequant(dst, src, Tile.per_row([1.0]), 0, semantics=specification)
    with pytest.raises(UnsupportedCastError, match="takes one multiplier"):
        execute(TDequant.on("s8", 1, 32), {"src": np.ones((1, 32)), "scale": [1.0], "offset": [0.0]}, specification)


def test_integer_offsets_agree_between_the_contracts():
    rng = np.random.default_rng(5)
    src = rng.integers(-128, 128, (1, 256)).astype(np.int8)
    for offset in (-128, -3, 0, 77):
        scale = np.float32(rng.uniform(1e-3, 1e3))
        tiles, exact = Tile(dtype="fp32", shape=(1, 256)), Tile(dtype="fp32", shape=(1, 256))
        tdequant(tiles, Tile(src), Tile.per_row([scale]), Tile.per_row([offset]))
        tdequant(exact, Tile(src), float(scale), offset, semantics=Semantics("pto-spec"))
        assert np.array_equal(tiles.numpy(), exact.numpy())
