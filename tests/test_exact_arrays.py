"""Any shape, strides, byte order and alignment in; `out=` filled in place; inputs never touched."""

from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest

import narrowcast as nc
from tests.oracle import MODES, expected
from tests.oracle.sources import DTYPES

BASE = (np.random.default_rng(5).standard_normal(6 * 10 * 14) * 40).astype(np.float32).reshape(6, 10, 14)
KINDS = ("float16", "bfloat16", "float32", "float64", "int8", "int32", "int64", "uint16")
TARGETS = ("e4m3", "hif8", "e2m1", "fp16", "s8", "s16", "fp32")


def unaligned(a: np.ndarray) -> np.ndarray:
    raw = np.zeros(a.nbytes + 1, np.uint8)
    view = raw[1:].view(a.dtype).reshape(a.shape)
    view[...] = a
    assert a.dtype.itemsize == 1 or not view.flags.aligned
    return view


def read_only(a: np.ndarray) -> np.ndarray:
    a = a.copy()
    a.setflags(write=False)
    return a


LAYOUTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "contiguous": lambda a: a,
    "transposed": lambda a: a.T,
    "fortran": np.asfortranarray,
    "step": lambda a: a[::2, ::3, ::5],
    "reversed": lambda a: a[::-1, :, ::-1],
    "column": lambda a: a[:, :, 3],
    "broadcast": lambda a: np.broadcast_to(a[:1, :, :1], a.shape),
    "read-only": read_only,
    "unaligned": unaligned,
    "empty": lambda a: a[:0],
    "empty-middle": lambda a: a[:, :0],
    "scalar": lambda a: a[0, 0, 0].reshape(()),
    "one": lambda a: a[:1, :1, :1],
}


def as_kind(kind: str) -> np.ndarray:
    if kind.startswith("uint"):
        return np.abs(BASE).astype(kind)
    return BASE.astype(DTYPES.get(kind, kind))


def want_of(a: np.ndarray, name: str) -> np.ndarray:
    """Return the expected codes with the array's shape; fp32 has no table in the oracle and widens or rounds once."""
    if name == "fp32":
        return a.astype(np.float32).view(np.uint32)
    flat = expected(np.ascontiguousarray(a).reshape(-1), name, "rn", saturate=True)
    return flat.reshape(a.shape).astype(nc.formats[name].code_dtype)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("kind", KINDS)
def test_encode(kind: str, layout: str) -> None:
    a = LAYOUTS[layout](as_kind(kind))
    before = a.copy()
    for name in TARGETS:
        got = nc.encode(a, name, rounding="rn")
        want = want_of(a, name)
        assert isinstance(got, np.ndarray)
        assert (got.dtype, got.shape) == (want.dtype, want.shape)
        assert np.array_equal(got, want)
    assert np.array_equal(a, before)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", ["e4m3", "hif8", "e2m1", "fp16", "bf16", "fp19", "s4", "s16", "fp32", "s32"])
def test_decode(name: str, layout: str) -> None:
    codes = nc.encode(BASE, name)
    a = LAYOUTS[layout](codes)
    plain = nc.decode(np.ascontiguousarray(a).reshape(-1), name).reshape(a.shape)
    got = nc.decode(a, name)
    assert got.shape == a.shape
    assert np.array_equal(got, plain)
    if name not in ("fp32", "s32"):
        assert np.array_equal(nc.encode(got, name), a)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", ["e4m3", "hif8", "e2m1", "fp16", "s8", "s16"])
def test_round_to(name: str, layout: str) -> None:
    a = LAYOUTS[layout](BASE)
    got = nc.round_to(a, name)
    assert (got.dtype, got.shape) == (np.float32, a.shape)
    assert np.array_equal(got, nc.decode(nc.encode(a, name), name))


@pytest.mark.parametrize("kind", [k for k in KINDS if k not in ("int8", "bfloat16")])
def test_byte_swapped_input(kind: str) -> None:
    a = as_kind(kind)
    swapped = a.astype(a.dtype.newbyteorder())
    for name in TARGETS:
        assert np.array_equal(nc.encode(swapped, name), nc.encode(a, name))
        assert np.array_equal(nc.encode(swapped[::2, :, ::-1], name), nc.encode(a[::2, :, ::-1], name))


@pytest.mark.parametrize("name", ["fp16", "s16", "fp32", "s32"])
def test_byte_swapped_codes(name: str) -> None:
    codes = nc.encode(BASE, name)
    assert np.array_equal(nc.decode(codes.astype(codes.dtype.newbyteorder()), name), nc.decode(codes, name))


