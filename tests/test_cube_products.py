"""The Cube: exact S32 sums, every operand pair, accumulation orders against recorded sums, scale layouts, fractals."""

from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

import narrowcast as nc
from narrowcast import cube
from narrowcast.catalog.cube import ROWS
from tests.vectors import load

RNG = np.random.default_rng(11)
FLOATS = ("fp16", "bf16", "fp32", "hif8", "e4m3", "e5m2")
ORDERS = {"fp32-sequential": "seq32", "fp32-k32": "grp32", "fp32-k64": "grp64", "fp64": "f64", "exact": "exact"}
MX = ("e4m3xe4m3", "e4m3xe5m2", "e5m2xe5m2", "e2m1xe2m1", "e2m1xe1m2", "e1m2xe1m2")


def order(name: str) -> nc.Semantics:
    return nc.Semantics().override(cube_accumulation=name)


def int8(*shape: int) -> np.ndarray:
    return RNG.integers(-128, 128, shape).astype(np.int8)


@pytest.mark.parametrize("k", [0, 1, 1023, 1024, 1025, 5000])
def test_s8_is_exact(k: int) -> None:
    a, b = int8(7, k), int8(k, 9)
    assert np.array_equal(cube.mmad(a, b), a.astype(np.int64) @ b.astype(np.int64))


def test_s8_extremes_and_largest_k() -> None:
    k = 131071  # 131071 * 2**14 = 2**31 - 2**14
    low = np.full((1, k), -128, dtype=np.int8)
    assert cube.mmad(low, low.T)[0, 0] == k * 2**14
    assert cube.mmad(low, np.full((k, 1), 127, np.int8))[0, 0] == -k * 128 * 127
    with pytest.raises(nc.FormatError, match=r"K = 131072: 1 sums do not fit S32, first 2147483648 at \[0, 0\]"):
        cube.mmad(np.full((1, k + 1), -128, np.int8), np.full((k + 1, 1), -128, np.int8))
    with pytest.raises(nc.FormatError, match="first 2147483648"):
        cube.mmad(np.int8([[1]]), np.int8([[1]]), bias=np.int32([2**31 - 1]))


def test_s8_bias_and_codes() -> None:
    a, b = int8(3, 40), int8(40, 5)
    bias = RNG.integers(-(2**30), 2**30, 5).astype(np.int32)
    want = a.astype(np.int64) @ b.astype(np.int64) + bias
    assert np.array_equal(cube.mmad(a, b, bias=bias), want)
    assert np.array_equal(cube.mmad(a.view(np.uint8), b.view(np.uint8), bias=bias), want)
    whole = np.tile(bias, (3, 1))
    out = np.empty((3, 5), dtype=np.int32)
    assert cube.mmad(a, b, bias=whole, out=out) is out
    assert np.array_equal(out, want)


