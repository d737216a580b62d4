"""TCVT: the simulator's own arithmetic, the chips' golden data, the executed specification."""

import re

import ml_dtypes
import numpy as np
import pytest

from narrowcast import formats, pack, unpack
from narrowcast.catalog import tile_casts
from narrowcast.errors import ConstraintError, UnsupportedCastError
from narrowcast.operation import Semantics, audit, execute, from_json, to_json
from narrowcast.tile import TCvt, Tile, TileType, tcvt
from narrowcast.tile.tile import element_dtype
from tests import vectors

SIMULATOR = Semantics("pto-isa", chip="cpu-sim")
MODES = ("none", "rn", "rna", "rd", "ru", "rz", "ro")
FP4 = ("e2m1", "e1m2")
NAMES = {"f32": "fp32", "f16": "fp16"}
DTYPES = {"fp32": np.float32, "fp16": np.float16, "bf16": ml_dtypes.bfloat16}


def convert(values, source, target, *, semantics, **settings):
    """Convert a flat array through tiles and return the bytes of the result."""
    values = values.reshape(-1, 64)
    rows = values.shape[0]
    src = Tile(values, dtype=source)
    dst = Tile(dtype=target, shape=(rows, 64))
    tcvt(dst, src, semantics=semantics, **settings)
    return dst.memory


def same(got, want, target):
    """Compare bytes, NaN of floating-point targets by class."""
    want = want.reshape(-1).view(np.uint8)
    if target in DTYPES:
        a, b = got.view(DTYPES[target]).astype(np.float32), want.view(DTYPES[target]).astype(np.float32)
        nan = np.isnan(a) & np.isnan(b)
        width = {"fp32": np.uint32}.get(target, np.uint16)
        return bool(np.all((got.view(width) == want.view(width)) | nan))
    return np.array_equal(got, want)


def simulator_cases():
    for file in ("pto_cpu_tcvt", "pto_cpu_tcvt_bf16"):
        for key in vectors.load(file) if file in vectors.available() else ():
            found = re.fullmatch(r"(\w+?)_(\w+?)_m(\d)_sat(\d)", key)
            if found:
                yield file, key, *found.groups()


def _elements(raw, name):
    """Elements of a source: FP4 packed, s4 one per byte as the simulator keeps it."""
    if name in FP4:
        return unpack(raw, name)
    if name == "s4":
        return raw & np.uint8(15)
    return raw.view(DTYPES.get(name, raw.dtype)).reshape(-1)


