"""The tile library's CPU simulator (vector files), where its answers mean what ours mean.

Its FP8, FP4 and HiF8 casts truncate or misdecode and are no oracle; integers and fp16, bf16 and fp32 targets are.
Each known difference is counted, with its cause.
"""

import ml_dtypes
import numpy as np
import pytest

import narrowcast as nc
from tests.vectors import load

SOURCES = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16}
TARGETS = {"f16": "fp16", "f32": "fp32"}
MODES = {1: "rn", 2: "rna", 3: "rd", 4: "ru", 5: "rz"}

FLOAT_TO_INT = {
    ("pto_cpu_tcvt", "f32", "s32"): 3,  # values >= 2**31 become the x86 indefinite integer there
    ("pto_cpu_tcvt", "f32", "s16"): 0,
    ("pto_cpu_tcvt", "f32", "s8"): 0,
    ("pto_cpu_tcvt", "f32", "u8"): 0,
    ("pto_cpu_tcvt", "f32", "u16"): 0,
    ("pto_cpu_tcvt", "f16", "s8"): 0,
    ("pto_cpu_tcvt", "f16", "u8"): 0,
    ("pto_cpu_tcvt", "f16", "s16"): 1025,  # its limit 32767 becomes 32768 in half and then wraps
    ("pto_cpu_tcvt", "f16", "s32"): 2,  # its limits are taken in half: infinity gives 65504
    ("pto_cpu_tcvt_bf16", "bf16", "s32"): 12417,  # every value from 2**31, infinity included: as fp32 -> s32
}
TO_FLOAT = {
    ("pto_cpu_tcvt", "f32", "f16"): 0,
    ("pto_cpu_tcvt", "s32", "f32"): 0,
    ("pto_cpu_tcvt", "s32", "f16"): 0,
    ("pto_cpu_tcvt", "s16", "f32"): 0,
    ("pto_cpu_tcvt", "s16", "f16"): 0,
    ("pto_cpu_tcvt", "s8", "f32"): 0,
    ("pto_cpu_tcvt", "s8", "f16"): 0,
    ("pto_cpu_tcvt", "u8", "f16"): 0,
    ("pto_cpu_tcvt_bf16", "f32", "bf16"): 0,
    ("pto_cpu_tcvt_bf16", "bf16", "f16"): 0,  # but see below
}


def source(arrays: object, name: str, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the inputs and where they are NaN."""
    raw = arrays["src_" + name].reshape(-1)[:count]  # type: ignore[index]
    if name not in SOURCES:
        return raw, np.zeros(count, bool)
    values = raw.view(SOURCES[name])
    with np.errstate(invalid="ignore"):
        return values, np.isnan(values.astype(np.float32))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("case", FLOAT_TO_INT, ids="-".join)
def test_float_to_integer_saturating(case: tuple[str, str, str], mode: int) -> None:
    file, name, target = case
    arrays = load(file)
    want = arrays[f"{name}_{target}_m{mode}_sat1"].reshape(-1)
    values, nan = source(arrays, name, want.size)
    got = nc.encode(values, target, rounding=MODES[mode], nan="zero").view(want.dtype)
    assert np.count_nonzero((got != want) & ~nan) == FLOAT_TO_INT[case]


@pytest.mark.parametrize("saturate", [False, True])
@pytest.mark.parametrize("case", TO_FLOAT, ids="-".join)
def test_to_float_nearest(case: tuple[str, str, str], saturate: bool) -> None:
    file, name, target = case
    arrays = load(file)
    want = arrays[f"{name}_{target}_m1_sat{saturate:d}"].reshape(-1)
    values, nan = source(arrays, name, want.size)
    got = nc.encode(values, TARGETS.get(target, target), rounding="rn", saturate=saturate)
    never_saturates = case[1:] == ("bf16", "f16") and saturate  # the simulator's own omission: 65536 up, both signs
    assert np.count_nonzero((got != want) & ~nan) == (28674 if never_saturates else TO_FLOAT[case])
