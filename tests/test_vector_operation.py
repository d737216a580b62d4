"""Vector operations as data: JSON, declared switches, findings, audits."""

import json
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import narrowcast as nc
from narrowcast.catalog import casts
from narrowcast.operation.protocol import named_inputs
from narrowcast.operation.semantics import Choices
from narrowcast.vector import RegCast, VectorCast, VectorRound
from tests.vector_matrix import CODED, RESULT_DTYPES

BF16 = ml_dtypes.bfloat16


@dataclass(frozen=True)
class Recording(Choices):
    """Remembers which switches were read."""

    seen: set[str] = field(default_factory=set)

    def choose(self, switch: str) -> str:
        self.seen.add(switch)
        return super().choose(switch)


def operations() -> list[Any]:
    """Return every legal operation of every interface."""
    found: list[Any] = []
    for row in casts.ROWS:
        if not row.emulated or row.scaled:
            continue
        for mode in (*row.modes, *row.also_accepts):
            if row.interface == "reg":
                found.append(RegCast(source=row.source, target=row.target, mode=mode))
            else:
                found.append(VectorCast(source=row.source, target=row.target, mode=mode, interface=row.interface))
    found.append(VectorCast(source="s32", target="fp16", deq_scale=1.0))
    for row in casts.INTEGRAL_ROWS:
        found += [VectorRound(function=row.name, format=f) for f in dict.fromkeys(sum(row.types.values(), ()))]
    return list(dict.fromkeys(found))


OPERATIONS = operations()


