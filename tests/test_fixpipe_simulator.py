"""The tile library's CPU simulator, bit for bit, on its own recorded runs."""

import ml_dtypes
import numpy as np
import pytest

import narrowcast as nc
from narrowcast import fixpipe
from tests.vectors import load

SIMULATOR = nc.Semantics("pto-isa", chip="cpu-sim")
BY_COLUMN = SIMULATOR.override(fixpipe_parameter_axis="column")
MODES = {
    ("f32", "s8"): "QF322B8_PRE",
    ("f32", "u8"): "QF322B8_PRE",
    ("f32", "f16"): "QF322F16_PRE",
    ("f32", "bf16"): "QF322BF16_PRE",
    ("s32", "s8"): "REQ8",
    ("s32", "u8"): "REQ8",
    ("s32", "f16"): "DEQF16",
    ("s32", "s16"): "SHIFTS322S16",
}
DTYPES = {"s8": "int8", "u8": "uint8", "f16": "float16", "s16": "int16", "bf16": "uint16"}


def simulate(
    acc: np.ndarray, mode: str, words: np.ndarray, relu: bool, saturate: bool, semantics: nc.Semantics
) -> np.ndarray:
    """Codes of a store; subnormal accumulators and special scales are part of the recorded runs."""
    op = fixpipe.Fixpipe(mode=mode, activation="relu" if relu else None)
    return nc.execute(op, {"acc": acc, "words": words}, semantics, nc.Control(ctrl48=int(saturate))).codes


def assert_codes(got: np.ndarray, want: np.ndarray) -> None:
    want = want.reshape(got.shape)
    if want.dtype == np.float16:  # NaN by class
        numbers = ~(np.isnan(want) & np.isnan(got.view(np.float16)))
        got, want = got[numbers], want.view(np.uint16)[numbers]
    assert np.array_equal(got, want.view(got.dtype))


@pytest.mark.parametrize(("source", "target"), [pair for pair in MODES if pair[1] != "bf16"])
@pytest.mark.parametrize("relu", [False, True])
def test_recorded_stores(source: str, target: str, relu: bool) -> None:
    """Ten words (scales 0.001 to 3, negative, zero, with low bits set) on 1024 accumulators each."""
    data = load("pto_cpu_tstore_prequant")
    acc = data["src_s32"] if source == "s32" else data["src_f32"].view(np.float32)
    want = data[f"{source}_{target}{'_relu' if relu else ''}"]
    for i, word in enumerate(data["quant"]):
        # The range follows bit 46 and the element type follows the tile, so the bytes are those of the range.
        got = simulate(acc[None], MODES[source, target], word, relu, False, SIMULATOR)
        assert_codes(got, want[i])


STORES = {
    # case: source, target, vector words, saturating, ReLU, shape, and the full shape it is part of
    "ND_1": ("f32", "s8", True, True, True, (1, 1, 1, 2, 128), (1, 1, 1, 2, 128)),
    "DN_4": ("f32", "f16", False, True, True, (1, 1, 1, 4, 21), (1, 1, 1, 8, 32)),
    "DN_5": ("f32", "f16", False, False, False, (3, 1, 1, 1, 124), (5, 1, 1, 2, 128)),
    "DN_7": ("f32", "f16", False, False, True, (1, 1, 1, 16, 8), (1, 1, 2, 16, 8)),
    "DN_8": ("s32", "s16", False, False, False, (2, 2, 2, 16, 16), (5, 3, 3, 16, 16)),
    "DN_9": ("s32", "s8", True, True, True, (1, 2, 1, 16, 32), (2, 4, 2, 16, 32)),
}


@pytest.mark.parametrize("case", STORES)
def test_generated_stores(case: str) -> None:
    source, target, _, saturate, relu, shape, whole = STORES[case]
    data = load("pto_gen_cpu_tstore_quant")
    part = {name: data[f"TStoreQuantTest.{case}/{name}.bin"] for name in ("input", "quant", "output", "golden")}
    words = part["quant"].view(np.uint64)
    if case.startswith("DN"):  # memory is column after column
        shape, whole = (*shape[:3], shape[4], shape[3]), (*whole[:3], whole[4], whole[3])
    acc = part["input"].view(np.int32 if source == "s32" else np.float32).reshape(whole)
    want = part["output"].view(DTYPES[target]).reshape(whole)
    inside = tuple(slice(0, n) for n in shape)
    rows = np.ascontiguousarray(acc[inside]).reshape(-1, shape[-1])
    # A row-major tile takes words by column; a column-major one by row, which is the last axis of its memory.
    got = simulate(rows, MODES[source, target], words, relu, saturate, BY_COLUMN)
    assert_codes(got, want[inside])
    assert_codes(got, part["golden"].view(DTYPES[target]).reshape(whole)[inside])


