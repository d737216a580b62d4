"""Bundles executed as the ISA specification does: results, flags, faults, and what stays untouched."""

import numpy as np
import pytest

from narrowcast.errors import ConstraintError
from narrowcast.isa import Machine, SpecTile, SpecTileType, assemble, disassemble, parse_words
from narrowcast.tile import Tile, TileType

WORKED = "9EB19181 00109023 00F00043 00401043 01002043 00310013 00195E13 00000001"


def tile(dtype, shape, values, layout="ND"):
    """A tile of the machine whose valid region holds ``values``."""
    array = np.asarray(values)
    made = Tile.empty(TileType.of(dtype, shape, array.shape, layout=layout), check=False)
    made.store(array.astype(made.storage.dtype))
    return SpecTile.of(made)


def worked_machine():
    codes = np.zeros((4, 15), np.int8)
    codes[0, :3] = [0, -128, 46]
    return Machine({1: tile("s8", (8, 16), codes)}, {"a0": 0x3DCCCCCD, "a1": 3})


def test_worked_bundle():
    machine = worked_machine()
    words = parse_words(WORKED)
    assert assemble(disassemble(words)) == words
    before = machine.tiles[1].tile.memory.copy()
    machine.run(words)
    result = machine.tiles[0]
    assert result.tile.type.short == "fp32 4x16 valid 4x15 ND"
    assert result.tile.array().view(np.uint32)[0, :3].tolist() == [0xBE99999A, 0xC151999A, 0x4089999A]
    assert result.defined[:, :15].all() and not result.defined[:, 15].any()
    assert machine.flags == 16
    assert np.array_equal(machine.tiles[1].tile.memory, before)


def run(text, tiles, **registers):
    machine = Machine(tiles, registers)
    machine.run(assemble(text))
    return machine


HEADER = "B.DATR {NORM, FP32, Zero, EQ, Default, 0, 0}\nB.DIM zero, 2, ->LB0\nB.DIM zero, 2, ->LB2\n"
BIND = "B.IOT T1, mask=1111, <last>, ->T<1>\nBSTOP"


def test_defaults_of_the_header():
    machine = run(f"BSTART.SFU TDEQUANT, S8\n{HEADER}{BIND}", {1: tile("s8", (64, 2), [[1, 2]])})
    assert machine.tiles[0].tile.numpy().tolist() == [[1.0, 2.0]]
    quant = HEADER.replace("FP32", "S8").replace("Default, 0", "RNE, 1")
    machine = run(f"BSTART.SFU TQUANT, FP32\n{quant}{BIND}", {1: tile("fp32", (16, 2), [[1.0, 200.0]])})
    assert machine.tiles[0].tile.numpy().tolist() == [[1, 127]]


def test_conversion_between_layouts():
    text = (
        "BSTART.VEC TCVT, U8\nB.DATR {ND2DN, U16, Null, EQ, Default, 0, 0}\nB.DIM zero, 2, ->LB0\n"
        "B.DIM zero, 8, ->LB2\nB.IOT T1, mask=1111, <last>, ->T<2>\nBSTOP"
    )
    machine = run(text, {1: tile("u8", (16, 8), [[7, 9]])})
    result = machine.tiles[0].tile
    assert result.type.layout == "DN" and result.numpy().tolist() == [[7, 9]]
    assert result.storage[16] == 9