@pytest.mark.parametrize(
    ("file", "source", "target"),
    sorted({(case[0], case[2], case[3]) for case in simulator_cases()}) or [("pto_cpu_tcvt", "", "")],
)
def test_simulator_vectors(file, source, target):
    arrays = vectors.load(file)
    from_, to = NAMES.get(source, source), NAMES.get(target, target)
    raw = arrays[f"src_{source}"]
    seen = 0
    for _, key, a, b, mode, saturate in simulator_cases():
        if (a, b) != (source, target) or key not in arrays:
            continue
        values, want = _elements(raw, from_), arrays[key]
        count = min(values.size, want.size * (2 if to in FP4 else 1))
        got = convert(values[:count], from_, to, semantics=SIMULATOR, mode=MODES[int(mode)], saturate=saturate == "1")
        if to == "s4":
            got = unpack(got, "s4")
        assert same(got, want.reshape(-1)[: count // 2 if to in FP4 else count], to), key
        seen += 1
    assert seen


@pytest.mark.parametrize("name", ["e4m3", "e5m2"])
def test_simulator_fp8(name):
    arrays = vectors.load("pto_cpu_tables")
    patterns = np.arange(1 << 16, dtype=np.uint16).view(ml_dtypes.bfloat16)
    assert np.array_equal(convert(patterns, "bf16", name, semantics=SIMULATOR), arrays[f"mxctor_{name}"])
    codes = np.arange(256, dtype=np.uint8).view(element_dtype(formats[name]))
    decoded = convert(codes, name, "fp32", semantics=SIMULATOR).view(np.float32)
    assert np.array_equal(decoded, arrays[f"dec_{name}"].astype(np.float32))
    with pytest.raises(UnsupportedCastError, match="with saturation is not emulated"):
        convert(patterns[:64], "bf16", name, semantics=SIMULATOR, saturate=True)


def test_simulator_hif8():
    arrays = vectors.load("pto_cpu_tables")
    patterns = np.arange(1 << 16, dtype=np.uint16).view(ml_dtypes.bfloat16)
    assert np.array_equal(convert(patterns, "bf16", "hif8", semantics=SIMULATOR), arrays["ctor_hif8"])
    decoded = convert(np.arange(256, dtype=np.uint8), "hif8", "fp32", semantics=SIMULATOR).view(np.float32)
    assert np.array_equal(decoded, arrays["dec_hif8"].astype(np.float32), equal_nan=True)
    wide = patterns.astype(np.float32)
    assert np.array_equal(convert(wide, "fp32", "hif8", semantics=SIMULATOR), arrays["ctor_hif8"])
    with pytest.raises(UnsupportedCastError, match="with saturation is not emulated"):
        convert(patterns[:64], "bf16", "hif8", semantics=SIMULATOR, saturate=True)


@pytest.mark.parametrize("name", FP4)
def test_simulator_fp4(name):
    """Mode none leaves the value as it is, so the constructor shows; the decoder has no -0."""
    arrays = vectors.load("pto_cpu_tables")
    patterns = np.arange(1 << 16, dtype=np.uint16).view(ml_dtypes.bfloat16)
    codes = unpack(convert(patterns, "bf16", name, semantics=SIMULATOR, mode="none"), name)
    assert np.array_equal(codes, arrays[f"mxctor_{name}"])
    decoded = convert(np.tile(np.arange(16, dtype=np.uint8), 4), name, "fp32", semantics=SIMULATOR, mode="none")
    assert np.array_equal(decoded.view(np.float32)[:16], arrays[f"dec_{name}"][:16].astype(np.float32))


# Source, target and saturation of the simulator's own cases, from the case list of its generator.
SIMULATOR_CASES = {
    3: ("fp32", "s16", False), 5: ("s16", "s32", False), 7: ("s16", "fp32", False), 8: ("fp32", "fp16", False),
    9: ("fp16", "u8", False), 10: ("s32", "fp32", True), 12: ("fp32", "u8", True), 13: ("s32", "s16", True),
    14: ("fp16", "s8", True), 15: ("fp16", "u8", True), 16: ("fp32", "u16", False), 17: ("u16", "fp32", False),
    18: ("s32", "u16", True), 19: ("u16", "s32", True), 20: ("fp32", "s4", False), 21: ("s4", "fp32", False),
    22: ("fp32", "s4", True), 23: ("s4", "fp32", True), 24: ("fp32", "e2m1", False), 25: ("e2m1", "fp32", False),
    26: ("fp32", "e2m1", True), 27: ("e2m1", "fp32", True), 28: ("fp32", "e1m2", False), 29: ("e1m2", "fp32", False),
    30: ("fp32", "e1m2", True), 31: ("e1m2", "fp32", True),
}  # fmt: skip


@pytest.mark.parametrize("case", sorted(SIMULATOR_CASES))
def test_simulator_runs(case):
    arrays = vectors.load("pto_gen_cpu_tcvt")
    source, target, saturate = SIMULATOR_CASES[case]
    raw, want = arrays[f"TCVTTest.case{case}/x1_gm.bin"], arrays[f"TCVTTest.case{case}/output_z.bin"]
    dtype = DTYPES.get(source) or formats[source].ml_dtype
    values = _elements(raw if source in (*FP4, "s4") else raw.view(dtype), source)
    got = convert(values, source, target, semantics=SIMULATOR, mode="rn", saturate=saturate)
    assert same(unpack(got, "s4") if target == "s4" else got, want, target)


TYPES = {
    "fp32": "fp32", "fp16": "fp16", "bf16": "fp16", "int8": "s8", "uint8": "u8", "int16": "s16", "uint16": "u16",
    "int32": "s32", "uint32": "u32", "int64": "s64", "h8": "hif8", "fp8_e4m3": "e4m3", "fp8_e5m2": "e5m2",
    "fp4_e1m2x2": "e1m2", "fp4_e2m1x2": "e2m1", "s4": "s4",
}  # fmt: skip
_NAME = "|".join(sorted(TYPES, key=len, reverse=True))
CASE = re.compile(rf"TCVTTest\.(case|saturation|nonsattorch)_({_NAME})_({_NAME})_(\d+)x(\d+)(?:_(\d+)x(\d+))?$")


def chip_cases(file):
    arrays = vectors.load(file)
    for name in sorted({key.split("/")[0] for key in arrays}):
        found = CASE.match(name)
        assert found, name
        family, source, target, *shape = found.groups()
        rows, cols, valid_rows, valid_cols = (int(n) if n else None for n in shape)
        files = {k.split("/")[1][:-4]: v for k, v in arrays.items() if k.startswith(f"{name}/")}
        yield name, family, source, target, (rows, cols), (valid_rows or rows, valid_cols or cols), files


def _source(files, source, shape):
    if formats[source].bits == 4:
        return unpack(files["x1_gm"], source).reshape(shape)
    return files["x1_gm"].view(element_dtype(formats[source])).reshape(shape)


def _run_on_chip(files, source, target, shape, valid, semantics, **settings):
    values = _source(files, source, shape)
    dst = Tile.holding(np.zeros(shape, np.uint8), dtype=target) if formats[target].bits == 4 else None
    src = Tile.holding(values, dtype=source)
    src.valid = valid
    if dst is None:
        dst = Tile.empty(TCvt.on(source, target, *shape).type("dst"))
    dst.valid = valid
    tcvt(dst, src, semantics=semantics, **settings)
    return np.ascontiguousarray(dst.numpy())


def _golden(raw, target, shape, valid):
    if formats[target].bits == 4:
        return unpack(raw.reshape(shape[0], -1), target)[: valid[0], : valid[1] // 2 * 2]
    code = raw.view(formats[target].code_dtype).reshape(shape)
    return np.ascontiguousarray(code[: valid[0], : valid[1]])


@pytest.mark.parametrize(("file", "chip"), [("pto_gen_a5_tcvt", "3510"), ("pto_gen_a2a3_tcvt", "2201")])
def test_chip_golden_data(file, chip):
    """The generators stand in fp16 for bf16 except where FP4 is involved; a partial FP4 row ends at a whole byte."""
    library = Semantics("pto-isa", chip=chip)
    seen = 0
    for name, family, source, target, shape, valid, files in chip_cases(file):
        fp4 = "fp4" in source + target
        source = "bf16" if fp4 and source == "bf16" else TYPES[source]
        target = "bf16" if fp4 and target == "bf16" else TYPES[target]
        if tile_casts.find(chip, source, target) is None:
            continue
        mode = "rz" if family == "nonsattorch" else "rn"
        for key in ("golden", "golden_truncated"):
            if key not in files:
                continue
            saturate = False if key == "golden_truncated" else None
            got = _run_on_chip(files, source, target, shape, valid, library, mode=mode, saturate=saturate)
            want = _golden(files[key], target, shape, valid)
            got = got[:, : want.shape[1]].view(want.dtype)
            if key == "golden" and family != "case":  # infinities are 0 in this file, and right in the other
                finite = np.isfinite(_source(files, source, shape)[: valid[0], : valid[1]].astype(np.float64))
                got, want = got[finite], want[finite]
            assert same(np.ascontiguousarray(got).reshape(-1).view(np.uint8), want, target), (name, key)
            seen += 1
    assert seen == {"3510": 293, "2201": 242}[chip]


def test_executed_specification():
    table = vectors.json_file("pto_spec_executed_vectors")
    for row in table["e8m0"]:
        bits, source = int(row["x_bits"], 16), row["src_type"].lower()
        raw = np.array([[bits]], np.uint32 if source == "fp32" else np.uint16).view(DTYPES[source])
        op = TCvt(
            dst=str(TileType.of("e8m0", (1, 32), (1, 1))),
            src=str(TileType.of(source, (1, 16), (1, 1))),
            mode={"RNE": "rn", "RTZ": "rz", "RTM": "rd", "RTP": "ru", "RNA": "rna", "RTO": "ro"}.get(
                row["rounding"], "RHB"
            ),
            saturate=bool(row["sat"]),
        )
        result = execute(op, {"src": raw}, Semantics("pto-spec"))
        assert (int(result["dst"].view(np.uint8)[0, 0]), int(result["flags"])) == (row["result"], row["flags"])


@pytest.mark.parametrize(
    ("source", "target", "value", "saturate", "want"),
    [
        ("s4", "s8", 0xF, False, -1),
        ("u16", "u8", 300, False, 44),
        ("u16", "u8", 300, True, 255),
        ("s64", "u4", -1, True, 0),
    ],
)
def test_specified_integers(source, target, value, saturate, want):
    values = np.array([[value]]).astype(element_dtype(formats[source]))
    result = execute(TCvt.on(source, target, 1, 1, saturate=saturate), {"src": values}, Semantics("pto-spec"))
    assert int(result["dst"][0, 0]) == want


def test_placeholders_of_the_specification_are_refused():
    with pytest.raises(UnsupportedCastError, match="placeholder"):
        execute(TCvt.on("fp32", "fp16", 1, 16), {"src": np.ones((1, 16), np.float32)}, Semantics("pto-spec"))


def test_defaults_and_fallbacks():
    def one(value, source, target, **settings):
        values = np.full((1, 64), value).astype(DTYPES.get(source, np.int32))
        return convert(values, source, target, **{"semantics": None, **settings}).view(element_dtype(formats[target]))[
            0
        ]

    assert one(200.0, "fp16", "s8") == -56 and one(200.0, "fp16", "s8", saturate=True) == 127
    assert one(2.5, "fp32", "s32", mode="CAST_ODD") == 2 and one(2.5, "fp32", "s32") == 2
    assert one(-2.7, "fp32", "s32", mode="CAST_NONE") == -2
    assert one(1.0 + 2.0**-12, "fp32", "fp16", mode="CAST_ODD").view(np.uint16) == 0x3C01
    assert one(17.0, "fp32", "hif8", mode="rn") == one(17.0, "fp32", "hif8", mode="rz")
    assert one(40000, "s32", "s16") == 40000 - 65536
    assert one(2.25, "fp32", "s32", mode="ro", semantics=SIMULATOR) == 2


def test_infinity_to_integer_is_audited():
    op = TCvt.on("fp16", "s8", 1, 32)
    assert from_json(to_json(op)) == op
    report = audit(op, {"src": np.full((1, 32), np.inf, np.float16)})
    entry = next(e for e in report.entries if e.switch == "tcvt_edge_alignment")
    assert (entry.chosen_result, entry.alternative_result) == ("-1", "127")


@pytest.mark.parametrize(
    ("source", "target", "chip", "says"),
    [
        ("fp16", "e4m3", "3510", "from fp16: fp32, s32, s16, s8, u8, hif8"),
        ("u32", "u8", "2201", "nothing converts from u32 there"),
        ("fp32", "fp16", "kirinx90", "no TCVT of chip kirinx90"),
    ],
)
def test_pairs_a_chip_does_not_have(source, target, chip, says):
    with pytest.raises(UnsupportedCastError) as caught:
        execute(TCvt.on(source, target, 1, 32), {"src": np.zeros((1, 32))}, Semantics("pto-isa", chip=chip))
    assert says in str(caught.value)


def test_rules_are_named():
    src = Tile(np.zeros((4, 64), np.float32))
    with pytest.raises(ConstraintError, match="TCV-01"):
        tcvt(Tile(dtype="fp16", shape=(4, 64), valid=(4, 60)), src)
    with pytest.raises(ConstraintError, match="TCV-02"):
        tcvt(Tile(dtype="fp16", shape=(16, 64), valid=(4, 64), layout="DN"), src)
    with pytest.raises(ConstraintError, match="TCV-03"):
        tcvt(Tile(dtype="fp16", shape=(4, 32)), src, semantics=SIMULATOR)


def test_simulator_walks_the_source():
    src, dst = Tile(np.ones((4, 64), np.float32), valid=(2, 3)), Tile(dtype="fp16", shape=(4, 64), valid=(1, 1))
    tcvt(dst, src, semantics=SIMULATOR)
    assert int(dst.array().sum()) == 6
    assert pack(np.uint8([1, 2]), "s4") == 0x21
