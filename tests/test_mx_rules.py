"""Scale rules against their formulas in fractions, row by row, and properties that hold for all of them."""

from fractions import Fraction
from math import inf

import ml_dtypes
import numpy as np
import pytest

import narrowcast as nc
from narrowcast.mx import scale_rules
from narrowcast.mx.bits import magnitude_bits, product, round_to_bf16
from narrowcast.operation import execute

LARGEST = {"e4m3": 448, "e5m2": 57344, "e2m1": 6, "e1m2": 1.75, "e3m2": 28, "e2m3": 7.5, "s8": 127 / 64}
ULP_BITS = {"e4m3": 3, "e5m2": 2, "e2m1": 1, "e1m2": 2, "e3m2": 2, "e2m3": 3}
SOURCE_DTYPES = {"fp32": np.float32, "fp16": np.float16, "bf16": ml_dtypes.bfloat16}


def log2_floor(x: Fraction) -> int:
    """Floor of log2 of a positive fraction."""
    e = x.numerator.bit_length() - x.denominator.bit_length()
    return e if Fraction(2) ** e <= x else e - 1


def log2_ceil(x: Fraction) -> int:
    e = log2_floor(x)
    return e if Fraction(2) ** e == x else e + 1


def rounded(x: Fraction, digits: int, lowest: int = -149) -> Fraction:
    """Round to ``digits`` significant binary digits, ties to even, with fp32's or bf16's smallest spacing."""
    if x == 0:
        return x
    spacing = Fraction(2) ** max(log2_floor(x) - digits + 1, lowest)
    return round(x / spacing) * spacing


def limited(exponent: int) -> int:
    return min(max(exponent, -127), 127) + 127


def quotient_byte(x: Fraction, target: Fraction, subnormal: bool) -> int:
    d = rounded(x * rounded(1 / target, 24), 24)
    normal = d >= Fraction(2) ** -126
    if not normal:
        return int(subnormal and d > Fraction(2) ** -127)
    e = log2_floor(d)
    return e + 127 + int(d != Fraction(2) ** e and e < 127)


