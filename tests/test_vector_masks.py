"""Counts and masks of the memory form: which elements are written, and what happens to the others."""

import numpy as np
import pytest

import narrowcast as nc

ONES = 2**64 - 1


def ramp(size: int, dtype: type = np.float32) -> np.ndarray:
    return np.arange(1, size + 1).astype(dtype)


def test_count_takes_the_first_elements() -> None:
    x = ramp(6).reshape(2, 3)
    assert nc.vector.cast(x, "fp16", count=4).tolist() == [1, 2, 3, 4]
    assert nc.vector.cast(x, "fp16", count=0).tolist() == []
    assert nc.vector.cast(x, "fp16", count=6).shape == (6,)


def test_count_leaves_the_rest_of_the_destination() -> None:
    out = np.full((2, 4), 9, np.float16)
    assert nc.vector.cast(ramp(8), "fp16", count=5, out=out) is out
    assert out.tolist() == [[1, 2, 3, 4], [5, 9, 9, 9]]
    strided = np.full(12, 9, np.float16)[::2]
    nc.vector.cast(ramp(8), "fp16", count=2, out=strided)
    assert strided.tolist() == [1, 2, 9, 9, 9, 9]
    packed = np.full(3, 0x99, np.uint8)
    nc.vector.cast(ramp(8, np.float16), "s4", count=2, packed=True, out=packed)
    assert packed.tolist() == [0x21, 0x99, 0x99]


def test_count_must_fit() -> None:
    with pytest.raises(nc.ShapeError, match=r"count is 9; the source has 8"):
        nc.vector.cast(ramp(8), "fp16", count=9)
    with pytest.raises(nc.ShapeError, match=r"out has 3 elements; count asks for 4"):
        nc.vector.cast(ramp(8), "fp16", count=4, out=np.zeros(3, np.float16))
    with pytest.raises(nc.ConstraintError, match="VEC-03"):
        nc.vector.cast(ramp(8), "fp16", count=-1)
    with pytest.raises(nc.ShapeError, match="count or a mask"):
        nc.vector.cast(ramp(8), "fp16", count=1, mask=[1])


@pytest.mark.parametrize(("source", "target"), [("fp16", "s4"), ("s4", "fp16"), ("bf16", "e2m1"), ("e1m2", "bf16")])
def test_four_bit_counts_are_even(source: str, target: str) -> None:
    x = nc.vector.cast(ramp(4), source) if source in ("fp16", "bf16") else np.uint8([1, 2, 3, 4])
    assert nc.vector.cast(x, target, source=source, count=2).shape == (2,)
    for kw in ({"count": 3}, {}):
        with pytest.raises(nc.ConstraintError, match="VEC-04") as e:
            nc.vector.cast(x[:3], target, source=source, **kw)
        assert [f.rule for f in e.value.findings] == ["VEC-04"]


def test_boolean_mask_leaves_the_destination_alone() -> None:
    x = ramp(6).reshape(2, 3)
    mask = np.array([[True, False, True], [False, False, True]])
    out = np.full((2, 3), -7, np.int32)
    assert nc.vector.cast(x, "s32", mask=mask, out=out) is out
    assert out.tolist() == [[1, -7, 3], [-7, -7, 6]]
    assert nc.vector.cast(x, "s32", mask=mask).tolist() == [[1, 0, 3], [0, 0, 6]]
    assert nc.vector.cast(x, "hif8", mask=mask).tolist() == [[0x08, 0, 0x14], [0, 0, 0x24]]


def test_a_masked_out_nan_does_not_matter() -> None:
    x = np.float32([np.nan, 3.0])
    assert nc.vector.cast(x, "e4m3", mask=[False, True]).astype(float).tolist() == [0, 3]


# The wider type decides how many lanes a repeat of 256 bytes has.
REPEATS = [
    ("fp16", "s8", 128),
    ("s8", "fp16", 128),
    ("fp16", "hif8", 128),
    ("fp32", "fp16", 64),
    ("fp16", "fp32", 64),
    ("fp32", "e4m3", 64),
    ("s8", "s32", 64),
    ("fp32", "s64", 32),
    ("s64", "s32", 32),
]


