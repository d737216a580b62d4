"""Tiles: layouts, rules, transfers, moves and events."""

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from narrowcast.errors import ConstraintError, EncodingError, FormatError, ShapeError, UnknownNameError
from narrowcast.operation import Semantics, audit, from_json, to_json
from narrowcast.tile import GlobalTensor, Program, Tile, TileType, TMov, tcvt, tdequant, tload, tmov, tquant, tstore
from narrowcast.tile.spelling import LAYOUTS
from tests import vectors

DTYPES = ("s8", "u8", "s16", "fp16", "bf16", "fp32", "s32", "e4m3", "hif8", "e2m1", "s4")


@st.composite
def tile_types(draw):
    dtype = draw(st.sampled_from(DTYPES))
    layout = draw(st.sampled_from(sorted(LAYOUTS)))
    fractal = draw(st.sampled_from((512, 1024, 32))) if layout not in ("ND", "DN") else 512
    unit = TileType.of(dtype, (1, 1), layout=layout, fractal=fractal)
    ir, ic = unit.box_shape
    least = 256 // unit.bits
    rows = draw(st.integers(1, 4)) * (least if layout == "DN" else 1 if layout in ("ND", "NZ") else ir)
    cols = draw(st.integers(1, 3)) * (least if layout == "ND" else 1 if layout == "DN" else ic)
    valid = draw(st.integers(1, rows)), draw(st.integers(1, cols))
    return TileType.of(dtype, (rows, cols), valid, layout=layout, fractal=fractal)


@given(tile_types())
@settings(max_examples=80, deadline=None)
def test_layouts_are_bijections(kind):
    offsets = [kind.offset(r, c) for r in range(kind.rows) for c in range(kind.cols)]
    assert sorted(offsets) == list(range(kind.rows * kind.cols))
    whole = kind.pattern.unpack(np.arange(len(offsets)), kind.shape)
    assert whole.reshape(-1).tolist() == offsets
    assert TileType.parse(str(kind)) == kind


@given(tile_types(), st.integers(0, 2**32 - 1))
@settings(max_examples=80, deadline=None)
def test_load_store_round_trip(kind, seed):
    rng = np.random.default_rng(seed)
    tile = Tile.empty(kind)
    codes = rng.integers(0, 1 << kind.bits, kind.valid).astype(kind.format.code_dtype)
    tile.store(codes if kind.bits == 4 else codes.view(tile.storage.dtype))
    got = np.ascontiguousarray(tile.numpy())
    assert np.array_equal(got.view(codes.dtype), codes)
    if kind.boxed or kind.bits == 4:
        return
    memory = np.zeros((kind.valid[0] + 2, kind.valid[1] + 3), got.dtype)
    layout = "DN" if kind.layout == "DN" else "ND"
    tstore(GlobalTensor(memory, dtype=kind.dtype, layout=layout, offset=(1, 2)), tile)
    again = Tile.empty(kind)
    tload(again, GlobalTensor(memory, dtype=kind.dtype, layout=layout, offset=(1, 2)))
    assert np.array_equal(np.ascontiguousarray(again.numpy()).view(codes.dtype), codes)
    memory[1 : 1 + kind.valid[0], 2 : 2 + kind.valid[1]] = 0
    assert not memory.view(codes.dtype).any()


@pytest.mark.parametrize(
    ("layout", "row", "col", "offset"),
    [
        ("ZN", 1, 0, 1),
        ("ZN", 0, 1, 32),
        ("NZ", 0, 1, 1),
        ("NZ", 1, 0, 32),
        ("NZ", 16, 0, 512),
        ("NZ", 0, 32, 1024),
    ],
)
def test_published_offsets(layout, row, col, offset):
    assert TileType.of("u8", (32, 64), layout=layout).offset(row, col) == offset


