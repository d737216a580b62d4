"""Tensors with one pitfall each, planted in real weights, and the same weights quantized properly."""

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import narrowcast as nc

Array = np.ndarray[tuple[int, ...], np.dtype[Any]]
Arguments = dict[str, Any]
SLICES = Path(__file__).parent / "data" / "silero_vad_slices.npy"


@cache
def slices() -> Array:
    """200 slices of 16 x 32 real weights, float32."""
    return np.load(SLICES).astype(np.float32)


def _scale(x: Array, target: float) -> np.float32:
    return np.float32(np.abs(x).max() / target)


def overflow(x: Array, rng: np.random.Generator) -> Arguments:
    target = {"s8": 127, "e4m3": 448, "s4": 7}
    name = str(rng.choice(list(target)))
    factor = np.float32(rng.uniform(0.02, 0.2))
    if rng.random() < 0.5:
        return {"x": x, "to": name, "scale": _scale(x, target[name]) * factor}
    return {"x": x, "to": name, "multiplier": 1 / (_scale(x, target[name]) * factor)}


def all_zero(x: Array, rng: np.random.Generator) -> Arguments:
    target = {"s8": 127, "s4": 7}
    name = str(rng.choice(list(target)))
    return {"x": x, "to": name, "scale": np.float32(np.abs(x).max() * rng.uniform(3, 100))}


def one_sided(x: Array, rng: np.random.Generator) -> Arguments:
    shifted = np.abs(x) if rng.random() < 0.5 else x - x.min() + np.abs(x).max()
    return {"x": shifted if rng.random() < 0.7 else -shifted, "to": str(rng.choice(["s8", "s4"]))}


def stagnant(x: Array, rng: np.random.Generator) -> Arguments:
    return {"x": x, "updates": (x * rng.uniform(1e-4, 1e-3, x.shape)).astype(np.float32)}


def fp4(x: Array, rng: np.random.Generator) -> Arguments:
    wild = x.copy()
    wild.flat[rng.integers(0, x.size, 3)] = np.abs(x).max() * rng.uniform(40, 400)
    return {"x": wild, "to": str(rng.choice(["e2m1", "e1m2"]))}


def subnormal(x: Array, rng: np.random.Generator) -> Arguments:
    some = x.copy()
    where = rng.integers(0, x.size, int(rng.integers(2, 60)))
    if rng.random() < 0.5:
        some.flat[where] = rng.uniform(-1, 1, where.size).astype(np.float32) * np.float32(2.0**-127)
        return {"x": some, "to": str(rng.choice(["s8", "e4m3"]))}
    some.flat[where] = rng.uniform(-1, 1, where.size).astype(np.float32) * np.float32(2.0**-15)
    return {"x": some, "to": "s8", "arithmetic": "fp16"}


def chain(x: Array, rng: np.random.Generator) -> Arguments:
    chains = (
        ["e5m2", "e4m3"],
        ["s8", "e4m3"],
        ["e4m3", "s8"],
        ["bf16", "s4", "s8"],
        ["hif8", "s8"],
        ["e4m3", "e5m2", "s8"],
    )
    return {"x": x, "chain": chains[rng.integers(len(chains))]}


def tail(x: Array, rng: np.random.Generator) -> Arguments:
    n = int(rng.choice([17, 20, 25, 30]))
    scale = _scale(x, 127)
    codes = np.clip(np.rint(x / scale), -128, 127).astype(np.int8)
    codes[:, n:] = rng.integers(-128, 128, codes[:, n:].shape)
    return {"x": x[:, :n], "codes": codes, "scale": scale, "to": "s8"}


def zero_scale(x: Array, rng: np.random.Generator) -> Arguments:
    some = x.copy()
    rows = rng.choice(16, int(rng.integers(1, 4)), replace=False)
    some[rows] = 0
    scale = (np.abs(some).max(axis=1, keepdims=True) / 127).astype(np.float32)
    return {"x": some, "to": "s8", "scale": scale}


def underflow(x: Array, rng: np.random.Generator) -> Arguments:
    small = x * np.float32(rng.uniform(1e-5, 1e-4) / np.abs(x).max())
    scale = (np.abs(small).max(axis=1, keepdims=True) / 127).astype(np.float16)
    return {"x": small, "to": "s8", "scale": scale}


def nibbles(x: Array, rng: np.random.Generator) -> Arguments:
    q = nc.quantize(x, "s4", nc.Blocks((1, None)))
    packed = nc.pack(q.codes, "s4")
    return {"x": x, "codes": (packed << 4) | (packed >> 4), "packed": True, "scale": q.scale, "to": "s4"}


