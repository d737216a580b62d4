"""Agreement with ml_dtypes, en_dtypes and gfloat where meanings agree; every difference is stated with its count."""

import ml_dtypes
import numpy as np
import pytest

import narrowcast as nc
from tests.contract import castable, low_bits
from tests.oracle import decode_all, expected
from tests.oracle.inputs import every, structured, without_nan

ML_TYPES = {
    "fp16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "e4m3": ml_dtypes.float8_e4m3fn,
    "e5m2": ml_dtypes.float8_e5m2,
    "e8m0": ml_dtypes.float8_e8m0fnu,
    "e2m1": ml_dtypes.float4_e2m1fn,
    "e3m2": ml_dtypes.float6_e3m2fn,
    "e2m3": ml_dtypes.float6_e2m3fn,
}


def cast_by(dtype: object, values: np.ndarray) -> np.ndarray:
    """Return the peer's codes. Its own conversions may raise floating-point flags on NaN and infinity."""
    with np.errstate(all="ignore"):
        out = values.astype(dtype)
    return out.view(f"u{out.itemsize}")


def same_numbers(a: np.ndarray, b: np.ndarray) -> bool:
    a, b = a.astype(np.float32), b.astype(np.float32)
    number = ~np.isnan(a)
    return np.array_equal(number, ~np.isnan(b)) and np.array_equal(a.view(np.uint32)[number], b.view(np.uint32)[number])


@pytest.mark.parametrize("name", ML_TYPES)
def test_ml_dtypes_decode(name: str) -> None:
    bits = nc.formats[name].bits
    codes = np.arange(2**bits, dtype=np.uint16 if bits == 16 else np.uint8)
    with np.errstate(all="ignore"):
        theirs = codes.view(ML_TYPES[name]).astype(np.float32)
    assert same_numbers(nc.decode(codes, name), theirs)


