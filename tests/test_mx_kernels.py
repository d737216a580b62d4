"""The compiled block kernel against NumPy, for every rule, element format, source and awkward block."""

import ml_dtypes
import numpy as np
import pytest

import narrowcast as nc
from narrowcast.kernels.blocks import ELEMENTS, MODES, BlockRule, quantize_blocks
from narrowcast.mx import scale_rules
from narrowcast.mx.blocking import blocked
from narrowcast.mx.operation import scheme_of
from narrowcast.mx.scheme import Scheme
from narrowcast.mx.steps import block_rule, steps
from narrowcast.operation import Choices, Control

pytestmark = pytest.mark.kernels
DTYPES = {"fp32": np.float32, "fp16": np.float16, "bf16": ml_dtypes.bfloat16}
CASES = [
    (rule, element.format, mode.value)
    for rule, row in scale_rules.items()
    for element in row.elements
    for mode in element.roundings
    if element.format in ELEMENTS and mode.value in MODES and rule != "mse2"
]


def scheme(rule: str, fmt: str, mode: str = "rn", **fields: object) -> Scheme:
    op = nc.mx.MxQuant(format=fmt, rule=rule, rounding=mode, **fields)
    return scheme_of(op, Choices(nc.Semantics(), frozenset(op.switches), "MxQuant"), Control())


def awkward(rng: np.random.Generator) -> np.ndarray:
    """Rows of 100 elements: every exponent, ties, zeros, infinities, NaN, subnormals."""
    rows = [rng.standard_normal(100) * 2.0**e for e in range(-140, 128, 3)]
    ties = np.arange(100) / 16.0
    rows += [ties * 2.0**e for e in range(-12, 13)]
    rows += [np.zeros(100), -np.zeros(100), np.full(100, np.nan), np.full(100, -np.inf)]
    with np.errstate(over="ignore"):
        x = np.array(rows, dtype=np.float32)
    x = np.concatenate([x, rng.integers(0, 1 << 32, (200, 100), dtype=np.uint32).view(np.float32)])
    x[5, 40], x[6, 99], x[7, 0], x[8, 31] = np.inf, np.nan, -0.0, 2.0**-149
    return x


@pytest.mark.parametrize(("rule", "fmt", "mode"), CASES)
def test_kernel_is_the_rule(rule: str, fmt: str, mode: str) -> None:
    if nc.kernels.level() == "numpy":
        pytest.skip("no compiled kernels here")
    plan = scheme(rule, fmt, mode)
    compiled = block_rule(plan, "fp32")
    assert compiled is not None, "this rule has a table"
    checked = 0
    for row in awkward(np.random.default_rng(17)):
        x = row[None].copy()
        codes, scale = np.empty(x.shape, dtype=np.uint8), np.empty((1, 4), dtype=np.uint8)
        if not quantize_blocks(x, codes, scale, 32, mode, compiled):
            tiny = (np.abs(x[np.isfinite(x)]) < 2.0**-90).any()
            assert tiny or (np.isinf(x).any() and rule.startswith("pto")), "only these are left to NumPy"
            continue
        want, want_scale = plan.quantize(blocked(x, 32), "fp32")
        want = want.reshape(1, -1)[:, :100]
        assert np.array_equal(scale, want_scale), (scale, want_scale)
        assert np.array_equal(codes, want), np.argwhere(codes != want)[:4]
        checked += 1
    assert checked > 100


@pytest.mark.parametrize(("rule", "fmt", "mode"), CASES)
def test_public_path_is_the_rule(rule: str, fmt: str, mode: str) -> None:
    for source in scale_rules[rule].element(fmt).sources:
        with np.errstate(over="ignore", invalid="ignore"):
            x = awkward(np.random.default_rng(19)).astype(DTYPES[source])
        q = nc.mx.quantize(x, fmt, rule, rounding=mode)
        want, want_scale = scheme(rule, fmt, mode).quantize(blocked(x, 32), source)
        assert np.array_equal(q.scale, want_scale)
        assert np.array_equal(q.codes, want.reshape(len(x), -1)[:, :100])