def axis(x: Array, rng: np.random.Generator) -> Arguments:
    square = x[:, :16] * np.float32(2.0) ** rng.integers(-6, 6, (16, 1)).astype(np.float32)
    q = nc.quantize(square, str(rng.choice(["s8", "e4m3"])), nc.Blocks.per_row)
    return {"x": square, "codes": q.codes, "scale": q.scale.reshape(1, -1), "to": q.format}


def not_finite(x: Array, rng: np.random.Generator) -> Arguments:
    some = x.copy()
    some.flat[rng.integers(0, x.size, int(rng.integers(1, 5)))] = rng.choice([np.nan, np.inf, -np.inf])
    if rng.random() < 0.5:
        return {"x": some, "to": "s8"}
    q = nc.mx.quantize(x, "e4m3")
    scale = q.scale.copy()
    scale[rng.integers(16), 0] = 0xFF
    from dataclasses import replace

    return {"x": x, "q": replace(q, scale=scale)}


def signedness(x: Array, rng: np.random.Generator) -> Arguments:
    if rng.random() < 0.5:
        q = nc.quantize(x, "u8")
        return {"x": x, "codes": q.codes.view(np.int8), "to": "s8", "scale": q.scale, "offset": q.offset}
    q = nc.quantize(x, "s8")
    return {"x": x, "codes": q.codes.view(np.uint8), "to": "u8", "scale": q.scale}


def twice_rounded(x: Array, rng: np.random.Generator) -> Arguments:
    some = x.copy()
    scale = np.float32(1)
    where = rng.integers(0, x.size, 40)
    # Just beyond a tie of e4m3: bf16 rounds the excess away, and the tie goes the other way.
    ties = (1 + (2 * rng.integers(0, 4, where.size) * 2 + 1) / 16) * 2.0 ** rng.integers(-3, 4, where.size)
    some.flat[where] = (ties * (1 + 2.0**-12)).astype(np.float32)
    first = str(rng.choice(["bf16", "fp16"]))
    if first == "fp16":
        some.flat[where] = (ties * (1 + 2.0**-14)).astype(np.float32)
    from narrowcast.insight.detectors_chain import ChainStep

    return {"x": some, "chain": [ChainStep(first), ChainStep("e4m3", scale=float(scale))]}


def reciprocal(x: Array, rng: np.random.Generator) -> Arguments:
    q = nc.quantize(x * np.float32(rng.uniform(0.01, 0.3)), "s8")
    return {"x": q.dequantize(), "codes": q.codes, "to": "s8", "scale": 1 / q.scale}


PLANTS: dict[str, Callable[[Array, np.random.Generator], Arguments]] = {
    "PIT-01": overflow, "PIT-02": all_zero, "PIT-03": one_sided, "PIT-04": stagnant, "PIT-05": fp4,
    "PIT-06": subnormal, "PIT-07": chain, "PIT-08": tail, "USR-01": zero_scale, "USR-02": underflow,
    "USR-03": nibbles, "USR-04": axis, "USR-05": not_finite, "USR-06": signedness, "USR-07": twice_rounded,
    "USR-08": reciprocal,
}  # fmt: skip


def planted(count: int = 200, seed: int = 5) -> Iterator[tuple[str, Arguments]]:
    """Yield tensors with one planted pitfall each, every kind in turn."""
    rng = np.random.default_rng(seed)
    names = list(PLANTS)
    for i in range(count):
        name = names[i % len(names)]
        yield name, PLANTS[name](slices()[i % len(slices())], rng)


def healthy(count: int = 200) -> Iterator[Arguments]:
    """Yield real weights quantized properly, in several formats and granularities."""
    for i in range(count):
        x = slices()[i]
        match i % 8:
            case 0:
                yield {"x": x, "to": "s8"}
            case 1:
                yield {"x": x, "q": nc.quantize(x, "s8", nc.Blocks.per_row)}
            case 2:
                yield {"x": x, "to": "hif8"}
            case 3:
                yield {"x": x, "to": "e4m3"}
            case 4:
                yield {"x": x, "q": nc.mx.quantize(x, "e2m1")}
            case 5:
                yield {"x": x, "q": nc.quantize(x, "u8")}
            case 6:
                yield {"x": x, "codes": nc.encode(x, "bf16"), "to": "bf16"}
            case _:
                yield {"x": x, "q": nc.quantize(x, "s4", nc.Blocks((1, 32)))}
