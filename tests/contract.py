"""Calls of the public API as the exactness tests make them, and a comparison that says where two arrays part."""

import numpy as np

import narrowcast as nc
from tests.oracle import grid
from tests.oracle.grids import INTEGERS
from tests.oracle.inputs import without_nan


def bits_of(name: str) -> int:
    if name == "fp32":
        return 32
    return INTEGERS[name][0] if name in INTEGERS else grid(name).bits


def has_nan(name: str) -> bool:
    return name not in INTEGERS and grid(name).nan is not None


def low_bits(codes: np.ndarray, name: str) -> np.ndarray:
    """Return codes as int64 holding the format's bits only, whatever integer type carries them."""
    bits = bits_of(name)
    wide = codes.astype(np.int64)
    return wide if bits == 64 else wide & (2**bits - 1)


def encode(
    values: np.ndarray, name: str, mode: str, *, saturate: bool, nan: str = "keep", **switches: str
) -> np.ndarray:
    """Encode through the public API and return the low bits. `switches` are those of a `Cast`."""
    if switches.get("compare", "ge") == "ge" and "overflow" not in switches:
        return low_bits(nc.encode(values, name, rounding=mode, saturate=saturate, nan=nan), name)
    options = {"hybrid_compare" if k == "compare" else k: v for k, v in switches.items()}
    return low_bits(nc.Cast(None, name, mode, saturate=saturate, nan=nan, **options)(values), name)


def castable(values: np.ndarray, name: str) -> np.ndarray:
    """Return the values that may be cast under nan="keep"."""
    return values if has_nan(name) or values.dtype.kind in "iu" else without_nan(values)


def assert_same(got: np.ndarray, want: np.ndarray, values: np.ndarray, what: str) -> None:
    """Fail with the count and the first differing elements."""
    assert got.shape == want.shape, f"{what}: shape {got.shape}, expected {want.shape}"
    wrong = np.flatnonzero(got != want)
    if wrong.size == 0:
        return
    lines = [f"{what}: {wrong.size} of {want.size} differ"]
    for i in wrong[:5]:
        bits = "" if values.dtype.kind in "iu" else f" ({values.view(f'u{values.itemsize}')[i]:#x})"
        lines.append(f"  {values[i]!r}{bits}: got {got[i]:#x}, expected {want[i]:#x}")
    raise AssertionError("\n".join(lines))