@pytest.mark.parametrize("block", [32, 64, 96, 1024])
@pytest.mark.parametrize("columns", [1, 31, 32, 33, 95, 128, 1023, 2080])
def test_every_length_and_block(block: int, columns: int) -> None:
    x = np.random.default_rng(block + columns).standard_normal((3, columns)).astype(np.float32)
    x[1, -1] = 1000
    for fmt in ELEMENTS:
        q = nc.mx.quantize(x, fmt, "ceil", block=block)
        want, want_scale = scheme("ceil", fmt, block=block).quantize(blocked(x, block), "fp32")
        assert np.array_equal(q.scale, want_scale)
        assert np.array_equal(q.codes, want.reshape(3, -1)[:, :columns])


@pytest.mark.parametrize("fmt", ["e2m1", "e1m2"])
@pytest.mark.parametrize("columns", [1, 2, 31, 32, 33, 97, 4000])
def test_packed_is_quantized_then_packed(fmt: str, columns: int) -> None:
    x = np.random.default_rng(columns).standard_normal((5, columns)).astype(np.float32)
    x[2, columns // 2] = np.nan
    x[3] = 0
    for rule in ("ocp-floor", "cann-0") if columns % 2 == 0 else ("ocp-floor",):
        for semantics in (nc.Semantics(), nc.Semantics("pto-isa")):
            q = nc.mx.quantize(x, fmt, rule, semantics=semantics)
            packed, scale = nc.mx.quantize_packed(x, fmt, rule, semantics=semantics)
            assert np.array_equal(packed, nc.pack(q.codes, fmt))
            assert np.array_equal(scale, q.scale)


def test_saturation_off_in_the_kernel() -> None:
    x = np.float32([[500.0, 511.0, 1.0], [60000.0, 65535.0, 1.0]])
    for fmt in ("e4m3", "e5m2"):
        q = nc.mx.quantize(x, fmt, "ocp-floor", saturate=False)
        want, _ = scheme("ocp-floor", fmt, saturate=False).quantize(blocked(x, 32), "fp32")
        assert np.array_equal(q.codes, want.reshape(2, -1)[:, :3])


def test_threads_share_rows() -> None:
    x = np.random.default_rng(23).standard_normal((3, 1_100_000)).astype(np.float32)
    q = nc.mx.quantize(x, "e2m1", "ocp-floor")
    for start in (0, 655_360, 1_048_576):
        part = nc.mx.quantize(x[:, start : start + 3200].copy(), "e2m1", "ocp-floor")
        assert np.array_equal(q.codes[:, start : start + 3200], part.codes)
        assert np.array_equal(q.scale[:, start // 32 : start // 32 + 100], part.scale)


def test_steps_table_is_the_rule_at_random_magnitudes() -> None:
    rng = np.random.default_rng(29)
    largest = rng.integers(0, 0x7F800010, 200_000, dtype=np.uint32)
    for rule, row in scale_rules.items():
        if rule == "mse2":
            continue
        for fmt in row.formats:
            for source in row.element(fmt).sources:
                plan = scheme(rule, fmt, row.element(fmt).roundings[0].value)
                threshold, low, high = steps(plan, source)
                field = largest >> 23
                byte = np.where((largest & 0x7FFFFF) >= threshold[field], high[field], low[field])
                want, _ = plan.scales(largest, source)
                assert np.array_equal(byte, want), (rule, fmt, source)


def test_a_rule_with_two_steps_in_a_binade_has_no_table(monkeypatch: pytest.MonkeyPatch) -> None:
    def stairs(name: str, largest: np.ndarray, context: object) -> np.ndarray:
        return ((largest >> np.uint32(21)) & np.uint32(3)).astype(np.uint8)

    monkeypatch.setattr("narrowcast.mx.steps.scale_bytes", stairs)
    assert steps(scheme("ceil", "e4m3"), "fp32") is None


def test_mistakes_do_not_touch_memory() -> None:
    if nc.kernels.level() == "numpy":
        pytest.skip("no compiled kernels here")
    rule = block_rule(scheme("ceil", "e4m3"), "fp32")
    assert isinstance(rule, BlockRule)
    x, codes = np.ones((2, 64), dtype=np.float32), np.empty((2, 64), dtype=np.uint8)
    for bad_codes, bad_scale, block in [
        (codes, np.empty((2, 1), dtype=np.uint8), 32),
        (codes[:1], np.empty((2, 2), dtype=np.uint8), 32),
        (codes, np.empty((2, 2), dtype=np.uint8), 33),
        (codes, np.empty((2, 2), dtype=np.uint8), 0),
    ]:
        with pytest.raises(ValueError, match=r"scale for each block|codes of another|unequal"):
            quantize_blocks(x, bad_codes, bad_scale, block, "rn", rule)
