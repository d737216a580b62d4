"""Every constraint with one call that breaks it and one that does not, its message, and what emulation does."""

from typing import Any

import numpy as np
import pytest

import narrowcast as nc
from narrowcast import fixpipe
from narrowcast.fixpipe.rules import EMULATED, RULES
from narrowcast.operation.findings import Effect

S32 = np.arange(17 * 32, dtype=np.int32).reshape(17, 32)
FP32 = S32.astype(np.float32)

# rule: (mode, accumulators, broken settings, words of the message, sound settings)
CASES: dict[str, tuple[str, np.ndarray, dict[str, Any], str, dict[str, Any]]] = {
    "FIXP-03": ("REQ8", S32, {"layout": "NZ", "offset_bytes": 8}, "offset 8 B of a NZ2NZ store", {"offset_bytes": 8}),
    "FIXP-04": ("REQ8", S32, {"route": "L1", "offset_bytes": 8}, "offset 8 B in L1 is not a multiple of 32 B",
                {"route": "L1", "offset_bytes": 32}),
    "FIXP-05": ("REQ8", S32, {"source_offset_bytes": 32}, "L0C offset 32 B", {"source_offset_bytes": 64}),
    "FIXP-06": ("REQ8", S32, {"route": "GM+L1"}, "asks for 2 destinations at once", {"route": "L1"}),
    "FIXP-07": ("REQ8", S32, {"post_mode": 1}, "post_mode is 1", {"post_mode": 0}),
    "FIXP-08": ("REQ8", S32[:, :20], {"layout": "NZ"}, "12 dummy columns in each row",
                {"layout": "NZ", "accept_dummy": True}),
    "FIXP-09": ("REQ8", S32, {"parameters_from": "GM"}, "parameters come from GM", {"parameters_from": "L1"}),
    "FIXP-10": ("REQ8", S32, {"parameter_source_bytes": 16, "parameter_target_bytes": 32}, "L1 source 16 B",
                {"parameter_source_bytes": 32, "parameter_target_bytes": 64}),
    "FIXP-11": ("S32", np.zeros((1, 4096), np.int32), {"enforce_limits": True}, "n = 4096 exceeds 4095", {}),
    "FIXP-12": ("REQ8", S32[:, :20], {"route": "UB"}, "n = 20 gives 20 B", {"route": "GM"}),
    "FIXP-13": ("REQ8", S32, {"stride": 31}, "stride 31 elements is below the 32", {"stride": 32}),
    "FIXP-14": ("REQ8", S32, {"split": True, "layout": "NZ"}, "split with mode REQ8", {"layout": "NZ"}),
    "FIXP-15": ("S32", S32, {"dual": "M", "route": "UB"}, "split of M = 17, which is odd",
                {"dual": "N", "route": "UB"}),
    "FIXP-16": ("REQ4", S32[:, :31], {}, "n = 31 is odd", {"n": 30}),
    "FIXP-17": ("REQ8", S32, {"clip": 100.0}, "clip with activation None", {"clip": 100.0, "relu": True}),
    "FIXP-18": ("REQ8", S32, {"parameter_target_bytes": 4096}, "beyond the 4096 B", {"parameter_target_bytes": 2048}),
    "FIXP-19": ("S32", S32[None].repeat(2, 0), {"layout": "NZ"}, "2 matrices with layout NZ2NZ", {"layout": "DN"}),
    "FIXP-20": ("S32", S32, {"relu": 0.5}, "activation leaky with mode S32", {"relu": True}),
    "FIXP-21": ("S32", S32[:8], {"source_row_stride": 2}, "source row stride 2 with layout NZ2ND",
                {"layout": "DN", "source_row_stride": 2}),
}  # fmt: skip


def call(mode: str, acc: np.ndarray, settings: dict[str, Any]) -> fixpipe.Store:
    param = None if mode in ("S32", "FP32") else 1.0
    return fixpipe.run(acc, mode, param, **settings)


