"""The C-API names: each function's modes and chips, its arithmetic, packing and masks."""

import doctest
import inspect

import ml_dtypes
import numpy as np
import pytest

import narrowcast as nc
from narrowcast.catalog.capi import functions
from narrowcast.vector import capi
from tests.golden import read
from tests.vector_matrix import (
    CHIPS,
    CODED,
    MODES,
    RESULT_DTYPES,
    SPELLED,
    assert_codes,
    bits,
    inputs,
    oracle,
    values_of,
    wrapped,
)

PACKED = ("s4", "e2m1", "e1m2")
TABLE = {row["name"]: row for row in read("matrix_capi")}
EVERY_MODE = [m for m in MODES.values() if m != "none"]


def pair(name: str) -> tuple[str, str]:
    return SPELLED[TABLE[name]["source"]], SPELLED[TABLE[name]["target"]]


def modes(name: str) -> list[str]:
    return [m for m in TABLE[name]["modes"].split("/") if m]


def chips(name: str) -> tuple[str, ...]:
    return CHIPS if TABLE[name]["chips"] == "all" else ("3510",)


def source_array(name: str) -> np.ndarray:
    """Return the function's input: packed bytes for 4-bit pairs."""
    source, target = pair(name)
    array = inputs(source, target)
    if source in PACKED:
        return np.arange(256, dtype=np.uint8)
    return array


def lanes(array: np.ndarray, name: str) -> np.ndarray:
    """Return packed bytes as one code per element, other arrays as they are."""
    return np.stack([array & 15, array >> 4], -1).reshape(-1) if name in PACKED else array


RUNS = [(n, c, m) for n in TABLE for c in chips(n) for m in modes(n) or [None]]


@pytest.mark.parametrize(("name", "chip", "mode"), RUNS)
def test_function_gives_what_its_name_says(name: str, chip: str, mode: str | None) -> None:
    source, target = pair(name)
    function = getattr(capi, name)
    array = source_array(name)
    kw = {} if mode is None else {"mode": mode}
    got = function(array, semantics=nc.Semantics(chip=chip), **kw)
    values = values_of(lanes(array, source), source)
    want = wrapped(oracle(values, target, mode or "none"), target)
    if target in PACKED:
        assert got.dtype == np.uint8
        assert got.size * 2 == array.size
        codes = lanes(got, target).astype(int)
    else:
        codes = bits(got, target)
    assert_codes(codes, want, values, f"{name} {mode} on {chip}")


def test_every_name_of_the_tables_is_here_and_no_other() -> None:
    assert list(functions) == list(TABLE) == list(capi.__all__)
    for name, row in TABLE.items():
        assert set(functions[name].modes) == set(modes(name))
        assert functions[name].chips == chips(name)
        assert functions[name].in_seed == (row["producer"] == "seed")


@pytest.mark.parametrize("name", TABLE)
def test_other_modes_and_chips_are_refused(name: str) -> None:
    function = getattr(capi, name)
    array = source_array(name)[:2]
    for chip in CHIPS:
        semantics = nc.Semantics(chip=chip)
        if chip not in chips(name):
            with pytest.raises(nc.UnsupportedCastError, match=f"{name} does not exist on chip {chip}"):
                function(array, semantics=semantics)
            continue
        for mode in EVERY_MODE:
            if modes(name) and mode not in modes(name):
                with pytest.raises(nc.UnsupportedCastError, match=f"no rounding mode {mode}"):
                    function(array, mode=mode, semantics=semantics)
        if not modes(name):
            with pytest.raises(TypeError):
                function(array, mode="rn")


def test_half2int4x2_is_a_name_of_3510_while_the_basic_cast_exists_on_2201() -> None:
    x = np.float16([1, -2])
    old = nc.Semantics(chip="2201")
    with pytest.raises(nc.UnsupportedCastError, match=r"vector\.cast"):
        capi.Half2Int4x2(x, semantics=old)
    assert nc.vector.cast(x, "s4", semantics=old).astype(int).tolist() == [1, -2]
    assert capi.Half2Int4x2(x).tolist() == [0xE1]


@pytest.mark.parametrize("name", [n for n in TABLE if modes(n)])
def test_the_sat_form_counts_where_ctrl60_is_0(name: str) -> None:
    source, target = pair(name)
    function, row = getattr(capi, name), functions[name]
    x = np.array([120, 121], np.int32) if source == "s32" else np.array([6e4, -6e4]).astype(RESULT_DTYPES[source])
    own = nc.Control(ctrl60=0)
    always = target in ("e2m1", "e1m2") or name == "Half2Bfloat16"
    assert codes_of(function(x, control=own), target) == wanted(x, target, row.modes[0], saturate=always)
    if row.has_sat:
        saturated = function(x, saturate=True, control=own)
        assert codes_of(saturated, target) == wanted(x, target, row.modes[0], saturate=True)
    refusing = nc.Semantics(chip="2201") if row.has_sat else None
    with pytest.raises(nc.UnsupportedCastError, match=r"no _sat form|does not exist on chip 2201"):
        function(x, saturate=True, semantics=refusing)


