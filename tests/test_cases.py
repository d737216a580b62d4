"""Cases collected from reports of wrong casts elsewhere, by number; each states the policy it runs under.

Where the reports used a name of a device mode: rint is `rn`, round is `rna`, ceil `ru`, floor `rd`, trunc `rz`.
"""

import io
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import narrowcast as nc
from narrowcast import errors
from tests.contract import low_bits

# Cases that need operations built later, and which.
LATER = {
    "C002": "matmul: the accumulator is the initial value",
    "C006": "tile: bounds of packed FP4 tiles in logical elements",
    "C011": "mx: scale rounded up never saturates the block maximum",
    "C013": "mx: floor rule of MXFP4",
    "C014": "mx: two named scale rules",
    "C029": "mx: round the scale first, then divide by the rounded scale",
    "C030": "mx: the block maximum is not taken through bf16",
    "C035": "requantization of a sum in exact arithmetic",
    "C044": "checkpoint: pack order must match the metadata",
    "C046": "checkpoint: group size that does not divide K is refused before any work",
    "C051": "checkpoint: description keys of every shard",
    "C052": "checkpoint: dtype of deq_scale",
    "C063": "mx: msmodelslim's shared exponent",
    "C069": "fixpipe: range of the offset field",
}


def codes(values: object, name: str, rounding: str, **policy: object) -> list[int]:
    return nc.encode(np.asarray(values, np.float32), name, rounding=rounding, **policy).tolist()  # type: ignore[arg-type]


def integers(
    values: object, name: str, rounding: str = "rn", *, dtype: type = np.float32, **policy: object
) -> list[int]:
    out = nc.encode(np.asarray(values, dtype), name, rounding=rounding, **policy)  # type: ignore[arg-type]
    return out.view({"s": f"i{out.itemsize}", "u": f"u{out.itemsize}"}[name[0]]).tolist()


def values_of(values: object, name: str, rounding: str, **policy: object) -> list[float]:
    return nc.round_to(np.asarray(values, np.float32), name, rounding=rounding, **policy).tolist()  # type: ignore[arg-type]


def test_every_case_is_here_or_named_as_later() -> None:
    written = {name[5:9].upper() for name in globals() if name.startswith("test_c0")}
    assert not written & set(LATER)
    assert len(written) + len(LATER) == 47


def test_c001_rint_rounds_to_nearest_even() -> None:
    """e4m3 rn, saturating."""
    x = [1.0625, 1.1875, 1.1, 0.3, -1.1, 17.0, 19.0, 240.0, 448.0]
    assert codes(x, "e4m3", "rn") == [56, 58, 57, 42, 185, 88, 90, 119, 126]
    assert values_of(x, "e4m3", "rn") == [1.0, 1.25, 1.125, 0.3125, -1.125, 16.0, 20.0, 240.0, 448.0]


def test_c003_a_documented_division_divides() -> None:
    """s8 per tensor, absmax scale with denominator 127, rn: the element is exactly on a tie and goes to even."""
    x = np.float32([7.628477573394775, -7.538377285003662])
    q = nc.quantize(x, "s8")
    assert q.codes.view(np.int8).tolist() == [127, -126]
    assert np.float32(127) / x[0] == np.float32(16.64814567565918)


def test_c005_integer_narrowing_saturates_at_the_targets_own_limits() -> None:
    """s16 -> s8 and u8, saturating."""
    x = [-39, 300, -300, 127, -128]
    assert integers(x, "s8", dtype=np.int16) == [-39, 127, -128, 127, -128]
    assert integers(x, "u8", dtype=np.int16) == [0, 255, 0, 127, 0]


def test_c007_codes_one_step_off_differ_in_every_element() -> None:
    """Codes are compared one by one: an error norm below a gate says nothing about them."""
    golden = nc.encode(np.ones(8, np.float32), "e4m3")
    actual = nc.encode(np.full(8, 1.125, np.float32), "e4m3")
    assert np.mean(golden != actual) == 1.0
    assert np.mean((nc.decode(golden, "e4m3") - nc.decode(actual, "e4m3")) ** 2) == 0.015625