# case: rows, columns of the source; rows, columns extracted; first row, first column; vector; saturate; ReLU
EXTRACTS = {
    1: (128, 64, 128, 64, 0, 0, False, False, False),
    2: (128, 64, 96, 32, 0, 0, False, False, True),
    3: (128, 128, 64, 64, 0, 0, False, False, False),
    5: (128, 64, 64, 32, 8, 0, True, False, False),
    6: (96, 96, 64, 64, 0, 0, True, False, True),
    7: (128, 128, 96, 96, 0, 0, True, False, False),
    8: (256, 64, 128, 32, 0, 0, True, False, True),
}
SPECIAL_EXTRACTS = {
    41: (128, 64, 128, 64, 0, 0, False, False, False),
    42: (128, 64, 96, 32, 0, 0, False, False, True),
    43: (128, 128, 64, 64, 0, 0, False, True, False),
    45: (128, 64, 128, 64, 0, 0, False, False, False),
    46: (128, 64, 96, 32, 0, 0, False, False, True),
    47: (128, 128, 64, 64, 0, 0, False, True, False),
    49: (128, 64, 128, 64, 0, 0, False, False, False),
    50: (128, 64, 128, 64, 0, 0, False, False, False),
    51: (128, 128, 96, 96, 16, 8, True, True, False),
    52: (256, 64, 128, 32, 16, 8, True, True, True),
}
TYPES = {"int32_t": "s32", "float": "f32", "int8_t": "s8", "uint8_t": "u8", "half": "f16", "int16_t": "s16"}
TYPES["bfloat16_t"] = "bf16"


def extract_cases() -> list[tuple[int, str, str]]:
    groups = [("int32_t", "int8_t", 0), ("int32_t", "uint8_t", 8), ("int32_t", "half", 16), ("float", "int8_t", 24)]
    groups.append(("float", "uint8_t", 32))
    found = [(first + k, source, target) for source, target, first in groups for k in EXTRACTS]
    for k in SPECIAL_EXTRACTS:
        source = "float" if k < 49 else "int32_t"
        target = "half" if k < 44 else "bfloat16_t" if k < 49 else "int16_t" if k < 51 else "uint8_t"
        found.append((k, source, target))
    return found


@pytest.mark.parametrize("case", extract_cases(), ids=lambda case: f"{case[0]}-{case[1]}-{case[2]}")
def test_generated_extracts(case: tuple[int, str, str]) -> None:
    number, source, target = case
    data = load("pto_gen_cpu_textract_quant")
    name = f"TEXTRACTTest.case_{number}_{source}_{target}"
    rows, columns, m, n, top, left, vector, saturate, relu = SPECIAL_EXTRACTS.get(
        number, EXTRACTS.get((number - 1) % 8 + 1)
    )
    words = data[f"{name}/quant.bin"].view(np.uint64)
    acc = data[f"{name}/input.bin"].view(np.int32 if source == "int32_t" else np.float32).reshape(rows, columns)
    words = words[left : left + n] if vector else words
    part = np.ascontiguousarray(acc[top : top + m, left : left + n])
    got = simulate(part, MODES[TYPES[source], TYPES[target]], words, relu, saturate, BY_COLUMN)
    # The simulator of the recorded runs was built without bfloat16: the generator's golden stands in.
    result = data.get(f"{name}/output.bin", data[f"{name}/golden.bin"]).view(DTYPES[TYPES[target]]).reshape(m, n)
    assert_codes(got, result)


def test_words_by_row_of_a_column_major_tile() -> None:
    words = np.array([fixpipe.QuantParam(1.0).word, fixpipe.QuantParam(2.0).word], dtype=np.uint64)
    acc = np.full((2, 2), 10, dtype=np.int32)
    assert simulate(acc, "REQ8", words, False, False, SIMULATOR).tolist() == [[10, 10], [20, 20]]
    assert simulate(acc, "REQ8", words, False, False, BY_COLUMN).tolist() == [[10, 20], [10, 20]]
    with pytest.raises(nc.ShapeError, match="for each of 3 rows"):
        simulate(np.ones((3, 2), np.int32), "REQ8", words, False, False, SIMULATOR)


def test_polarity_of_bit_48() -> None:
    """With bit 48 set the simulator saturates infinity and zeroes NaN; with it clear it keeps them."""
    acc = np.float32([[np.inf, np.nan, 1e6]])
    word = np.uint64(0x3F800000)
    kept = simulate(acc, "QF322F16_PRE", word, False, False, SIMULATOR).view(np.float16)
    limited = simulate(acc, "QF322F16_PRE", word, False, True, SIMULATOR).view(np.float16)
    assert np.isinf(kept[0, 0])
    assert np.isnan(kept[0, 1])
    assert kept[0, 2] == 65504
    assert limited.tolist() == [[65504, 0, 65504]]


def test_a_zero_exponent_is_a_normal_number_to_the_simulator() -> None:
    """VQF322B8 decodes 19 bits; 0x400000 is then 2**-127 * 1.5 and not a subnormal, nor refused."""
    acc = np.float32([[3e38, 3e38]])
    words = np.array([0x400000400000, 0x400000400000], dtype=np.uint64)
    assert simulate(acc, "QF322B8_PRE", words, False, False, BY_COLUMN).tolist() == [[3, 3]]
    with pytest.raises(nc.ConstraintError, match="FIXP-02"):
        simulate(acc, "QF322B8_PRE", words, False, False, nc.Semantics())


def test_modes_the_simulator_lacks_are_refused() -> None:
    for mode in ("QF32_2_E4M3", "QF32_2_HiF8", "QF322F32", "REQ4"):
        acc = np.ones((1, 2), np.int32 if mode == "REQ4" else np.float32)
        with pytest.raises(nc.UnsupportedCastError):
            fixpipe.run(acc, mode, 1.0, semantics=SIMULATOR)


def test_bfloat16_golden_is_what_ml_dtypes_gives() -> None:
    acc = np.float32([[1.00390625, 3.0e38, -7.3]])
    got = simulate(acc, "F322BF16", None, False, False, SIMULATOR)
    assert np.array_equal(got, acc.astype(ml_dtypes.bfloat16).view(np.uint16))