def codes_of(result: np.ndarray, target: str) -> list[int]:
    return (lanes(result, target).astype(int) if target in PACKED else bits(result, target)).tolist()


def wanted(x: np.ndarray, target: str, mode: str, *, saturate: bool) -> list[int]:
    return wrapped(oracle(x, target, mode, saturate=saturate), target).tolist()


def test_masked_elements_become_zero_even_in_out() -> None:
    x = np.float32([1, 2, 3])
    mask = np.array([True, False, True])
    assert capi.Float2Half(x, mask).tolist() == [1, 0, 3]
    out = np.full(3, 9, np.float16)
    assert capi.Float2Half(x, mask, "ru", out=out) is out
    assert out.tolist() == [1, 0, 3]
    with pytest.raises(nc.ShapeError, match=r"mask has 2 elements.*has 3"):
        capi.Float2Half(x, mask[:2])


def test_mask_words_have_one_bit_per_byte_of_each_register() -> None:
    x = np.arange(1, 131, dtype=np.float32)
    got = capi.Float2Int32(x, [0b1_0001, 0, 0, 1 << 60])
    assert np.flatnonzero(got).tolist() == [0, 1, 63, 64, 65, 127, 128, 129]
    half = capi.Half2Int8(np.ones(128, np.float16), [0b101])
    assert np.flatnonzero(half).tolist() == [0, 1]


def test_packed_pairs_have_one_mask_bit_per_byte() -> None:
    packed = np.uint8([[0x21, 0x43], [0x65, 0x87]])
    assert capi.Int4x22Half(packed).tolist() == [[1, 2, 3, 4], [5, 6, 7, -8]]
    mask = np.array([[True, False], [False, True]])
    assert capi.Int4x22Half(packed, mask).tolist() == [[1, 2, 0, 0], [0, 0, 7, -8]]
    assert capi.Int4x22Half(packed, [0b0110]).tolist() == [[0, 0, 3, 4], [5, 6, 0, 0]]
    with pytest.raises(nc.ShapeError, match="packed pairs"):
        capi.Int4x22Half(np.int8([1, 2]))
    assert capi.Half2Int4x2(np.float16([1, 2, 3, 4]), [True, False, False, True]).tolist() == [0x21, 0x00]
    with pytest.raises(nc.ShapeError, match="even last axis; got 3"):
        capi.Half2Int4x2(np.float16([1, 2, 3]))


def test_the_rounding_of_bfloat162half_rn_is_a_switch() -> None:
    """The implementation passes the constant of `ru`; it shows below the normal halves."""
    x = np.array([0x2F81], np.uint16).view(ml_dtypes.bfloat16)
    implementation = nc.Semantics().override(bfloat162half_rn="ru")
    assert capi.Bfloat162Half(x).view(np.uint16).tolist() == [0]
    assert capi.Bfloat162Half(x, semantics=implementation).view(np.uint16).tolist() == [1]
    assert capi.Bfloat162Half(x, mode="rz", semantics=implementation).view(np.uint16).tolist() == [0]
    assert nc.vector.cast(x, "fp16", "rn", semantics=implementation).view(np.uint16).tolist() == [0]
    ours = nc.vector.VectorCast(source="bf16", target="fp16", mode="rn", interface="c-api")
    entry = nc.audit(ours, x).entries[0]
    assert (entry.switch, entry.changed, entry.chosen_result) == ("bfloat162half_rn", 1, "0x0000 (0)")
    assert entry.alternative_result.startswith("0x0001 (5.96")


def test_signatures_and_documentation() -> None:
    for name in TABLE:
        function = getattr(capi, name)
        row = functions[name]
        parameters = inspect.signature(function).parameters
        assert list(parameters)[:2] == ["src", "mask"]
        assert ("mode" in parameters) == bool(row.modes)
        if row.modes:
            assert parameters["mode"].default == row.modes[0]
        text = inspect.getdoc(function)
        assert text is not None
        assert text.startswith(f"Convert {row.source} to {row.target}, as ``{row.vendor_name}`` does.")
        for part in ("Formula:", "Args:", "Returns:", "Raises:", "Source:", "Example:", row.reference):
            assert part in text
        test = doctest.DocTestParser().get_doctest(
            text, {name: function, "np": np, "ml_dtypes": ml_dtypes}, name, None, None
        )
        assert doctest.DocTestRunner(verbose=False).run(test) == (0, 1)


def test_coded_sources_take_codes_and_their_own_type() -> None:
    codes = np.uint8([0x38, 0x7F])
    for array in (codes, codes.view(ml_dtypes.float8_e4m3fn)):
        got = capi.E4m32Float(array)
        assert got[0] == 1.0
        assert np.isnan(got[1])
    assert "e4m3" in CODED
    assert capi.Hif82Half(np.uint8([0x6F])).tolist() == [65504]
    assert capi.Hif82Float(np.uint8([0x6F])).tolist() == [np.inf]
