"""Documented results of single vector casts, by source, and the control bits that choose between them."""

import ml_dtypes
import numpy as np
import pytest

import narrowcast as nc
from tests.golden import cast_rows
from tests.vector_matrix import bits

KEEP = nc.Control(ctrl48=1, ctrl59=1)
BF16 = ml_dtypes.bfloat16


def cast(values: object, dtype: object, target: str, mode: str | None = None, **kw: object) -> list[object]:
    return nc.vector.cast(np.array(values, dtype), target, mode, **kw).tolist()


@pytest.mark.parametrize(
    "table",
    [
        "cast_fp16",
        "cast_bf16",
        "cast_float_to_int",
        "cast_int_to_int",
        "cast_fp8_rn",
        "cast_hif8_rna",
        "cast_fp4_bf16",
        "cast_hif8_rh_fp32",
        "cast_hif8_fp16",
    ],
)
def test_golden_rows(table: str) -> None:
    """Every published row whose pair and mode chip 3510 has, saturating and not."""
    ran = 0
    for row in cast_rows(table):
        semantics = nc.Semantics()
        if row.compare != "ge":
            semantics = semantics.override(hif8_hybrid_compare=row.compare)
        try:
            result = nc.vector.cast(
                row.value.repeat(2),
                row.target,
                row.rounding or "none",
                control=nc.Control() if row.saturate else KEEP,
                semantics=semantics,
            )
        except nc.UnsupportedCastError:
            continue
        if np.isnan(row.value.astype(np.float64)).any() and row.saturate != (row.nan == "zero"):
            continue  # the table's NaN policy is not the one this control word selects
        code = int(bits(result, row.target)[0])
        width = {"s64": 64, "s32": 32, "u32": 32}.get(row.target, 16)
        assert code % 2**width == row.expected % 2**width, row.where
        ran += 1
    assert ran >= 10


# asc-devkit boundary tables (facts 4.2): input, what it gives when keeping low bits, when saturating
BOUNDARIES = [
    ("half 65504 -> s8", np.float16, 65504, "s8", "rn", -32, 127),
    ("half 65504 -> u8", np.float16, 65504, "u8", "rn", 224, 255),
    ("half -65504 -> s8", np.float16, -65504, "s8", "rn", 32, -128),
    ("half -65504 -> u8", np.float16, -65504, "u8", "rn", 32, 0),
    ("half 257 -> u8", np.float16, 257, "u8", "rn", 1, 255),
    ("FLT_MAX -> s16", np.float32, np.finfo(np.float32).max, "s16", "rn", 0, 32767),
    ("FLT_MAX -> s32", np.float32, np.finfo(np.float32).max, "s32", "rn", 0, 2**31 - 1),
    ("bf16 max -> s32", BF16, ml_dtypes.finfo(BF16).max, "s32", "rn", 0, 2**31 - 1),
    ("s32 MIN -> s16", np.int32, -(2**31), "s16", None, 0, -32768),
    ("s32 MAX -> s16", np.int32, 2**31 - 1, "s16", None, -1, 32767),
    ("u32 MAX -> s16", np.uint32, 2**32 - 1, "s16", None, -1, 32767),
    ("s64 MIN -> s32", np.int64, -(2**63), "s32", None, 0, -(2**31)),
    ("s64 MAX -> s32", np.int64, 2**63 - 1, "s32", None, -1, 2**31 - 1),
    ("s16 -5 -> u32 always saturates", np.int16, -5, "u32", None, 0, 0),
    ("f32 +inf -> s32 in both", np.float32, np.inf, "s32", "rz", 2**31 - 1, 2**31 - 1),
    ("f32 NaN -> s32 in both", np.float32, np.nan, "s32", "rz", 0, 0),
]


@pytest.mark.parametrize(
    ("dtype", "value", "target", "mode", "low", "clamped"), [b[1:] for b in BOUNDARIES], ids=[b[0] for b in BOUNDARIES]
)
def test_boundaries(dtype: type, value: float, target: str, mode: str | None, low: int, clamped: int) -> None:
    assert cast([value], dtype, target, mode, control=KEEP) == [low]
    assert cast([value], dtype, target, mode) == [clamped]


def test_s16_to_s4_wraps_or_clamps() -> None:
    values = [-32768, 32767, 9, -9]
    assert nc.vector.cast(np.int16(values), "s4", control=KEEP).astype(int).tolist() == [0, -1, -7, 7]
    assert nc.vector.cast(np.int16(values), "s4").astype(int).tolist() == [-8, 7, 7, -8]


