"""Programs executed on arrays."""

import numpy as np
import pytest

from narrowcast.errors import ConstraintError, EncodingError, NarrowcastError, ShapeError
from narrowcast.isa import parse, run
from narrowcast.operation import Semantics


def dequantize(dtype, valid="63x63"):
    code, parameter = f"!pto.tile<{dtype}, 128, 128, valid={valid}>", "!pto.tile<f32, 64, 1, ColMajor, valid=63x1>"
    values = f"!pto.tile<f32, 128, 128, valid={valid}>"
    return f"""
%a = pto.tload %s : !pto.partition_tensor_view<128x128x{dtype}> -> {code}
%b = pto.tload %sc : !pto.partition_tensor_view<63x1xf32> -> {parameter}
%c = pto.tload %of : !pto.partition_tensor_view<63x1xf32> -> {parameter}
%v = pto.tdequant %a, %b, %c : ({code}, {parameter}, {parameter}) -> {values}
pto.tstore %v, %d : ({values}, !pto.partition_tensor_view<128x128xf32>) -> ()
"""


@pytest.mark.parametrize(("dtype", "native"), [("i8", np.int8), ("i16", np.int16)])
def test_valid_corner_of_a_larger_tile(dtype, native):
    rng = np.random.default_rng(1)
    info = np.iinfo(native)
    arrays = {
        "s": rng.integers(info.min, info.max + 1, (128, 128)).astype(native),
        "sc": rng.uniform(1e-3, 1, 63).astype(np.float32),
        "of": rng.uniform(-9, 9, 63).astype(np.float32),
        "d": np.full((128, 128), 7.0, np.float32),
    }
    before = {name: value.copy() for name, value in arrays.items()}
    got = run(parse(dequantize(dtype)), arrays).arrays["d"]
    want = (arrays["s"][:63, :63].astype(np.float32) - arrays["of"][:, None]) * arrays["sc"][:, None]
    assert np.array_equal(got[:63, :63], want)
    assert (got[63:] == 7).all() and (got[:, 63:] == 7).all()
    assert all(np.array_equal(arrays[name], before[name]) for name in arrays)
    fresh = run(parse(dequantize(dtype)), {k: v for k, v in arrays.items() if k != "d"}).arrays["d"]
    assert not fresh[63:].any()


def test_there_and_back():
    text = """
%x = pto.tload %x : !pto.partition_tensor_view<16x64xf32> -> !pto.tile<f32, 16, 64>
%p = pto.tload %scale : !pto.partition_tensor_view<16x1xf32> -> !pto.tile<f32, 16, 1, ColMajor>
%z = pto.tload %zero : !pto.partition_tensor_view<16x1xf32> -> !pto.tile<f32, 16, 1, ColMajor>
pto.tquant ins(%x, %p {parameter = scale} : !pto.tile_buf<f32, 16, 64>, !pto.tile_buf<f32, 16, 1, ColMajor>)
  outs(%q : !pto.tile_buf<i8, 16, 64>)
tdequant %y, %q, %p, %z : !pto.tile<f32, 16, 64>
%h = pto.tcvt %y {rmode = #pto<round_mode CAST_RINT>} : !pto.tile<f32, 16, 64> -> !pto.tile<f16, 16, 64>
%n = pto.tmov %h : !pto.tile<f16, 16, 64> -> !pto.tile<f16, 16, 64, ColMajor, RowMajor>
%m = pto.tmov %n : !pto.tile<f16, 16, 64, ColMajor, RowMajor> -> !pto.tile<f16, 16, 64>
pto.tstore %m, %out : (!pto.tile<f16, 16, 64>, !pto.partition_tensor_view<16x64xf16>) -> ()
"""
    rng = np.random.default_rng(2)
    x = rng.normal(size=(16, 64)).astype(np.float32)
    scale = (np.abs(x).max(axis=1) / 127).astype(np.float32)
    zero = np.zeros(16, np.float32)
    for chip in ("3510", "2201"):
        result = run(parse(text), {"x": x, "scale": scale, "zero": zero}, Semantics(chip=chip))
        want = (np.rint(x / scale[:, None]) * scale[:, None]).astype(np.float16)
        assert np.array_equal(result.arrays["out"], want)
        assert result.tiles["q"].numpy().min() >= -127
        assert not result.findings


LOAD = "%a = pto.tload %s : !pto.partition_tensor_view<4x32xi8> -> !pto.tile<i8, 4, 32>\n"
CODES = {"s": np.ones((4, 32), np.int8)}


