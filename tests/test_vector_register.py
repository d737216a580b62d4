"""The register form: parts, masks at source granularity, zeroing, merging, and the E8M0 sequences."""

import ml_dtypes
import numpy as np
import pytest

import narrowcast as nc
from narrowcast.catalog import casts
from tests.golden import read
from tests.vector_matrix import (
    CODED,
    FORMATS,
    MODES,
    RESULT_DTYPES,
    SPELLED,
    assert_codes,
    bits,
    oracle,
    values_of,
    wrapped,
)

PARTS = {"-": 1, "0/1": 2, "0/1/2/3": 4}
BITS = {"s4": 4, "e2m1": 4, "e1m2": 4, "hif8": 8, "e4m3": 8, "e5m2": 8, "e8m0": 8, "fp16": 16, "bf16": 16, "fp32": 32}
LAYOUTS = ("ZERO", "ONE", "TWO", "THREE")
ONES = 2**64 - 1


def width(name: str) -> int:
    return BITS.get(name) or int(name[1:])


def table() -> dict[tuple[str, str], dict[str, object]]:
    found = {}
    for row in read("matrix_register"):
        modes = ["none"] if row["modes"] == "-" else [MODES[c] for c in row["modes"].split("/")]
        key = SPELLED[row["source"]], SPELLED[row["target"]]
        found[key] = {"parts": PARTS[row["layouts"]], "sat": row["saturation"] != "-", "modes": modes}
    return found


TABLE = table()
CASES = [
    (source, target, mode, part)
    for (source, target), row in TABLE.items()
    if "e8m0" not in (source, target)
    for mode in row["modes"]
    for part in range(row["parts"])
]