def formula(rule: str, fmt: str, x: Fraction, source: str, target: Fraction | None) -> int:
    """Byte of a block with the finite, positive largest magnitude x, straight from the row's words."""
    largest = Fraction(LARGEST[fmt])
    emax = log2_floor(largest)
    field = max(log2_floor(x), -127) + 127
    if rule == "ocp-floor" or (rule == "msmodelslim" and fmt == "e4m3"):
        return limited(log2_floor(x) - emax)
    if rule == "ceil":
        return limited(log2_ceil(x / largest))
    if rule == "ceil-log2":
        return limited(log2_ceil(x) - emax)
    if rule in ("even", "compressed-tensors"):
        bits = ULP_BITS[fmt] if rule == "even" else 1
        half = Fraction(2) ** (max(log2_floor(x), -126) - bits - 1)
        above = x + half
        return limited(max(log2_floor(above), -127) - emax) if above >= Fraction(2) ** -126 else 0
    if rule in ("cann-0", "pto-ocp"):
        return max(field - emax, 0)
    if rule in ("cann-1", "pto-nv"):
        return quotient_byte(x, largest, subnormal=True)
    if rule == "cann-2":
        if target not in (0, 6, 7):
            return quotient_byte(x, Fraction(target), subnormal=False)
        spacing = Fraction(2) ** (max(log2_floor(x), -126) - 7)
        view = (round(x / spacing) if source == "fp16" else x // spacing) * spacing
        e = log2_floor(view) if view else -150
        threshold = Fraction(7, 4) if target == 7 else Fraction(3, 2)
        if e + 127 < emax:
            return 0
        return e + 127 - emax + int(view / Fraction(2) ** e > threshold)
    c = Fraction(7, 8) if rule == "msmodelslim" else Fraction(29, 4)
    t = rounded(rounded(x / c, 24) + rounded(Fraction(96, 10**8), 24), 24)
    if rule == "msmodelslim":
        return limited(min(log2_floor(t), 127) - 2)
    assert rule == "ceil-x"
    return limited(log2_ceil(t))


def interesting(source: str) -> np.ndarray:
    """Magnitudes around every threshold of every binade: 1, 1.5, 1.75, 1.875, 1.9375 and the neighbours."""
    dtype = np.dtype(SOURCE_DTYPES[source])
    bits, fraction, top = {"fp32": ("u4", 23, 255), "fp16": ("u2", 10, 31), "bf16": ("u2", 7, 255)}[source]
    unit = 1 << fraction
    steps = [0, 1, unit // 2, unit * 3 // 4, unit * 7 // 8, unit * 15 // 16, unit - 1, unit * 63 // 64, unit * 13 // 16]
    fields = range(top) if source == "fp16" else [*range(20), *range(95, 160), *range(240, top)]
    raw = {max(0, field * unit + s + d) for field in fields for s in steps for d in (-1, 0, 1)} - {0}
    return np.array(sorted(r for r in raw if r < top * unit), dtype=bits).view(dtype)


CASES = [
    (rule, fmt, source, target)
    for rule, row in scale_rules.items()
    if rule not in ("mse2", "msmodelslim-bf16", "ceil-x-bf16")
    for fmt in row.formats
    for source in row.element(fmt).sources
    for target in ((0.0, 6.0, 7.0, 8.0, 10.5, 12.0) if rule == "cann-2" else (None,))
]


@pytest.mark.parametrize(("rule", "fmt", "source", "target"), CASES)
def test_rule_is_its_formula(rule: str, fmt: str, source: str, target: float | None) -> None:
    largest = interesting(source)[:: 1 if rule in ("cann-2", "ceil") else 3]
    parameters = {} if target is None else {"dst_type_max": target}
    got, _ = nc.mx.shared_scales(largest[:, None], fmt, rule, **parameters)
    exact = Fraction(target) if target is not None else None
    want = [formula(rule, fmt, Fraction(float(v)), source, exact) for v in largest]
    wrong = [(float(v), int(g), w) for v, g, w in zip(largest, got[:, 0], want, strict=True) if g != w]
    assert not wrong, f"{len(wrong)} of {len(want)}: {wrong[:5]}"


@pytest.mark.parametrize("row", scale_rules.values(), ids=list(scale_rules))
def test_row_is_complete(row: object) -> None:
    fmt, largest, byte = row.example
    dtype = SOURCE_DTYPES[row.element(fmt).sources[-1 if row.element(fmt).sources == ("bf16",) else 0]]
    q = nc.mx.quantize(np.array([largest, 0.01], dtype=dtype), fmt, row.name)
    if row.element(fmt).sources[0] == "fp32" or dtype is ml_dtypes.bfloat16:
        assert q.scale.tolist() == [byte]
    for text in (row.title, row.formula, row.infinite, row.nan, row.zero, row.tiny, row.source):
        assert text
    assert row.formula in str(row)


@pytest.mark.parametrize("row", scale_rules.values(), ids=list(scale_rules))
def test_special_blocks(row: object) -> None:
    for element in row.elements:
        dtype = SOURCE_DTYPES[element.sources[-1]]
        x = np.array([[inf, 1.0], [np.nan, 1.0], [0.0, -0.0]], dtype=dtype)
        byte = nc.mx.quantize(x, element.format, row.name).scale[:, 0]
        infinite = {"pto-ocp": {"e4m3": 247, "e2m1": 253}[element.format]} if row.name == "pto-ocp" else {"pto-nv": 254}
        zero = {"ceil-x": 108, "ceil-x-bf16": 107}
        if element.format == "e2m1":
            zero |= {"msmodelslim": 105, "msmodelslim-bf16": 105}
        assert byte.tolist() == [infinite.get(row.name, 255), 255, zero.get(row.name, 0)]


@pytest.mark.parametrize("rule", [r for r in scale_rules if r != "mse2"])
def test_more_magnitude_never_lowers_the_byte(rule: str) -> None:
    row = scale_rules[rule]
    for element in row.elements:
        largest = interesting(element.sources[0])
        byte, _ = nc.mx.shared_scales(largest[:, None], element.format, rule)
        assert (np.diff(byte[:, 0].astype(int)) >= 0).all()


def test_mse2_takes_the_better_neighbour() -> None:
    x = np.random.default_rng(3).standard_normal((200, 32)).astype(np.float32)
    for fmt in scale_rules["mse2"].formats:
        q = nc.mx.quantize(x, fmt, "mse2")
        low, _ = nc.mx.shared_scales(x, fmt, "ocp-floor")
        errors = []
        for byte in (low, low + np.uint8(1)):
            scale = np.ldexp(np.float32(1), byte.astype(int) - 127).astype(np.float32)
            back = nc.round_to(x / scale, fmt).astype(np.float64) * scale
            errors.append(np.square(x - back).sum(axis=1, keepdims=True))
        assert np.array_equal(q.scale, np.where(errors[1] < errors[0], low + 1, low))
        # A uniform grid loses more to the coarser step than to the clipped tip of the block.
        assert (q.scale != low).any() == (fmt != "e1m2")


def test_msmodelslim_bf16_rounds_the_logarithm() -> None:
    x = np.array([[0.03112793], [0.0306396], [0.5], [0.498]], dtype=ml_dtypes.bfloat16)
    assert nc.mx.quantize(x, "e4m3", "msmodelslim-bf16").scale[:, 0].tolist()[0] == 114
    assert nc.mx.quantize(x.astype(np.float32), "e4m3", "msmodelslim").scale[:, 0].tolist()[0] == 113


def test_product_rounds_once() -> None:
    rng = np.random.default_rng(5)
    bits = rng.integers(0, 0x7F800000, 20000, dtype=np.uint32)
    for target in (448.0, 57344.0, 6.0, 7.25, 12.0):
        factor = np.float32(1) / np.float32(target)
        with np.errstate(under="ignore"):
            want = (bits.view(np.float32).astype(np.float64) * np.float64(factor)).astype(np.float32)
        assert np.array_equal(product(bits, int(factor.view(np.uint32))), want.view(np.uint32))


def test_bits_widen_and_narrow_as_numpy_does() -> None:
    half = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    number = ~np.isnan(half)
    assert np.array_equal(magnitude_bits(half)[number], np.abs(half[number].astype(np.float32)).view(np.uint32))
    assert (magnitude_bits(half)[~number] > 0x7F800000).all()
    x = np.random.default_rng(7).integers(0, 1 << 32, 50000, dtype=np.uint32)
    x = x[~np.isnan(x.view(np.float32))]
    want = x.view(np.float32).astype(ml_dtypes.bfloat16).astype(np.float32).view(np.uint32)
    assert np.array_equal(round_to_bf16(x), want)


@pytest.mark.parametrize("rule", list(scale_rules))
def test_rule_row_names_what_the_operation_reads(rule: str) -> None:
    row = scale_rules[rule]
    for element in row.elements:
        op = nc.mx.MxQuant(format=element.format, rule=rule)
        assert set(op.switches) <= set(nc.switches)
        x = np.ones((1, 32), dtype=SOURCE_DTYPES[element.sources[-1]])
        assert execute(op, x).record.rule == rule