def test_c008_both_overflow_conventions_by_name() -> None:
    """e4m3 rn: saturate=False gives NaN above the boundary (464 ties down to 448), saturate=True the maximum."""
    x = [448.0, 449.0, 464.0, 465.0, 1000.0, -1000.0]
    keep = np.array(values_of(x, "e4m3", "rn", saturate=False))
    assert keep[:3].tolist() == [448.0] * 3
    assert np.isnan(keep[3:]).all()
    assert values_of(x, "e4m3", "rn", saturate=True) == [448.0] * 5 + [-448.0]


def test_c010_e8m0_rounding_is_an_option() -> None:
    """e8m0: rn (ties to the larger), rd and ru."""
    x = [1.0, 1.4, 1.5, 1.75, 2.0, 3.0]
    assert codes(x, "e8m0", "rn") == [127, 127, 128, 128, 128, 129]
    assert codes(x, "e8m0", "rd") == [127, 127, 127, 127, 128, 128]
    assert codes(x, "e8m0", "ru") == [127, 128, 128, 128, 128, 129]


def test_c016_fp4_ties() -> None:
    """e2m1: rn and rna differ on four of the seven midpoints."""
    x = [0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0]
    assert values_of(x, "e2m1", "rn") == [0.0, 1.0, 1.0, 2.0, 2.0, 4.0, 4.0]
    assert values_of(x, "e2m1", "rna") == [0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]


def test_c018_the_carry_enters_the_exponent() -> None:
    """fp16 rn."""
    assert codes([1.99999, 3.99999, 0.49999], "fp16", "rn") == [16384, 17408, 14336]


def test_c019_the_top_binade_of_e4m3_is_finite() -> None:
    """e4m3 rn, saturating."""
    x = [256.0, 288.0, 320.0, 352.0, 384.0, 416.0, 448.0, 272.0, 304.0]
    assert codes(x, "e4m3", "rn") == [120, 121, 122, 123, 124, 125, 126, 120, 122]
    assert values_of(x, "e4m3", "rn") == [*x[:7], 256.0, 320.0]


def test_c022_a_row_of_zeros_has_a_usable_scale() -> None:
    """e4m3, one absmax scale per row; a row of zeros gets scale 2**-23."""
    q = nc.quantize(np.float32([[1.0, 2.0], [0.0, 0.0]]), "e4m3", blocks=nc.Blocks.per_row)
    assert q.codes[1].tolist() == [0, 0]
    scale = np.asarray(q.scale).reshape(-1)
    assert np.isfinite(scale).all() and (scale != 0).all()
    assert scale[1] == 2.0**-23
    assert not np.isnan(q.dequantize()).any()


def test_c023_a_block_of_zeros() -> None:
    """e4m3, blocks of 1 x 128."""
    q = nc.quantize(np.zeros((1, 128), np.float32), "e4m3", blocks=nc.Blocks((1, 128)))
    assert not q.codes.any()
    assert not q.dequantize().any()
    assert np.isfinite(np.asarray(q.scale)).all()


def test_c024_e8m0_decodes_its_ends() -> None:
    """Code 0 is 2**-127, an fp32 subnormal; 255 is NaN."""
    out = nc.decode(np.uint8([0, 1, 126, 127, 134, 254, 255]), "e8m0")
    assert out[:6].tolist() == [2.0**-127, 2.0**-126, 0.5, 1.0, 128.0, 2.0**127]
    assert np.isnan(out[6])
    assert out.view(np.uint32)[0] == 0x00400000


def test_c026_the_bias_of_e8m0_is_127() -> None:
    """e8m0, exact powers of two in every mode."""
    for mode in ("rn", "rna", "rd", "ru", "rz", "ro"):
        assert codes([0.5, 1.0, 4.0], "e8m0", mode) == [126, 127, 129]


def test_c027_floor_of_scales_below_one() -> None:
    """e8m0 rd: floor of the logarithm, not truncation of it."""
    assert codes([0.3, 0.9, 3.0], "e8m0", "rd") == [125, 126, 128]


