"""PTO-AS text: three forms, both directions, and errors with line and column."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from narrowcast.errors import EncodingError, NarrowcastError, UnverifiedWarning
from narrowcast.isa import Form, MemoryType, Operand, Statement, TileProgram, assemble, disassemble, parse, write
from narrowcast.tile import TileType

PROGRAM = """
# codes and parameters in, values out
%s = pto.tload %codes : !pto.partition_tensor_view<128x128xi8> -> !pto.tile<loc=vec, i8, 128, 128, valid=63x63>
pto.tload ins(%scale : !pto.partition_tensor_view<63x1xf32>)
          outs(%sc : !pto.tile_buf<f32, 64, 1, ColMajor, NoneBox, None, Zero, valid=63x1>)  // one a row
first: %d = pto.tdequant %s, %sc, %sc : (!pto.tile<i8, 128, 128>, !pto.tile<f32, 64, 1, ColMajor>,
    !pto.tile<f32, 64, 1, ColMajor>) -> !pto.tile<f32, 128, 128, valid=63x63>
pto.tdequant ins(%s : !pto.tile_buf<i8, 128, 128>, %sc : !pto.tile_buf<f32, 64, 1, ColMajor>,
    %sc : !pto.tile_buf<f32, 64, 1, ColMajor>) outs(%e : !pto.tile_buf<f32, 128, 128>)
