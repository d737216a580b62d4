"""The tile instructions on whole matrices: one call, not a loop over tiles."""

from collections.abc import Callable
from typing import Any

import numpy as np

from narrowcast.tile import Tile, tcvt, tdequant, tquant

Array = np.ndarray[Any, Any]
Call = Callable[[], object]
Check = Callable[[], bool]
Entry = tuple[str, Call, Check, dict[str, Array]]

_CODES: dict[str, np.dtype[Any]] = {"s8": np.dtype(np.int8), "s16": np.dtype(np.int16)}
_SAMPLE_ROWS = 16


def dequantize(dtype: str, size: int, columns: int) -> tuple[Entry, Array]:
    """TDEQUANT of every row, and the codes it reads."""
    rng = np.random.default_rng(6)
    native = _CODES[dtype]
    limit = 1 << (8 * native.itemsize - 1)
    codes: Array = rng.integers(-limit, limit, (size // columns, columns)).astype(native)
    scale: Array = rng.uniform(1e-3, 1e-1, codes.shape[0]).astype(np.float32)
    zero: Array = rng.integers(-8, 8, codes.shape[0]).astype(np.float32)
    source, out = Tile(codes), Tile(dtype="fp32", shape=(codes.shape[0], columns))
    parameters = Tile.per_row(scale), Tile.per_row(zero)

    def call() -> object:
        return tdequant(out, source, *parameters)

    def check() -> bool:
        call()
        some = slice(0, _SAMPLE_ROWS)
        want = (codes[some].astype(np.float32) - zero[some, None]) * scale[some, None]
        return np.array_equal(out.numpy()[some], want)

    return (f"TDEQUANT {dtype}", call, check, {"rows": codes, "scale": scale}), codes


def quantize(target: str, x: Array, columns: int) -> Entry:
    """TQUANT by division; u8 with an offset."""
    rows = x.reshape(-1, columns)
    scale: Array = (np.abs(rows).max(axis=1) / np.float32(127)).astype(np.float32)
    zero: Array = np.full(scale.shape, 0 if target == "s8" else 128, np.float32)
    source, out = Tile(rows), Tile(dtype=target, shape=(rows.shape[0], columns))
    step, offset = Tile.per_row(scale), None if target == "s8" else Tile.per_row(zero)

    def call() -> object:
        return tquant(out, source, scale=step, offset=offset)

    def check() -> bool:
        call()
        some = slice(0, _SAMPLE_ROWS)
        low, high = (-128, 127) if target == "s8" else (0, 255)
        want = np.clip(np.rint(rows[some] / scale[some, None]) + zero[some, None], low, high)
        return np.array_equal(out.numpy()[some].astype(np.float32), want)

    return f"TQUANT {target}", call, check, {"rows": rows, "scale": scale}


def convert(target: str, x: Array, columns: int) -> Entry:
    """TCVT from fp32."""
    rows = x.reshape(-1, columns)
    source, out = Tile(rows), Tile(dtype=target, shape=rows.shape)

    def call() -> object:
        return tcvt(out, source)

    def check() -> bool:
        call()
        with np.errstate(over="ignore"):
            want = rows[:_SAMPLE_ROWS].astype(np.float16)
        return target != "fp16" or np.array_equal(out.numpy()[:_SAMPLE_ROWS], want)

    return f"TCVT fp32 -> {target}", call, check, {"x": x}