def test_c005_integer_narrowing_saturates_at_the_targets_own_limits() -> None:
    """Chip 3510 has s16 -> u8 but no s16 -> s8: that half of the case is `encode`'s."""
    x = np.int16([-39, 300, -300, 127, -128])
    assert nc.vector.cast(x, "u8").tolist() == [0, 255, 0, 127, 0]
    with pytest.raises(nc.UnsupportedCastError):
        nc.vector.cast(x, "s8")
    assert nc.decode(nc.encode(x, "s8"), "s8").tolist() == [-39, 127, -128, 127, -128]


def test_c068_not_saturating_keeps_low_bits_but_not_of_infinity() -> None:
    half = [257.0, np.inf, -np.inf, np.nan]
    assert cast(half, np.float16, "u8", "rn", control=nc.Control(ctrl59=1)) == [1, 255, 0, 0]
    assert cast([257.0], np.float16, "u8", "rn") == [255]
    assert cast([256, -1], np.int32, "u8", control=nc.Control(ctrl59=1)) == [0, 255]
    assert cast([256, -1], np.int32, "u8") == [255, 0]


def test_ctrl48_and_ctrl59_are_separate() -> None:
    float_only, integer_only = nc.Control(ctrl48=1), nc.Control(ctrl59=1)
    assert cast([1e6], np.float32, "fp16", control=float_only) == [np.inf]
    assert cast([1e6], np.float32, "fp16", control=integer_only) == [65504]
    assert cast([300], np.float16, "u8", control=float_only) == [255]
    assert cast([300], np.float16, "u8", control=integer_only) == [44]


def test_ctrl60_hands_the_decision_to_the_instruction_on_3510_only() -> None:
    local = nc.Control(ctrl60=0, ctrl48=1, ctrl59=1)
    old = nc.Semantics(chip="2201")
    assert cast([1e6], np.float32, "fp16", control=local) == [65504]
    assert cast([1e6], np.float32, "fp16", control=local, semantics=old) == [np.inf]
    assert cast([300], np.float16, "u8", control=local) == [255]
    assert cast([300], np.float16, "u8", control=local, semantics=old) == [44]


def test_ctrl50_keeps_nan_of_eight_bit_floats() -> None:
    keeps = nc.Control(ctrl50=1)
    for target, nan_code in (("e4m3", 0x7F), ("e5m2", 0x7E)):
        both = np.float32([np.nan, np.inf])
        assert bits(nc.vector.cast(both, target), target).tolist()[0] == 0
        kept = bits(nc.vector.cast(both, target, control=keeps), target).tolist()
        assert kept == [nan_code, {"e4m3": 0x7E, "e5m2": 0x7B}[target]]
    assert cast([np.nan], np.float32, "hif8", control=keeps) == [0]
    assert cast([np.nan], np.float32, "fp16", control=keeps) == [0]
    assert np.isnan(nc.vector.cast(np.float32([np.nan]), "e4m3", control=nc.Control(ctrl48=1)).astype(float))[0]


def test_hif8_and_half_to_bf16_heed_ctrl48_whatever_ctrl60_says() -> None:
    codes = np.uint8([0x6F, 0xEF, 0x80, 0x01])
    for control in (nc.Control(), nc.Control(ctrl60=0)):
        got = nc.vector.cast(codes, "fp16", source="hif8", control=control)
        assert got.tolist() == [65504, -65504, 0, 2**-22]
        assert nc.vector.cast(np.float16([np.inf, np.nan]), "bf16", control=control).view(np.uint16).tolist() == [
            0x7F7F,
            0,
        ]
    got = nc.vector.cast(codes, "fp16", source="hif8", control=nc.Control(ctrl48=1))
    assert got[:2].tolist() == [np.inf, -np.inf]
    assert np.isnan(got[2])
    keep = nc.Semantics().override(half_bf16_special="keep")
    assert nc.vector.cast(codes, "fp16", source="hif8", semantics=keep)[:2].tolist() == [np.inf, -np.inf]
    assert nc.vector.cast(np.float16([np.inf]), "bf16", semantics=keep).astype(float).tolist() == [np.inf]