@pytest.mark.parametrize("layout", sorted(LAYOUTS))
def test_offset_follows_the_published_formula(layout):
    kind = TileType.of("fp16", (32, 32), layout=layout)
    (ir, ic), (rows, cols) = kind.box_shape, kind.shape
    for row in range(rows):
        for col in range(cols):
            r1, r0, c1, c0 = row // ir, row % ir, col // ic, col % ic
            want = {
                "ND": row * cols + col,
                "DN": col * rows + row,
                "NZ": c1 * rows * ic + r1 * ir * ic + r0 * ic + c0,
                "ZN": r1 * cols * ir + c1 * ir * ic + c0 * ir + r0,
                "ZZ": r1 * cols * ir + c1 * ir * ic + r0 * ic + c0,
                "NN": c1 * rows * ic + r1 * ir * ic + c0 * ir + r0,
            }[layout]
            assert kind.offset(row, col) == want


def test_tile_over_an_array_is_a_view():
    array = np.zeros((4, 32), np.int8)
    tile = Tile(array, valid=(3, 20))
    tile.numpy()[...] = 7
    assert array[:3, :20].all() and not array[3].any() and not array[:, 20:].any()


def test_packed_elements():
    tile = Tile(np.arange(128).reshape(2, 64).astype(np.uint8) % 16, dtype="e2m1")
    assert tile.memory.size == 64
    assert tile.memory[:3].tolist() == [0x10, 0x32, 0x54]
    assert tile.numpy()[0, :6].tolist() == [0, 1, 2, 3, 4, 5]
    packed = np.zeros((2, 20), np.uint8)
    tile.valid = (2, 40)
    tstore(GlobalTensor(packed, dtype="e2m1"), tile)
    assert packed[1].tolist() == tile.memory[32:52].tolist()


@pytest.mark.parametrize(
    ("dtype", "pad", "value"),
    [
        ("fp32", "max", np.inf),
        ("fp16", "min", -np.inf),
        ("s8", "min", -128),
        ("s32", "max", 2**31 - 1),
        ("u8", "zero", 0),
    ],
)
def test_load_pads_the_static_tile(dtype, pad, value):
    tile = Tile(dtype=dtype, shape=(2, 32), valid=(1, 3), pad=pad)
    tload(tile, GlobalTensor(np.ones((1, 3), tile.storage.dtype)))
    whole = tile.array()
    assert (whole[0, :3] == 1).all() and (whole[0, 3:] == value).all() and (whole[1] == value).all()


def test_padding_by_the_bits_of_an_element():
    tile = Tile(dtype="fp32", shape=(2, 8), valid=(1, 3), pad=0x1_3F800000)
    tload(tile, GlobalTensor(np.zeros((1, 3), np.float32)))
    assert (tile.array()[1] == 1.0).all() and (tile.array()[0, 3:] == 1.0).all()
    assert TileType.parse(str(tile.type)) == tile.type
    assert str(tile.type).endswith("0x13f800000, valid=1x3>")
    for dtype, pattern, value in (("s8", 0xFF, -1), ("fp16", 0x3C00, 1), ("u8", 0x1FF, 255), ("s4", 9, 9)):
        narrow = Tile(dtype=dtype, shape=(1, 64), valid=(1, 2), pad=(1 << 32) + pattern)
        memory = np.zeros((1, 1), np.uint8) if dtype == "s4" else np.zeros((1, 2), narrow.storage.dtype)
        tload(narrow, GlobalTensor(memory, dtype=dtype))
        assert float(narrow.array()[0, 2]) == value
    assert TileType.of("fp32", (1, 8), pad=2) == TileType.of("fp32", (1, 8), pad="max")
    with pytest.raises(EncodingError, match=r"neither 0\.\.3 nor"):
        Tile(dtype="fp32", shape=(2, 8), pad=7)
    with pytest.raises(UnknownNameError, match="padding value"):
        Tile(dtype="fp32", shape=(2, 8), pad="edge")