@pytest.mark.parametrize("fmt", FLOATS)
def test_float_formats_from_values_and_codes(fmt: str) -> None:
    a = nc.encode(RNG.standard_normal((4, 24)).astype(np.float32), fmt)
    b = nc.encode(RNG.standard_normal((24, 5)).astype(np.float32), fmt)
    exact = nc.decode(a, fmt).astype(np.float64) @ nc.decode(b, fmt).astype(np.float64)
    got = cube.mmad(a, b, fmt)
    assert got.dtype == np.float32
    assert np.allclose(got, exact, rtol=1e-5, atol=1e-5)
    typed = {"fp16": np.float16, "bf16": ml_dtypes.bfloat16, "fp32": np.float32}
    typed |= {"e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2}
    if fmt in typed:
        assert np.array_equal(cube.mmad(a.view(typed[fmt]), b.view(typed[fmt]), fmt), got)


def test_mixed_fp8_and_refused_pairs() -> None:
    a, b = nc.encode(np.ones((2, 8), np.float32), "e4m3"), nc.encode(np.ones((8, 2)), "e5m2")
    assert cube.mmad(a, b, "e4m3", "e5m2").tolist() == [[8, 8], [8, 8]]
    for pair in (("fp16", "bf16"), ("e4m3", "hif8"), ("s8", "fp16"), ("e2m1", "e2m1")):
        with pytest.raises(nc.UnsupportedCastError, match="has no operands"):
            cube.mmad(a, b, *pair)
    with pytest.raises(nc.ConstraintError, match="chip 3510 only"):
        cube.mmad(a, a.T, "e4m3", semantics=nc.Semantics(chip="2201"))


@pytest.mark.parametrize("fmt", FLOATS)
@pytest.mark.parametrize("name", ["fp32-sequential", "fp32-k16", "exact"])
def test_orders_against_fractions(fmt: str, name: str) -> None:
    """Exponents far apart, so that every order gives another sum somewhere."""
    rng = np.random.default_rng(13)
    spread = np.exp2(rng.integers(-6, 7, (3, 40)))
    a = nc.encode(rng.standard_normal((3, 40)) * spread, fmt)
    b = nc.encode(rng.standard_normal((40, 3)) * spread.T, fmt)
    left, right = nc.decode(a, fmt).astype(np.float64), nc.decode(b, fmt).astype(np.float64)
    group = {"fp32-sequential": 1, "fp32-k16": 16, "exact": 40}[name]
    got = cube.mmad(a, b, fmt, semantics=order(name))
    for i in range(3):
        for j in range(3):
            acc = Fraction(0)
            for start in range(0, 40, group):
                for k in range(start, min(start + group, 40)):
                    acc += Fraction(left[i, k]) * Fraction(right[k, j])
                acc = nearest_fp32(acc)
            assert Fraction(float(got[i, j])) == acc


def nearest_fp32(x: Fraction) -> Fraction:
    """Round to 24 significant bits, ties to even; the sums here stay normal."""
    if x == 0:
        return x
    exponent = abs(x).numerator.bit_length() - abs(x).denominator.bit_length()
    while abs(x) < Fraction(2) ** exponent:
        exponent -= 1
    while abs(x) >= Fraction(2) ** (exponent + 1):
        exponent += 1
    unit = Fraction(2) ** (exponent - 23)
    return round(x / unit) * unit


def test_orders_differ_where_they_should() -> None:
    a, b = np.float32([[2.0**24, 1, 1]]), np.float32([[1], [1], [1]])
    sums = {name: cube.mmad(a, b, "fp32", semantics=order(name))[0, 0] for name in cube.ORDERS}
    assert sums["fp32-sequential"] == 2**24
    assert sums["fp32-k16"] == sums["exact"] == sums["fp64"] == 2**24 + 2
    found = nc.audit(cube.Mmad(a_format="fp32", b_format="fp32"), {"a": a, "b": b})
    assert {entry.switch for entry in found.entries} == {"cube_accumulation"}
    assert nc.audit(cube.Mmad(), {"a": np.int8([[1]]), "b": np.int8([[1]])}).clean


@pytest.mark.parametrize("case", MX)
@pytest.mark.parametrize("name", ORDERS)
def test_mx_orders_are_the_recorded_sums(case: str, name: str) -> None:
    data = load("mx_matmul")
    a_format, b_format = case.split("x")
    parts = {key: data[f"{case}_{key}"] for key in ("a", "b", "sa", "sb")}
    got = cube.mmad_mx(
        parts["a"], parts["b"], a_scale=parts["sa"], b_scale=parts["sb"], a_format=a_format, b_format=b_format,
        semantics=order(name),
    )  # fmt: skip
    assert np.array_equal(got.view(np.uint32), data[f"{case}_{ORDERS[name]}"].view(np.uint32))


def test_mx_bias_starts_the_sum() -> None:
    q = nc.mx.quantize(np.ones((2, 64), np.float32), "e2m1")
    w = nc.mx.quantize(np.ones((64, 2), np.float32), "e2m1", axis=0)
    assert cube.mmad_mx(q, w, bias=np.float16([0.5, -64.0])).tolist() == [[64.5, 0.0]] * 2


def test_scale_layouts() -> None:
    """The same product from scales in every layout, and the layouts are the recorded orders."""
    data = load("mx_matmul")
    sa, sb = data["lay_sa"], data["lay_sb"]
    recorded = {
        ("a", "scale-zz"): "lay_sa_zz", ("a", "scale-a-nd"): "lay_sa_nd_gm", ("a", "scale-a-dn"): "lay_sa_dn_gm",
        ("b", "scale-nn"): "lay_sb_nn", ("b", "scale-nn-k-outer"): "lay_sb_nn_k1outer",
        ("b", "scale-b-nd"): "lay_sb_nd_gm", ("b", "scale-transposed"): "lay_sb_dn_gm",
    }  # fmt: skip
    a = RNG.integers(0, 0x78, (32, 256)).astype(np.uint8)
    b = RNG.integers(0, 0x78, (256, 32)).astype(np.uint8)
    codes = {"a": sa.astype(np.uint8) % 7 + 124, "b": sb.astype(np.uint8) % 7 + 124}
    plain = cube.mmad_mx(a, b, a_scale=codes["a"], b_scale=codes["b"])
    for (side, name), key in recorded.items():
        assert np.array_equal(nc.layout.pack(sa if side == "a" else sb, name).ravel(), data[key].ravel())
        stored = {**codes, side: nc.layout.pack(codes[side], name)}
        got = cube.mmad_mx(
            a, b, a_scale=stored["a"], b_scale=stored["b"], **{f"{side}_scale_layout": name},
        )  # fmt: skip
        assert np.array_equal(got, plain)


def test_mx_refusals() -> None:
    q8, w8 = (
        nc.mx.quantize(np.ones((2, 64), np.float32), "e4m3"),
        nc.mx.quantize(np.ones((64, 2), np.float32), "e4m3", axis=0),
    )
    w4 = nc.mx.quantize(np.ones((64, 2), np.float32), "e2m1", axis=0)
    with pytest.raises(nc.UnsupportedCastError, match="no operands e4m3 x e2m1"):
        cube.mmad_mx(q8, w4)
    with pytest.raises(nc.FormatError, match="MmadMx needs e8m0 over"):
        cube.mmad_mx(q8, q8)
    with pytest.raises(nc.FormatError, match="a has no scales"):
        cube.mmad_mx(q8.codes, w8)
    short = (
        nc.mx.quantize(np.ones((2, 96), np.float32), "e4m3"),
        nc.mx.quantize(np.ones((96, 2), np.float32), "e4m3", axis=0),
    )
    with pytest.raises(nc.ShapeError, match="K = 96 is not a multiple of 64"):
        cube.mmad_mx(*short)
    with pytest.raises(nc.ShapeError, match="one scale per 32"):
        cube.mmad_mx(q8.codes, w8, a_scale=np.zeros((2, 3), np.uint8))


def test_fractals_out_and_in() -> None:
    a, b = int8(19, 70), int8(70, 33)
    plain, nz = cube.mmad(a, b), cube.mmad(a, b, acc_layout="NZ")
    assert nz.shape == (3, 2, 16, 16)
    assert np.array_equal(nc.layout.unpack(nz, "l0c", (19, 33)), plain)
    assert np.array_equal(nc.fixpipe.to_fractal(plain), nz.ravel())
    # A second product starts from the accumulators the first one left.
    again = cube.mmad(a, b, bias=nz, acc_layout="NZ")
    assert np.array_equal(nc.layout.unpack(again, "l0c", (19, 33)), 2 * plain)
    one = nc.fixpipe.run(plain, "REQ8", 0.01)
    two = nc.fixpipe.run(nz, "REQ8", 0.01, acc_layout="NZ", m=19, n=33)
    assert np.array_equal(one.codes, two.codes)


def test_bad_operands() -> None:
    a = int8(2, 3)
    with pytest.raises(nc.ShapeError, match="inner sizes differ"):
        cube.mmad(a, a)
    with pytest.raises(nc.FormatError, match=r"a is float64; s8 operands are int8 values or uint8 codes"):
        cube.mmad(np.ones((2, 3)), a.T)
    with pytest.raises(nc.FormatError, match="an s32 accumulator starts from int32"):
        cube.mmad(a, a.T, bias=np.float32([1, 2]))
    with pytest.raises(nc.ShapeError, match=r"expected \(2,\) or \(2, 2\)"):
        cube.mmad(a, a.T, bias=np.int32([1, 2, 3]))
    with pytest.raises(nc.ShapeError, match="a matrix has 2"):
        cube.mmad(a[0], a.T)
    with pytest.raises(nc.ShapeError, match="out must be"):
        cube.mmad(a, a.T, out=np.empty((2, 2), np.float32))
    with pytest.raises(nc.UnknownNameError):
        cube.mmad(a, a.T, acc_layout="ZN")


def test_json_round_trip() -> None:
    for op in (
        cube.Mmad(a_format="e4m3", b_format="e5m2", acc_layout="NZ"),
        cube.MmadMx(a_format="e2m1", b_format="e1m2", a_scale_layout="scale-zz"),
    ):
        assert nc.from_json(nc.to_json(op)) == op


def test_rows_have_sources_and_examples() -> None:
    for row in ROWS:
        assert row.source
        assert all(nc.formats[name] for name in row.formats)
