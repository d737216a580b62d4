"""Where elements land: published index vectors, every layout against its index map, tails, batches, two buffers."""

import numpy as np
import pytest

import narrowcast as nc
from narrowcast import fixpipe
from narrowcast.fixpipe import Addressing
from tests.golden import read

VECTORS = {row["id"]: {k: int(v) if v.isdigit() else v for k, v in row.items()} for row in read("fixpipe_layout")}


def matrix(rows: int, columns: int, dtype: str = "float32") -> np.ndarray:
    """Distinct accumulators that no conversion to FP32 or S8 merges within a row."""
    return np.arange(rows * columns, dtype=dtype).reshape(rows, columns)


@pytest.mark.parametrize(
    ("name", "where"),
    [
        ("L02", Addressing("NZ2ND", 32, 48, 8, 48)),
        ("L03", Addressing("NZ2DN", 32, 48, 8, 32)),
        ("L04", Addressing("NZ2NZ", 32, 48, 16, 512)),
        ("L05", Addressing("NZ2NZ", 32, 48, 8, 1024)),
        ("L06", Addressing("NZ2NZ", 32, 48, 8, 1024)),
        ("L07", Addressing("NZ2NZ", 32, 48, 32, 256, split=True)),
    ],
)
def test_index(name: str, where: Addressing) -> None:
    row = VECTORS[name]
    assert where.index(row["m"], row["n"]) == row["index"]


def test_l01_accumulator() -> None:
    row = VECTORS["L01"]
    assert fixpipe.accumulator_index(row["m"], row["n"], row["srcStride"]) == row["index"]


def test_l08_rows_split_between_two_buffers() -> None:
    row, acc = VECTORS["L08"], matrix(32, 48)
    store = fixpipe.run(acc, "FP32", route="UB", dual="M", stride=row["dstStride"])
    value = store.storage[row["subblock"]].view(np.float32)[row["index"]]
    assert value == acc[row["m"], row["n"]]
    assert np.array_equal(store.values, acc)


def test_l09_columns_split_between_two_buffers() -> None:
    row, acc = VECTORS["L09"], matrix(32, 64)
    store = fixpipe.run(acc, "FP32", route="UB", dual="N", stride=row["dstStride"])
    value = store.storage[row["subblock"]].view(np.float32)[row["index"]]
    assert value == acc[row["m"], row["n"]]
    assert np.array_equal(store.values, acc)


def test_l10_second_matrix_of_a_batch() -> None:
    row = VECTORS["L10"]
    l0c = np.arange(240 * 16 + 64 * 16 * 2, dtype=np.int32)
    store = fixpipe.run(
        l0c,
        "S32",
        m=32,
        n=32,
        acc_layout="NZ",
        source_stride=row["srcStride"],
        stride=row["dstStride"],
        batches=2,
        source_batch_stride=row["srcNdStride"],
        batch_stride=row["dstNdStride"],
    )
    assert store.shape == (2, 32, 32)
    assert store.codes[1, row["m"], row["n"]] == row["src_index"]
    assert store.storage[0][row["dst_index"]] == row["src_index"]


def test_l11_parameter_word_address() -> None:
    row = VECTORS["L11"]
    table = fixpipe.TableAddress.from_word(row["fpc_15_8"] << 8)
    assert table.of_word(row["n"]) == row["byte"]
    assert fixpipe.TableAddress(relu=64, quantization=256).word == 0x201
    assert fixpipe.TableAddress(relu=64).of_slope(3) == 76
    with pytest.raises(nc.EncodingError, match="outside the 4096 B"):
        table.of_word(480)
    with pytest.raises(nc.EncodingError, match="multiple of 128"):
        fixpipe.TableAddress(quantization=64)


SHAPES = [(17, 40), (16, 32), (1, 16), (33, 48), (5, 64), (2, 100)]
WORD = {"REQ8": 1.0, "REQ4": 1.0, "QS322BF16": 1.0}