@pytest.mark.parametrize(
    ("text", "arrays", "says"),
    [
        (LOAD, {}, "line 1, column 16: tload: %s has no array (given: none). Pass --in s=FILE."),
        (
            LOAD + "%b = pto.tmov %c : !pto.tile<i8, 4, 32> -> !pto.tile<i8, 4, 32>",
            CODES,
            "line 2, column 15: tmov: %c is not defined",
        ),
        (LOAD + LOAD, CODES, "line 2, column 1: tload: %a is defined already"),
        (LOAD, {"s": np.ones((4, 31), np.int8)}, "%s has shape (4, 31)"),
        (LOAD, {"s": np.ones((4, 32), np.float32)}, "%s holds float32"),
        (LOAD.replace("i8", "u8"), {"s": np.ones((4, 32), np.int8)}, "%s holds int8, and its type here says u8"),
        (LOAD.replace("i8", "f32"), {"s": np.ones((4, 32), np.int32)}, "%s holds int32, and its type here says fp32"),
        (LOAD, {**CODES, "t": np.ones(1)}, "no memory t (it has: s)"),
        (
            LOAD + "%b = pto.tmov %a : !pto.tile<i16, 4, 32> -> !pto.tile<i8, 4, 32>",
            CODES,
            "%a is s8 4x32 ND, and its type here is s16 4x32 ND",
        ),
        (
            LOAD + "%b = pto.tcvt %a : !pto.tile<i8, 4, 32> -> !pto.tile<e4m3, 4, 32>",
            CODES,
            "line 2, column 1: s8 -> e4m3 is no TCVT",
        ),
        (
            LOAD + "%b = pto.tcvt %a {rmode = up} : !pto.tile<i8, 4, 32> -> !pto.tile<f16, 4, 32>",
            CODES,
            "line 2, column 1",
        ),
        (LOAD + "tstore %a, %d", CODES, "%d needs a memory type with fixed sizes"),
        (
            "%a = pto.tload %s : !pto.memref<i8, 4, 30> -> !pto.tile<i8, 4, 30>",
            {"s": np.ones((4, 30), np.int8)},
            "line 1, column 1: %a violates 1 rule: TILE-02 %a: a row of 30 s8 elements",
        ),
        (
            LOAD + "%b = pto.tmov %a : !pto.tile<i8, 4, 32> -> !pto.tile<i8, 4, 64>",
            CODES,
            "line 2, column 1: TMov violates 1 rule: MOV-01",
        ),
    ],
)
def test_bad_programs_name_the_place(text, arrays, says):
    with pytest.raises(NarrowcastError) as caught:
        run(parse(text), arrays)
    assert says in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1
    assert isinstance(caught.value, EncodingError | ConstraintError | ShapeError | NarrowcastError)


def test_byte_order_and_codes():
    text = (
        "%a = pto.tload %x : !pto.memref<f32, 1, 8> -> !pto.tile<f32, 1, 8>\n"
        "pto.tstore %a, %y : (!pto.tile<f32, 1, 8>, !pto.memref<f32, 1, 8>) -> ()\n"
    )
    values = np.arange(8, dtype=np.float32)[None]
    for same in (values, values.astype(">f4"), values.view(np.uint32), values.view("V4")):
        assert np.array_equal(run(parse(text), {"x": same}).arrays["y"], values)
    swapped = np.zeros((1, 8), ">f4")
    assert np.array_equal(run(parse(text), {"x": values, "y": swapped}).arrays["y"], values)


def test_packed_memory():
    text = """
%a = pto.tload %w : !pto.partition_tensor_view<2x64xe2m1> -> !pto.tile<e2m1, 2, 64>
%b = pto.tcvt %a : !pto.tile<e2m1, 2, 64> -> !pto.tile<bf16, 2, 64>
pto.tstore %a, %copy : (!pto.tile<e2m1, 2, 64>, !pto.partition_tensor_view<2x64xe2m1>) -> ()
pto.tstore %b, %values : (!pto.tile<bf16, 2, 64>, !pto.partition_tensor_view<2x64xbf16>) -> ()
"""
    packed = np.arange(64, dtype=np.uint8).reshape(2, 32)
    result = run(parse(text), {"w": packed}).arrays
    assert np.array_equal(result["copy"], packed)
    assert result["values"][0, 2:6].astype(np.float32).tolist() == [0.5, 0.0, 1.0, 0.0]
