"""What is measured: each conversion with its inputs, its reused output, its limit kernel and its expected result."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import narrowcast as nc
from bench import tiles
from narrowcast import kernels, numerics
from narrowcast.catalog.fixpipe_modes import fixpipe_modes
from narrowcast.catalog.formats import formats
from narrowcast.fixpipe.pipeline import Parameters, convert
from narrowcast.operation import Choices
from narrowcast.schema import IntFormat, Rounding

Array = np.ndarray[Any, Any]
Call = Callable[[], object]

COLUMNS = 4096
SAMPLE = 1 << 16  # elements that are verified before timing


@dataclass(frozen=True)
class Workload:
    """One conversion of ``size`` elements, as a caller in a loop would write it."""

    name: str
    call: Call
    limit: Call | None
    check: Callable[[], bool]
    inputs: dict[str, Array] = field(default_factory=dict)  # what peers convert


def values(size: int) -> Array:
    """fp32 values over many binades, most within the range of the 8-bit formats."""
    rng = np.random.default_rng(size)
    x = rng.standard_normal(size, dtype=np.float32)
    x *= np.exp2(rng.integers(-8, 6, size)).astype(np.float32)
    return x


def workloads(size: int, threads: int) -> list[Workload]:
    """Build every workload for arrays of ``size`` elements."""
    x = values(size)
    limits = _Limits(x, threads)
    return [
        _encode(x, "e4m3", "rn", limits),
        _encode(x, "hif8", "rna", limits),
        _encode(x, "hif8", "rh", limits),
        _decode(size, "e4m3", limits),
        _decode(size, "hif8", limits),
        *(_encode(x, name, mode, limits) for name in ("bf16", "fp16") for mode in ("rn", "rz", "ro")),
        _round(x, "e4m3", limits),
        _round(x, "hif8", limits),
        _rows(x, limits),
        *(_tile_dequantize(name, size, limits) for name in ("s8", "s16")),
        *(_tile(tiles.quantize(name, x, COLUMNS), limits.encode(1)) for name in ("s8", "u8")),
        _tile(tiles.convert("fp16", x, COLUMNS), limits.encode(2)),
        _pack(size, limits),
        _unpack(size, limits),
        *(_blocks(x, name, rule, limits) for name in ("e4m3", "e2m1", "e1m2") for rule in ("ocp-floor", "ceil")),
        _packed_blocks(x, limits),
        *(_requant(size, mode, vector, limits) for mode in ("REQ8", "DEQF16", "QS322BF16") for vector in (False, True)),
        *(_requant(size, mode, True, limits) for mode in ("REQ4", "QF32_2_B8", "QF32_2_E4M3", "QF32_2_HiF8")),
        *(_requant(size, mode, True, limits) for mode in ("QF32_2_BF16", "QF322F16")),
        _requant_fractals(size, limits),
        _product(size),
        *(_summary(x, exponents, limits) for exponents in (False, True)),
    ]


class _Limits:
    """Calls of the trivial kernels, on outputs of their own."""

    def __init__(self, x: Array, threads: int) -> None:
        self._native: Any = None
        if kernels.level() != "numpy":
            from narrowcast import _native

            self._native = _native
        self._x, self._threads = x, threads
        self._out = {bytes_: np.empty(x.size, dtype=f"uint{8 * bytes_}") for bytes_ in (1, 2, 4)}

    def encode(self, code_bytes: int) -> Call | None:
        if self._native is None:
            return None
        kernel, out = getattr(self._native, f"limit_4to{code_bytes}"), self._out[code_bytes]
        target = out.view(np.float32) if code_bytes == 4 else out
        return lambda: kernel(self._x, target, self._threads)

    def decode(self, codes: Array) -> Call | None:
        if self._native is None:
            return None
        return lambda: self._native.limit_1to4(codes, self._out[4].view(np.float32), self._threads)

    def widen(self, codes: Array) -> Call | None:
        if self._native is None:
            return None
        unsigned = codes.reshape(-1).view(f"uint{8 * codes.dtype.itemsize}")
        kernel = self._native.limit_1to4 if codes.dtype.itemsize == 1 else self._native.limit_2to4
        return lambda: kernel(unsigned, self._out[4].view(np.float32), self._threads)

    def read(self) -> Call | None:
        return None if self._native is None else lambda: self._native.limit_read(self._x, self._threads)

    def bytes_only(self, kernel: str, source: Array, out: Array) -> Call | None:
        if self._native is None:
            return None
        call = getattr(self._native, kernel)
        return lambda: call(source, out, self._threads)


def _specified(x: Array, name: str, mode: str) -> Array:
    return numerics.encode(x, formats[name], Rounding(mode), saturate=True, nan="keep")


def _encode(x: Array, name: str, mode: str, limits: _Limits) -> Workload:
    out = np.empty(x.size, dtype=formats[name].code_dtype)

    def check() -> bool:
        nc.encode(x, name, mode, out=out)
        return np.array_equal(out[:SAMPLE], _specified(x[:SAMPLE], name, mode))

    return Workload(
        f"fp32 -> {name} {mode}",
        lambda: nc.encode(x, name, mode, out=out),
        limits.encode(out.itemsize),
        check,
        {"x": x},
    )


def _decode(size: int, name: str, limits: _Limits) -> Workload:
    codes = np.random.default_rng(1).integers(0, 256, size, dtype=np.uint8)
    out = np.empty(size, dtype=np.float32)

    def check() -> bool:
        nc.decode(codes, name, out=out)
        return out[:SAMPLE].tobytes() == numerics.decode(codes[:SAMPLE], formats[name]).tobytes()

    return Workload(
        f"{name} -> fp32", lambda: nc.decode(codes, name, out=out), limits.decode(codes), check, {"codes": codes}
    )


def _round(x: Array, name: str, limits: _Limits) -> Workload:
    out = np.empty(x.size, dtype=np.float32)
    mode = formats[name].default_rounding.value

    def check() -> bool:
        nc.round_to(x, name, out=out)
        want = numerics.decode(_specified(x[:SAMPLE], name, mode), formats[name])
        return out[:SAMPLE].tobytes() == want.tobytes()

    return Workload(
        f"fake-quant {name} {mode}", lambda: nc.round_to(x, name, out=out), limits.encode(4), check, {"x": x}
    )


def _rows(x: Array, limits: _Limits) -> Workload:
    rows = x.reshape(-1, COLUMNS)
    scale = (np.abs(rows).max(axis=1) / np.float32(127)).astype(np.float32)
    out = np.empty(rows.shape, dtype=np.uint8)
    target = formats["s8"]
    assert isinstance(target, IntFormat)

    def check() -> bool:
        kernels.quantize_rows(rows, scale, target, out=out)
        some = slice(0, max(1, SAMPLE // COLUMNS))
        want = np.clip(np.rint(rows[some] / scale[some, None]), -128, 127).astype(np.int8)
        return np.array_equal(out[some].view(np.int8), want)

    return Workload(
        "fp32 -> s8 per row",
        lambda: kernels.quantize_rows(rows, scale, target, out=out),
        limits.encode(1),
        check,
        {"rows": rows, "scale": scale},
    )


def _blocks(x: Array, name: str, rule: str, limits: _Limits) -> Workload:
    rows = x.reshape(-1, COLUMNS)
    out = np.empty(rows.shape, dtype=np.uint8), np.empty((rows.shape[0], COLUMNS // 32), dtype=np.uint8)

    def check() -> bool:
        nc.mx.quantize(rows, name, rule, out=out)
        some = rows[: max(1, SAMPLE // COLUMNS)]
        byte, multiplier = nc.mx.shared_scales(some, name, rule)
        scaled = (some.reshape(-1, 32) * multiplier.reshape(-1, 1)).reshape(some.shape)
        codes = _specified(scaled.ravel(), name, "rn").reshape(some.shape)
        return np.array_equal(out[0][: len(some)], codes) and np.array_equal(out[1][: len(some)], byte)

    return Workload(
        f"MX {name} {rule}",
        lambda: nc.mx.quantize(rows, name, rule, out=out),
        limits.encode(1),
        check,
        {"rows": rows, "scale": rows[:, 0]},
    )


def _packed_blocks(x: Array, limits: _Limits) -> Workload:
    rows = x.reshape(-1, COLUMNS)

    def check() -> bool:
        packed, _ = nc.mx.quantize_packed(rows, "e2m1")
        return np.array_equal(packed, nc.pack(nc.mx.quantize(rows, "e2m1").codes, "e2m1"))

    return Workload(
        "MX e2m1 packed",
        lambda: nc.mx.quantize_packed(rows, "e2m1"),
        limits.encode(1),
        check,
        {"rows": rows, "scale": rows[:, 0]},
    )


def _accumulators(size: int, kind: str) -> Array:
    acc = np.random.default_rng(4).integers(-30000, 30000, (size // COLUMNS, COLUMNS)).astype(np.int32)
    return acc if kind == "s32" else (acc / np.float32(64)).astype(np.float32)


def _requant(size: int, mode: str, vector: bool, limits: _Limits) -> Workload:
    row = fixpipe_modes[mode]
    acc = _accumulators(size, row.accumulator)
    scale = np.random.default_rng(5).uniform(0.001, 0.01, COLUMNS).astype(np.float32)
    op = nc.fixpipe.Fixpipe(mode=mode)
    words = nc.fixpipe.quant_words(scale if vector else scale[:1], np.int64(3), True)
    out = np.empty(acc.size, dtype=formats[row.targets[0]].code_dtype)
    inputs = {"acc": acc, "words": words}

    def check() -> bool:
        nc.execute(op, inputs, out=out)
        some = acc[: max(1, SAMPLE // COLUMNS)]
        choices = Choices(nc.Semantics(), frozenset(op.switches), "bench")
        used, target = nc.fixpipe.truncate_scale(scale if vector else scale[:1]), row.targets[0]
        offset = np.array([3 if row.offset else 0])
        want = convert(some, row, Parameters(used, offset, target), choices, nc.Control())
        return np.array_equal(out[: some.size], want.ravel())

    return Workload(
        f"{mode} {'per column' if vector else 'one scale'}",
        lambda: nc.execute(op, inputs, out=out),
        limits.encode(out.itemsize),
        check,
    )


def _requant_fractals(size: int, limits: _Limits) -> Workload:
    acc = _accumulators(size, "s32")
    l0c = nc.fixpipe.to_fractal(acc)
    rows, columns = acc.shape
    op = nc.fixpipe.Fixpipe(mode="REQ8", acc_layout="NZ", m=rows, n=columns)
    words = nc.fixpipe.quant_words(np.full(columns, 0.005), np.int64(3), True)
    out = np.empty(acc.size, dtype=np.uint8)
    inputs = {"acc": l0c, "words": words}

    def check() -> bool:
        nc.execute(op, inputs, out=out)
        return np.array_equal(out, nc.execute(nc.fixpipe.Fixpipe(mode="REQ8"), {**inputs, "acc": acc}).storage[0])

    return Workload("REQ8 per column, NZ2ND", lambda: nc.execute(op, inputs, out=out), limits.encode(1), check)


def _tile(entry: tiles.Entry, limit: Call | None) -> Workload:
    name, call, check, inputs = entry
    return Workload(name, call, limit, check, inputs)


def _tile_dequantize(dtype: str, size: int, limits: _Limits) -> Workload:
    entry, codes = tiles.dequantize(dtype, size, COLUMNS)
    return _tile(entry, limits.widen(codes))


def _product(size: int) -> Workload:
    """``size`` results of s8 operands; the limit is NumPy's float32 product of the same shape."""
    rng = np.random.default_rng(6)
    a = rng.integers(-128, 128, (size // COLUMNS, 256)).astype(np.int8)
    b = rng.integers(-128, 128, (256, COLUMNS)).astype(np.int8)
    left, right = a.astype(np.float32), b.astype(np.float32)
    out = np.empty((size // COLUMNS, COLUMNS), dtype=np.float32)

    def check() -> bool:
        some = slice(0, max(1, SAMPLE // COLUMNS))
        return np.array_equal(nc.cube.mmad(a, b)[some], a[some].astype(np.int64) @ b.astype(np.int64))

    return Workload("Mmad s8, K = 256", lambda: nc.cube.mmad(a, b), lambda: np.matmul(left, right, out=out), check)


def _summary(x: Array, exponents: bool, limits: _Limits) -> Workload:
    """One pass for sums, extremes and counts; the limit reads the array and writes nothing."""

    def check() -> bool:
        some = x[:SAMPLE]
        found, wide = kernels.summarize(some, exponents), some.astype(np.float64)
        sums = np.isclose((found.total, found.total_square), (wide.sum(), np.square(wide).sum()), rtol=1e-9)
        exact = [found.minimum, found.maximum, found.zeros] == [some.min(), some.max(), np.count_nonzero(some == 0)]
        fields = np.bincount((some.view(np.uint32) >> 23) & 255, minlength=256)
        counted = found.exponents is None or np.array_equal(found.exponents, fields)
        return bool(sums.all() and exact and counted and exponents == (found.exponents is not None))

    name = "statistics with exponents" if exponents else "statistics"
    return Workload(name, lambda: kernels.summarize(x, exponents), limits.read(), check)


def _pack(size: int, limits: _Limits) -> Workload:
    codes = np.random.default_rng(2).integers(0, 16, size, dtype=np.uint8)
    out = np.empty(size // 2, dtype=np.uint8)

    def check() -> bool:
        kernels.pack(codes, out=out)
        return np.array_equal(out, codes[0::2] | codes[1::2] << np.uint8(4))

    limit = limits.bytes_only("limit_2to1", codes, np.empty_like(out))
    return Workload("pack 4-bit", lambda: kernels.pack(codes, out=out), limit, check)


def _unpack(size: int, limits: _Limits) -> Workload:
    packed = np.random.default_rng(3).integers(0, 256, size // 2, dtype=np.uint8)
    out = np.empty(size, dtype=np.uint8)

    def check() -> bool:
        kernels.unpack(packed, size, out=out)
        return np.array_equal(out[0::2], packed & 15) and np.array_equal(out[1::2], packed >> 4)

    limit = limits.bytes_only("limit_1to2", packed, np.empty_like(out))
    return Workload("unpack 4-bit", lambda: kernels.unpack(packed, size, out=out), limit, check)