@pytest.mark.parametrize(("source", "target", "lanes"), REPEATS)
def test_words_select_lanes_of_every_repeat(source: str, target: str, lanes: int) -> None:
    size = 2 * lanes + lanes // 2
    x = nc.vector.cast(ramp(size) % 100, "fp16") if source == "fp16" else (ramp(size) % 100)
    if source[0] == "s":
        x = x.astype(f"int{source[1:]}")
    rng = np.random.default_rng(lanes)
    chosen = rng.integers(0, 2, lanes).astype(bool)
    number = sum(1 << i for i in range(lanes) if chosen[i])
    words = [number >> 64 * w & ONES for w in range(max(lanes // 64, 1))]
    want = np.resize(chosen, size)
    got = nc.vector.cast(x, target, mask=words)
    booleans = nc.vector.cast(x, target, mask=want)
    assert got.tobytes() == booleans.tobytes()
    assert np.array_equal(got.astype(np.float64) != 0, want & (got.astype(np.float64) != 0))
    assert (got.astype(np.float64)[want & (x.astype(np.float64) != 0)] != 0).all()


def test_the_documented_word_example() -> None:
    """mask = [8, 0]: only the fourth element takes part."""
    got = nc.vector.cast(ramp(128, np.float16), "s16", mask=[8, 0])
    assert np.flatnonzero(got).tolist() == [3]
    assert nc.vector.cast(ramp(256, np.float16), "s16", mask=np.uint64([8, 0])).nonzero()[0].tolist() == [3, 131]


def test_a_list_of_a_full_and_an_empty_word() -> None:
    """NumPy alone would read such a list as floats."""
    x = ramp(130, np.float16)
    assert nc.vector.cast(x, "s16", mask=[ONES, 0]).nonzero()[0].tolist() == [*range(64), 128, 129]
    assert nc.vector.capi.Half2Int8(x, mask=(ONES, 0)).nonzero()[0].tolist() == [*range(32), 128, 129]
    with pytest.raises(nc.ShapeError, match=r"below 2\*\*64"):
        nc.vector.cast(x, "s16", mask=[2**64, 0])


def test_wrong_masks_name_both_numbers() -> None:
    x = ramp(100)
    with pytest.raises(nc.ShapeError, match=r"mask has 99 elements.*the source has 100"):
        nc.vector.cast(x, "fp16", mask=np.ones(99, bool))
    with pytest.raises(nc.ShapeError, match=r"mask has 2 words; fp32 -> fp16 takes 1 \(64 lanes"):
        nc.vector.cast(x, "fp16", mask=[ONES, ONES])
    with pytest.raises(nc.ShapeError, match=r"mask has 1 words; fp16 -> s8 takes 2 \(128 lanes"):
        nc.vector.cast(ramp(100, np.float16), "s8", mask=[ONES])
    with pytest.raises(nc.ShapeError, match=r"32 lanes"):
        nc.vector.cast(x, "s64", mask=[ONES])
    with pytest.raises(nc.ShapeError, match=r"booleans or a list of 64-bit words; got dtype float64"):
        nc.vector.cast(x, "fp16", mask=[1.0])
    with pytest.raises(nc.ShapeError, match=r"non-negative"):
        nc.vector.cast(x, "fp16", mask=[-1])


def test_a_mask_may_not_split_a_byte() -> None:
    x = ramp(4, np.float16)
    assert nc.vector.cast(x, "s4", mask=[True, True, False, False]).astype(int).tolist() == [1, 2, 0, 0]
    out = np.full(2, 0x99, np.uint8)
    nc.vector.cast(x, "s4", mask=[False, False, True, True], packed=True, out=out)
    assert out.tolist() == [0x99, 0x43]
    with pytest.raises(nc.ConstraintError, match="lanes 2 and 3 share a byte") as e:
        nc.vector.cast(x, "s4", mask=[True, True, True, False])
    assert e.value.findings[0].rule == "VEC-05"
    with pytest.raises(nc.ConstraintError, match="VEC-05"):
        nc.vector.cast(np.uint8([1, 2]), "fp16", source="s4", mask=[1, 0])