@pytest.mark.parametrize("kind", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("name", ["e4m3", "e5m2", "fp16", "bf16"])
def test_ml_dtypes_encode_rn_not_saturating(name: str, kind: str) -> None:
    """Equal but for the sign of NaN: ml_dtypes keeps it, our NaN is one canonical code."""
    values = every(kind) if kind != "float32" else structured(name, kind)
    ours = nc.encode(values, name, rounding="rn", saturate=False)
    theirs = cast_by(ML_TYPES[name], values)
    both_nan = np.isnan(nc.decode(ours, name)) & np.isnan(nc.decode(theirs, name))
    differ = (ours != theirs) & ~both_nan
    assert np.count_nonzero(differ) == 0
    if name == "e4m3" and kind != "float32":
        # negative overflow and negative NaN are 0xFF there
        assert np.count_nonzero(ours != theirs) == {"float16": 8383, "bfloat16": 15383}[kind]


@pytest.mark.parametrize("kind", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("name", ["e2m1", "e3m2", "e2m3"])
def test_ml_dtypes_encode_rn_saturating(name: str, kind: str) -> None:
    """Equal on numbers. NaN, which these formats lack, is a zero of either sign there and refused here."""
    values = every(kind) if kind != "float32" else structured(name, kind)
    values = without_nan(values)
    assert np.array_equal(nc.encode(values, name, rounding="rn"), cast_by(ML_TYPES[name], values))


@pytest.mark.parametrize(("kind", "slips"), [("float16", 0), ("bfloat16", 31), ("float32", None)])
def test_ml_dtypes_e8m0(kind: str, slips: int | None) -> None:
    """Equal in rn when not saturating (zero, negative, overflow and NaN are 0xFF in both), with one difference:
    between 2**-127 and 1.5 * 2**-127 ml_dtypes goes up to 2**-126, which is not the nearest.
    """
    values = without_nan(every(kind) if kind != "float32" else structured("e8m0", kind))
    ours = nc.encode(values, "e8m0", rounding="rn", saturate=False)
    theirs = cast_by(ML_TYPES["e8m0"], values)
    size = values.astype(np.float64) * 2.0**127
    up = (size > 1) & (size < 1.5)
    assert np.array_equal(ours != theirs, up)
    assert set(ours[up].tolist()) <= {0x00} and set(theirs[up].tolist()) <= {0x01}
    assert slips is None or np.count_nonzero(up) == slips


def test_ml_dtypes_int4() -> None:
    values = np.arange(-8, 8)
    assert np.array_equal(low_bits(nc.encode(values, "s4"), "s4"), values.astype(ml_dtypes.int4).view(np.uint8) & 15)


def test_en_dtypes_hif8() -> None:
    en = pytest.importorskip("en_dtypes")
    codes = np.arange(256, dtype=np.uint8)
    with np.errstate(all="ignore"):
        assert same_numbers(nc.decode(codes, "hif8"), codes.view(en.hifloat8).astype(np.float32))
    for kind in ("float16", "float32"):
        values = every(kind) if kind == "float16" else structured("hif8", kind)
        assert np.array_equal(nc.encode(values, "hif8", saturate=False), cast_by(en.hifloat8, values))


def test_en_dtypes_rounds_float64_to_hif8_twice() -> None:
    en = pytest.importorskip("en_dtypes")
    values = np.array([1.0625 - 2.0**-40, 40960 - 2.0**-20])
    assert nc.encode(values, "hif8", saturate=False).tolist() == [0x08, 0x6E]
    assert cast_by(en.hifloat8, values).tolist() == [0x09, 0x6F]


@pytest.mark.parametrize("name", ["e2m1", "e1m2"])
def test_en_dtypes_fp4(name: str) -> None:
    en = pytest.importorskip("en_dtypes")
    values = without_nan(every("bfloat16"))
    theirs = cast_by(getattr(en, f"float4_{name}"), values.astype(np.float32))  # it has no cast from bfloat16
    assert np.array_equal(nc.encode(values, name), theirs)


@pytest.mark.parametrize("name", ["e4m3", "e5m2"])
def test_gfloat_decode(name: str) -> None:
    pytest.importorskip("gfloat")
    from gfloat import decode_ndarray, formats

    info = {"e4m3": formats.format_info_ocp_e4m3, "e5m2": formats.format_info_ocp_e5m2}[name]
    codes = np.arange(256, dtype=np.uint8)
    assert same_numbers(nc.decode(codes, name), decode_ndarray(info, codes))


@pytest.mark.parametrize("saturate", [False, True])
@pytest.mark.parametrize("mode", ["rn", "rna", "rz", "rd", "ru"])
@pytest.mark.parametrize("name", ["e4m3", "e5m2", "fp16", "bf16", "e2m1", "e3m2", "e2m3"])
def test_gfloat_rounding_inside_the_range(name: str, mode: str, saturate: bool) -> None:
    """gfloat applies IEEE overflow (a directed mode may stop at the largest value): compared up to that value."""
    pytest.importorskip("gfloat")
    from gfloat import RoundMode, formats, round_ndarray

    info = {
        "e4m3": formats.format_info_ocp_e4m3,
        "e5m2": formats.format_info_ocp_e5m2,
        "fp16": formats.format_info_binary16,
        "bf16": formats.format_info_bfloat16,
        "e2m1": formats.format_info_ocp_e2m1,
        "e3m2": formats.format_info_ocp_e3m2,
        "e2m3": formats.format_info_ocp_e2m3,
    }[name]
    modes = {
        "rn": RoundMode.TiesToEven,
        "rna": RoundMode.TiesToAway,
        "rz": RoundMode.TowardZero,
        "rd": RoundMode.TowardNegative,
        "ru": RoundMode.TowardPositive,
    }
    values = castable(structured(name, "float32"), name)[::5]
    values = values[np.abs(values) <= np.float32(nc.formats[name].max)]
    with np.errstate(all="ignore"):
        theirs = round_ndarray(info, values.astype(np.float64), modes[mode])
    assert same_numbers(nc.round_to(values, name, rounding=mode, saturate=saturate), theirs)


def test_oracle_agrees_with_ml_dtypes_alone() -> None:
    """The oracle has peers too, so package and oracle cannot drift together."""
    for name in ("e4m3", "e5m2"):
        values = without_nan(structured(name, "float32"))
        codes = expected(values, name, "rn", saturate=False)
        theirs = cast_by(ML_TYPES[name], values)
        table = decode_all(name)
        assert same_numbers(table[codes], table[theirs])