@pytest.mark.parametrize(
    ("layout", "places"),
    [
        ("ZN", {(0, 0): 0, (1, 0): 1, (0, 1): 16, (0, 32): 512, (16, 0): 1024}),
        ("NZ", {(0, 1): 1, (1, 0): 32, (0, 32): 1024, (16, 0): 512}),
    ],
)
def test_the_specifications_boxes(layout, places):
    """Published offsets; ZN boxes have 16 rows of 32 bytes here, unlike the library's."""
    text = (
        f"BSTART.VEC TCVT, U8\nB.DATR {{ND2{layout}, U8, Null, EQ, Default, 0, 0}}\nB.DIM zero, 64, ->LB0\n"
        "B.DIM zero, 32, ->LB1\nB.IOT T1, mask=1111, <last>, ->T<5>\nBSTOP\n"
        f"BSTART.VEC TCVT, U8\nB.DATR {{{layout}2ND, U8, Null, EQ, Default, 0, 0}}\nB.DIM zero, 64, ->LB0\n"
        "B.DIM zero, 32, ->LB1\nB.IOT T0, mask=1111, <last>, ->U<5>\nBSTOP"
    )
    values = np.random.default_rng(0).permutation(2048).reshape(32, 64).astype(np.uint8)
    machine = run(text, {1: tile("u8", (32, 64), values)})
    storage = machine.tiles[0].tile.storage
    assert all(storage[at] == values[place] for place, at in places.items())
    assert np.array_equal(machine.tiles[16].tile.numpy(), values)
    given = tile("u8", (32, 64), values, layout=layout)
    assert np.array_equal(given.tile.storage, storage) and np.array_equal(given.tile.numpy(), values)


def test_boxes_of_packed_elements():
    values = (np.arange(1024).reshape(16, 64) % 15).astype(np.uint8)
    made = Tile.empty(SpecTileType.of("u4", (16, 64), layout="ZN"))
    made.store(values)
    assert made.type.offset(0, 63) == 1008 and made.storage[1008] == values[0, 63]
    assert SpecTile.of(made).tile is made


@pytest.mark.parametrize(("pad", "value", "defined"), [("Zero", 0, True), ("Max", 65535, True), ("Null", 0, False)])
def test_padding_of_a_conversion(pad, value, defined):
    text = (
        f"BSTART.VEC TCVT, U8\nB.DATR {{NORM, U16, {pad}, EQ, Default, 0, 0}}\nB.DIM zero, 2, ->LB0\n"
        "C.B.DIMI 8, ->LB2\nB.IOT T1, mask=1111, <last>, ->U<2>\nBSTOP"
    )
    machine = run(text, {1: tile("u8", (16, 8), [[7, 9]])})
    result = machine.tiles[16]
    assert result.tile.array()[0, 2] == value and bool(result.defined[0, 2]) is defined


def test_exponents():
    text = (
        "BSTART.VEC TCVT, BF16\nB.DATR {NORM, E8M0, Null, EQ, RNE, 0, 0}\nB.DIM zero, 4, ->LB0\n"
        "B.IOT T1, mask=1111, <last>, ->T<1>\nBSTOP"
    )
    machine = run(text, {1: tile("bf16", (16, 4), np.float32([[1.0, 2.0, 0.5, 1.5]]))})
    assert machine.tiles[0].tile.numpy().view(np.uint8).tolist() == [[127, 128, 126, 128]]
    assert machine.flags == 16


def test_flags_are_sticky():
    machine = worked_machine()
    machine.flags = 4
    machine.run(parse_words(WORKED))
    assert machine.flags == 20


def test_loads_and_stores():
    machine = Machine(registers={"a0": 16, "a1": 8, "a2": 128, "a3": 4}, memory=np.arange(256, dtype=np.uint8))
    machine.run(
        assemble(
            "BSTART.TLOAD S8\nB.DIM zero, 3, ->LB0\nB.DIM zero, 2, ->LB1\nB.DIM zero, 4, ->LB2\nB.IOR a0, a1\n"
            "B.IOT mask=1111, <last>, ->T<1>\nBSTOP\n"
            "BSTART.TSTORE S8\nB.DIM zero, 3, ->LB0\nB.DIM zero, 2, ->LB1\nB.DIM zero, 4, ->LB2\nB.IOR a2, a3\n"
            "B.IOT T0, mask=1111, <last>\nBSTOP"
        )
    )
    assert machine.tiles[0].tile.numpy().tolist() == [[16, 17, 18], [24, 25, 26]]
    assert machine.memory[128:136].tolist() == [16, 17, 18, 131, 24, 25, 26, 135]


def test_no_processing_element_is_a_strict_no_op():
    machine = Machine()
    machine.run(assemble("BSTART.SFU TQUANT, FP32\nB.IOT N15, mask=0000, <last>, ->T<1>\nBSTOP"))
    assert not machine.tiles and machine.flags == 0