@pytest.mark.parametrize("name", CASES)
def test_broken_and_kept(name: str) -> None:
    mode, acc, broken, message, sound = CASES[name]
    with pytest.raises(nc.ConstraintError, match=name) as caught:
        call(mode, acc, broken)
    found = [f for f in caught.value.findings if f.rule == name]
    assert message in found[0].message
    assert found[0].fix
    assert found[0].source
    call(mode, acc, sound)


def test_fixp_01_subnormal_accumulator() -> None:
    acc = FP32.copy()
    acc[3, 4] = 1e-40
    with pytest.raises(nc.ConstraintError, match=r"FIXP-01 .*1 subnormal accumulators, first 1e-40 at \[3, 4\]"):
        fixpipe.run(acc, "QF32_2_B8", 1.0)
    fixpipe.run(nc.flush_subnormals(acc, "fp32"), "QF32_2_B8", 1.0)


@pytest.mark.parametrize("scale", [1e-40, np.inf, np.nan])
def test_fixp_02_parameters(scale: float) -> None:
    """Refused when a word is built from the scale, and when the word comes ready-made."""
    with pytest.raises(nc.EncodingError, match=r"scale .* at index 0 is (subnormal|not finite).*seed:5.1#2"):
        fixpipe.run(S32, "REQ8", scale)
    word = int(np.float32(scale).view(np.uint32)) | 0x7F800000 if not np.isfinite(scale) else 0x00010000
    with pytest.raises(nc.ConstraintError, match="FIXP-02"):
        fixpipe.run(S32, "REQ8", np.uint64([word]))
    fixpipe.run(S32, "REQ8", 0.0)  # zero is legal


def test_every_rule_has_a_case_and_its_facts() -> None:
    assert {r.id for r in RULES} == set(CASES) | {"FIXP-01", "FIXP-02"}
    for row in RULES:
        assert row.states.endswith(".")
        assert row.cause
        assert row.fix
        assert isinstance(row.effect, Effect)
        assert row.source
    assert [r.id for r in RULES][:10] == [f"FIXP-{i:02d}" for i in range(1, 11)]  # the ten of seed 5.1, in order
    for i, row in enumerate(RULES[:10], 1):
        assert row.source.startswith(f"seed:5.1#{i}")


def test_all_violations_at_once() -> None:
    with pytest.raises(nc.ConstraintError) as caught:
        fixpipe.run(S32, "REQ8", 1.0, route="L1", offset_bytes=8, post_mode=2, parameters_from="UB")
    assert [f.rule for f in caught.value.findings] == ["FIXP-04", "FIXP-07", "FIXP-09"]


def test_emulated_consequences() -> None:
    dropped = fixpipe.run(S32, "REQ8", 1.0, route="GM+UB", on_violation="emulate")
    assert dropped.storage == ()
    assert dropped.bytes == 0
    assert dropped.findings[0].rule == "FIXP-06"
    assert not dropped.codes.any()
    assert dropped.summary()["elements"] == 0
    dummy = fixpipe.run(S32[:, :20], "REQ8", 1.0, layout="NZ", on_violation="emulate")
    assert dummy.dummy[0].sum() == 12 * 17
    # A misaligned NZ store falls back to the 32-byte grain: everything lands 8 elements early.
    late = fixpipe.run(S32, "REQ8", 1.0, layout="NZ", offset_bytes=8, on_violation="emulate")
    right = fixpipe.run(S32, "REQ8", 1.0, layout="NZ")
    assert np.array_equal(late.storage[0], right.storage[0][8:])


@pytest.mark.parametrize("name", sorted(set(CASES) - set(EMULATED) - {"FIXP-11"}))  # a size limit is a choice
def test_what_the_documents_do_not_describe_is_refused(name: str) -> None:
    mode, acc, broken, _, _ = CASES[name]
    with pytest.raises(nc.ConstraintError, match=name):
        call(mode, acc, {**broken, "on_violation": "emulate"})


