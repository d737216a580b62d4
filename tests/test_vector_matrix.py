"""The whole conversion matrix of both chips: what the tables list runs and is right, everything else is refused."""

from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

import narrowcast as nc
from narrowcast.catalog import casts
from tests.oracle import reference
from tests.oracle.reference import round_integer
from tests.vector_matrix import (
    CODED,
    FORMATS,
    MODES,
    RESULT_DTYPES,
    SPELLED,
    UNEMULATED,
    Pair,
    assert_codes,
    basic,
    bits,
    emulated,
    inputs,
    oracle,
    values_of,
    wrapped,
)

pytestmark = pytest.mark.kernels
LEGAL = [(p, m) for p in emulated() for m in MODES.values() if m in p.modes]
INTEGRAL = [(p, m) for p, m in LEGAL if p.source == p.target == "fp32"]
PLAIN = [(p, m) for p, m in LEGAL if (p, m) not in INTEGRAL and not p.ignores_mode]
# Chip 2201 has no CTRL[60]; fp16 -> bf16 and hif8 -> fp16 do not heed it.
BY_CTRL48 = (("fp16", "bf16"), ("hif8", "fp16"))
OWN_CHOICE = [(p, m) for p, m in PLAIN if p.chip == "3510" and (p.source, p.target) not in BY_CTRL48]


def name(value: object) -> str:
    return f"{value.chip}-{value.source}-{value.target}" if isinstance(value, Pair) else str(value)


def semantics(chip: str) -> nc.Semantics:
    return nc.Semantics(chip=chip)


def run(p: Pair, mode: str, array: np.ndarray, control: nc.Control | None = None, **kw: object) -> np.ndarray:
    source = p.source if p.source in CODED else None
    return nc.vector.cast(array, p.target, mode, source=source, control=control, semantics=semantics(p.chip), **kw)


def test_the_golden_matrix_is_whole() -> None:
    assert len(basic()) == 89
    assert len(emulated()) == 81
    assert {p.chip for p in basic()} == {"3510", "2201"}


@pytest.mark.parametrize(("p", "mode"), PLAIN, ids=name)
def test_legal_cast_at_reset(p: Pair, mode: str) -> None:
    array = inputs(p.source, p.target)
    before = array.copy()
    result = run(p, mode, array)
    values = values_of(array, p.source)
    assert result.shape == array.shape
    assert_codes(bits(result, p.target), wrapped(oracle(values, p.target, mode), p.target), values, f"{p} {mode}")
    assert array.tobytes() == before.tobytes()


def without_saturation(p: Pair) -> dict[str, bool]:
    """Which casts do not saturate when every control bit says so: FP4 and s16 -> u32 always do."""
    always = p.target in ("e2m1", "e1m2") or (p.source, p.target) == ("s16", "u32")
    return {"saturate": always, "keep_nan": not always}


@pytest.mark.parametrize(("p", "mode"), PLAIN, ids=name)
def test_legal_cast_without_saturation(p: Pair, mode: str) -> None:
    array = inputs(p.source, p.target)
    control = nc.Control(ctrl48=1, ctrl59=1)
    result = run(p, mode, array, control)
    values = values_of(array, p.source)
    want = wrapped(oracle(values, p.target, mode, **without_saturation(p)), p.target)
    assert_codes(bits(result, p.target), want, values, f"{p} {mode}")


@pytest.mark.parametrize(("p", "mode"), OWN_CHOICE, ids=name)
def test_the_instruction_saturates_where_it_decides(p: Pair, mode: str) -> None:
    """CTRL[60] = 0: chip 3510's Basic Cast asks for saturation, except where only CTRL[48] decides."""
    array = inputs(p.source, p.target)
    result = run(p, mode, array, nc.Control(ctrl60=0, ctrl48=1, ctrl59=1))
    values = values_of(array, p.source)
    assert_codes(bits(result, p.target), wrapped(oracle(values, p.target, mode), p.target), values, f"{p} {mode}")


@pytest.mark.parametrize(("p", "mode"), INTEGRAL, ids=name)
def test_fp32_to_fp32_rounds_to_integers(p: Pair, mode: str) -> None:
    values = np.float32([0.5, 1.5, 2.5, -2.5, 0.3, 2.0**23 + 1, 2.0**40, 1e-40, 3.7, -3.2, 1e38])
    result = run(p, mode, values)
    want = [round_integer(Fraction(float(v)), mode) for v in values]
    assert result.dtype == np.float32
    assert [Fraction(float(v)) for v in result] == want
    kept = run(p, mode, np.float32([np.inf, -np.inf, np.nan]))
    assert kept[0] == np.inf
    assert kept[1] == -np.inf
    assert np.isnan(kept[2])
    zero = run(p, mode, np.float32([-0.0]))
    assert np.signbit(zero[0]) == (p.chip == "3510"), "chip 2201 gives +0 for -0"


def test_every_other_combination_is_refused() -> None:
    legal = {(p.chip, p.source, p.target): p.modes for p in basic()}
    refused = 0
    for chip in ("3510", "2201"):
        for source in FORMATS:
            array = np.zeros(2, np.uint8 if source in CODED else RESULT_DTYPES[source])
            for target in FORMATS:
                for mode in MODES.values():
                    if mode in legal.get((chip, source, target), ()):
                        continue
                    with pytest.raises(nc.UnsupportedCastError, match=f"chip {chip}"):
                        nc.vector.cast(array, target, mode, source=source, semantics=semantics(chip))
                    refused += 1
    assert refused == 2 * len(FORMATS) ** 2 * len(MODES) - len(LEGAL)