START = "BSTART.SFU TDEQUANT, S8\n"


@pytest.mark.parametrize(
    ("text", "kind", "says"),
    [
        (START + BIND, "Fault_TileLegality", "needs B.DATR"),
        (START + HEADER + HEADER + BIND, "Fault_BundleControl", "second B.DATR"),
        (START + HEADER + "B.DIM zero, 2, ->LB0\n" + BIND, "Fault_BundleControl", "second LB0"),
        (
            START + HEADER + BIND.replace("BSTOP", "B.IOT T2, mask=1111, <last>\nBSTOP"),
            "Fault_BundleControl",
            "after the last",
        ),
        (START + HEADER, "Fault_BundleControl", "no BSTOP"),
        (HEADER, "Fault_BundleControl", "outside a bundle"),
        (START + START, "Fault_BundleControl", "inside a bundle"),
        (START + HEADER + BIND.replace("T1,", "T1, T2,"), "Fault_TileLegality", "takes one source"),
        (START + HEADER + BIND.replace("T1,", "T9,"), "Fault_TileLegality", "T9 is not allocated"),
        (START + HEADER.replace("2, ->LB0", "1, ->LB0") + BIND, "Fault_TileLegality", "the bounds say 1x1 of 2"),
        (START + HEADER.replace("Default, 0", "RNE, 1") + BIND, "Fault_TileLegality", "Sat does not apply"),
        (START + HEADER.replace("NORM", "ND2NZ") + BIND, "Fault_TileLegality", "Layout does not apply"),
        (START + HEADER + "B.IOR\n" + BIND, "Fault_TileLegality", "multiplier word 0x0"),
        (START + HEADER + "B.IOR a0, a1\n" + BIND, "Fault_TileLegality", "zero point 200 is not a s8 value"),
        (START.replace("S8", "S16") + HEADER + BIND, "Fault_TileLegality", "source T1 is s8, BSTART says s16"),
        (START + HEADER.replace("FP32", "FP16") + BIND, "Fault_TileLegality", "fp16 is not fp32"),
        (
            START + HEADER.replace("2, ->LB2", "64, ->LB2").replace("2, ->LB0", "64, ->LB0") + BIND,
            "Fault_TileLegality",
            "bounds say",
        ),
        ("BSTART.TEPL 0, 1, S8\n" + HEADER + BIND, "Fault_IllegalInstruction", "selector 0x001"),
        ("BSTART.VEC TCVT, S8\n" + HEADER + "B.IOR a0\n" + BIND, "Fault_TileLegality", "takes no B.IOR"),
        ("BSTART.VEC TCVT, S8\n" + HEADER + BIND, "Fault_TileLegality", "placeholder"),
    ],
)
def test_faults_come_before_any_effect(text, kind, says):
    machine = Machine({1: tile("s8", (64, 2), [[1, 2]])}, {"a0": 0x3F800000, "a1": 200})
    with pytest.raises(ConstraintError) as caught:
        machine.run(assemble(text))
    assert caught.value.code == kind and says in str(caught.value)
    assert list(machine.tiles) == [1] and machine.flags == 0


def test_allocation_faults():
    source = tile("s8", (8, 16), np.zeros((4, 15)))
    small = WORKED.replace("00195E13", "0018DE13")
    with pytest.raises(ConstraintError, match=r"Fault_TileAllocation: size code 1 \(128 B\) holds 2 rows"):
        Machine({1: source}, {"a0": 0x3F800000}).run(parse_words(small))
    full = dict.fromkeys(range(16), source)
    with pytest.raises(ConstraintError, match="hand T has no free slot"):
        Machine(full, {"a0": 0x3F800000}).run(parse_words(WORKED))


def test_undefined_elements_are_refused():
    machine = worked_machine()
    machine.tiles[1].defined[2, 3] = False
    with pytest.raises(ConstraintError, match="undefined elements"):
        machine.run(parse_words(WORKED))