OUTS: dict[str, Callable[[tuple[int, ...], np.dtype], np.ndarray]] = {
    "contiguous": lambda s, d: np.zeros(s, d),
    "fortran": lambda s, d: np.zeros(s, d, order="F"),
    "strided": lambda s, d: np.zeros((s[0], s[1], 2 * s[2]), d)[:, :, ::2],
    "reversed": lambda s, d: np.zeros(s, d)[:, ::-1],
    "unaligned": lambda s, d: unaligned(np.zeros(s, d)),
}


@pytest.mark.parametrize("layout", ["contiguous", "transposed", "step", "unaligned", "read-only"])
@pytest.mark.parametrize("out", OUTS)
def test_out_is_filled_and_returned(out: str, layout: str) -> None:
    a = LAYOUTS[layout](BASE)
    for name in TARGETS:
        target = OUTS[out](a.shape, np.dtype(nc.formats[name].code_dtype))
        assert nc.encode(a, name, out=target) is target
        assert np.array_equal(target, nc.encode(a, name))
        values = OUTS[out](a.shape, np.dtype(np.float32))
        assert nc.decode(target, name, out=values) is values
        assert np.array_equal(values, nc.decode(nc.encode(a, name), name))
        fused = OUTS[out](a.shape, np.dtype(np.float32))
        assert nc.round_to(a, name, out=fused) is fused
        assert np.array_equal(fused, values)


def test_out_leaves_its_neighbours_alone() -> None:
    wide = np.full((6, 10, 28), 0xAA, np.uint8)
    nc.encode(BASE, "e4m3", out=wide[:, :, ::2])
    assert (wide[:, :, 1::2] == 0xAA).all()


def test_out_may_be_the_input() -> None:
    """round_to in place: the same memory as input and output."""
    a = BASE.copy()
    assert nc.round_to(a, "hif8", out=a) is a
    assert np.array_equal(a, nc.round_to(BASE, "hif8"))


def test_out_may_overlap_the_input() -> None:
    buffer = np.concatenate([BASE.reshape(-1), np.zeros(1, np.float32)])
    want = nc.round_to(buffer[:-1].copy(), "e4m3")
    nc.round_to(buffer[:-1], "e4m3", out=buffer[1:])
    assert np.array_equal(buffer[1:], want)


@pytest.mark.parametrize(
    "size", [1, 2, 3, 7, 8, 15, 16, 17, 31, 32, 33, 63, 65, 127, 1023, 65535, 65536, 65537, 131073]
)
def test_sizes_around_vector_widths_and_chunks(size: int) -> None:
    rng = np.random.default_rng(size)
    x = (rng.standard_normal(size) * 30).astype(np.float32)
    for name in ("e4m3", "hif8", "bf16", "fp16", "s8", "e2m1"):
        codes = nc.encode(x, name, rounding="rn")
        assert np.array_equal(codes, expected(x, name, "rn", saturate=True))
        assert np.array_equal(nc.round_to(x, name, rounding="rn"), nc.decode(codes, name))
    for start in range(1, 4):
        assert np.array_equal(nc.encode(x[start:], "hif8"), nc.encode(x, "hif8")[start:])


@pytest.mark.parametrize("mode", MODES)
def test_position_in_the_array_does_not_matter(mode: str) -> None:
    """A special value is treated alike in a vector body and in its tail."""
    specials = np.float32([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-45, 3e38, 464.0, 17.0])
    for name in ("e4m3", "hif8", "e5m2", "fp16", "bf16"):
        alone = np.concatenate([nc.encode(specials[i : i + 1], name, rounding=mode, saturate=False) for i in range(9)])
        for size in (9, 16, 33, 70, 1000):
            x = np.resize(specials, size)
            assert np.array_equal(nc.encode(x, name, rounding=mode, saturate=False), np.resize(alone, size))


def test_lists_and_scalars_are_accepted() -> None:
    assert nc.encode(17.0, "e4m3").shape == ()
    assert int(nc.encode(17.0, "e4m3")) == 0x58
    assert nc.encode([], "hif8").shape == (0,)
    assert nc.encode([[1, 2], [3, 4]], "e2m1").tolist() == [[2, 4], [5, 6]]
    assert float(nc.decode(0x08, "hif8")) == 1.0
    assert nc.round_to([0.3, -0.3], "s4").tolist() == [0.0, 0.0]