def test_c032_s8_ties_in_every_mode() -> None:
    """s8, saturating."""
    x = [0.5, 1.5, 2.5, -0.5, -1.5, -2.5]
    assert integers(x, "s8", "rn") == [0, 2, 2, 0, -2, -2]
    assert integers(x, "s8", "rna") == [1, 2, 3, -1, -2, -3]
    assert integers(x, "s8", "rz") == [0, 1, 2, 0, -1, -2]
    assert integers(x, "s8", "rd") == [0, 1, 2, -1, -2, -3]
    assert integers(x, "s8", "ru") == [1, 2, 3, 0, -1, -2]


def test_c033_s8_uses_its_whole_range() -> None:
    """s8 rn, saturating."""
    x = [-129, -128, -127, -126, 126, 127, 128, 129]
    assert integers(x, "s8") == [-128, -128, -127, -126, 126, 127, 127, 127]


def test_c037_s8_rounds_then_clamps() -> None:
    """s8 rn, saturating: 127.6 must not wrap to -128."""
    assert integers([127.6, -128.6, 127.4], "s8") == [127, -128, 127]


def test_c038_s8_reaches_minus_128() -> None:
    """s8 rn, saturating: the tie at -127.5 goes to even."""
    assert integers([-127.4, -127.5, -128.0, -200.0], "s8") == [-127, -128, -128, -128]


def test_c039_infinity_saturates_and_nan_needs_a_policy() -> None:
    """u8 rn, saturating; nan="zero" for the NaN. nc.quantize refuses non-finite input without a policy."""
    assert integers([np.inf, -np.inf], "u8") == [255, 0]
    with pytest.raises(errors.FormatError):
        nc.encode(np.float32([np.nan]), "u8")
    assert integers([np.nan], "u8", nan="zero") == [0]
    with pytest.raises(errors.NarrowcastError):
        nc.quantize(np.float32([np.inf, 1.0]), "u8", scale=1.0, offset=133)


def test_c041_subnormals_are_neither_flushed_nor_misrounded() -> None:
    """fp16 rn."""
    assert codes([5.9604645e-08, 3e-08, 6e-06], "fp16", "rn") == [1, 1, 101]


def test_c042_nibbles_are_sign_extended_one_by_one() -> None:
    """s4, even element in the low nibble."""
    w = np.array([-6, 2, 3, -2])
    packed = nc.pack(nc.encode(w, "s4"), "s4")
    assert packed.tolist() == [42, 227]
    assert nc.decode(nc.unpack(packed, "s4", 4), "s4").tolist() == w.tolist()


def test_c045_packing_keeps_logical_shape_apart_from_bytes() -> None:
    """e2m1: 4 x 64 codes take 128 bytes, 32 per row; the count is given, so an odd axis is never lost."""
    packed = nc.pack(np.zeros((4, 64), np.uint8), "e2m1")
    assert (packed.nbytes, packed.shape) == (128, (4, 32))
    with pytest.raises(errors.ShapeError):
        nc.unpack(packed, "e2m1", 66)


def test_c048_a_tail_block_keeps_the_length() -> None:
    """s8, blocks of 32 over 33 elements."""
    x = np.linspace(-1, 1, 33, dtype=np.float32)
    q = nc.quantize(x, "s8", blocks=nc.Blocks((32,)))
    assert np.asarray(q.scale).shape == (2,)
    assert q.dequantize().shape == (33,)


def test_c049_blocks_belong_to_one_row() -> None:
    """s8, blocks of 1 x 32 over 2 x 48."""
    x = np.ones((2, 48), np.float32)
    x[0, 47] = 100.0
    q = nc.quantize(x, "s8", blocks=nc.Blocks((1, 32)))
    scale = np.asarray(q.scale)
    assert scale.shape == (2, 2)
    assert scale[0, 1] > scale[1, 0] == scale[0, 0]


def test_c053_codes_survive_numpy_files(tmp_path: Path) -> None:
    """Codes are plain unsigned integers, so they read back; the format travels beside them (in a QTensor, inside)."""
    for name in ("e4m3", "e5m2", "bf16", "hif8"):
        a = nc.encode(np.float32([1.5, -2.0]), name)
        file = io.BytesIO()
        np.save(file, a)
        file.seek(0)
        assert np.array_equal(np.load(file), a)
    q = nc.quantize(np.float32([1.5, -2.0]), "e5m2")
    q.save(tmp_path / "q.safetensors")
    back = nc.QTensor.load(tmp_path / "q.safetensors")
    assert str(getattr(back.format, "name", back.format)) == "e5m2"
    assert np.array_equal(back.codes, q.codes)