@pytest.mark.parametrize("mode", ["S32", "REQ8", "REQ4", "QS322BF16"])
@pytest.mark.parametrize("layout", ["ND", "DN", "NZ"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("extra", [None, 7])
def test_every_element_lands_at_its_index(mode: str, layout: str, shape: tuple[int, int], extra: int | None) -> None:
    """The block moves that write a store agree with the index map, whatever the stride."""
    rows, columns = shape
    if mode == "REQ4" and layout == "DN" and rows % 2:
        rows += 1
    acc = matrix(rows, columns, "int32") % 251 - 125
    bits = {"S32": 32, "REQ8": 8, "REQ4": 4, "QS322BF16": 16}[mode]
    probe = Addressing(f"NZ2{layout}", rows, columns, bits)
    stride = None if extra is None else probe.step + extra + (probe.step + extra) % 2
    store = fixpipe.run(acc, mode, WORD.get(mode), layout=layout, stride=stride, accept_dummy=True)
    (where,) = store.addressing[0]
    index = where.indices(columns)
    assert len(np.unique(index)) == index.size
    want = {
        "S32": acc.view(np.uint32),
        "REQ8": acc.astype(np.int8).view(np.uint8),
        "REQ4": np.clip(acc, -8, 7) & 15,
        "QS322BF16": nc.encode(acc.astype(np.float32), "bf16"),
    }[mode]
    assert np.array_equal(store.storage[0][index], want)
    assert np.array_equal(store.codes, want)
    written, dummy = store.written[0], store.dummy[0]
    assert written.sum() == where.rows * where.written_columns
    assert dummy.sum() == where.rows * (where.written_columns - columns)
    assert not dummy[index].any()
    assert written[index].all()
    assert not store.storage[0][~written].any()
    assert store.bytes == -(-int(written.sum()) * bits // 8)


def test_channel_merge_and_split_groups() -> None:
    assert Addressing("NZ2NZ", 4, 48, 8).merged_columns == 32
    assert Addressing("NZ2NZ", 4, 64, 4).group == 64
    assert Addressing("NZ2NZ", 4, 20, 32, split=True).written_columns == 24
    acc = matrix(17, 24)
    store = fixpipe.run(acc, "FP32", layout="NZ", split=True)
    assert np.array_equal(store.values, acc)


def test_dummy_columns_of_nz() -> None:
    """Whole groups are written; beyond the accumulator array they hold the 0xA5 pattern."""
    acc = matrix(3, 20, "int32")
    store = fixpipe.run(acc, "REQ8", 1.0, layout="NZ", accept_dummy=True)
    assert set(store.storage[0][store.dummy[0]].tolist()) == {0xA5}
    # Columns the array does hold are converted.
    wide = fixpipe.run(acc, "REQ8", 1.0, layout="NZ", n=18, accept_dummy=True)
    held = wide.storage[0][wide.dummy[0]].reshape(3, 14)
    assert np.array_equal(held[:, :2], acc[:, 18:].astype(np.uint8))
    assert (held[:, 2:] == 0xA5).all()


def test_nd_tail_by_the_seed() -> None:
    """Row m writes ceil16(n) columns from m * stride, in row order."""
    acc = matrix(3, 5, "int32")
    trimmed = fixpipe.run(acc, "REQ8", 1.0, stride=8)
    seed = nc.Semantics().override(nd_tail="dummy")
    filled = fixpipe.run(acc, "REQ8", 1.0, stride=8, semantics=seed)
    assert trimmed.storage[0].size == 21
    assert filled.storage[0].size == 2 * 8 + 16
    assert filled.storage[0][:5].tolist() == [0, 1, 2, 3, 4]
    assert filled.storage[0][5:8].tolist() == [0xA5] * 3  # then the next row covers the rest
    assert filled.storage[0][8:13].tolist() == [5, 6, 7, 8, 9]
    assert filled.dummy[0].sum() == 3 + 3 + 11
    assert np.array_equal(filled.codes, trimmed.codes)
    down = fixpipe.run(acc, "REQ8", 1.0, layout="DN", semantics=seed)
    assert down.storage[0].size == 16 * 3
    assert np.array_equal(down.codes, acc.astype(np.uint8))


def test_fractal_accumulators_in() -> None:
    acc = matrix(19, 21, "int32")
    flat = fixpipe.to_fractal(acc)
    assert flat.size == 32 * 32
    assert np.array_equal(fixpipe.from_fractal(flat, 19, 21), acc)
    one = fixpipe.run(acc, "REQ8", 0.1, layout="NZ", accept_dummy=True)
    other = fixpipe.run(flat, "REQ8", 0.1, layout="NZ", accept_dummy=True, acc_layout="NZ", m=19, n=21)
    assert np.array_equal(one.codes, other.codes)
    with pytest.raises(nc.ShapeError, match="reaches element"):
        fixpipe.run(flat[:600], "S32", acc_layout="NZ", m=19, n=21)
    with pytest.raises(nc.ShapeError, match="needs m and n"):
        fixpipe.run(flat, "S32", acc_layout="NZ")


def test_batches_of_plain_accumulators() -> None:
    acc = np.arange(2 * 3 * 16, dtype=np.int32).reshape(2, 3, 16)
    for layout in ("ND", "DN"):
        store = fixpipe.run(acc, "REQ8", np.full(16, 0.5), layout=layout, batch_stride=100)
        assert np.array_equal(store.codes, nc.encode(acc * 0.5, "s8"))
        assert store.addressing[0][1].start == 100
    with pytest.raises(nc.ConstraintError, match="FIXP-19"):
        fixpipe.run(acc, "REQ8", 1.0, layout="NZ")


def test_strided_source_rows_of_dn() -> None:
    l0c = fixpipe.to_fractal(matrix(32, 16, "int32"))
    store = fixpipe.run(l0c, "S32", layout="DN", acc_layout="NZ", m=8, n=16, source_row_stride=4)
    assert np.array_equal(store.codes, matrix(32, 16, "int32")[::4].view(np.uint32))
    plain = fixpipe.run(matrix(8, 16, "int32"), "S32", layout="DN")
    assert store.cycles > plain.cycles


def test_nc1hwc0_to_nhwc_is_nz2nd() -> None:
    """An image [C1, H, W, 16] in L0C, with M = H * W, leaves as [H, W, C]."""
    height, width, channels = 4, 5, 32
    nchwc0 = np.arange(height * width * channels, dtype=np.int32).reshape(2, height, width, 16)
    padded = np.zeros((2, 32, 16), dtype=np.int32)
    padded[:, : height * width] = nchwc0.reshape(2, height * width, 16)
    store = fixpipe.run(padded, "S32", layout="NC1HWC0->NHWC", acc_layout="NZ", m=20, n=32, batches=1)
    nhwc = store.codes.reshape(height, width, channels)
    assert np.array_equal(nhwc, nchwc0.transpose(1, 2, 0, 3).reshape(height, width, channels).view(np.uint32))


def test_packed_nibbles() -> None:
    store = fixpipe.run(np.int32([[1, -2, 7, 100]]), "REQ4", 1.0)
    assert store.memory().tolist() == [0xE1, 0x77]
