"""Layouts: a bijection between an array and its storage, in both directions, as the published maps have it."""

import numpy as np
import pytest

import narrowcast as nc
from narrowcast.layout import AxisPattern, device_scales, find, layouts
from tests.vectors import load

SHAPES = [(1, 1), (2, 2), (16, 2), (17, 3), (32, 8), (33, 31), (5, 64), (2, 40, 7), (2, 3, 18, 33)]


@pytest.mark.parametrize("name", list(layouts))
@pytest.mark.parametrize("shape", SHAPES)
def test_round_trip_and_index_map(name: str, shape: tuple[int, ...]) -> None:
    layout = find(name)
    array = np.arange(1, np.prod(shape) + 1, dtype=np.int32).reshape(shape)
    storage = layout.pack(array)
    assert storage.shape == layout.storage_shape(shape)
    assert np.array_equal(layout.unpack(storage, shape), array)
    assert np.array_equal(layout.unpack(storage.ravel(), shape), array)
    where = layout.positions(shape)
    assert np.unique(where).size == array.size, "two elements share a place"
    assert np.array_equal(storage.ravel()[where], array)
    unused = np.ones(storage.size, dtype=bool)
    unused[where.ravel()] = False
    assert not storage.ravel()[unused].any(), "padding is zero"


@pytest.mark.parametrize("row", layouts.values(), ids=list(layouts))
def test_rows_have_an_example(row: object) -> None:
    shape, stored = row.example
    assert find(row.name).storage_shape(shape) == stored
    assert row.source
    for alias in row.aliases:
        assert layouts[alias] is row


@pytest.mark.parametrize(
    ("source", "stored", "name"),
    [
        ("lay_sa", "lay_sa_zz", "scale-zz"),
        ("lay_sa", "lay_sa_nd_gm", "scale-device"),
        ("lay_sa", "lay_sa_dn_gm", "scale-dn"),
        ("lay_sb", "lay_sb_nn", "scale-nn"),
        ("lay_sb", "lay_sb_nn_k1outer", "scale-nn-k-outer"),
        ("lay_sb", "lay_sb_nd_gm", "scale-interleaved"),
        ("lay_sb", "lay_sb_dn_gm", "scale-transposed"),
    ],
)
def test_published_maps(source: str, stored: str, name: str) -> None:
    arrays = load("mx_matmul")
    assert np.array_equal(nc.layout.pack(arrays[source], name).ravel(), arrays[stored].ravel())
    assert np.array_equal(nc.layout.unpack(arrays[stored], name, arrays[source].shape), arrays[source])


def test_simulator_exponents_in_boxes() -> None:
    arrays = load("pto_cpu_tquant_mxfp8_expzz")
    for rows, boxes in zip(arrays["exp"], arrays["expzz"], strict=True):
        assert np.array_equal(nc.layout.pack(rows.reshape(32, 4), "zz").ravel(), boxes)


def test_row_interleaved_by_hand() -> None:
    scale = np.uint8([[1, 2], [3, 4], [5, 6]])
    assert nc.layout.pack(scale, "scale-interleaved").tolist() == [[[1, 3], [2, 4]], [[5, 0], [6, 0]]]
    assert device_scales(-1).pack(scale).tolist() == [[[1, 2]], [[3, 4]], [[5, 6]]]
    deep = np.arange(3 * 2 * 4).reshape(3, 2, 4)
    assert np.array_equal(device_scales(-3).pack(deep)[1, ..., 0], deep[2])
    assert np.array_equal(device_scales(-3).unpack(device_scales(-3).pack(deep), deep.shape), deep)


def test_out_and_strides() -> None:
    array = np.arange(64, dtype=np.uint8).reshape(8, 8)[:, ::2]
    out = np.empty((8, 2, 2), dtype=np.uint8)
    assert nc.layout.pack(array, "scale-device", out) is out
    back = np.empty((8, 4), dtype=np.uint8)
    assert nc.layout.unpack(out, "scale-device", (8, 4), back) is back
    assert np.array_equal(back, array)


def test_errors() -> None:
    with pytest.raises(nc.UnknownNameError, match="Did you mean scale-zz"):
        nc.layout.pack([[1]], "scale-zs")
    with pytest.raises(nc.ShapeError, match=r"at least 2 axes; got shape \(3,\)"):
        nc.layout.pack([1, 2, 3], "zz")
    with pytest.raises(nc.ShapeError, match=r"storage has 3 elements; an array of shape \(1, 3\) needs \(1, 2, 2\)"):
        nc.layout.unpack([1, 2, 3], "scale-device", (1, 3))
    with pytest.raises(nc.ShapeError, match="out must be a int64 array of shape"):
        nc.layout.pack([[1, 2]], "nd", np.empty((1, 2), dtype=np.uint8))
    with pytest.raises(nc.EncodingError, match="both sides name the same parts"):
        AxisPattern.parse("a b -> a c")
    with pytest.raises(nc.EncodingError, match="the first part has no size"):
        AxisPattern.parse("(a:2 b) -> a b")
    with pytest.raises(nc.ShapeError, match="name the axis from the end"):
        device_scales(0)
