"""The block-scaling functions: axes, padding, records, disputed points, errors."""

import json

import ml_dtypes
import numpy as np
import pytest

import narrowcast as nc
from narrowcast.operation import audit, execute, from_json, to_json

RNG = np.random.default_rng(11)
ELEMENTS = nc.mx.element_formats()


def test_documented_vector() -> None:
    x = np.array([0, 8, 64, 512], dtype=ml_dtypes.bfloat16)
    q = nc.mx.quantize(x, "e4m3", rule="cann-0")
    assert q.codes.tolist() == [0, 72, 96, 120]
    assert nc.layout.pack(q.scale[None], "scale-device").ravel().tolist() == [128, 0]
    assert nc.mx.dequantize(q).tolist() == [0, 8, 64, 512]


def test_worked_example() -> None:
    x = np.array([7, -1.75, 7, -7, 0.7, -0.7, 5.25, 2.1], dtype=ml_dtypes.bfloat16)
    expected = {
        ("e4m3", "cann-0"): (121, [126, 238, 126, 254, 99, 227, 122, 112]),
        ("e4m3", "cann-1"): (121, [126, 238, 126, 254, 99, 227, 122, 112]),
        ("e2m1", "cann-0"): (127, [7, 12, 7, 15, 1, 9, 7, 4]),
        ("e2m1", "cann-2"): (128, [6, 10, 6, 14, 1, 9, 5, 2]),
        ("e2m1", "cann-2:dst_type_max=7"): (127, [7, 12, 7, 15, 1, 9, 7, 4]),
        ("e1m2", "cann-0"): (129, [7, 10, 7, 15, 1, 9, 5, 2]),
    }
    for (fmt, rule), (byte, codes) in expected.items():
        q = nc.mx.quantize(x, fmt, rule)
        assert (q.scale.tolist(), q.codes.tolist()) == ([byte], codes), (fmt, rule)


@pytest.mark.parametrize("fmt", ELEMENTS)
@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_axes_agree_with_moving_the_axis(fmt: str, axis: int) -> None:
    x = RNG.standard_normal((40, 33, 65)).astype(np.float32)
    q = nc.mx.quantize(x, fmt, "ceil", axis=axis)
    moved = nc.mx.quantize(np.ascontiguousarray(np.moveaxis(x, axis, -1)), fmt, "ceil")
    assert np.array_equal(np.moveaxis(q.codes, axis, -1), moved.codes)
    assert np.array_equal(np.moveaxis(q.scale, axis, -1), moved.scale)
    np.testing.assert_array_equal(np.moveaxis(nc.mx.dequantize(q), axis, -1), nc.mx.dequantize(moved))
    assert q.record.padded == -x.shape[axis] % 32


def test_strides_byte_order_and_read_only_input() -> None:
    x = RNG.standard_normal((6, 128)).astype(np.float32)
    want = nc.mx.quantize(x, "e2m1")
    odd = np.zeros((6, 256), dtype=np.float32)
    odd[:, ::2] = x
    frozen = x.copy()
    frozen.flags.writeable = False
    for same in (odd[:, ::2], x.astype(">f4"), frozen, np.asfortranarray(x)):
        got = nc.mx.quantize(same, "e2m1")
        assert np.array_equal(got.codes, want.codes) and np.array_equal(got.scale, want.scale)