def test_capacity_is_chunked_or_enforced() -> None:
    acc = np.ones((2, 5000), dtype=np.int32)
    scale = np.full(5000, 0.5, dtype=np.float32)
    store = fixpipe.run(acc, "REQ8", scale)
    assert [c.columns for c in store.chunks] == [512] * 9 + [392]
    assert store.chunks[0].parameter_bytes == 4096
    assert store.chunks[-1].first_column == 4608
    with pytest.raises(nc.ConstraintError, match="5000 scales need 40000 B; Quantization-pre has 4096 B"):
        fixpipe.run(acc, "REQ8", scale, enforce_limits=True)
    with pytest.raises(nc.ConstraintError, match="RELU-pre has 2048 B"):
        fixpipe.run(acc[:, :600], "REQ8", 0.5, relu=np.ones(600, np.float32), enforce_limits=True)
    assert len(fixpipe.run(acc, "REQ8", 0.5).chunks) == 2  # n has 12 bits
    assert len(fixpipe.run(np.zeros((70000, 2), np.int32), "REQ8", 0.5).chunks) == 2
    seed = nc.Semantics("seed")
    with_bias = fixpipe.run(acc, "REQ8", 0.5, bias=np.zeros(5000, np.int32), semantics=seed)
    assert {c.columns for c in with_bias.chunks} == {1024, 904}
    assert len(fixpipe.run(acc, "REQ8", scale, relu=np.ones(5000, np.float32)).chunks) == 10


BAD: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"param": np.ones(7, np.float32)}, nc.ShapeError, r"shape \(7,\); N = 32 columns need 1 or 32"),
    ({"param": 1.0, "offset": 256}, nc.EncodingError, "offset 256 at index 0 is outside -256..255"),
    ({"param": 1.0, "offset": -257}, nc.EncodingError, "offset -257 at index 0 is outside"),
    ({"param": None}, nc.FormatError, "needs a parameter word"),
    ({"param": "half"}, nc.FormatError, "pass a QuantParam"),
    ({"param": 1.0, "route": "L2"}, nc.UnknownNameError, "unknown route 'L2'"),
    ({"param": 1.0, "layout": "ZN"}, nc.UnknownNameError, "unknown Fixpipe layout 'ZN'"),
    ({"param": 1.0, "target": "s4"}, nc.UnsupportedCastError, "stores s8 or u8, not s4"),
    ({"param": 1.0, "m": 18}, nc.ShapeError, "larger than the accumulator array"),
    ({"param": 1.0, "m": -1}, nc.ShapeError, "m is -1"),
    ({"param": 1.0, "relu": np.ones(5)}, nc.ShapeError, "slopes of shape"),
    ({"param": 1.0, "relu": np.nan}, nc.EncodingError, "slope nan"),
    ({"param": 1.0, "dual": "K"}, nc.UnknownNameError, "unknown dual destination"),
    ({"param": 1.0, "table": "guess"}, nc.UnknownNameError, "unknown rate table"),
    ({"param": np.uint64([0x40003F800000, *[0x3F800000] * 31])}, nc.FormatError, "mix S8 and U8 columns"),
]