def test_read_only_destinations_are_refused():
    array = np.zeros((1, 32), np.float32)
    array.flags.writeable = False
    fixed, codes, one = Tile(array), Tile(np.zeros((1, 32), np.int8)), Tile.per_row([1.0])
    for call in (
        lambda: tdequant(fixed, codes, one, one),
        lambda: tcvt(fixed, Tile(np.zeros((1, 32), np.float16))),
        lambda: tmov(fixed, Tile(np.zeros((1, 32), np.float32))),
        lambda: tload(fixed, GlobalTensor(np.ones((1, 32), np.float32))),
        lambda: tquant(codes, fixed, multiplier=one, scratch=Tile(dtype="fp32", shape=(1, 32)),
                       semantics=Semantics(chip="2201")),
        lambda: tstore(GlobalTensor(array), Tile(np.ones((1, 32), np.float32))),
    ):  # fmt: skip
        with pytest.raises(ShapeError, match="read-only array"):
            call()
    tquant(codes, fixed, multiplier=one)
    assert not array.any()


def test_valid_shape_set_by_the_load():
    tile = Tile(dtype="fp32", shape=(8, 16), valid=(None, None))
    tload(tile, GlobalTensor(np.ones((2, 3, 5), np.float32)))
    assert tile.valid == (6, 5)


def test_store_adds():
    memory = np.full((2, 8), 2.0, np.float32)
    tstore(GlobalTensor(memory), Tile(np.ones((2, 8), np.float32)), atomic="add")
    assert (memory == 3).all()


@pytest.mark.parametrize(
    ("make", "rule"),
    [
        (lambda: Tile(np.zeros((4, 20), np.int8)), "TILE-02"),
        (lambda: Tile(np.zeros((3, 1), np.float32), layout="DN"), "TILE-02"),
        (lambda: Tile(np.zeros((4, 32), np.int8), valid=(5, 3)), "TILE-01"),
        (lambda: Tile(np.zeros((16, 8), np.float16), layout="NZ"), "TILE-03"),
        (lambda: tload(Tile(dtype="fp32", shape=(2, 8)), GlobalTensor(np.zeros((2, 8), np.int8))), "MEM-01"),
        (lambda: tload(Tile(dtype="fp32", shape=(2, 8)), GlobalTensor(np.zeros((1, 8), np.float32))), "MEM-02"),
        (
            lambda: tload(Tile(dtype="fp32", shape=(8, 8), layout="DN"), GlobalTensor(np.zeros((8, 8), np.float32))),
            "MEM-03",
        ),
        (lambda: tmov(Tile(dtype="fp32", shape=(2, 8)), Tile(dtype="fp32", shape=(2, 16))), "MOV-01"),
    ],
)
def test_rules_are_named(make, rule):
    with pytest.raises(ConstraintError, match=rule) as caught:
        make()
    assert len(str(caught.value).splitlines()) == 1


def test_wrong_arrays():
    with pytest.raises(ShapeError, match="two dimensions"):
        Tile(np.zeros(8, np.float32))
    with pytest.raises(FormatError, match="fp32 tiles hold float32"):
        Tile(np.zeros((1, 8), np.float16), dtype="fp32")
    with pytest.raises(UnknownNameError, match="layout"):
        Tile(np.zeros((1, 8), np.float32), layout="XY")
    with pytest.raises(FormatError, match=r"0\.\.15"):
        Tile(np.full((1, 64), 16, np.uint8), dtype="s4")


@pytest.mark.parametrize("text", ["!pto.tile<f32, 4>", "tile", "!pto.tile<f33, 4, 8>", "!pto.tile<f32, 4, 8, rows=4>"])
def test_bad_type_text(text):
    with pytest.raises(EncodingError):
        TileType.parse(text)


def test_type_text_with_names():
    text = "!pto.tile_buf<loc=vec, dtype=i8, rows=16, cols=64, v_row=4, v_col=?, blayout=row_major, slayout=none_box>"
    kind = TileType.parse(text)
    assert (kind.dtype, kind.shape, kind.valid_rows, kind.valid_cols) == ("s8", (16, 64), 4, None)