@pytest.mark.parametrize("p", [p for p in basic() if {p.source, p.target} & set(UNEMULATED)], ids=name)
def test_complex_and_double_are_listed_and_not_emulated(p: Pair) -> None:
    mode = sorted(p.modes)[0]
    with pytest.raises(nc.UnsupportedCastError, match="not emulated"):
        nc.vector.cast(np.zeros(2), p.target, mode, source=p.source, semantics=semantics(p.chip))
    row = casts.find("basic", p.chip, p.source, p.target)
    assert row is not None
    assert not row.emulated
    assert set(row.modes) == p.modes


def test_a_double_array_is_refused_with_a_way_out() -> None:
    with pytest.raises(nc.UnsupportedCastError, match="float32"):
        nc.vector.cast(np.zeros(2), "fp16")
    assert nc.vector.cast([1.5], "fp16", source="fp32").tolist() == [1.5]
    with pytest.raises(nc.FormatError, match=r"0\.1 at index \[1\]"):
        nc.vector.cast([1.5, 0.1], "fp16", source="fp32")


def test_vendor_spellings_mean_the_same() -> None:
    x = np.float32([1.0009765625, 2.5])
    for vendor, short in {
        "CAST_ROUND": "rna",
        "CAST_ODD": "ro",
        "CAST_NONE": "none",
        nc.roundings["rz"].rounding: "rz",
    }.items():
        assert np.array_equal(nc.vector.cast(x, "half", vendor), nc.vector.cast(x, "fp16", short))
    assert SPELLED["half"] == nc.formats["half"].name


def test_the_message_says_what_is_legal() -> None:
    with pytest.raises(nc.UnsupportedCastError) as e:
        nc.vector.cast(np.float32([1]), "e4m3", "rz")
    assert str(e.value).startswith(
        "fp32 -> e4m3 has no rounding mode rz on chip 3510 (allowed: rn). "
        'Use rn, or encode(..., rounding="rz") off-device. [seed 3.3'
    )
    with pytest.raises(nc.UnsupportedCastError) as e:
        nc.vector.cast(np.float32([1]), "e4m3", semantics=semantics("2201"))
    assert "chip 2201 (from fp32: s16, fp16, bf16, s32, fp32, s64)" in str(e.value)
    assert "On record for chip 3510" in str(e.value)
    with pytest.raises(nc.UnsupportedCastError, match="reg_cast"):
        nc.vector.cast(np.zeros(2, ml_dtypes.bfloat16), "e8m0")
    with pytest.raises(nc.UnsupportedCastError, match="chips that have: 3510, 2201"):
        nc.vector.cast(np.float32([1]), "fp16", semantics=nc.Semantics("pto-isa", "cpu-sim"))


def test_unknown_names_offer_close_ones() -> None:
    with pytest.raises(nc.UnknownNameError, match="fp16"):
        nc.vector.cast(np.float32([1]), "fp61")
    with pytest.raises(nc.UnknownNameError, match="cast_rint"):
        nc.vector.cast(np.float32([1]), "fp16", "CAST_RNT")


def test_default_modes() -> None:
    x = np.float32([18.0, 2.5])
    assert nc.vector.cast(x, "hif8").tolist() == nc.vector.cast(x, "hif8", "rna").tolist()
    assert nc.vector.cast(x, "s32").tolist() == [18, 2]
    assert nc.vector.cast(np.float16(x), "fp32").tolist() == [18.0, 2.5]


def test_none_means_rint_where_the_implementation_says_so() -> None:
    x = np.float16([2.5, -3.5])
    with pytest.raises(nc.UnsupportedCastError, match='cast_none="rint"'):
        nc.vector.cast(x, "s8", "CAST_NONE")
    open_minded = nc.Semantics().override(cast_none="rint")
    assert nc.vector.cast(x, "s8", "CAST_NONE", semantics=open_minded).tolist() == [2, -4]
    assert nc.vector.cast(x, "s8", "CAST_NONE", semantics=semantics("2201")).tolist() == [2, -4]
    with pytest.raises(nc.UnsupportedCastError):
        nc.vector.cast(x, "s16", "CAST_NONE", semantics=open_minded)


@pytest.mark.parametrize("row", casts.ROWS, ids=lambda r: f"{r.interface}-{r.chip}-{r.source}-{r.target}")
def test_every_row_has_a_source(row: casts.CastRow) -> None:
    assert row.reference
    assert set(row.modes) <= set(MODES.values())


def test_small_reference_agrees_on_published_examples() -> None:
    """The oracle the walk uses, against the scalar rules written a second time."""
    for x in (0.5 + 2**-12, 65519.0, 2.0**-24, -1.3):
        for mode in ("rn", "rna", "rd", "ru", "rz", "ro"):
            got = nc.vector.cast(np.float32([x]), "fp16", mode).view(np.uint16)[0]
            assert got == reference(Fraction(float(np.float32(x))), "fp16", mode, saturate=True)