@pytest.mark.parametrize("shape", [(0,), (0, 32), (3, 0), (32,), (1, 31), (2, 5, 64)])
def test_small_and_empty_shapes(shape: tuple[int, ...]) -> None:
    q = nc.mx.quantize(np.ones(shape, dtype=np.float32), "e4m3")
    assert q.codes.shape == shape
    assert q.scale.shape == (*shape[:-1], -(-shape[-1] // 32))
    assert (nc.mx.dequantize(q) == 1).all()


def test_large_array_is_cut_into_pieces() -> None:
    x = RNG.standard_normal((2, 700, 1000)).astype(np.float16)
    q = nc.mx.quantize(x, "e4m3", "cann-0", axis=1)
    row = nc.mx.quantize(x[1, :, 77], "e4m3", "cann-0")
    assert np.array_equal(q.codes[1, :, 77], row.codes)
    assert np.array_equal(q.scale[1, :, 77], row.scale)


@pytest.mark.parametrize("block", [32, 64, 256, 1024])
def test_block_sizes(block: int) -> None:
    x = RNG.standard_normal((3, 1100)).astype(np.float16)
    q = nc.mx.quantize(x, "e4m3", "cann-0", block=block)
    assert q.scale.shape == (3, -(-1100 // block))
    assert q.blocks.shape == (block,)
    largest = np.abs(x[:, :block].astype(np.float64)).max(axis=1)
    assert np.array_equal(q.scale[:, 0], np.floor(np.log2(largest)).astype(int) - 8 + 127)


@pytest.mark.parametrize("fmt", ELEMENTS)
@pytest.mark.parametrize("rule", ["ocp-floor", "ceil"])
def test_dequantized_values_are_within_half_a_step(fmt: str, rule: str) -> None:
    x = RNG.standard_normal((64, 96)).astype(np.float32)
    q = nc.mx.quantize(x, fmt, rule)
    scale = np.repeat(np.ldexp(1.0, q.scale.astype(int) - 127), 32, axis=1)
    largest = nc.formats[fmt].max / (64 if fmt == "s8" else 1) * scale
    lowest = nc.formats["s8"].min / 64 * scale if fmt == "s8" else -largest  # two's complement reaches -2
    clipped = np.clip(x.astype(np.float64), lowest, largest)
    error = np.abs(nc.mx.dequantize(q) - clipped)
    if fmt == "s8":
        limit = scale / 128
    else:
        row = nc.formats[fmt]
        exponent = np.maximum(np.floor(np.log2(np.abs(clipped) / scale + 1e-300)), np.log2(row.min_normal))
        limit = scale * np.exp2(exponent - row.fraction_bits) / 2
    assert (error <= limit).all()
    if rule == "ceil":
        assert (np.abs(x) <= largest).all()


def test_mxint8_elements_count_sixty_fourths() -> None:
    q = nc.mx.quantize(np.float32([1.5, -0.5]), "s8", "ocp-floor")
    assert q.scale.tolist() == [127]  # OCP MX v1.0: the element is code / 64, emax 0
    assert q.codes.view(np.int8).tolist() == [96, -32]
    assert nc.mx.dequantize(q).tolist() == [1.5, -0.5]


def test_record_says_what_was_done() -> None:
    x = np.ones((2, 40), dtype=ml_dtypes.bfloat16)
    q = nc.mx.quantize(x, "float4_e2m1fn", "cann-2", rounding="CAST_ROUND", dst_type_max=7)
    assert q.record.rule == "cann-2:dst_type_max=7"
    assert (q.record.rounding, q.record.saturate, q.record.padded) == ("rna", True, 24)
    assert "cann-2:dst_type_max=7, rounding rna" in repr(q)
    assert q.record.semantics == {"authority": "device", "chip": "3510", "overrides": {}}


def test_saved_and_loaded(tmp_path: object) -> None:
    q = nc.mx.quantize(RNG.standard_normal((4, 50)).astype(np.float32), "e2m1", "mse2")
    q.save(tmp_path / "q.safetensors")
    back = nc.QTensor.load(tmp_path / "q.safetensors")
    assert back.record == q.record
    np.testing.assert_array_equal(nc.mx.dequantize(back), nc.mx.dequantize(q))


@pytest.mark.parametrize("fmt", ["e4m3", "e5m2", "e2m1"])
def test_saturate_off(fmt: str) -> None:
    x = np.float32([511.0 if fmt == "e4m3" else 65535.0 if fmt == "e5m2" else 7.9, 1.0])
    q = nc.mx.quantize(x, fmt, "ocp-floor", saturate=False)
    assert q.codes[0] == {"e4m3": 0x7F, "e5m2": 0x7C, "e2m1": 0x7}[fmt]
    assert nc.mx.quantize(x, fmt, "ocp-floor").codes[0] == nc.formats[fmt].max_code


def test_nan_blocks_dequantize_to_nan_with_a_finding() -> None:
    x = np.ones((2, 64), dtype=np.float32)
    x[1, 40] = np.inf
    q = nc.mx.quantize(x, "e4m3")
    assert q.scale.tolist() == [[119, 119], [119, 255]]
    with pytest.warns(RuntimeWarning, match=r"MX-02 scale\[1, 1\]: 1 of 4 blocks have scale byte 255"):
        real = nc.mx.dequantize(q)
    assert np.isnan(real[1, 32:]).all() and (real[0] == 1).all()
    with pytest.raises(nc.ConstraintError, match="scale byte 255") as caught:
        nc.mx.dequantize(q, strict=True)
    assert caught.value.findings[0].evidence == {"blocks": 1, "of": 4, "first": [1, 1]}
    assert not list(nc.mx.findings(nc.mx.quantize(x[0], "e4m3")))


def test_control_bit_keeps_nan_elements() -> None:
    x = np.float32([np.nan, 1.0])
    assert nc.mx.quantize(x, "e4m3", "cann-0").codes.tolist() == [0, 0]
    kept = nc.mx.quantize(x, "e4m3", "cann-0", control=nc.Control(ctrl50=1))
    assert kept.codes.tolist() == [0x7F, 0x7F]
    assert nc.mx.quantize(x, "e4m3", "pto-ocp", semantics=nc.Semantics("pto-isa")).codes.tolist() == [0x7F, 0x7F]
    assert nc.mx.quantize(x, "e4m3", "ocp-floor").codes.tolist() == [0x7F, 0x7F]


DISPUTES = [  # switch, format, rule, input, rounding
    ("mx_tiny_block", "e4m3", "cann-0", [1.5 * 2.0**-119], "rn"),
    ("mx_tiny_block", "e2m1", "cann-2", [1.5 * 2.0**-126, 0.0], "rn"),
    ("mx_zero_low_bound", "e4m3", "cann-1:max_low_bound=0.5", [0.0], "rn"),
    ("mx_infinite_block", "e4m3", "pto-ocp", [np.inf, 1.0], "rn"),
    ("mx_nan_maximum", "e4m3", "pto-nv", [np.nan, 1.0], "rn"),
    ("mx_zero_sign", "e4m3", "pto-ocp", [-0.0, 1.0], "rn"),
    ("mx_fp8_nan", "e4m3", "pto-ocp", [np.nan, 1.0], "rn"),
    ("mx_fp4_nan", "e2m1", "cann-0", [np.nan, 1.0], "rn"),
    ("mx_subnormal_product", "e2m1", "cann-0", [2.0**20, -(2.0**-110)], "rd"),
]


@pytest.mark.parametrize(("switch", "fmt", "rule", "x", "rounding"), DISPUTES)
def test_each_switch_changes_its_example(switch: str, fmt: str, rule: str, x: list[float], rounding: str) -> None:
    op = nc.mx.MxQuant(format=fmt, rule=rule, rounding=rounding)
    assert switch in op.switches
    found = audit(op, np.float32(x))
    assert switch in [entry.switch for entry in found.entries], str(found)


def test_harmless_data_has_no_open_question() -> None:
    x = RNG.standard_normal((8, 64)).astype(np.float32)
    for rule in ("cann-0", "cann-1", "pto-ocp", "pto-nv"):
        assert audit(nc.mx.MxQuant(format="e4m3", rule=rule), x).clean


@pytest.mark.parametrize("rule", list(nc.mx.scale_rules))
def test_operation_round_trips_through_json(rule: str) -> None:
    for fmt in nc.mx.scale_rules[rule].formats:
        op = nc.mx.MxQuant(format=fmt, rule=rule, axis=0, block=32)
        again = from_json(json.loads(json.dumps(to_json(op))))
        assert again == op
        dtype = ml_dtypes.bfloat16
        x = RNG.standard_normal((40, 4)).astype(dtype)
        assert np.array_equal(execute(op, x).codes, execute(again, x).codes)


def test_out_is_filled_and_kept() -> None:
    x = RNG.standard_normal((4, 70)).astype(np.float32)
    for axis in (0, 1):
        want = nc.mx.quantize(x, "e2m1", "ceil", axis=axis)
        out = np.empty_like(want.codes), np.empty_like(want.scale)
        got = nc.mx.quantize(x, "e2m1", "ceil", axis=axis, out=out)
        assert got.codes is out[0] and got.scale is out[1]
        assert np.array_equal(out[0], want.codes) and np.array_equal(out[1], want.scale)
    with pytest.raises(nc.ShapeError, match=r"out must be a uint8 array of shape \(4, 3\)"):
        nc.mx.quantize(x, "e2m1", out=(np.empty((4, 70), dtype=np.uint8), np.empty((4, 2), dtype=np.uint8)))


F32 = np.ones((2, 100), dtype=np.float32)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: nc.mx.quantize(F32, "e4m3", pad=False), nc.ShapeError, "axis 1 has 100 .* of 32 leave 4"),
        (lambda: nc.mx.quantize(F32, "e4m3", "ocp-flor"), nc.UnknownNameError, "Did you mean ocp-floor"),
        (lambda: nc.mx.quantize(F32, "e5m2", "cann-2"), nc.UnsupportedCastError, "cann-2 does not apply to e5m2"),
        (lambda: nc.mx.quantize(F32, "hif8"), nc.UnsupportedCastError, "ocp-floor does not apply to hif8"),
        (lambda: nc.mx.quantize(F32, "e4m3", block=48), nc.ShapeError, "block 48: an MX .* multiple of 32"),
        (lambda: nc.mx.quantize(F32, "e4m3", block=0), nc.ShapeError, "block 0"),
        (lambda: nc.mx.quantize(F32, "e4m3", axis=2), nc.ShapeError, "axis 2 is outside an array of 2 axes"),
        (lambda: nc.mx.quantize(np.float32(1), "e4m3"), nc.ShapeError, "axis -1 is outside an array of 0 axes"),
        (lambda: nc.mx.quantize(F32, "e4m3", "cann-0", rounding="rna"), nc.UnsupportedCastError, "with rn, not rna"),
        (lambda: nc.mx.quantize(F32, "e4m3", "cann-0", saturate=False), nc.UnsupportedCastError, "saturates its"),
        (lambda: nc.mx.quantize(F32, "e4m3", "cann-0", block=64), nc.ConstraintError, "fp32 values in blocks of 32"),
        (lambda: nc.mx.quantize(F32, "e4m3", "pto-ocp", block=64), nc.ConstraintError, "MX-01 .* block 64 is larger"),
        (lambda: nc.mx.quantize(F32[:, :33], "e2m1", "cann-0"), nc.ConstraintError, "axis 1 has 33 .* an even number"),
        (
            lambda: nc.mx.quantize(F32, "e4m3", "cann-0", semantics=nc.Semantics(chip="2201")),
            nc.ConstraintError,
            "MX-03 MxQuant: chip 2201 has no e4m3",
        ),
        (lambda: nc.mx.quantize(F32, "e2m1", "pto-ocp"), nc.UnsupportedCastError, "takes fp16 or bf16 .* got fp32"),
        (lambda: nc.mx.quantize(F32, "e2m1", "msmodelslim-bf16"), nc.UnsupportedCastError, "takes bf16 for e2m1"),
        (lambda: nc.mx.quantize(F32.astype(int), "e2m1"), nc.FormatError, "takes fp32, fp16 or bf16 values; got int64"),
        (lambda: nc.mx.quantize(F32, "e2m1", "cann-2", dst_type_max=5), nc.ConstraintError, "legal: 6..12 or 0"),
        (lambda: nc.mx.quantize(F32, "e2m1", "cann-2", dst_max=7), nc.UnknownNameError, "Did you mean dst_type_max"),
        (lambda: nc.mx.quantize(F32, "e2m1", "cann-2:dst_type_max"), nc.EncodingError, "no parameter=number"),
        (lambda: nc.mx.quantize(F32, "e2m1", "ceil:c=7"), nc.UnknownNameError, "parameter of scale rule ceil 'c'"),
        (lambda: nc.mx.dequantize(nc.quantize(F32, "s8")), nc.FormatError, "has e8m0 scales; these are fp32"),
        (lambda: nc.mx.shared_scales(F32, "e4m3", "mse2"), nc.UnsupportedCastError, "mse2"),
    ],
)
def test_errors(call: object, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()
