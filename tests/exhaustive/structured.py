"""Millions of structured fp32 inputs for every format, mode and saturation."""

import time
from collections.abc import Sequence

import numpy as np

from tests.contract import castable, encode
from tests.oracle import expected
from tests.oracle.encode import MODES as PLAIN
from tests.oracle.inputs import SEED, decision_points, spread
from tests.oracle.sources import first_key, infinity_key, join

FORMATS = (
    *("s4", "u4", "s8", "u8", "s16", "u16", "s32", "u32", "s64"),
    *("hif8", "e4m3", "e5m2", "e2m1", "e1m2", "e3m2", "e2m3", "e8m0", "fp16", "bf16", "fp19"),
)
MODES = (*PLAIN, "rh")
CHUNK = 1 << 20
KIND = "float32"


def chunks(name: str, count: int) -> list[np.ndarray]:
    """Return `count` inputs: a window of ulps around every decision point, then spread, both signs."""
    rng = np.random.default_rng(SEED + 1)
    top = infinity_key(KIND)
    centres = np.unique([min(first_key(p, KIND, strict=False), top) for p in decision_points(name, rng)])
    reach = max(2, min(2000, count // 4 // centres.size // 2))
    keys = (centres[:, None] + np.arange(-reach, reach + 1)).reshape(-1)
    keys = keys[(keys >= 0) & (keys <= top)]
    if keys.size > count // 4:
        keys = rng.choice(keys, count // 4, replace=False)
    near = np.concatenate([join(keys, np.full(keys.shape, s), KIND) for s in (False, True)])
    values = np.concatenate([near, spread(name, KIND, count - near.size, rng)])
    return [values[i : i + CHUNK] for i in range(0, values.size, CHUNK)]


def compare_many(name: str, modes: Sequence[str], count: int) -> list[str]:
    """Compare `count` inputs in every mode, saturating and not."""
    begin = time.perf_counter()
    failures = []
    total = 0
    pieces = [castable(values, name) for values in chunks(name, count)]
    for mode in modes:
        if mode == "rh" and name != "hif8":
            continue
        wrong: dict[bool, int] = {False: 0, True: 0}
        for values in pieces:
            for saturate in (False, True):
                got = encode(values, name, mode, saturate=saturate)
                wrong[saturate] += np.count_nonzero(got != expected(values, name, mode, saturate=saturate))
                total += values.size
        failures += [f"fp32 -> {name} {mode} saturate={s}: {n} inputs" for s, n in wrong.items() if n]
    print(
        f"fp32 -> {name}: {total:,} casts, {len(failures)} modes differ, {time.perf_counter() - begin:.0f} s",
        flush=True,
    )
    return failures
