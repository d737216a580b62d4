"""The one-pass kernels against the stages, and the stages against the specification, at every place they could part."""

import numpy as np
import pytest

import narrowcast as nc
from narrowcast import fixpipe, numerics
from narrowcast.catalog.fixpipe_modes import fixpipe_modes
from narrowcast.fixpipe import fast, pipeline
from narrowcast.kernels import requant
from narrowcast.operation import Choices
from narrowcast.schema import Rounding

pytestmark = pytest.mark.kernels

MODES = [name for name, row in fixpipe_modes.items() if row.scaled and "device" in row.authorities]
SCALES = np.float32([1.0, 0.5, 0.25, 0.0078125, 0.1, 3.140625, -2.0, 1e-3, 0.0, 2.0**-126, 2.0**100, 1.5])
COLUMNS = (96, 75, 16)


def accumulators(kind: str, columns: int) -> np.ndarray:
    """Ties after scaling and their neighbours, edges of s9 and of the targets, extremes, and random values."""
    rng = np.random.default_rng(5)
    halves = np.arange(-1100, 1101) / 2
    if kind == "s32":
        edges = [0, 1, -1, 2**24, 2**24 + 1, -(2**24) - 1, 2**31 - 1, -(2**31), 2**30 + 63, 65519, 65520, 65521]
        near = np.concatenate([halves * f for f in (1, 2, 4, 128, 10)])
        flat = np.concatenate([edges, near, rng.integers(-(2**31), 2**31, 3000), rng.integers(-3000, 3000, 3000)])
        flat = flat.astype(np.int64).clip(-(2**31), 2**31 - 1).astype(np.int32)
    else:
        near = np.float32(np.concatenate([halves * f for f in (1, 2, 4, 128, 10)]))
        ulp = np.concatenate([near, np.nextafter(near, np.float32(np.inf)), np.nextafter(near, np.float32(-np.inf))])
        ulp = ulp[(ulp == 0) | (np.abs(ulp) >= 2.0**-126)]
        edges = np.float32(
            [0.0, -0.0, np.inf, -np.inf, np.nan, 448, 464, 464.5, 57344, 61440, 65520, 36000, 40960, 3e38]
        )
        bits = rng.integers(0, 2**32, 6000, dtype=np.uint64).astype(np.uint32).view(np.float32)
        bits = bits[~((bits != 0) & (np.abs(bits) < 2.0**-126))]
        flat = np.concatenate([edges, -edges, ulp, bits]).astype(np.float32)
    return np.resize(flat, (-(-flat.size // columns), columns))


def parameters(mode: str, columns: int, kind: str, target: str) -> pipeline.Parameters:
    vector = "vector" in kind
    scale = np.resize(SCALES, columns) if vector else SCALES[4:5]
    offset = np.resize(np.int64([0, 3, -256, 255, -17]), columns) if vector else np.int64([7])
    alpha = None
    if "relu" in kind:
        alpha = np.zeros(1, dtype=np.float32)
    if "prelu" in kind:
        alpha = np.resize(np.float32([0.25, 0.0, -1.5]), columns)
    if "leaky" in kind:
        alpha = np.float32([0.125])
    return pipeline.Parameters(scale, offset if fixpipe_modes[mode].offset else offset * 0, target, alpha)


def both(
    mode: str, kind: str, target: str, columns: int, control: nc.Control
) -> tuple[np.ndarray | None, np.ndarray, pipeline.Parameters, np.ndarray]:
    row = fixpipe_modes[mode]
    acc, p = accumulators(row.accumulator, columns), parameters(mode, columns, kind, target)
    names = pipeline.switches_of(row, p.alpha is not None, False)
    choices = Choices(nc.Semantics(), frozenset(names), "test")
    done = fast.convert_fast(acc, row, p, choices, control)
    quick = None
    if done is not None:
        quick, subnormal = done
        assert not subnormal
    return quick, pipeline.convert(acc, row, p, choices, control), p, acc


CASES = [(mode, target) for mode in MODES for target in fixpipe_modes[mode].targets]
KINDS = ("one", "vector", "vector relu", "vector prelu", "one leaky")


@pytest.mark.parametrize(("mode", "target"), CASES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("columns", COLUMNS)
def test_kernel_equals_the_stages(mode: str, target: str, kind: str, columns: int) -> None:
    for control in (nc.Control(), nc.Control(ctrl48=1), nc.Control(ctrl50=1)):
        quick, slow, p, acc = both(mode, kind, target, columns, control)
        if quick is None:
            assert target == "fp32" or not requant.available()
            continue
        wrong = np.argwhere(quick != slow)
        first = tuple(wrong[0]) if wrong.size else None
        assert first is None, f"{acc[first]!r}: kernel {quick[first]:#x}, stages {slow[first]:#x}, {p}"


@pytest.mark.parametrize(("mode", "target"), CASES)
def test_stages_equal_the_specification(mode: str, target: str) -> None:
    """A float result is the product in FP32, then one encode; an integer is rounded in exact arithmetic."""
    _, slow, p, acc = both(mode, "vector", target, 96, nc.Control())
    row = fixpipe_modes[mode]
    with np.errstate(all="ignore"):
        product = acc.astype(np.float32) * p.scale
    if target == "fp32":
        assert np.array_equal(slow, product.view(np.uint32))
    elif not row.integer:
        rounding = Rounding(row.rounding.value)
        want = numerics.encode(product.reshape(-1), nc.formats[target], rounding, saturate=True, nan="zero").reshape(
            product.shape
        )
        assert np.array_equal(slow, want)
    else:
        form = nc.formats[target]
        inner = (
            numerics.encode(
                np.where(np.isnan(product), 0, np.clip(product, -256, 255)).reshape(-1),
                nc.formats["s16"],
                Rounding.RN,
                saturate=True,
                nan="zero",
            )
            .view(np.int16)
            .reshape(product.shape)
            .astype(np.int64)
        )
        want = np.clip(inner + p.offset, form.min, form.max) & form.code_mask
        assert np.array_equal(slow, want)


@pytest.mark.parametrize("mode", ["REQ8", "DEQF16", "QF32_2_B8", "QF32_2_E4M3", "QF32_2_HiF8", "QF32_2_BF16", "REQ4"])
@pytest.mark.parametrize("vector", [False, True])
def test_fractals_are_read_in_place(mode: str, vector: bool) -> None:
    rng = np.random.default_rng(9)
    acc = rng.integers(-9000, 9000, (83, 64)).astype(np.int32)
    if fixpipe_modes[mode].accumulator == "fp32":
        acc = (acc / 8).astype(np.float32)
    scale = rng.uniform(0.001, 0.1, 64).astype(np.float32) if vector else 0.0123
    plain = fixpipe.run(acc, mode, scale, relu=True)
    nz = fixpipe.run(fixpipe.to_fractal(acc), mode, scale, relu=True, acc_layout="NZ", m=83, n=64)
    assert np.array_equal(plain.storage[0], nz.storage[0])


def test_subnormals_in_l0c_are_found_in_fractals_too() -> None:
    acc = np.ones((32, 32), dtype=np.float32)
    acc[17, 20] = 1e-40
    with pytest.raises(nc.ConstraintError, match=r"first 1e-40 at \[17, 20\]"):
        fixpipe.run(fixpipe.to_fractal(acc), "QF32_2_B8", 1.0, acc_layout="NZ", m=32, n=32)


@pytest.mark.parametrize("mode", ["QF32_2_B8", "QF32_2_E4M3", "QF32_2_BF16", "QF32_2_HiF8_HYBRID"])
@pytest.mark.parametrize("position", [0, 31, 32, 50, 3 * 51 + 50])
def test_kernel_sees_every_subnormal(mode: str, position: int) -> None:
    """In a whole vector, in a tail, in the last element."""
    acc = np.ones((30, 51), dtype=np.float32)
    fixpipe.run(acc, mode, 1.0)
    acc.reshape(-1)[position] = -1.1754942e-38
    with pytest.raises(nc.ConstraintError, match=rf"FIXP-01 .* at \[{position // 51}, {position % 51}\]"):
        fixpipe.run(acc, mode, 1.0)


def test_large_matrix_on_threads() -> None:
    rng = np.random.default_rng(3)
    acc = rng.integers(-20000, 20000, (1500, 1501)).astype(np.int32)
    scale = rng.uniform(0.001, 0.01, 1501).astype(np.float32)
    op = fixpipe.Fixpipe(mode="REQ8", activation="relu")
    words = fixpipe.quant_words(scale, np.full(1501, -5), True)
    result = nc.execute(op, {"acc": acc, "words": words}).codes
    want = np.clip(
        np.clip(np.rint(np.maximum(acc, 0) * fixpipe.truncate_scale(scale)), -256, 255) - 5, -128, 127
    ).astype(np.int8)
    assert np.array_equal(result.view(np.int8), want)


def test_kernel_refuses_what_it_does_not_compute() -> None:
    row = fixpipe_modes["REQ8"]
    acc = accumulators("s32", 96)
    p = parameters("REQ8", 96, "vector", "s8")
    for name, value in (("fixpipe_product", "exact"), ("fixpipe_s9", "none"), ("fixpipe_integer_rounding", "rna")):
        semantics = nc.Semantics().override(**{name: value})
        choices = Choices(semantics, frozenset(pipeline.switches_of(row, False, False)), "test")
        assert fast.convert_fast(acc, row, p, choices, nc.Control()) is None


def test_strided_and_read_only_accumulators() -> None:
    wide = np.arange(-4096, 4096, dtype=np.int32).reshape(64, 128)
    view = wide[::2, ::-2]
    view.flags.writeable = False
    assert np.array_equal(fixpipe.run(view, "REQ8", 0.01).codes, fixpipe.run(view.copy(), "REQ8", 0.01).codes)
    swapped = view.astype(">i4")
    assert np.array_equal(fixpipe.run(swapped, "REQ8", 0.01).codes, fixpipe.run(view, "REQ8", 0.01).codes)