@pytest.mark.parametrize(("settings", "error", "message"), BAD, ids=[b[2][:30] for b in BAD])
def test_bad_input(settings: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        fixpipe.run(S32, "REQ8", **settings)


def test_bad_modes_and_accumulators() -> None:
    with pytest.raises(nc.UnknownNameError, match="Did you mean REQ8"):
        fixpipe.run(S32, "REQ9", 1.0)
    with pytest.raises(nc.FormatError, match=r"takes s32 accumulators \(int32\); got float32"):
        fixpipe.run(FP32, "REQ8", 1.0)
    with pytest.raises(nc.FormatError, match=r"takes fp32 accumulators \(float32\); got int64"):
        fixpipe.run(S32.astype(np.int64), "QF32_2_B8", 1.0)
    with pytest.raises(nc.FormatError, match="takes no parameter"):
        fixpipe.run(S32, "S32", 1.0)
    with pytest.raises(nc.ShapeError, match=r"accumulators are \[M, N\]"):
        fixpipe.run(S32[0], "REQ8", 1.0)
    with pytest.raises(nc.UnsupportedCastError, match="has no route to UB"):
        fixpipe.run(S32, "REQ4", 1.0, route="UB")
    with pytest.raises(nc.UnsupportedCastError, match="does not exist on chip 2201"):
        fixpipe.run(FP32, "QF32_2_E4M3", 1.0, semantics=nc.Semantics(chip="2201"))
    with pytest.raises(nc.UnsupportedCastError, match="authority seed has no mode QF322F32"):
        fixpipe.run(FP32, "QF322F32", 1.0, semantics=nc.Semantics("seed"))
    with pytest.raises(nc.UnsupportedCastError, match="takes one parameter word, by the seed"):
        fixpipe.run(S32, "DEQF16", np.ones(32, np.float32), semantics=nc.Semantics("seed"))


def test_rates_of_both_tables() -> None:
    """Vendor's figures for L1 and UB, the seed's for OUT; both are reported, a missing cell says so."""
    acc = np.zeros((16, 64), dtype=np.int32)
    gm = fixpipe.run(acc, "REQ8", 1.0)
    assert {r.table: (r.elements_per_cycle, r.used) for r in gm.rates} == {"vendor": (None, False), "seed": (64, True)}
    assert gm.cycles == 26 + 16
    assert "no figure" in str(gm.rates[0])
    l1 = fixpipe.run(acc, "REQ8", 1.0, route="L1")
    assert {r.table: (r.elements_per_cycle, r.used) for r in l1.rates} == {"vendor": (64, True), "seed": (128, False)}
    assert fixpipe.run(acc, "REQ8", 1.0, route="L1", table="seed").cycles == 26 + 8
    dual = fixpipe.run(acc, "S32", route="UB", dual="M")
    assert dual.cycles == 26 + 16
    half = fixpipe.run(acc, "DEQF16", 1.0)
    assert half.cycles is None  # neither table has 16-bit results to OUT
    vector = fixpipe.run(acc, "REQ8", np.ones(64, np.float32))
    assert vector.cycles == 26 + 16 + 26 + 512 // 32
    assert vector.summary()["cycles"] == vector.cycles


def test_json_round_trip() -> None:
    op = fixpipe.Fixpipe(mode="VREQ8", activation="relu", layout="NZ", route="L1", stride=640, accept_dummy=True)
    assert op.mode == "REQ8"
    assert nc.from_json(nc.to_json(op)) == op


def test_one_error_lists_rules_on_parameters_and_on_data() -> None:
    """The width of the data breaks a rule too, and is in the same list."""
    with pytest.raises(nc.errors.ConstraintError) as caught:
        nc.fixpipe.run(
            np.ones((3, 20), np.int32), "REQ8", fixpipe.QuantParam(1.0), layout="NZ", offset_bytes=3, post_mode=2
        )  # fmt: skip
    assert [f.rule for f in caught.value.findings] == ["FIXP-03", "FIXP-07", "FIXP-08"]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"source_offset_bytes": -64}, "source_offset_bytes is -64"),
        ({"source_row_stride": -1, "on_violation": "emulate"}, "source_row_stride is -1"),
        ({"parameter_target_bytes": -64}, "parameter_target_bytes is -64"),
        ({"m": 1.5}, "m is 1.5"),
        ({"offset_bytes": float("nan")}, "offset_bytes is nan"),
        ({"offset_bytes": 0.3}, "offset_bytes is 0.3"),
        ({"relu": True, "clip": float("nan")}, "clip bound nan"),
        ({"relu": True, "clip": float("inf")}, "clip bound inf"),
    ],
)
def test_places_that_do_not_exist(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(nc.errors.NarrowcastError, match=words):
        nc.fixpipe.run(np.ones((2, 16), np.int32), "REQ8", fixpipe.QuantParam(1.0), **settings)


def test_integers_beyond_s32_are_named() -> None:
    with pytest.raises(nc.errors.FormatError, match=r"2147483648 at \[0, 1\] does not fit S32"):
        nc.fixpipe.run(np.array([[1, 2**31]]), "REQ8", fixpipe.QuantParam(1.0))