def test_fp4_always_saturates() -> None:
    x = np.array([np.inf, -np.inf, np.nan, 100, -0.0625, 1.5], BF16)
    for control in (nc.Control(), KEEP, nc.Control(ctrl60=0)):
        assert bits(nc.vector.cast(x, "e2m1", control=control), "e2m1").tolist() == [7, 15, 0, 7, 8, 3]
        assert bits(nc.vector.cast(x, "e1m2", control=control), "e1m2").tolist() == [7, 15, 0, 7, 8, 6]


def test_fp32_results_never_saturate() -> None:
    for control in (nc.Control(), KEEP):
        wide = nc.vector.cast(np.float16([np.inf, np.nan]), "fp32", control=control)
        assert wide[0] == np.inf
        assert np.isnan(wide[1])
        assert nc.vector.cast(np.uint8([0x6F]), "fp32", source="hif8", control=control).tolist() == [np.inf]


def test_published_examples_of_fp32_to_half() -> None:
    """asc-devkit Memory Cast page: 0.5 + 2^-12, and the same idea for bf16, s16 and s32."""
    up, down = 0.5 + 2**-11, 0.5
    modes = {"rn": down, "rd": down, "ru": up, "rna": up, "rz": down, "ro": up}
    for mode, want in modes.items():
        assert cast([0.5 + 2**-12], np.float32, "fp16", mode) == [want]
    x = np.float32([0.5 + 2**-9 + 2**-11])
    bf16 = {m: float(nc.vector.cast(x, "bf16", m)[0]) - 0.5 for m in ("rn", "rd", "ru", "rna", "rz")}
    assert bf16 == {"rn": 2**-8, "rd": 0, "ru": 2**-8, "rna": 2**-8, "rz": 0}
    assert cast([2**12 + 2], np.int16, "fp16", "ru") == [2**12 + 4]
    assert cast([2**12 + 2], np.int16, "fp16", "rn") == [2**12]
    assert cast([2**25 + 3], np.int32, "fp32", "rn") == [2**25 + 4]
    assert cast([2**25 + 3], np.int32, "fp32", "rz") == [2**25]
    assert cast([-1.5], np.float16, "s32", "rn") == [-2]
    assert cast([2**22 + 0.5], np.float32, "s64", "rn") == [2**22]
    assert cast([2**22 + 0.5], np.float32, "s16", "rn") == [2**15 - 1]


def test_s32_to_half_takes_a_scale() -> None:
    x = np.int32([7, 100_032, -(2**31), 2**31 - 1, 16_777_217])
    for chip in ("3510", "2201"):
        got = nc.vector.cast(x, "fp16", deq_scale=0.5, semantics=nc.Semantics(chip=chip))
        assert got.tolist() == [3.5, 50_016, -65504, 65504, 65504]
    assert nc.vector.cast(x, "fp16", "CAST_ODD", deq_scale=2.0**-20).tolist() == (
        nc.vector.cast(x, "fp16", "CAST_TRUNC", deq_scale=2.0**-20).tolist()
    ), "the mode is ignored"


def test_s32_to_half_rounds_three_times() -> None:
    """s32 -> fp32, then two products in fp32, then fp16: not one rounding of the exact value."""
    rng = np.random.default_rng(5)
    x = rng.integers(-(2**31), 2**31, 4000).astype(np.int32)
    scale = float(np.float16(3.3e-5))
    exact = [float(np.float32(int(v))) for v in x]
    steps = [float(np.float32(np.float32(v * 2.0**-17) * np.float32(scale))) * 2.0**17 for v in exact]
    want = np.clip(np.array(steps, np.float32), -65504, 65504).astype(np.float16)
    assert np.array_equal(nc.vector.cast(x, "fp16", deq_scale=scale), want)


def test_s32_to_half_asks_for_no_saturation() -> None:
    """Its trait is NO_SAT: with CTRL[60] = 0 it overflows; at reset CTRL[48] decides, and saturates."""
    x = np.int32([10**6, -(10**6)])
    op = nc.vector.VectorCast(source="s32", target="fp16", deq_scale=1.0, saturate=False)
    assert nc.execute(op, x, control=nc.Control(ctrl60=0)).tolist() == [np.inf, -np.inf]
    assert nc.vector.cast(x, "fp16", deq_scale=1.0, control=nc.Control(ctrl60=0)).tolist() == [np.inf, -np.inf]
    assert nc.vector.cast(x, "fp16", deq_scale=1.0).tolist() == [65504, -65504]


