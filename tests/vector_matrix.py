"""The published matrices of vector casts, read from golden tables, and what a cast at reset should give."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np

from tests.golden import read
from tests.oracle import decode_all, expected
from tests.oracle.inputs import every, integers, structured
from tests.oracle.reference import round_integer
from tests.oracle.sources import DTYPES

CHIPS = ("3510", "2201")
SPELLED = {
    "int4b_t": "s4",
    "int4x2_t": "s4",
    "int8_t": "s8",
    "uint8_t": "u8",
    "int16_t": "s16",
    "uint16_t": "u16",
    "int32_t": "s32",
    "uint32_t": "u32",
    "int64_t": "s64",
    "half": "fp16",
    "bfloat16_t": "bf16",
    "float": "fp32",
    "hifloat8_t": "hif8",
    "fp8_e4m3fn_t": "e4m3",
    "fp8_e5m2_t": "e5m2",
    "fp8_e8m0_t": "e8m0",
    "fp4x2_e2m1_t": "e2m1",
    "fp4x2_e1m2_t": "e1m2",
    "complex32": "complex32",
    "complex64": "complex64",
    "double": "double",
}
MODES = {"R": "rn", "A": "rna", "F": "rd", "C": "ru", "Z": "rz", "O": "ro", "H": "rh", "N": "none"}
FORMATS = tuple(dict.fromkeys(n for n in SPELLED.values() if n not in ("complex32", "complex64", "double")))
UNEMULATED = ("complex32", "complex64", "double")
WIDTHS = {"s8": 8, "u8": 8, "s16": 16, "u16": 16, "s32": 32, "u32": 32, "s64": 64}
FLOATS = {"fp16": "float16", "bf16": "bfloat16", "fp32": "float32"}
CODED = ("s4", "hif8", "e4m3", "e5m2", "e2m1", "e1m2", "e8m0")
RESULT_DTYPES = {
    "s4": ml_dtypes.int4,
    "e2m1": ml_dtypes.float4_e2m1fn,
    "e4m3": ml_dtypes.float8_e4m3fn,
    "e5m2": ml_dtypes.float8_e5m2,
    "e8m0": ml_dtypes.float8_e8m0fnu,
    "hif8": np.uint8,
    "e1m2": np.uint8,
    "fp16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "fp32": np.float32,
    **{n: np.dtype(f"{'int' if n[0] == 's' else 'uint'}{w}") for n, w in WIDTHS.items()},
}


@dataclass(frozen=True)
class Pair:
    """One pair of types of one chip, as the table prints it."""

    chip: str
    source: str
    target: str
    modes: frozenset[str]
    ignores_mode: bool = False


@cache
def basic() -> tuple[Pair, ...]:
    found = []
    for row in read("matrix_basic"):
        for chip in CHIPS:
            letters = row[f"chip_{chip}"]
            if letters != "-":
                ignored = letters == "*"
                modes = MODES.values() if ignored else (MODES[c] for c in letters.split("/"))
                names = SPELLED[row["source"]], SPELLED[row["target"]]
                found.append(Pair(chip, *names, frozenset(modes), ignored))
    return tuple(found)


def emulated() -> list[Pair]:
    return [p for p in basic() if not {p.source, p.target} & set(UNEMULATED)]


@cache
def inputs(source: str, target: str) -> np.ndarray:
    """Return an even number of inputs of a pair: every code of a small source, else structured ones."""
    if source in CODED:
        values = np.arange(16 if source in ("s4", "e2m1", "e1m2") else 256, dtype=np.uint8)
    elif target == "fp32" and source in ("fp16", "bf16"):
        values = every(FLOATS[source])
    elif source in FLOATS:
        values = np.unique(
            structured(target, FLOATS[source], at_least=2000).view(f"u{DTYPES[FLOATS[source]].itemsize}")
        )
        values = values[:: max(values.size // 6000, 1)].view(DTYPES[FLOATS[source]])
    else:
        values = integers(str(RESULT_DTYPES[source]))
        values = values[:: max(values.size // 6000, 1)]
    return values[: values.size // 2 * 2]


def values_of(array: np.ndarray, source: str) -> np.ndarray:
    """Return what an input array means, in a type the oracle takes."""
    if source not in CODED:
        return array
    values = decode_all(source)[array]
    return values.astype(np.int8) if source == "s4" else values


def oracle(values: np.ndarray, target: str, mode: str, *, saturate: bool = True, keep_nan: bool = False) -> np.ndarray:
    """Return the low bits of a cast: NaN becomes 0 where the cast saturates, except in fp32."""
    if target == "fp32":
        return to_single(values, mode)
    nan = "keep" if keep_nan or not saturate else "zero"
    return expected(values, target, "rn" if mode == "none" else mode, saturate=saturate, nan=nan)


def to_single(values: np.ndarray, mode: str) -> np.ndarray:
    """Return fp32 bits: exact for floats (each NaN the canonical one), integers rounded to 24 significant bits."""
    if values.dtype.kind not in "iu":
        wide = values.astype(np.float32)
        wide[np.isnan(wide)] = np.uint32(0x7FC00000).view(np.float32)
        return wide.view(np.uint32).astype(np.int64)
    rounded = []
    for v in values.tolist():
        spacing = 2 ** max(abs(v).bit_length() - 24, 0)
        rounded.append(round_integer(Fraction(v, spacing), "rn" if mode == "none" else mode) * spacing)
    exact = np.array(rounded, np.float64).astype(np.float32)
    assert [int(v) for v in exact] == rounded
    return exact.view(np.uint32).astype(np.int64)


def bits(result: np.ndarray, target: str) -> np.ndarray:
    """Return the low bits of a result as int64."""
    assert result.dtype == RESULT_DTYPES[target], f"{target} came back as {result.dtype}"
    raw = np.ascontiguousarray(result).view(f"u{result.dtype.itemsize}").astype(np.int64)
    return raw & 15 if target in ("s4", "e2m1", "e1m2") else raw


def wrapped(codes: np.ndarray, target: str) -> np.ndarray:
    """Return the oracle's codes as int64 of the target's width."""
    width = {**WIDTHS, "s4": 4}.get(target, 64)
    return codes if width == 64 else codes & (2**width - 1)


def assert_codes(got: np.ndarray, want: np.ndarray, values: np.ndarray, what: str) -> None:
    wrong = np.flatnonzero(got != want)
    shown: list[Any] = [(values[i], hex(got[i]), hex(want[i])) for i in wrong[:4]]
    assert not wrong.size, f"{what}: {wrong.size} of {want.size} differ, first (input, got, wanted) {shown}"