def array_for(op: Any) -> np.ndarray:
    name = op.format if isinstance(op, VectorRound) else op.source
    dtype = np.dtype(np.uint8 if name in CODED else RESULT_DTYPES[name])
    return np.zeros(256 // dtype.itemsize, dtype)


def describe(op: Any) -> str:
    return "-".join(str(v) for k, v in nc.to_json(op).items() if v is not None)


def read_switches(op: Any) -> set[str]:
    """Run an operation on each chip that has it, under each reading, and return the switches it read."""
    seen: set[str] = set()
    ran = 0
    for chip in ("3510", "2201"):
        for readings in ({}, {"cast_none": "rint"}, {"bfloat162half_rn": "ru"}):
            semantics = nc.Semantics(chip=chip).override(**readings)
            choices = Recording(semantics, frozenset(op.switches), type(op).__name__, seen)
            try:
                op.run(named_inputs(op, array_for(op)), choices, nc.Control())
                ran += 1
            except nc.UnsupportedCastError:
                continue
    assert ran, "no chip has it"
    return seen


@pytest.mark.parametrize("op", OPERATIONS, ids=describe)
def test_declared_switches_are_those_it_reads(op: Any) -> None:
    assert read_switches(op) == set(op.switches)
    assert set(op.switches) <= set(nc.switches)


@pytest.mark.parametrize("op", OPERATIONS, ids=describe)
def test_json_round_trip(op: Any) -> None:
    text = json.dumps(nc.to_json(op))
    assert nc.from_json(json.loads(text)) == op


def test_reading_an_undeclared_switch_fails() -> None:
    op = VectorCast(source="fp32", target="hif8", mode="rh")
    choices = Choices(nc.Semantics(), frozenset(), "VectorCast")
    with pytest.raises(nc.NarrowcastError, match="does not declare"):
        op.run({"src": np.float32([16.0]), "mask": None}, choices, nc.Control())


# switch: operation, input, result by value, as codes or values
EFFECTS: dict[str, tuple[Any, np.ndarray, nc.Control, str, dict[str, list[float]]]] = {
    "hif8_hybrid_compare": (
        VectorCast(source="fp32", target="hif8", mode="rh"),
        np.float32([16, 17]),
        nc.Control(),
        "3510",
        {"ge": [0x41, 0x41], "gt": [0x40, 0x41], "ge-nonzero": [0x40, 0x41]},
    ),
    "e4m3_overflow": (
        VectorCast(source="fp32", target="e4m3"),
        np.float32([448, 450]),
        nc.Control(ctrl48=1),
        "3510",
        {"after-rounding": [448, 448], "before-rounding": [448, np.nan]},
    ),
    "directed_overflow": (
        VectorCast(source="fp32", target="fp16", mode="rz"),
        np.float32([65535, 65536]),
        nc.Control(ctrl48=1),
        "3510",
        {"range-first": [65504, np.inf], "ieee": [65504, 65504]},
    ),
    "half_bf16_special": (
        VectorCast(source="fp16", target="bf16"),
        np.float16([np.inf, np.nan]),
        nc.Control(),
        "3510",
        {"saturate": [float(ml_dtypes.finfo(BF16).max), 0], "keep": [np.inf, np.nan]},
    ),
    "fp4_zero_sign": (
        VectorCast(source="bf16", target="e1m2"),
        np.array([-0.0625, -0.25], BF16),
        nc.Control(),
        "3510",
        {"keep": [0x8, 0x9], "positive": [0x0, 0x9]},
    ),
    "half_s16_wrap": (
        VectorCast(source="fp16", target="s16"),
        np.float16([65504, -65504]),
        nc.Control(ctrl59=1),
        "3510",
        {"low-bits": [-32, 32], "limits": [32767, -32768]},
    ),
    "integer_saturation_2201": (
        VectorCast(source="fp16", target="s8"),
        np.float16([200, 1]),
        nc.Control(ctrl59=1),
        "2201",
        {"ctrl59": [-56, 1], "always": [127, 1]},
    ),
    "bfloat162half_rn": (
        VectorCast(source="bf16", target="fp16", interface="c-api"),
        np.array([0x2F81, 0x3F80], np.uint16).view(BF16),
        nc.Control(),
        "3510",
        {"rn": [0, 1], "ru": [2**-24, 1]},
    ),
    "integral_zero_sign": (
        VectorRound(function="rint", format="fp32"),
        np.float32([-0.3, -1]),
        nc.Control(),
        "3510",
        {"ieee": [-0.0, -1], "positive": [0.0, -1]},
    ),
    "integral_special": (
        VectorRound(function="rint", format="fp16"),
        np.float16([np.inf, np.nan]),
        nc.Control(),
        "3510",
        {"saturate": [65504, 0], "keep": [np.inf, np.nan]},
    ),
}


@pytest.mark.parametrize("switch", EFFECTS)
def test_each_switch_does_what_its_row_says(switch: str) -> None:
    op, x, control, chip, results = EFFECTS[switch]
    assert set(results) == set(nc.switches[switch].values)
    for value, want in results.items():
        got = nc.execute(op, x, nc.Semantics(chip=chip).override(**{switch: value}), control).astype(np.float64)
        assert np.array_equal(got, want, equal_nan=True), value
        assert np.array_equal(np.signbit(got[~np.isnan(got)]), np.signbit(np.array(want)[~np.isnan(want)])), value
    found = nc.audit(op, x, nc.Semantics(chip=chip), control)
    assert switch in {entry.switch for entry in found.entries}


def test_every_switch_of_these_operations_has_an_effect_here() -> None:
    declared = {s for op in OPERATIONS for s in op.switches}
    elsewhere = {"cast_none", "e8m0_zero", "e8m0_infinity"}  # test_vector_matrix, test_vector_register
    assert declared == set(EFFECTS) | elsewhere


def test_audit_of_a_hybrid_cast_of_bf16_born_values() -> None:
    """bf16 values have zero low bits, so the comparison decides: count, first element, both ways, both sources."""
    born = np.array([0.1, 1.0, 16.0, 17.0, 300.0, -(2.0**-16)], BF16).astype(np.float32)
    op = VectorCast(source="fp32", target="hif8", mode="rh")
    found = nc.audit(op, born)
    by_value = {e.alternative: e for e in found.entries if e.switch == "hif8_hybrid_compare"}
    first = by_value["gt"]
    assert (first.chosen, first.total, first.first_index) == ("ge", 6, (2,))
    assert first.changed == 2
    assert first.chosen_result == "0x41 (20)"
    assert first.alternative_result == "0x40 (16)"
    text = str(found)
    assert "hif8_hybrid_compare: 2 of 6 elements change, first [2]: 0x41 (20) with 'ge'" in text
    assert first.chosen_source in text
    assert first.alternative_source in text
    assert nc.audit(op, np.float32([1.0, 2.0])).clean
    assert "No open question touches your data" in str(nc.audit(op, np.float32([1.0])))


def test_audit_with_a_mask_and_control() -> None:
    op = VectorCast(source="fp32", target="hif8", mode="rh")
    masked = nc.audit(op, {"src": np.float32([16.0, 1.0]), "mask": [False, True]})
    assert masked.clean
    four_bits = VectorCast(source="bf16", target="e2m1")
    found = nc.audit(four_bits, np.array([-0.0625, 1.0], BF16))
    assert [e.chosen_result for e in found.entries] == ["0x8 (-0)"]
    register = RegCast(source="bf16", target="e8m0")
    found = nc.audit(register, np.full(128, np.inf, BF16))
    assert [(e.switch, e.changed) for e in found.entries] == [("e8m0_infinity", 128)]


def test_findings_and_execute() -> None:
    bad = VectorCast(source="fp32", target="e4m3", mode="rz", deq_scale=1.0, count=-1)
    found = list(bad.violations(nc.Semantics()))
    assert [f.rule for f in found] == ["VEC-01", "VEC-02", "VEC-03"]
    with pytest.raises(nc.ConstraintError, match="3 rules") as e:
        nc.execute(bad, np.float32([1]))
    assert len(e.value.findings) == 3
    assert not list(VectorCast(source="fp32", target="e4m3").violations(nc.Semantics()))
    assert [f.rule for f in VectorRound(function="ceil", format="s32").violations(nc.Semantics())] == ["VEC-01"]
    wrong = RegCast(source="fp32", target="s32", layout="ONE", merge="merging")
    assert len(list(wrong.violations(nc.Semantics()))) == 2
    with pytest.raises(nc.ConstraintError, match="layout ONE"):
        nc.execute(wrong, np.zeros(64, np.float32))


def test_unknown_names_in_an_operation() -> None:
    with pytest.raises(nc.UnknownNameError, match="basic"):
        VectorCast(source="fp32", target="fp16", interface="basik")
    with pytest.raises(nc.UnknownNameError, match="ceil"):
        VectorRound(function="ceill", format="fp16")
    with pytest.raises(nc.UnknownNameError, match="hif8"):
        VectorCast(source="hif", target="fp16")
    with pytest.raises(nc.ShapeError, match="takes src, mask"):
        nc.execute(VectorCast(source="fp32", target="fp16"), {"source": np.float32([1])})


def test_an_assumed_reading_warns_once() -> None:
    from narrowcast.operation.protocol import _warn_once

    _warn_once.cache_clear()
    with pytest.warns(nc.UnverifiedWarning, match="e4m3_overflow"):
        nc.vector.cast(np.float32([1]), "e4m3")
    nc.vector.cast(np.float32([1]), "e4m3")
