"""Array layouts, sizes and outputs: the same bits as from a flat array, and nothing else touched."""

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from narrowcast import kernels, numerics
from narrowcast.catalog.formats import formats
from narrowcast.schema import Rounding
from tests.kernel_inputs import bits_of, upper_halves

SIZES = (0, 1, 7, 63, 64, 65, 1000, 100003)
RULE: dict[str, Any] = {"saturate": False, "nan": "zero"}
# A target and mode for each kernel: byte planes, table, hybrid, halves, integers.
KERNELS = [
    ("e4m3", Rounding.RN),
    ("hif8", Rounding.RNA),
    ("hif8", Rounding.RH),
    ("e5m2", Rounding.RZ),
    ("e2m1", Rounding.RN),
    ("bf16", Rounding.RN),
    ("fp16", Rounding.RO),
    ("fp16", Rounding.RU),
    ("s8", Rounding.RN),
    ("s16", Rounding.RNA),
    ("u32", Rounding.RD),
    ("fp32", Rounding.RN),
]


def sample(size: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).choice(upper_halves(16), size)


def expected(values: np.ndarray, name: str, mode: Rounding) -> np.ndarray:
    flat = np.ascontiguousarray(values, dtype=values.dtype.newbyteorder("=")).reshape(-1)
    return numerics.encode(flat, formats[name], mode, **RULE).reshape(values.shape)


@pytest.mark.parametrize(("name", "mode"), KERNELS)
@pytest.mark.parametrize("size", SIZES)
def test_sizes(size: int, name: str, mode: Rounding) -> None:
    values, fmt = sample(size), formats[name]
    want = expected(values, name, mode)
    assert np.array_equal(kernels.encode(values, fmt, mode, **RULE), want)
    guarded = np.full(size + 16, 0xA5, dtype=fmt.code_dtype)
    kernels.encode(values, fmt, mode, out=guarded[8 : size + 8], **RULE)
    assert np.array_equal(guarded[8 : size + 8], want)
    assert (guarded[:8] == 0xA5).all() and (guarded[size + 8 :] == 0xA5).all()
    if name in ("u32",):
        return
    rounded = np.full(size + 16, 42.0, dtype=np.float32)
    kernels.round_to(values, fmt, mode, out=rounded[8 : size + 8], **RULE)
    assert np.array_equal(bits_of(rounded[8 : size + 8]), bits_of(numerics.decode(want.reshape(-1), fmt)))
    assert (rounded[:8] == 42.0).all() and (rounded[size + 8 :] == 42.0).all()


@pytest.mark.parametrize("name", ["e4m3", "e5m2", "hif8", "e2m1", "s8", "e8m0", "fp16", "bf16", "s16", "s32"])
@pytest.mark.parametrize("size", SIZES)
def test_decode_sizes(size: int, name: str) -> None:
    fmt = formats[name]
    codes = np.random.default_rng(size).integers(0, fmt.code_mask, size, endpoint=True).astype(fmt.code_dtype)
    want = numerics.decode(codes, fmt)
    guarded = np.zeros(size + 16, dtype=want.dtype)
    guarded[:] = 7
    kernels.decode(codes, fmt, out=guarded[5 : size + 5])
    assert np.array_equal(bits_of(guarded[5 : size + 5]), bits_of(want))
    assert (guarded[:5] == 7).all() and (guarded[size + 5 :] == 7).all()


def swapped(x: np.ndarray) -> np.ndarray:
    return x.astype(x.dtype.newbyteorder(">"))


def unaligned(x: np.ndarray) -> np.ndarray:
    raw = np.zeros(x.nbytes + 1, dtype=np.uint8)
    view = raw[1:].view(x.dtype)[: x.size].reshape(x.shape)
    view[...] = x
    return view


def read_only(x: np.ndarray) -> np.ndarray:
    x = x.copy()
    x.flags.writeable = False
    return x


LAYOUTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "contiguous": lambda x: x,
    "fortran": np.asfortranarray,
    "transposed": lambda x: x.transpose(2, 0, 1),
    "every second": lambda x: x[:, ::2],
    "last axis strided": lambda x: x[..., ::3],
    "reversed": lambda x: x[::-1, :, ::-1],
    "byte-swapped": swapped,
    "unaligned": unaligned,
    "read-only": read_only,
    "broadcast": lambda x: np.broadcast_to(x[:, :1], x.shape),
    "0-d": lambda x: x[1, 2, 3],
    "0-d array": lambda x: x[1:2, 2:3, 3:4].reshape(()),
    "empty": lambda x: x[:, :0],
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", ["e4m3", "fp16", "s8"])
@pytest.mark.parametrize("source", ["float32", "float16", "float64"])
def test_layouts(source: str, name: str, layout: str) -> None:
    with np.errstate(over="ignore", invalid="ignore"):
        base = sample(40 * 31 * 70, seed=1).astype(source).reshape(40, 31, 70)
    values = np.asarray(LAYOUTS[layout](base))
    before = values.copy()
    want = expected(values, name, Rounding.RN)
    got = kernels.encode(values, formats[name], Rounding.RN, **RULE)
    assert got.shape == values.shape and np.array_equal(got, want)
    rounded = kernels.round_to(values, formats[name], Rounding.RN, **RULE)
    assert np.array_equal(
        bits_of(rounded), bits_of(numerics.decode(want.reshape(-1), formats[name]).reshape(want.shape))
    )
    assert np.array_equal(values, before, equal_nan=True)


@pytest.mark.parametrize("layout", [n for n in LAYOUTS if n not in ("read-only", "broadcast", "0-d", "byte-swapped")])
def test_outputs_of_every_layout(layout: str) -> None:
    values = np.asarray(LAYOUTS[layout](sample(40 * 31 * 70, seed=2).reshape(40, 31, 70)))
    for name, dtype in (("hif8", np.uint8), ("bf16", np.uint16)):
        backing = np.zeros((40, 31, 70), dtype=dtype)
        out = LAYOUTS[layout](backing)
        got = kernels.encode(values, formats[name], Rounding.RNA, out=out, **RULE)
        assert got is out and np.array_equal(out, expected(values, name, Rounding.RNA))


def test_bfloat16_layouts() -> None:
    base = np.arange(1 << 16, dtype=np.uint16).view(ml_dtypes.bfloat16).reshape(256, 256)
    for values in (base, base.T, base[::2, ::3], np.asfortranarray(base)):
        want = expected(values, "hif8", Rounding.RNA)
        assert np.array_equal(kernels.encode(values, formats["hif8"], Rounding.RNA, **RULE), want)


def test_round_in_place() -> None:
    for name, mode in (("e4m3", Rounding.RN), ("hif8", Rounding.RH), ("e5m2", Rounding.RZ), ("bf16", Rounding.RN)):
        values = sample(70001)
        want = kernels.round_to(values.copy(), formats[name], mode, **RULE)
        kernels.round_to(values, formats[name], mode, out=values, **RULE)
        assert np.array_equal(bits_of(values), bits_of(want))


def test_output_that_overlaps_the_input() -> None:
    backing = sample(70001)
    want = expected(backing[:-1].copy(), "hif8", Rounding.RNA)
    inside = backing.view(np.uint8)[5 : 5 + 70000]
    kernels.encode(backing[:-1], formats["hif8"], Rounding.RNA, out=inside, **RULE)
    assert np.array_equal(inside, want)
    shifted = sample(70001)
    moved = kernels.round_to(shifted[:-1].copy(), formats["e4m3"], Rounding.RN, **RULE)
    kernels.round_to(shifted[:-1], formats["e4m3"], Rounding.RN, out=shifted[1:], **RULE)
    assert np.array_equal(bits_of(shifted[1:]), bits_of(moved))


@pytest.mark.parametrize("threads", ["1", "2", "3"])
def test_threads_and_streaming(threads: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrays above the threshold for threads, and above the cache for a decode, equal their pieces."""
    monkeypatch.setenv("NARROWCAST_THREADS", threads)
    values = np.tile(sample(100003), 110)  # 11 Mi elements: 42 MiB of fp32
    offset = values[3:]  # no vector of the output is aligned as the input's
    for name, mode in (("e4m3", Rounding.RN), ("hif8", Rounding.RH), ("e5m2", Rounding.RZ)):
        codes = kernels.encode(offset, formats[name], mode, **RULE)
        want = np.tile(expected(values[:100003], name, mode), 110)[3:]
        assert np.array_equal(codes, want)
        decoded = np.empty(codes.size + 1, dtype=np.float32)[1:]
        kernels.decode(codes, formats[name], out=decoded)
        table = numerics.decode_table(formats[name])
        assert np.array_equal(bits_of(decoded), bits_of(table)[codes])
        rounded = np.empty(codes.size + 3, dtype=np.float32)[3:]
        kernels.round_to(offset, formats[name], mode, out=rounded, **RULE)
        assert np.array_equal(bits_of(rounded), bits_of(decoded))
