"""Constraints: the ten of seed 5.1 and the eight of 5.2, each violated and kept, and the rules between operations."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import narrowcast as nc
from narrowcast.checks import PROGRAM_RULES, DataCopy, LoadParameters, Program, Region, Step
from narrowcast.fixpipe import Fixpipe
from narrowcast.mx import MxQuant
from narrowcast.operation import CastOp
from narrowcast.vector import VectorCast
from narrowcast.vector.rules import USE_RULES

CHIP_2201 = nc.Semantics(chip="2201")
ONES = {"acc": np.ones((16, 16), np.float32)}
TO_FP4 = VectorCast(source="bf16", target="e2m1", count=64)
CUT = VectorCast(source="fp32", target="bf16", mode="rz")


@dataclass(frozen=True)
class Example:
    """A violating and a conforming subject of one rule, and words of the finding: what, effect, fix, source."""

    rule: str
    wrong: Any
    right: Any
    message: str
    effect: str
    fix: str
    source: str
    wrong_context: dict[str, Any] = field(default_factory=dict)
    right_context: dict[str, Any] = field(default_factory=dict)


def fixpipe(**settings: Any) -> Fixpipe:
    return Fixpipe(**{"mode": "REQ8", **settings})


TINY = {"acc": np.full((16, 16), 1e-40, np.float32)}
SEED_5_1 = {
    1: Example(
        "FIXP-01", fixpipe(mode="QF32_2_B8"), fixpipe(mode="QF32_2_B8"), "256 subnormal accumulators", "wrong result",
        "Flush subnormal accumulators", "seed:5.1#1", {"inputs": TINY}, {"inputs": ONES},
    ),
    2: Example(
        "FIXP-02", fixpipe(), fixpipe(), "scale inf at index 0", "wrong result", "Use normal fp32 parameters",
        "seed:5.1#2",
        {"inputs": {"scale": np.inf}}, {"inputs": {"scale": 0.5}},
    ),
    3: Example(
        "FIXP-03", fixpipe(mode="REQ4", offset_bytes=0.5), fixpipe(mode="REQ4", offset_bytes=3),
        "offset of 4 bits is not a whole byte", "misplaced data", "Align the destination offset", "seed:5.1#3",
    ),
    4: Example(
        "FIXP-04", fixpipe(route="L1", offset_bytes=16), fixpipe(route="L1", offset_bytes=64),
        "offset 16 B in L1 is not a multiple of 32 B", "hardware exception", "Align the destination offset to 32 B",
        "seed:5.1#4",
    ),
    5: Example(
        "FIXP-05", fixpipe(source_offset_bytes=32), fixpipe(source_offset_bytes=128),
        "L0C offset 32 B is not a multiple of 64 B", "slower", "Start the accumulator tile on a 64 B boundary",
        "seed:5.1#5",
    ),
    6: Example(
        "FIXP-06", fixpipe(route="GM+L1"), fixpipe(route="GM"), "route GM+L1 asks for 2 destinations at once",
        "instruction dropped", "Issue one instruction per destination", "seed:5.1#6",
    ),
    7: Example(
        "FIXP-07", fixpipe(post_mode=1), fixpipe(), "post_mode is 1", "not available", "Quantize in the pre stage",
        "seed:5.1#7",
    ),
    8: Example(
        "FIXP-08", fixpipe(layout="NZ", m=16, n=20), fixpipe(layout="NZ", m=16, n=32), "12 dummy columns",
        "garbage in the output", "Round N up to C0", "seed:5.1#8",
    ),
    9: Example(
        "FIXP-09", fixpipe(parameters_from="GM"), fixpipe(), "parameters come from GM", "not available",
        "Copy the parameters from GM to L1 first", "seed:5.1#9",
    ),
    10: Example(
        "FIXP-10", fixpipe(parameter_source_bytes=8), fixpipe(parameter_source_bytes=32, parameter_target_bytes=64),
        "L1 source 8 B is not a multiple of 32 B", "hardware exception", "Align both addresses", "seed:5.1#10",
    ),
}  # fmt: skip

SEED_5_2 = {
    1: Example(
        "VEC-11", DataCopy(origin="GM", destination="UB", format="fp16", count=30),
        DataCopy(origin="GM", destination="UB", format="fp16", count=32),
        "30 fp16 elements are 60 B, not a multiple of 32 B; fp16 moves 16 at a time, so 2 more", "wrong result",
        "Pad the tail to the grain", "seed:5.2#1",
    ),
    2: Example(
        "VEC-12", VectorCast(source="fp32", target="e4m3"), VectorCast(source="fp32", target="fp16"),
        "e4m3 on chip 2201", "not available", "#if (__NPU_ARCH__ == 3510)", "seed:5.2#2",
        {"semantics": CHIP_2201}, {"semantics": CHIP_2201},
    ),
    3: Example(
        "VEC-13", TO_FP4, TO_FP4,
        "64 e2m1 elements in 64 B; they take 32 B", "misplaced data", "Give ceil(count / 2) bytes", "seed:5.2#3",
        {"stored_bytes": 64}, {"stored_bytes": 32},
    ),
    4: Example(
        "VEC-14", CastOp(target="e8m0"), MxQuant(format="e4m3"), "values -> e8m0 takes e8m0 for data", "lost accuracy",
        "Use e8m0 for the scales of an MX matrix product", "seed:5.2#4",
    ),
    5: Example(
        "VEC-15", VectorCast(source="hif8", target="fp32", mode="rn"), VectorCast(source="hif8", target="fp32"),
        "hif8 -> fp32 with rounding mode rn", "not available", "Cast(dst, src, CAST_NONE, count)", "seed:5.2#5",
    ),
    6: Example(
        "VEC-16", VectorCast(source="fp16", target="s8"), VectorCast(source="fp16", target="s8"),
        "mask for fp32 (32 bits) on a cast from fp16 (16 bits)", "wrong result", "Build the mask for the source's",
        "seed:5.2#6", {"mask_format": "fp32"}, {"mask_format": "bf16"},
    ),
    7: Example(
        "VEC-17", VectorCast(source="fp32", target="e4m3"), VectorCast(source="fp32", target="e4m3"),
        "the Fixpipe has QF32_2_E4M3", "slower", "Quantize in the Fixpipe", "seed:5.2#7", {"after_matmul": True},
    ),
    8: Example(
        "VEC-18", CUT, CUT,
        "fp32 -> bf16 rounds rz in training", "lost accuracy", "Use rn / CAST_RINT in training", "seed:5.2#8",
        {"purpose": "training"}, {"purpose": "inference"},
    ),
}  # fmt: skip


def verify(example: Example) -> None:
    found = nc.check(example.wrong, **example.wrong_context)
    assert [f.rule for f in found] == [example.rule]
    finding = found[0]
    assert example.message in finding.message
    assert f"({example.effect}" in finding.message, finding.message
    assert example.fix in finding.fix and example.source in finding.source
    assert finding.place
    assert nc.check(example.right, **example.right_context) == []


@pytest.mark.parametrize("number", SEED_5_1)
def test_constraint_of_seed_5_1(number: int) -> None:
    verify(SEED_5_1[number])


@pytest.mark.parametrize("number", SEED_5_2)
def test_constraint_of_seed_5_2(number: int) -> None:
    verify(SEED_5_2[number])


def test_seed_tables_are_covered() -> None:
    assert sorted(SEED_5_1) == list(range(1, 11)) and sorted(SEED_5_2) == list(range(1, 9))
    shown = {e.rule for e in SEED_5_2.values()}
    assert {r.id for r in USE_RULES} <= shown
    for row in USE_RULES:
        assert row.states.endswith(".") and row.cause and row.fix and row.source.startswith("seed:5.2#")


@pytest.mark.parametrize(("format", "least"), [("fp16", 16), ("fp32", 8), ("s8", 32), ("bf16", 16), ("e2m1", 64)])
def test_the_grain_of_each_type(format: str, least: int) -> None:
    assert nc.check(DataCopy(origin="GM", destination="UB", format=format, count=least)) == []
    found = nc.check(DataCopy(origin="GM", destination="UB", format=format, count=least - 1))
    assert f"{format} moves {least} at a time, so 1 more" in found[0].message
    assert nc.check(DataCopy(origin="GM", destination="UB", format=format, count=least - 1, pads=True)) == []


def test_copies_and_loads() -> None:
    moved = DataCopy(origin="UB", destination="GM", format="fp32", count=8, origin_bytes=4)
    assert "address 4 B in UB is not a multiple of 32 B" in nc.check(moved)[0].message
    assert nc.check(DataCopy(origin="GM", destination="UB", format="fp32", count=8, origin_bytes=4)) == []
    load = LoadParameters(entries=600)
    assert [f.rule for f in nc.check(load)] == ["PROG-01"]
    assert "600 entries from byte 0 end at 4800; Quantization-pre has 4096 B" in nc.check(load)[0].message
    late = LoadParameters(entries=4, origin="GM", target_bytes=32)
    assert [f.rule for f in nc.check(late)] == ["FIXP-09", "FIXP-10"]
    assert nc.check(LoadParameters(entries=512)) == []


def test_types_of_3510_in_every_operation_on_2201() -> None:
    for op in (Fixpipe(mode="QF32_2_E4M3"), MxQuant(format="e2m1"), CastOp(target="hif8")):
        found = nc.check(op, CHIP_2201)
        assert [f.rule for f in found] == ["VEC-12"], op
    from narrowcast.cube import Mmad

    found = nc.check(Mmad(a_format="hif8", b_format="hif8"), CHIP_2201)
    assert [f.rule for f in found] == ["VEC-12"]


def test_the_conversion_matrix_stays_a_rule_of_its_own() -> None:
    found = nc.check(VectorCast(source="fp32", target="e4m3", mode="rz"))
    assert [f.rule for f in found] == ["VEC-01"] and "allowed: rn" in found[0].message


def test_emulated_violations_are_still_found() -> None:
    assert [f.rule for f in nc.check(fixpipe(route="L1", offset_bytes=16, on_violation="emulate"))] == ["FIXP-04"]


def test_all_violations_not_the_first() -> None:
    found = nc.check(fixpipe(route="L1", offset_bytes=16, post_mode=2, parameters_from="UB"))
    assert [f.rule for f in found] == ["FIXP-04", "FIXP-07", "FIXP-09"]


# Rules between operations: steps that break one, steps that keep it.
MMAD = nc.from_json({"op": "Mmad"})
UB = Region(memory="UB", bytes=64)
BETWEEN = {
    "FIXP-06": (
        [Step(op=fixpipe(route="L1"), time=(0, 10)), Step(op=fixpipe(route="GM"), time=(5, 15))],
        [Step(op=fixpipe(route="L1"), time=(0, 10)), Step(op=fixpipe(route="GM"), time=(10, 15))],
        "writes GM while Fixpipe writes L1",
    ),
    "PROG-02": (
        [Step(op=fixpipe()), Step(op=LoadParameters(entries=1))],
        [Step(op=LoadParameters(entries=1)), Step(op=fixpipe())],
        "needs quantization parameters, and none are loaded before it",
    ),
    "PROG-03": (
        [Step(op=MMAD, gives="acc", time=(0, 10)), Step(op=fixpipe(), takes=("acc",), time=(5, 12))],
        [Step(op=MMAD, gives="acc", time=(0, 10)), Step(op=fixpipe(), takes=("acc",), time=(10, 12))],
        "reads accumulators while Mmad still writes them",
    ),
    "PROG-04": (
        [
            Step(op=DataCopy(origin="GM", destination="UB", format="fp16", count=32), writes=(UB,), time=(0, 10)),
            Step(op=VectorCast(source="fp16", target="fp32"), reads=(UB,), time=(5, 10)),
        ],
        [
            Step(op=DataCopy(origin="GM", destination="UB", format="fp16", count=32), writes=(UB,), time=(0, 5)),
            Step(op=VectorCast(source="fp16", target="fp32"), reads=(UB,), time=(5, 10)),
        ],
        "use UB[0:64] and UB[0:64] at the same time",
    ),
    "PROG-05": (
        [
            Step(
                op=VectorCast(source="fp16", target="fp32"),
                writes=(Region(memory="UB", offset_bytes=253920, bytes=64),),
            )
        ],
        [
            Step(
                op=VectorCast(source="fp16", target="fp32"),
                writes=(Region(memory="UB", offset_bytes=253888, bytes=64),),
            )
        ],
        "UB has 253952 B",
    ),
    "PROG-06": (
        [
            Step(op=VectorCast(source="fp32", target="bf16"), gives="y"),
            Step(op=VectorCast(source="fp16", target="s8"), takes=("y",)),
        ],
        [
            Step(op=VectorCast(source="fp32", target="fp16"), gives="y"),
            Step(op=VectorCast(source="fp16", target="s8"), takes=("y",)),
        ],
        "takes y as fp16; VectorCast made it bf16",
    ),
}


@pytest.mark.parametrize("rule", BETWEEN)
def test_rule_between_operations(rule: str) -> None:
    wrong, right, message = BETWEEN[rule]
    found = nc.check(Program(tuple(wrong)))
    assert [f.rule for f in found] == [rule]
    assert message in found[0].message and found[0].fix and found[0].source
    assert nc.check(Program(tuple(right))) == []


def test_every_rule_between_operations_is_shown_above() -> None:
    assert {row.id for row in PROGRAM_RULES} == set(BETWEEN)


def test_a_product_converted_on_the_vector_core_is_noticed_through_the_flow() -> None:
    steps = (
        Step(op=nc.from_json({"op": "Mmad", "a_format": "fp16", "b_format": "fp16"}), gives="acc"),
        Step(op=Fixpipe(mode="FP32", route="UB"), takes=("acc",), gives="c"),
        Step(op=VectorCast(source="fp32", target="hif8"), takes=("c",)),
    )
    assert [f.rule for f in nc.check(Program(steps))] == ["VEC-17"]


def test_unknown_purpose() -> None:
    with pytest.raises(nc.UnknownNameError, match="Did you mean training"):
        nc.check(CastOp(target="fp16"), purpose="trainng")