def test_ml_dtypes_arrays_are_values_and_codes() -> None:
    x = np.float32([1.0, -1.5, 448.0, 0.0])
    small = x.astype(ml_dtypes.float8_e4m3fn)
    assert np.array_equal(nc.encode(small, "e4m3"), small.view(np.uint8))
    assert np.array_equal(nc.decode(small, "e4m3"), x)
    assert np.array_equal(nc.encode(small, "hif8"), nc.encode(x, "hif8"))
    assert nc.formats[ml_dtypes.float8_e4m3fn] is nc.formats[small.dtype] is nc.formats["e4m3"]  # type: ignore[index]
    assert np.array_equal(nc.decode(x.astype(">f2"), "fp16"), x)


@pytest.mark.parametrize("name", ["s4", "u4", "e2m1", "e1m2"])
@pytest.mark.parametrize("count", [0, 1, 2, 5, 32, 33, 4097])
def test_pack_puts_the_even_element_low(name: str, count: int) -> None:
    codes = np.random.default_rng(count).integers(0, 16, (3, count), dtype=np.uint8)
    packed = nc.pack(codes, name)
    assert (packed.dtype, packed.shape) == (np.uint8, (3, (count + 1) // 2))
    for i in range(count):
        assert np.array_equal(packed[:, i // 2] >> 4 * (i % 2) & 15, codes[:, i])
    if count % 2:
        assert (packed[:, -1] >> 4 == 0).all()
    assert np.array_equal(nc.unpack(packed, name, count), codes)
    assert np.array_equal(nc.unpack(packed, name), np.pad(codes, ((0, 0), (0, count % 2))))
    assert np.array_equal(nc.pack(codes[:, ::-1], name), nc.pack(codes[:, ::-1].copy(), name))
    assert np.array_equal(nc.unpack(packed[::-1], name, count), codes[::-1])


def test_flush_subnormals_keeps_the_sign() -> None:
    tiny = np.float32([1e-39, -1e-39, 0.0, -0.0, 2.0**-126, -(2.0**-126), 2.0**-126 - 2.0**-149, 1.0])
    out = nc.flush_subnormals(tiny, "fp32")
    want = np.float32([0.0, -0.0, 0.0, -0.0, 2.0**-126, -(2.0**-126), 0.0, 1.0])
    assert np.array_equal(out.view(np.uint32), want.view(np.uint32))
    half = np.float16([2.0**-14, 2.0**-15, -(2.0**-24), np.inf])
    out = nc.flush_subnormals(half, "fp16")
    assert out.dtype == np.float16
    assert np.array_equal(out.view(np.uint16), np.float16([2.0**-14, 0.0, -0.0, np.inf]).view(np.uint16))
    specials = np.float32([np.nan, np.inf, -np.inf])
    assert np.array_equal(nc.flush_subnormals(specials, "fp32"), specials, equal_nan=True)
    for dtype in (np.int8, ml_dtypes.int4):
        integers = np.array([-8, 1, 0], dtype)
        out = nc.flush_subnormals(integers, "e4m3")
        assert out.dtype == dtype and out.tolist() == [-8, 1, 0] and out is not integers


def test_floating_point_state_and_warnings_are_left_alone() -> None:
    """Signalling NaN, overflow and underflow in the data raise no NumPy warning even where all are errors."""
    bits = np.array([0x7F800001, 0xFF800001, 0x7FBFFFFF, 0x7F7FFFFF, 1, 0x80000001], np.uint32)
    halves = np.array([0x7C01, 0xFC01, 0x7BFF, 1], np.uint16)
    with np.errstate(all="raise"):
        for name in ("e4m3", "e5m2", "hif8", "bf16", "fp16", "e8m0"):
            for saturate in (False, True):
                nc.encode(bits.view(np.float32), name, saturate=saturate)
                nc.encode(halves.view(np.float16), name, saturate=saturate)
                nc.round_to(bits.view(np.float32), name, saturate=saturate)
        for name in ("s4", "s8", "u8", "s16", "s32", "s64"):
            for saturate in (False, True):
                nc.encode(bits.view(np.float32), name, nan="zero", saturate=saturate)
                nc.encode(halves.view(np.float16), name, nan="zero", saturate=saturate)
        nc.encode(np.array([np.inf, 1e300, -1e300, 5e-324]), "e4m3", saturate=False)
    assert np.float32(1e-40) != 0
    assert np.float32(1e-38) * np.float32(1e-2) != 0