def test_move_nd_to_nz_and_back():
    values = np.arange(20 * 32, dtype=np.int32).reshape(20, 32).astype(np.float32)
    source = Tile(values)
    boxed = Tile(dtype="fp32", shape=(20, 32), layout="NZ")
    back = Tile(dtype="fp32", shape=(20, 32))
    tmov(boxed, source)
    tmov(back, boxed)
    assert np.array_equal(back.numpy(), values)
    assert boxed.storage[8 * 20] == values[0, 8]


def test_exponents_to_zz():
    arrays = vectors.load("pto_cpu_tquant_mxfp8_expzz")
    for flat, zz in zip(arrays["exp"], arrays["expzz"], strict=True):
        source = Tile.holding(flat.reshape(32, 4), dtype="u8")
        target = Tile(dtype="u8", shape=(32, 4), layout="ZZ", fractal=32)
        tmov(target, source)
        assert np.array_equal(target.storage, zz)


def test_exponents_grouped_along_rows():
    exponents = np.arange(4 * 32, dtype=np.uint8).reshape(4, 32)
    target = Tile(dtype="u8", shape=(32, 4), layout="ZZ", fractal=32)
    tmov(target, Tile(exponents), axis=0)
    want = [exponents[2 * p + d, 16 * c + q] for c in range(2) for p in range(2) for q in range(16) for d in range(2)]
    assert target.storage.tolist() == want


def test_exponent_order_is_audited():
    source = TileType.of("u8", (16, 32), (16, 2))
    target = TileType.of("u8", (16, 2), layout="ZZ", fractal=32)
    op = TMov(dst=str(target), src=str(source))
    assert from_json(to_json(op)) == op
    report = audit(op, {"src": np.arange(32, dtype=np.uint8).reshape(16, 2)})
    assert report.entries[0].switch == "exponent_zz_order"
    assert report.entries[0].first_index == (1,)
    other = Semantics().override(exponent_zz_order="column-major")
    tile = Tile(dtype="u8", shape=(16, 2), layout="ZZ", fractal=32)
    tmov(tile, Tile.holding(np.arange(32, dtype=np.uint8).reshape(16, 2)), semantics=other)
    assert tile.storage[:3].tolist() == [0, 2, 4]


def test_bfloat16_tile():
    tile = Tile(np.ones((1, 16), ml_dtypes.bfloat16))
    assert tile.type.dtype == "bf16" and tile.numpy().dtype == ml_dtypes.bfloat16


def _three_steps(wait):
    memory = GlobalTensor(np.zeros((8, 8), np.float32), name="memory")
    with Program() as program:
        tile = Tile(dtype="fp32", shape=(8, 8), name="x")
        loaded = tload(tile, memory)
        moved = Tile(dtype="fp32", shape=(8, 8), name="y")
        copied = tmov(moved, tile, *([loaded] if wait else []))
        tstore(memory, moved, *([copied] if wait else []))
    return program


def test_read_before_event_names_both_operations():
    findings = _three_steps(False).findings()
    assert [f.rule for f in findings] == ["EVT-01", "EVT-01"]
    assert "TMOV (step 2, pipe V) reads x, which TLOAD (step 1, pipe MTE2) writes" in findings[0].message
    assert _three_steps(True).findings() == []


def test_overwriting_before_the_reader_is_done():
    memory = GlobalTensor(np.zeros((8, 8), np.float32))
    with Program() as program:
        tile = Tile(dtype="fp32", shape=(8, 8), name="x")
        tstore(memory, tile, tload(tile, memory))
        tload(tile, memory)
    assert [f.rule for f in program.findings()] == ["EVT-02"]


def test_events_are_events():
    with pytest.raises(ConstraintError, match="waits for events"):
        tload(Tile(dtype="fp32", shape=(1, 8)), GlobalTensor(np.zeros((1, 8), np.float32)), "soon")