def random_register(source: str, seed: int) -> np.ndarray:
    """Return 256 bytes; floats of moderate size, so that not everything saturates."""
    rng = np.random.default_rng(seed)
    if source in ("fp16", "bf16", "fp32"):
        values = rng.normal(scale=40, size=2048 // width(source)).astype(np.float32)
        return values.astype(RESULT_DTYPES[source]).view(np.uint8)
    return rng.integers(0, 256, 256).astype(np.uint8)


def lanes_of(register: np.ndarray, source: str) -> np.ndarray:
    """Return the lanes of a register, packed formats opened."""
    if width(source) == 4:
        return np.stack([register & 15, register >> 4], -1).reshape(-1)
    return register.view(np.uint8 if source in CODED else RESULT_DTYPES[source])


def expected_register(
    source: str, target: str, mode: str, part: int, register: np.ndarray, mask: np.ndarray
) -> np.ndarray:
    """Place results one lane at a time, as the layout's pseudo-code does. `mask` has one bit per byte."""
    ratio = TABLE[source, target]["parts"]
    lanes = lanes_of(register, source)
    codes = wrapped(oracle(values_of(lanes, source), target, mode), target)
    out = np.zeros(256, np.uint8)
    if width(target) == 4:
        for i in range(64):
            if mask[4 * i]:
                out[4 * i + part] = codes[2 * i] | codes[2 * i + 1] << 4
        return out
    size = width(target) // 8
    for i in range(256 // max(size, width(source) // 8)):
        if width(source) == 4:
            byte, lane = 4 * (i // 2) + part, 2 * (4 * (i // 2) + part) + i % 2
            selected, slot = mask[byte], i
        elif width(target) <= width(source):
            lane, slot = i, ratio * i + part
            selected = mask[lane * width(source) // 8]
        else:
            lane, slot = ratio * i + part, i
            selected = mask[lane * width(source) // 8]
        if selected:
            out[slot * size : (slot + 1) * size] = list(int(codes[lane]).to_bytes(8, "little", signed=codes[lane] < 0))[
                :size
            ]
    return out


@pytest.mark.parametrize(("source", "target", "mode", "part"), CASES)
def test_placement(source: str, target: str, mode: str, part: int) -> None:
    register = random_register(source, part)
    rng = np.random.default_rng(part + 10)
    words = rng.integers(0, 2**64, 4, dtype=np.uint64)
    mask = np.unpackbits(words.view(np.uint8), bitorder="little")
    before = register.copy()
    for given, heeded in ((None, np.ones(256)), (words, mask)):
        got = nc.vector.reg_cast(register, target, mode, source=source, layout=LAYOUTS[part], mask=given)
        want = expected_register(source, target, mode, part, register, heeded)
        assert got.nbytes == 256
        assert_codes(got.view(np.uint8).astype(int), want.astype(int), np.arange(256), f"{source} -> {target} {mode}")
    assert np.array_equal(register, before)


def test_the_matrix_is_the_published_one() -> None:
    rows = {(r.source, r.target): r for r in casts.rows(interface="reg")}
    assert set(rows) == set(TABLE)
    for pair, row in TABLE.items():
        assert set(rows[pair].modes) == set(row["modes"])
        assert rows[pair].parts == row["parts"]
        assert rows[pair].sat_trait == row["sat"]


def test_everything_else_is_refused() -> None:
    register = np.zeros(256, np.uint8)
    for source in FORMATS:
        for target in FORMATS:
            for mode in MODES.values():
                if mode in TABLE.get((source, target), {"modes": ()})["modes"]:
                    continue
                with pytest.raises(nc.UnsupportedCastError):
                    nc.vector.reg_cast(register, target, mode, source=source)
    with pytest.raises(nc.UnsupportedCastError, match="chips that have: 3510"):
        nc.vector.reg_cast(np.zeros(64, np.float32), "fp16", semantics=nc.Semantics(chip="2201"))


def test_layout_names_and_limits() -> None:
    x = np.arange(64, dtype=np.float32)
    odd = nc.vector.reg_cast(x, "fp16", layout="PART_ODD")
    assert np.array_equal(odd, nc.vector.reg_cast(x, "fp16", layout="ONE"))
    assert odd.dtype == np.float16
    assert odd[1::2].tolist() == x.tolist()
    assert not odd[::2].any()
    third = nc.vector.reg_cast(x, "hif8", layout="PART_P2")
    assert np.flatnonzero(third).tolist() == [4 * i + 2 for i in range(1, 64)]
    with pytest.raises(nc.UnsupportedCastError, match=r"fp32 -> fp16 has no layout TWO \(allowed: ZERO, ONE\)"):
        nc.vector.reg_cast(x, "fp16", layout="PART_P2")
    with pytest.raises(nc.UnsupportedCastError, match=r"allowed: ZERO\)"):
        nc.vector.reg_cast(x, "s32", layout="ONE")
    with pytest.raises(nc.UnknownNameError, match="PART_EVEN"):
        nc.vector.reg_cast(x, "fp16", layout="PART_EVN")


def test_even_and_odd_parts_combine() -> None:
    """Each narrowing call clears the destination, so the parts of two registers are OR-ed."""
    x = np.linspace(-9, 9, 128, dtype=np.float32)
    even = nc.vector.reg_cast(x[::2].copy(), "fp16", layout="PART_EVEN").view(np.uint16)
    odd = nc.vector.reg_cast(x[1::2].copy(), "fp16", layout="PART_ODD").view(np.uint16)
    assert np.array_equal((even | odd).view(np.float16), x.astype(np.float16))


def test_a_mask_belongs_to_the_source() -> None:
    """Widening: the mask of a wide type has only bits 4i, so it selects in layout ZERO alone."""
    x = np.arange(128, dtype=np.float16)
    wide_mask = [int("1000" * 16, 2) >> 3] * 4
    assert nc.vector.reg_cast(x, "fp32", mask=wide_mask).tolist() == x[::2].tolist()
    assert not nc.vector.reg_cast(x, "fp32", layout="ONE", mask=wide_mask).any()
    lanes = np.zeros(128, bool)
    lanes[[1, 5]] = True
    assert np.flatnonzero(nc.vector.reg_cast(x, "fp32", layout="ONE", mask=lanes)).tolist() == [0, 2]


def test_sixteen_to_four_bits_heeds_the_even_lane() -> None:
    x = np.full(128, 3, np.float16)
    lanes = np.zeros(128, bool)
    lanes[[0, 3]] = True
    got = nc.vector.reg_cast(x, "s4", layout="ONE", mask=lanes)
    assert got.dtype == np.uint8
    assert np.flatnonzero(got).tolist() == [1]
    assert got[1] == 0x33


def test_short_mask_words_are_filled_with_zeros() -> None:
    x = np.ones(64, np.float32)
    assert nc.vector.reg_cast(x, "s32", mask=[ONES]).tolist() == [1] * 16 + [0] * 48
    with pytest.raises(nc.ShapeError, match="5 words; a mask register has 4"):
        nc.vector.reg_cast(x, "s32", mask=[ONES] * 5)
    with pytest.raises(nc.ShapeError, match="mask has 63 lanes; a register of 32-bit elements has 64"):
        nc.vector.reg_cast(x, "s32", mask=np.ones(63, bool))
    with pytest.raises(nc.ShapeError, match="register has 252 bytes; a register has 256"):
        nc.vector.reg_cast(np.ones(63, np.float32), "s32")


def test_merging_copies_over_the_destination_under_the_same_mask() -> None:
    x = np.arange(1, 65, dtype=np.float32)
    dst = np.full(64, -1, np.int32)
    lanes = np.arange(64) % 3 == 0
    got = nc.vector.reg_cast(x, "s32", mask=lanes, merge="merging", dst=dst)
    assert got.tolist() == [int(v) if m else -1 for v, m in zip(x, lanes, strict=True)]
    assert (dst == -1).all()
    half = np.full(128, -1, np.float16)
    got = nc.vector.reg_cast(x, "fp16", mask=[0x1_0001] * 4, merge="MODE_MERGING", dst=half)
    want = half.copy()
    for lane in (16 * word + k for word in range(4) for k in (0, 4)):
        want[2 * lane] = x[lane]
    assert got.tolist() == want.tolist(), "bit 4i is also half lane 2i: only those change"


def test_merging_where_there_is_none() -> None:
    x = np.zeros(128, np.float16)
    with pytest.raises(nc.ShapeError, match="needs dst"):
        nc.vector.reg_cast(x, "s16", merge="merging")
    with pytest.raises(nc.UnsupportedCastError, match="no merging"):
        nc.vector.reg_cast(x, "s4", merge="merging", dst=x)
    with pytest.raises(nc.UnsupportedCastError, match="no merging"):
        nc.vector.reg_cast(x, "s8", layout="ONE", merge="merging", dst=x)
    with pytest.raises(nc.UnknownNameError, match="zeroing"):
        nc.vector.reg_cast(x, "s8", merge="zero")


def test_the_saturation_trait_counts_where_ctrl60_is_0() -> None:
    x = np.full(64, 1e6, np.float32)
    own = nc.Control(ctrl60=0)
    assert nc.vector.reg_cast(x, "fp16", control=own)[0] == np.inf
    assert nc.vector.reg_cast(x, "fp16", saturate=True, control=own)[0] == 65504
    assert nc.vector.reg_cast(x, "fp16")[0] == 65504
    assert nc.vector.reg_cast(x, "fp16", saturate=True, control=nc.Control(ctrl48=1))[0] == np.inf
    with pytest.raises(nc.UnsupportedCastError, match="no saturation mode"):
        nc.vector.reg_cast(x.astype(ml_dtypes.bfloat16).repeat(2), "e2m1", saturate=True)


BF16_TO_E8M0 = {
    0x3F80: 0x7F,
    0x3FC0: 0x7F,
    0x3FFF: 0x7F,
    0x4000: 0x80,
    0xC000: 0x80,
    0x0000: 0x00,
    0x8000: 0x00,
    0x007F: 0x00,
    0x7F7F: 0xFE,
    0x7F80: 0xFF,
    0xFF80: 0xFF,
    0x7FC0: 0xFF,
}
E8M0_TO_BF16 = {0x00: 0x0000, 0x01: 0x0080, 0x7F: 0x3F80, 0xFE: 0x7F00, 0xFF: 0x7FC0}


def test_bf16_to_e8m0_keeps_the_exponent_field() -> None:
    raw = np.resize(np.array(list(BF16_TO_E8M0), np.uint16), 128)
    register = raw.view(ml_dtypes.bfloat16)
    want = np.resize(np.array(list(BF16_TO_E8M0.values()), np.uint8), 128)
    for control in (nc.Control(), nc.Control(ctrl48=1)):
        got = nc.vector.reg_cast(register, "e8m0", layout="ONE", control=control)
        assert got.dtype == ml_dtypes.float8_e8m0fnu
        assert got.view(np.uint8)[1::2].tolist() == want.tolist()
        assert not got.view(np.uint8)[::2].any()
    assert raw[0] == 0x3F80, "the device overwrites the source register; the model does not"
    other = nc.Semantics().override(e8m0_infinity="max")
    got = nc.vector.reg_cast(register, "e8m0", semantics=other).view(np.uint8)[::2]
    assert [hex(c) for c in got[9:12]] == ["0xfe", "0xfe", "0xff"]


def test_e8m0_to_bf16_shifts() -> None:
    codes = np.resize(np.array(list(E8M0_TO_BF16), np.uint8), 128).repeat(2)
    want = np.resize(np.array(list(E8M0_TO_BF16.values()), np.uint16), 128)
    for register in (codes, codes.view(ml_dtypes.float8_e8m0fnu)):
        got = nc.vector.reg_cast(register, "bf16", source="e8m0")
        assert got.view(np.uint16).tolist() == want.tolist()
    power = nc.vector.reg_cast(codes, "bf16", source="e8m0", semantics=nc.Semantics("pto-spec"))
    assert power.view(np.uint16)[0] == 0x0040


def test_out_of_a_register_cast() -> None:
    out = np.zeros(128, np.float16)
    assert nc.vector.reg_cast(np.ones(64, np.float32), "fp16", out=out) is out
    assert out[::2].tolist() == [1] * 64
    with pytest.raises(nc.ShapeError, match="256 bytes, not contiguous"):
        nc.vector.reg_cast(np.ones(64, np.float32), "fp16", out=np.zeros(256, np.float16)[::2])


def test_result_types() -> None:
    for (source, target), row in TABLE.items():
        got = nc.vector.reg_cast(np.zeros(256, np.uint8), target, row["modes"][0], source=source)
        if width(target) == 4:
            assert got.dtype == np.uint8
        else:
            bits(got, target)
