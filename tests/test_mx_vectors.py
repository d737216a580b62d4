"""Block scaling against vectors of other implementations: kernels, simulator, checkpoint libraries."""

import re
from collections.abc import Mapping

import ml_dtypes
import numpy as np
import pytest

import narrowcast as nc
from tests.vectors import load

SOURCES = {"f32": np.dtype(np.float32), "bf16": np.dtype(ml_dtypes.bfloat16), "f16": np.dtype(np.float16)}
ROUND_MODE = {"rint": "rn", "round": "rna", "floor": "rd"}
CPU_SIM = nc.Semantics("pto-isa", chip="cpu-sim")


def rule_of(configuration: str) -> tuple[str, str, str | None, dict[str, float]]:
    """Translate e.g. ``cann_e2m1_alg2_dmax7_round`` to element format, rule, rounding and parameters."""
    family, fmt, kind = configuration.split("_")[:3]
    if family == "math":
        return fmt, {"floor": "ocp-floor", "ceil": "ceil"}[kind], None, {}
    if family == "pto":
        return fmt, f"pto-{kind}", None, {}
    parameters: dict[str, float] = {}
    if limit := re.search(r"dmax(\d+)", configuration):
        parameters["dst_type_max"] = float(limit[1])
    if bound := re.search(r"low([\d.]+)", configuration):
        parameters["max_low_bound"] = float(bound[1])
    mode = next(m for m in ROUND_MODE if m in configuration)
    return fmt, f"cann-{kind[3]}", ROUND_MODE[mode], parameters


def values(arrays: Mapping[str, np.ndarray], source: str) -> np.ndarray:
    return arrays["src"].view(SOURCES[source])


def first_differences(got: np.ndarray, want: np.ndarray, x: np.ndarray) -> str:
    at = np.argwhere(got != want)
    return "; ".join(f"{tuple(i.tolist())}: {x[tuple(i)]!r} got {got[tuple(i)]}, want {want[tuple(i)]}" for i in at[:4])


@pytest.mark.kernels
@pytest.mark.parametrize("source", ["f32", "bf16"])
def test_every_configuration(source: str) -> None:
    arrays = load(f"mx_quant_{source}")
    x = values(arrays, source)
    configurations = [key.removesuffix("__codes") for key in arrays if key.endswith("__codes")]
    assert len(configurations) == {"f32": 38, "bf16": 40}[source]
    for name in configurations:
        fmt, rule, rounding, parameters = rule_of(name)
        q = nc.mx.quantize(x, fmt, rule, rounding=rounding, **parameters)
        assert np.array_equal(q.scale[:, 0], arrays[f"{name}__scale"]), name
        nan_lanes = np.unpackbits(arrays[f"{name}__nanlane"], axis=1).astype(bool)
        got, want = np.where(nan_lanes, 0, q.codes), np.where(nan_lanes, 0, arrays[f"{name}__codes"])
        assert np.array_equal(got, want), f"{name}: {first_differences(got, want, x)}"
        if f"{name}__recip" in arrays:
            recip = arrays[f"{name}__recip"]
            wide = recip.astype(np.uint32) << np.uint32(16) if recip.dtype == np.uint16 else recip
            _, multiplier = nc.mx.shared_scales(x, fmt, rule, **parameters)
            np.testing.assert_array_equal(multiplier[:, 0], wide.view(np.float32), err_msg=name)


@pytest.mark.parametrize("source", ["f32", "bf16", "f16"])
@pytest.mark.parametrize("element", ["fp8", "fp4"])
@pytest.mark.parametrize("mode", ["ocp", "nv"])
def test_simulator(source: str, element: str, mode: str) -> None:
    arrays = load(f"pto_cpu_tquant_mx_nd_{source}")
    x = values(arrays, source)
    fmt = {"fp8": "e4m3", "fp4": "e2m1"}[element]
    q = nc.mx.quantize(x, fmt, f"pto-{mode}", semantics=CPU_SIM)
    want = arrays[f"{element}_{mode}_dst"]
    if element == "fp4":
        want = nc.unpack(want, fmt)
    assert np.array_equal(q.scale, arrays[f"{element}_{mode}_exp"])
    assert np.array_equal(q.codes, want), first_differences(q.codes, want, x)
    _, multiplier = nc.mx.shared_scales(x, fmt, f"pto-{mode}", semantics=CPU_SIM)
    np.testing.assert_array_equal(multiplier, arrays[f"{element}_{mode}_scaling"].view(np.float32))


SLIM = [
    ("W8A8_MXFP8", "e4m3", "msmodelslim"),
    ("W4A8_MXFP", "e2m1", "msmodelslim"),
    ("W4A4_MXFP4", "e2m1", "msmodelslim"),
    ("W4A4_MXFP4_ceilx", "e2m1", "ceil-x"),
]