%h = tcvt %d {rmode = #pto.round_mode<CAST_RINT>} : !pto.tile<f32, 128, 128> -> !pto.tile<f16, 128, 128>
pto.tcvt ins(%d{rmode = #pto<round_mode CAST_TRUNC>, sat = on} : !pto.tile_buf<f32, 128, 128>)
    outs(%i : !pto.tile_buf<i32, 128, 128>)
%q = pto.tquant %d, %sc {parameter = scale} : (!pto.tile<f32, 128, 128>, !pto.tile<f32, 64, 1, ColMajor>)
    -> !pto.tile<i8, 128, 128>
%m = tmov.v2v %d : !pto.tile<f32, 128, 128> -> !pto.tile<f32, 128, 128, ColMajor, RowMajor>
tdequant %g, %s, %sc, %sc : !pto.tile<f32, 128, 128>
pto.tstore %d, %out[0, 8] : (!pto.tile<f32, 128, 128>, !pto.partition_tensor_view<128x256xf32>) -> ()
tstore %d, %out #atomic=add
pto.tstore ins(%d : !pto.tile_buf<f32, 128, 128>) outs(%out : !pto.memref<f32, 128, 256>)
"""


def test_three_forms():
    program = parse(PROGRAM)
    assert " ".join(s.op for s in program.statements) == (
        "tload tload tdequant tdequant tcvt tcvt tquant tmov tdequant tstore tstore tstore"
    )
    assert program.inputs == ("codes", "scale") and program.outputs == ("out",)
    statement = program.statements[2]
    assert (statement.label, statement.form, len(statement.source_types)) == ("first", Form.SSA, 3)
    assert statement.result_types[0].valid == (63, 63)
    assert program.statements[3].form is Form.DPS and program.statements[8].form is Form.PLAIN
    assert program.statements[5].attributes == {"rmode": "CAST_TRUNC", "sat": "on"}
    assert program.statements[9].results[0].offsets == (0, 8)
    assert parse(write(program)) == program


@pytest.mark.parametrize("form", [Form.SSA, Form.DPS])
def test_one_form(form):
    typed = TileProgram(tuple(s for s in parse(PROGRAM).statements if s.source_types and s.result_types))
    text = write(typed, form)
    assert parse(text) == typed
    assert ("ins(" in text) == (form is Form.DPS)


@pytest.mark.parametrize(
    ("text", "where", "says"),
    [
        ("%d = pto.tdequant %s : !pto.tile<f32,1,8> -> !pto.tile<f32,1,8>", "line 1, column 1", "takes 3 sources"),
        ("\n  %d = pto.tdeqant %s", "line 2, column 8", "Did you mean tdequant"),
        ("%d = pto.tmov %s : !pto.tile<f33, 1, 8> -> !pto.tile<f32, 1, 8>", "line 1, column 20", "'f33'"),
        ("pto.tmov ins(%s : !pto.tile<f32,1,8> outs(%d)", "line 1, column 38", "unexpected 'outs'"),
        ("%d = pto.tcvt %s {mode = x} : !pto.tile<f32,1,8>", "line 1, column 19", "attribute of tcvt 'mode'"),
        ("%d $", "line 1, column 4", "'$' is not part"),
        ("%d = pto.tmov %s : !pto.tile<f32,1,8", "line 1, column 20", "not closed"),
        ("%d = pto.tmov %s", "line 1, column 17", "expected ':'"),
        ("%d = pto.tmov %s : f32 -> f32", "line 1, column 20", "expected a type"),
        ("%d = pto.tload %m : !pto.memref<f32> -> !pto.tile<f32,1,8>", "line 1, column 21", "1 to 5 sizes"),
        ("%d = pto.tload %m[%c0] : !pto.memref<f32,8> -> !pto.tile<f32,1,8>", "line 1, column 19", "whole number"),
        ("%d = pto.tmov %s, : !pto.tile<f32,1,8> -> !pto.tile<f32,1,8,bad=3>", "line 1, column 43", "'bad'"),
    ],
)
def test_errors_have_line_and_column(text, where, says):
    with pytest.raises(EncodingError) as caught:
        parse(text)
    assert where in str(caught.value) and says in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


NAMES = st.from_regex(r"[a-z][a-z0-9_]{0,5}", fullmatch=True)
TILES = st.builds(
    lambda dtype, rows, layout, pad: TileType.of(dtype, (rows * 64, 128), layout=layout, pad=pad),
    st.sampled_from(["fp32", "s8", "u8", "bf16", "hif8", "e2m1"]),
    st.integers(1, 3),
    st.sampled_from(["ND", "DN", "NZ", "ZN"]),
    st.sampled_from(["null", "max"]),
)


@given(NAMES, NAMES, TILES, TILES, st.sampled_from(["CAST_RINT", "CAST_ODD"]), st.sampled_from(list(Form)))
@settings(max_examples=80, deadline=None)
def test_print_and_parse(result, source, result_type, source_type, mode, form):
    statement = Statement(
        "tcvt", (Operand(source),), (Operand(result),), (source_type,), (result_type,), {"rmode": mode}, form
    )
    program = TileProgram((statement,))
    assert parse(write(program)) == program
    assert parse(write(program)).statements[0].form is form


@given(st.text(alphabet="%!pto.dquan<>(){}[]:=,-# \n0123456789abcxyz", max_size=80))
@settings(max_examples=300, deadline=None)
def test_any_text_parses_or_is_refused(text):
    try:
        parse(text)
    except NarrowcastError as error:
        assert "line " in str(error)


@pytest.mark.parametrize(
    ("text", "dims"), [("!pto.memref<f32, 4, 8>", (4, 8)), ("!pto.partition_tensor_view<1x?x8xi8>", (1, None, 8))]
)
def test_memory_types(text, dims):
    kind = MemoryType.parse(text)
    assert kind.dims == dims and MemoryType.parse(str(kind)) == kind


FOUR_OPERANDS = """
%a = pto.tload %m : !pto.partition_tensor_view<16x64xi16> -> !pto.tile<i16, 16, 64>
%b = pto.tload %n : !pto.partition_tensor_view<16x64xi16> -> !pto.tile<i16, 16, 64, valid=13x60>
%c = pto.tload %o : !pto.partition_tensor_view<16x1xf32> -> !pto.tile<f32, 16, 1, ColMajor>
%d = pto.tload %p : !pto.partition_tensor_view<16x1xf32> -> !pto.tile<f32, 16, 1, ColMajor>
%e = pto.tdequant %b, %c, %d : (!pto.tile<i16, 16, 64>, !pto.tile<f32, 16, 1, ColMajor>,
  !pto.tile<f32, 16, 1, ColMajor>) -> !pto.tile<f32, 16, 64, valid=13x60>
pto.tstore %e, %out : (!pto.tile<f32, 16, 64>, !pto.partition_tensor_view<16x64xf32>) -> ()
"""


def test_four_operand_form_is_assumed():
    with pytest.warns(UnverifiedWarning, match="inferred"):
        words = assemble(FOUR_OPERANDS)
    text = [str(word) for word in words]
    start = text.index("96B19181")
    assert text[start + 5 : start + 7] == ["08104E13", "003B5E13"]
    assert "B.IOT T1, T2, mask=1111\nB.IOT T3, mask=1111, <last>, ->T<6>\nBSTOP" in disassemble(words)
    assert [str(word) for word in assemble(disassemble(words))] == text


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("%b = pto.tmov %a : !pto.tile<f32, 1, 8> -> !pto.tile<f32, 1, 8>", "column 15: tmov: %a is not defined"),
        (
            "%a = pto.tload %m : !pto.memref<f32, 512, 512> -> !pto.tile<f32, 512, 512>",
            "holds at most 65536 per PE",
        ),
    ],
)
def test_programs_without_an_encoding(text, says):
    with pytest.raises(EncodingError, match=says):
        assemble(text)
