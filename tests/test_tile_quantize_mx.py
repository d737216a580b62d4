"""MX TQUANT on tiles: the simulator's vectors, golden data, groups along rows, exponents in ZZ order."""

import json
import re

import ml_dtypes
import numpy as np
import pytest

from narrowcast import unpack
from narrowcast.errors import ConstraintError, UnsupportedCastError
from narrowcast.operation import Semantics, from_json, to_json
from narrowcast.tile import Tile, TQuantMx, tmov, tquant_mx
from tests import vectors

SIMULATOR = Semantics("pto-isa", chip="cpu-sim")
LIBRARY = Semantics("pto-isa")
PREFILL = 0x5A  # the simulator's exponent tile was larger than what it read back
SOURCES = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16}


def quantize(values, target, *, algorithm="ocp", axis=1, zz=False, semantics=None, valid=None):
    """Quantize through tiles; return code tile, exponent tile, maxima, multipliers."""
    src = Tile(values, valid=valid)
    dst = Tile(dtype=target, shape=values.shape, valid=valid)
    rows, cols = src.valid
    groups = (rows, -(-cols // 32)) if axis == 1 else (rows // 32, cols)
    if zz:
        shape = groups if axis == 1 else groups[::-1]
        exponents = Tile(dtype="u8", shape=shape, layout="ZZ", fractal=32)
    else:
        exponents = Tile(dtype="u8", shape=(groups[0], -(-groups[1] // 32) * 32), valid=groups)
    scratch = [Tile(dtype="fp32", shape=(groups[0], -(-groups[1] // 8) * 8), valid=groups) for _ in range(2)]
    tquant_mx(
        dst, src, exponents, algorithm=algorithm, axis=axis, maximum=scratch[0], scaling=scratch[1], semantics=semantics
    )
    return dst, exponents, *scratch


def same_floats(got, want):
    got, want = np.ascontiguousarray(got).view(np.uint32), np.ascontiguousarray(want)
    nan = np.isnan(got.view(np.float32)) & np.isnan(want.view(np.float32))
    return bool(np.all((got == want) | nan))


@pytest.mark.parametrize("kind", sorted(SOURCES))
@pytest.mark.parametrize("algorithm", ["ocp", "nv"])
@pytest.mark.parametrize(("target", "name"), [("e4m3", "fp8"), ("e2m1", "fp4")])
def test_simulator_vectors(kind, algorithm, target, name):
    arrays = vectors.load(f"pto_cpu_tquant_mx_nd_{kind}")
    for i, raw in enumerate(arrays["src"]):
        dst, exponents, maximum, scaling = quantize(
            raw.view(SOURCES[kind]), target, algorithm=algorithm, semantics=SIMULATOR
        )
        key = f"{name}_{algorithm}"
        assert np.array_equal(dst.memory.reshape(16, -1), arrays[f"{key}_dst"][i])
        assert np.array_equal(exponents.numpy(), arrays[f"{key}_exp"][i])
        assert same_floats(scaling.numpy(), arrays[f"{key}_scaling"][i])
        assert same_floats(maximum.numpy(), arrays[f"{key}_max"][i])


def golden_cases():
    arrays = vectors.load("pto_gen_a5_tquant")
    pattern = re.compile(r"TQUANTTEST\.case_(mxfp8|mxfp4_e2m1)_(nv_)?(fp32|fp16|bf16)_(\d+)x(\d+).*_(nd|nz)$")
    for name in sorted({key.split("/")[0] for key in arrays}):
        found = pattern.match(name)
        if found:
            yield (
                name,
                *found.groups(),
                {k.split("/")[1][:-4]: v for k, v in arrays.items() if k.startswith(f"{name}/")},
            )


def test_golden_data():
    seen = 0
    for name, family, nv, source, height, width, order, files in golden_cases():
        rows, cols = int(height), int(width)
        dtype = {"fp32": np.float32, "fp16": np.float16, "bf16": ml_dtypes.bfloat16}[source]
        values = np.zeros((rows, -(-cols // 64) * 64), dtype)
        values[:, :cols] = files["input"].view(dtype).reshape(rows, cols)
        target, codes = ("e4m3", "golden_fp8") if family == "mxfp8" else ("e2m1", "golden_fp4")
        dst, exponents, _, scaling = quantize(
            values, target, algorithm="nv" if nv else "ocp", valid=(rows, cols), semantics=LIBRARY
        )
        got = np.ascontiguousarray(dst.numpy()).view(np.uint8)
        want = files[codes].reshape(rows, -1)
        if target == "e2m1":
            want = unpack(want, "e2m1")
        assert np.array_equal(got, _data_order(want, order, rows, cols)), name
        flat = files["golden_e8m0"]
        if order == "nz":
            plain = np.ascontiguousarray(exponents.numpy())
            zz = Tile(dtype="u8", shape=plain.shape, layout="ZZ", fractal=32)
            tmov(zz, Tile.holding(plain))
            assert np.array_equal(zz.storage, flat), name
        else:
            assert np.array_equal(exponents.numpy().reshape(-1), flat), name
        finite = np.isfinite(files[_scaling(files)])
        assert np.array_equal(scaling.numpy().reshape(-1)[finite], files[_scaling(files)][finite]), name
        seen += 1
    assert seen == 82


def _scaling(files):
    return next(k for k in files if k.startswith("scaling"))


def _data_order(want, order, rows, cols):
    """Bring golden data back to rows x columns."""
    if order == "nd":
        return want
    return want.reshape(cols // 32, rows, 32).transpose(1, 0, 2).reshape(rows, cols)


def test_exponents_in_zz_order():
    arrays = vectors.load("pto_cpu_tquant_mxfp8_expzz")
    for i, values in enumerate(arrays["src"]):
        _, plain, *_ = quantize(values, "e4m3", semantics=SIMULATOR)
        _, boxed, *_ = quantize(values, "e4m3", zz=True, semantics=SIMULATOR)
        for got, want in ((plain.numpy().reshape(-1), arrays["exp"][i]), (boxed.storage, arrays["expzz"][i])):
            written = want != PREFILL
            assert written.sum() >= 4 and np.array_equal(got[written], want[written])


def test_groups_along_rows_are_the_transposed_groups_along_columns():
    values = np.random.default_rng(3).normal(size=(64, 64)).astype(np.float32)
    down, shared, *_ = quantize(values, "e4m3", axis=0)
    across, other, *_ = quantize(np.ascontiguousarray(values.T), "e4m3")
    assert np.array_equal(down.numpy().view(np.uint8), across.numpy().view(np.uint8).T)
    assert np.array_equal(shared.numpy(), other.numpy().T)
    _, boxed, *_ = quantize(values, "e4m3", axis=0, zz=True)
    want = Tile(dtype="u8", shape=(64, 2), layout="ZZ", fractal=32)
    tmov(want, Tile.holding(np.ascontiguousarray(other.numpy())))
    assert np.array_equal(boxed.storage, want.storage)


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"dst": Tile(dtype="e4m3", shape=(16, 32))}, "TQM-01"),
        ({"dst": Tile(dtype="e5m2", shape=(16, 64))}, "TQM-02"),
        ({"src": Tile(np.zeros((16, 48), np.float32)), "dst": Tile(dtype="e4m3", shape=(16, 64))}, "TQM-03"),
        ({"exponents": Tile(dtype="u8", shape=(16, 32), valid=(16, 3))}, "TQM-04"),
    ],
)
def test_rules_are_named(change, rule):
    tiles = {
        "dst": Tile(dtype="e4m3", shape=(16, 64)),
        "src": Tile(np.zeros((16, 64), np.float32)),
        "exponents": Tile(dtype="u8", shape=(16, 32), valid=(16, 2)),
    }
    with pytest.raises(ConstraintError, match=rule):
        tquant_mx(**{**tiles, **change})


def test_targets_that_do_not_exist():
    values = np.zeros((16, 64), np.float32)
    with pytest.raises(UnsupportedCastError, match="not part of chip 2201"):
        quantize(values, "e4m3", semantics=Semantics(chip="2201"))
    with pytest.raises(ConstraintError, match="TQM-06"):
        quantize(values, "e2m1")
    quantize(values, "e2m1", semantics=SIMULATOR)


def test_json_round_trip():
    plain = Tile(dtype="u8", shape=(16, 32), valid=(16, 2)).type
    op = TQuantMx(
        dst=str(Tile(dtype="e4m3", shape=(16, 64)).type),
        src=str(Tile(dtype="bf16", shape=(16, 64)).type),
        exponents=str(plain),
        algorithm="nv",
    )
    assert from_json(json.loads(json.dumps(to_json(op)))) == op
    assert op.groups == (16, 2)