@pytest.mark.parametrize(("scheme", "fmt", "rule"), SLIM, ids=[s[0] for s in SLIM])
@pytest.mark.parametrize("source", ["f32", "bf16"])
@pytest.mark.parametrize("tensor", ["gate_proj", "up_proj", "down_proj", "k96", "k100"])
def test_msmodelslim(scheme: str, fmt: str, rule: str, source: str, tensor: str) -> None:
    arrays = load("ckpt/msmodelslim_26.1.0_ascendv1")
    x = arrays[f"input/{tensor}"].astype(SOURCES[source])
    q = nc.mx.quantize(x, fmt, rule if source == "f32" else f"{rule}-bf16")
    prefix = f"{scheme}/{source}/bf16model/mlp.{tensor}"
    assert np.array_equal(q.scale, arrays[f"{prefix}.weight_scale"])
    codes = nc.pack(q.codes, fmt) if fmt == "e2m1" else q.codes
    want = arrays[f"{prefix}.weight"]
    assert np.array_equal(codes, want), first_differences(codes, want, codes)


@pytest.mark.parametrize(("scheme", "fmt"), [("mxfp8", "e4m3"), ("mxfp4", "e2m1")])
@pytest.mark.parametrize("source", ["f32", "bf16"])
@pytest.mark.parametrize("tensor", ["gate_proj", "down_proj", "k96"])
def test_compressed_tensors(scheme: str, fmt: str, source: str, tensor: str) -> None:
    arrays = load("ckpt/compressed_tensors_0.20.1")
    x = arrays[f"input/{tensor}"].astype(SOURCES[source])
    q = nc.mx.quantize(x, fmt, "compressed-tensors")
    prefix = f"{scheme}/{tensor}/{source}"
    # Row 14 of gate_proj holds 3e38, where the library's own scale code overflows.
    keep = np.arange(x.shape[0]) != (14 if tensor == "gate_proj" else -1)
    assert np.array_equal(q.scale[keep], arrays[f"{prefix}/weight_scale"][keep])
    observed = arrays[f"{prefix}/observer_scale"]
    observed = observed if source == "f32" else observed.view(ml_dtypes.bfloat16)
    assert np.array_equal(np.ldexp(np.float32(1), q.scale[keep].astype(int) - 127), observed[keep].astype(np.float32))
    codes = nc.pack(q.codes, fmt) if fmt == "e2m1" else q.codes
    want = arrays[f"{prefix}/weight_packed" if fmt == "e2m1" else f"{prefix}/weight"]
    assert np.array_equal(codes[keep], want[keep]), first_differences(codes[keep], want[keep], codes[keep])
    real = arrays[f"{prefix}/dequantized"].view(ml_dtypes.bfloat16)
    np.testing.assert_array_equal(q.dequantize()[keep].astype(ml_dtypes.bfloat16), real[keep])


def test_gpt_oss_blocks() -> None:
    arrays = load("ckpt/source_layouts")
    packed, scale = arrays["gptoss/blocks"], arrays["gptoss/scales"]
    codes = nc.unpack(packed, "e2m1").reshape(*packed.shape[:2], -1)
    record = nc.quant.Record(rule="stored", rounding="rn", saturate=True)
    q = nc.QTensor(codes, "e2m1", scale, None, nc.Blocks((1, 32)), record, scale_format="e8m0")
    real = nc.mx.dequantize(q)
    np.testing.assert_array_equal(real, arrays["gptoss/dequantized_f32"].swapaxes(-1, -2))
    as_bf16 = arrays["gptoss/dequantized_bf16"].view(ml_dtypes.bfloat16).swapaxes(-1, -2)
    np.testing.assert_array_equal(real.astype(ml_dtypes.bfloat16), as_bf16)


@pytest.mark.parametrize("size", ["full", "partial"])
def test_square_blocks_of_deepseek(size: str) -> None:
    arrays = load("ckpt/source_layouts")
    record = nc.quant.Record(rule="stored", rounding="rn", saturate=True)
    q = nc.QTensor(
        arrays[f"deepseek/{size}/weight"],
        "e4m3",
        arrays[f"deepseek/{size}/weight_scale_inv"],
        None,
        nc.Blocks((128, 128)),
        record,
    )
    real = q.dequantize()
    np.testing.assert_array_equal(real, arrays[f"deepseek/{size}/ct_dequant_f32"])
    as_bf16 = real.astype(ml_dtypes.bfloat16).view(np.uint16)
    for library in ("msmodelslim_dequant", "ct_dequant_bf16"):
        np.testing.assert_array_equal(as_bf16, arrays[f"deepseek/{size}/{library}"], err_msg=library)