def test_a_scale_must_be_given_where_it_is_read_and_be_a_half() -> None:
    x = np.int32([1])
    with pytest.raises(nc.ConstraintError, match="deq_scale") as e:
        nc.vector.cast(x, "fp16")
    assert [f.rule for f in e.value.findings] == ["VEC-02"]
    with pytest.raises(nc.ConstraintError, match="deq_scale"):
        nc.vector.cast(x, "fp32", deq_scale=1.0)
    with pytest.raises(nc.FormatError, match=r"0\.0999755859375"):
        nc.vector.cast(x, "fp16", deq_scale=0.1)


def test_wide_integers() -> None:
    assert cast([3_000_000_000], np.int64, "s32") == [2**31 - 1]
    assert cast([3_000_000_000], np.int64, "s32", control=KEEP) == [-1294967296]
    assert cast([2**31 - 1, -1], np.int32, "s64") == [2**31 - 1, -1]
    assert cast([2**53 + 1, -(2**63)], np.int64, "fp32", "rz") == [2.0**53, -(2.0**63)]
    assert cast([1e30, -1e30, np.nan, 2.5], np.float32, "s64", "rn") == [2**63 - 1, -(2**63), 0, 2]


def test_sources_without_a_dtype_are_codes() -> None:
    assert nc.vector.cast(np.uint8([0x08, 0x41, 0xC1]), "fp32", source="hif8").tolist() == [1, 20, -20]
    assert nc.vector.cast(np.uint8([1, 9]), "bf16", source="e1m2").astype(float).tolist() == [0.25, -0.25]
    assert nc.vector.cast(np.uint8([0x7, 0x8]), "s16", source="s4").tolist() == [7, -8]
    assert nc.vector.cast(np.int8([7, -8]), "s16", source="s4").tolist() == [7, -8]
    with pytest.raises(nc.FormatError, match="8 at index"):
        nc.vector.cast(np.int8([7, 8]), "s16", source="s4")
    with pytest.raises(nc.FormatError, match="code 16"):
        nc.vector.cast(np.uint8([7, 16]), "s16", source="s4")
    with pytest.raises(nc.FormatError, match="encode"):
        nc.vector.cast(np.float32([1.0]), "fp32", source="hif8")


def test_four_bit_results_come_unpacked_or_packed() -> None:
    x = np.float16([1, -2, 9, 3])
    assert nc.vector.cast(x, "s4").dtype == ml_dtypes.int4
    assert nc.vector.cast(x, "s4", packed=True).tolist() == [0xE1, 0x37]
    out = np.zeros(2, np.uint8)
    assert nc.vector.cast(x, "s4", packed=True, out=out) is out
    assert out.tolist() == [0xE1, 0x37]
    with pytest.raises(nc.ConstraintError, match="VEC-06"):
        nc.vector.cast(x, "s8", packed=True)


@pytest.mark.parametrize("shape", [(), (0,), (2, 3, 4), (1,)])
def test_any_shape_stride_and_byte_order(shape: tuple[int, ...]) -> None:
    flat = np.arange(24, dtype=np.float32)[: int(np.prod(shape))]
    x = flat.reshape(shape)
    want = x.astype(np.float16)
    for form in (x, x.astype(">f4"), x.copy(order="F"), np.repeat(x.reshape(-1), 2)[::2].reshape(shape)):
        frozen = form.copy(order="K")
        frozen.flags.writeable = False
        got = nc.vector.cast(frozen, "fp16")
        assert got.shape == shape
        assert got.tolist() == want.tolist()
        assert nc.vector.cast(frozen, "fp32", "ru").tolist() == x.tolist()
        assert nc.vector.cast(frozen.astype(np.float16), "fp32").tolist() == x.tolist()


def test_out_is_written_and_returned() -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    for target, dtype in (("fp16", np.float16), ("s32", np.int32), ("fp32", np.float32)):
        base = np.zeros((2, 6), dtype)
        out = base[:, ::2]
        assert nc.vector.cast(x, target, "rn", out=out) is out
        assert out.tolist() == x.tolist()
        assert not base[:, 1::2].any()
    with pytest.raises(nc.ShapeError, match="float16"):
        nc.vector.cast(x, "fp16", out=np.zeros((2, 3), np.float32))
    with pytest.raises(nc.ShapeError, match="shape"):
        nc.vector.cast(x, "fp16", out=np.zeros(6, np.float16))
    frozen = np.zeros((2, 3), np.float16)
    frozen.flags.writeable = False
    with pytest.raises(nc.ShapeError, match="read-only"):
        nc.vector.cast(x, "fp16", out=frozen)
