"""Every one of the 2**32 fp32 bit patterns against the oracle.

Patterns of one sign ascend with their magnitude, so the expected codes of a chunk are runs between the oracle's
thresholds: each run is written with one fill, and the whole chunk is then compared element by element.
"""

import time
from dataclasses import dataclass

import numpy as np

import narrowcast as nc
from tests.oracle.encode import ON_MAGNITUDE, code_table, thresholds
from tests.oracle.grids import grid

CHUNK = 1 << 22
INFINITY = 0x7F800000


@dataclass(frozen=True)
class Sweep:
    name: str
    mode: str
    saturate: bool


CASTS = (Sweep("e4m3", "rn", False), Sweep("hif8", "rna", False))


def runs(cast: Sweep, *, negative: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return where each run of magnitude bits begins and its code, infinity and NaN included."""
    rule = ON_MAGNITUDE[cast.mode][negative]
    table = code_table(cast.name, saturate=cast.saturate, negative=negative)
    starts = [0, *(int(k) for k in thresholds(cast.name, rule, "float32"))]
    codes = table[: len(starts)].tolist()
    kept = [(s, c) for s, c in zip(starts, codes, strict=True) if s < INFINITY]
    kept += [(INFINITY, int(table[-1])), (INFINITY + 1, grid(cast.name).nan)]
    return np.array([s for s, _ in kept], np.int64), np.array([c for _, c in kept], np.uint8)


def sweep(cast: Sweep, *, bits: int = 32) -> list[str]:
    """Compare all patterns of both signs; return a line for each of the first chunks that differ."""
    failures: list[str] = []
    want = np.empty(CHUNK, np.uint8)
    out = np.empty(CHUNK, np.uint8)
    compared = 0
    begin = time.perf_counter()
    half = min(1 << 31, 1 << (bits - 1))
    for negative in (False, True):
        starts, codes = runs(cast, negative=negative)
        for first in range(0, half, CHUNK):
            size = min(CHUNK, half - first)
            pattern = np.arange(first, first + size, dtype=np.uint32)
            if negative:
                pattern |= np.uint32(0x80000000)
            low, high = np.searchsorted(starts, [first, first + size - 1], side="right")
            edges = np.clip(np.append(starts[low - 1 : high], first + size) - first, 0, size)
            for i in range(high - low + 1):
                want[edges[i] : edges[i + 1]] = codes[low - 1 + i]
            nc.encode(pattern.view(np.float32), cast.name, rounding=cast.mode, saturate=cast.saturate, out=out[:size])
            compared += size
            wrong = np.flatnonzero(out[:size] != want[:size])
            if wrong.size:
                at = int(wrong[0])
                got = f"got {out[at]:#04x}, expected {want[at]:#04x}, {wrong.size} in this chunk"
                failures.append(f"{cast.name} {cast.mode} at {int(pattern[at]):#010x}: {got}")
        done = time.perf_counter() - begin
        print(
            f"fp32 -> {cast.name} {cast.mode}: {compared:,} inputs, {len(failures)} chunks differ, {done:.0f} s",
            flush=True,
        )
    assert compared == 2 * half
    return failures[:20]