def test_c055_rounding_twice_is_another_result() -> None:
    """e4m3 rn, directly and through bf16."""
    x = np.float32([1.0625009536743164])
    assert nc.round_to(x, "e4m3", rounding="rn").tolist() == [1.125]
    assert nc.round_to(nc.round_to(x, "bf16"), "e4m3", rounding="rn").tolist() == [1.0]


def test_c057_infinity_and_nan_of_fp8() -> None:
    """e4m3 and e5m2, both conventions, nan="keep": NaN is never turned into zero unless asked."""
    x = [np.inf, -np.inf, np.nan]
    assert codes(x, "e4m3", "rn", saturate=False) == [0x7F, 0x7F, 0x7F]
    assert codes(x, "e4m3", "rn", saturate=True) == [0x7E, 0xFE, 0x7F]
    assert codes(x, "e5m2", "rn", saturate=False) == [0x7C, 0xFC, 0x7E]
    assert codes(x, "e5m2", "rn", saturate=True) == [0x7B, 0xFB, 0x7E]


def test_c059_e4m3_has_one_nan_magnitude() -> None:
    out = nc.decode(np.uint8([120, 126, 127, 255, 1, 128]), "e4m3")
    assert out[[0, 1, 4]].tolist() == [256.0, 448.0, 0.001953125]
    assert np.isnan(out[2:4]).all()
    assert out[5] == 0 and np.signbit(out[5])


def test_c061_hif8_keeps_three_fraction_bits_near_one() -> None:
    out = nc.decode(np.uint8([8, 16, 24, 12, 239, 128]), "hif8")
    assert out[:5].tolist() == [1.0, 2.0, 0.5, 1.5, -np.inf]
    assert np.isnan(out[5])


def test_c062_mxfp8_elements_round_ties_to_even() -> None:
    """e4m3 rn."""
    assert values_of([17.0, -17.0, 1.0625, 0.0009765625], "e4m3", "rn") == [16.0, -16.0, 1.0, 0.0]


def test_c065_the_saturation_used_is_recorded() -> None:
    """The default saturates, and a quantized tensor's record says so."""
    assert codes([300.0, 1000.0], "e4m3", "rn") == codes([300.0, 1000.0], "e4m3", "rn", saturate=True)
    assert nc.Cast(None, "e4m3").saturate is True
    record = nc.quantize(np.float32([300.0, 1000.0]), "e4m3").record
    assert record.saturate is True


def test_c066_scales_stored_as_fp16_may_vanish_or_overflow() -> None:
    """fp16 rn, not saturating: which elements changed class."""
    scales = np.float32([3e-08, 1e-09, 0.0, 70000.0])
    stored = nc.round_to(scales, "fp16", saturate=False)
    assert stored.tolist() == [5.960464477539063e-08, 0.0, 0.0, np.inf]
    flags = ((stored == 0) & (scales != 0)) | (np.isinf(stored) & np.isfinite(scales))
    assert flags.tolist() == [False, True, False, True]


def test_c068_not_saturating_keeps_low_bits_but_not_of_infinity() -> None:
    """fp16 and s32 -> u8; nan="zero" stands for the device's rule."""
    half = np.float16([257.0, np.inf, -np.inf, np.nan])
    assert nc.encode(half, "u8", saturate=False, nan="zero").tolist() == [1, 255, 0, 0]
    assert nc.encode(half[:1], "u8", saturate=True).tolist() == [255]
    assert nc.encode(np.int32([256, -1]), "u8", saturate=False).tolist() == [0, 255]
    assert nc.encode(np.int32([256, -1]), "u8", saturate=True).tolist() == [255, 0]


def test_bf16_sources_are_rounded_from_their_own_bits() -> None:
    """Beside C055: a bf16 input equals the same value given as float32."""
    x = np.arange(2**16, dtype=np.uint16)
    x = x[x & 0x7F80 != 0x7F80].view(ml_dtypes.bfloat16)
    for name in ("e4m3", "e2m1"):
        assert np.array_equal(low_bits(nc.encode(x, name), name), low_bits(nc.encode(x.astype(np.float32), name), name))
