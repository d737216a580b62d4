"""Bundle words: the table itself, the worked bundle, reserved codes and fuzzing in both directions."""

import random
from dataclasses import replace

import numpy as np
import pytest

import narrowcast as nc
from narrowcast.catalog.encodings import CODE_SETS, WORDS
from narrowcast.catalog.instructions import instructions
from narrowcast.errors import EncodingError, NarrowcastError, UnknownNameError
from narrowcast.isa.bundle import parse_bundle, parse_line, print_bundle, print_word
from narrowcast.isa.fields import decode, encode, problems
from narrowcast.isa.stream import from_bytes, parse_words, to_bytes

WORKED = "9EB19181 00109023 00F00043 00401043 01002043 00310013 00195E13 00000001"
WORKED_TEXT = """\
BSTART.SFU TDEQUANT, S8
B.DATR {NORM, FP32, Zero, EQ, RNE, 0, 0}
B.DIM zero, 15, ->LB0
B.DIM zero, 4, ->LB1
B.DIM zero, 16, ->LB2
B.IOR a0, a1
B.IOT T1, mask=1111, <last>, ->T<2>
BSTOP
"""


def test_table_is_sound():
    assert list(problems()) == []


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda r: replace(r, fields=(*r.fields, r.fields[0])), "claimed twice"),
        (lambda r: replace(r, fields=r.fields[1:]), "belong to nobody"),
        (lambda r: replace(r, match=r.match | 1 << 27), "outside the mask"),
    ],
)
def test_unsound_tables_are_noticed(change, says):
    row = next(r for r in WORDS if r.name == "BSTART.TEPL")
    assert any(says in line for line in problems([change(row)]))


def test_colliding_forms_are_noticed():
    row = next(r for r in WORDS if r.name == "B.IOR")
    assert any("match the same words" in line for line in problems([row, replace(row, name="B.IOR2")]))


def test_worked_bundle_both_ways():
    words = parse_words(WORKED)
    assert print_bundle(words) == WORKED_TEXT
    assert [str(word) for word in parse_bundle(WORKED_TEXT)] == WORKED.split()
    assert from_bytes(to_bytes(words)) == words


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("BSTART.SFU TDEQUANT, U8", "DEB19181"),
        ("BSTART.TEPL TQUANT, FP32", "0EA19181"),
        ("BSTART.VEC TCVT, FP32", "09B19181"),
        ("BSTART.VEC TCVT, U8", "D9B19181"),
        ("BSTART.SFU TDEQUANT, S16", "96B19181"),
        ("BSTART.TEPL 107, S8", "9EB19181"),
        ("B.DATR {NORM, S8, Zero, EQ, RNE, 1, 0}", "05309023"),
        ("B.DATR {NORM, U8, Zero, EQ, RNE, 1, 0}", "05B09023"),
        ("B.DIM zero, 5000, ->LB0", "388000C3"),
        ("C.B.DIMI 16, ->LB0", "043C"),
        ("B.IOT T1, T2, mask=1111", "08104E13"),
        ("B.IOT T3, mask=1111, <last>, ->T<2>", "00395E13"),
        ("L.BSTOP", "000000010000000F"),
    ],
)
def test_known_words(text, word):
    assert str(parse_line(text)) == word
    assert str(decode(int(word, 16), 4 * len(word))) == word


def test_former_word_is_named_and_refused():
    old = encode("BSTART.TEPL@0.57.0", DataType="S8", TileOpcode=instructions["TDEQUANT"].former_opcode)
    with pytest.raises(EncodingError, match=r"TDEQUANT as encoded up to 0\.57\.0; since 0.57.1 that is 9EB19181"):
        decode(old.value)


@pytest.mark.parametrize("selector", [0x061, 0x069, 0x075, 0x07F])
def test_reserved_selectors(selector):
    with pytest.raises(EncodingError, match="reserved"):
        encode("BSTART.TEPL", DataType="S8", Mode=selector >> 5, Function=selector & 31)


@pytest.mark.parametrize("row", [r for r in WORDS if r.fields], ids=lambda r: r.name)
def test_reserved_codes_are_refused_by_name(row):
    for field in row.fields:
        if not field.codes:
            continue
        for code in range(1 << field.width):
            if code in CODE_SETS[field.codes].codes:
                continue
            with pytest.raises(EncodingError, match=field.name):
                encode(row.name, **{**_legal(row), field.name: code})


def _legal(row):
    return {f.name: next(iter(CODE_SETS[f.codes].codes)) if f.codes else 0 for f in row.fields}


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("B.IOT T16, mask=1111", "line 2, column 3: B.IOT: 'T16' is no tile"),
        ("B.IOT T1", "line 2, column 3: B.IOT needs mask="),
        ("BSTART.VEC TDEQUANT, S8", "TDEQUANT runs on SFU"),
        ("BSTART.SFU TDEQUANT, S9", "Did you mean S8"),
        ("BSTART.SFU TLOAD, S8", "Write BSTART.TLOAD S8"),
        ("B.DIM zero, 200000, ->LB0", "17 bits wide"),
        ("B.DIM zero, x, ->LB0", "'x' is not a whole number"),
        ("B.DATR {NORM, FP32}", "got 2 operands"),
        ("B.IOR a9", "register"),
        ("B.FOO 1", "unknown bundle mnemonic"),
    ],
)
def test_text_errors_name_line_and_column(line, says):
    with pytest.raises(NarrowcastError) as caught:
        parse_bundle(f"# comment\n  {line}\n")
    assert says in str(caught.value)


def test_stream_errors():
    with pytest.raises(EncodingError, match="byte offset 4"):
        from_bytes(parse_words("00000001")[0].value.to_bytes(4, "little") + b"\x81\x91")
    with pytest.raises(EncodingError, match="3 digits"):
        parse_words("043")
    with pytest.raises(UnknownNameError, match="word form"):
        encode("B.NOT")


@pytest.mark.parametrize("row", WORDS, ids=lambda r: r.name)
def test_random_free_fields(row):
    generator = random.Random(row.match)
    free = ((1 << row.bits) - 1) & ~row.mask
    round_trips = 0
    for _ in range(20_000 if free else 1):
        round_trips += _round_trip(generator.getrandbits(row.bits) & free | row.match, row.bits)
    assert round_trips


def test_random_words():
    generator = random.Random(4)
    for _ in range(200_000):
        _round_trip(generator.getrandbits(32), 32)


def _round_trip(value, bits):
    try:
        word = decode(value, bits)
    except EncodingError:
        return 0
    assert parse_line(print_word(word)).value == value
    return 1


def test_words_stand_for_their_bits() -> None:
    words = nc.isa.assemble("BSTART.SFU TDEQUANT, S8\nBSTOP")
    assert words == [0x9EB19181, 0x00000001] and [hex(word) for word in words] == ["0x9eb19181", "0x1"]
    assert np.array(words, dtype=np.uint32).tolist() == [0x9EB19181, 1]
    assert words[0] != words[1] and len({*words, *nc.isa.assemble("BSTOP")}) == 2
