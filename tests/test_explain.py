"""Explanations: every code reads back, stated neighbours bracket, the stated rule gives what encode gives."""

import math
import random
from fractions import Fraction

import numpy as np
import pytest

from narrowcast import numerics
from narrowcast.catalog.formats import formats
from narrowcast.errors import FormatError, UnknownNameError, UnsupportedCastError
from narrowcast.insight.anatomy import code_number, read_code
from narrowcast.insight.exact import Number, decimal_text, floor_log2, parse, power_text, short_text
from narrowcast.insight.explain import Explanation, explain_cast, explain_code
from narrowcast.insight.typed import values_of
from narrowcast.operation.semantics import Semantics
from narrowcast.schema import IntFormat, Magnitudes, Rounding

SMALL = [name for name, row in formats.items() if row.bits <= 16]
TARGETS = [name for name, row in formats.items() if name not in ("fp32", "s64", "u32", "s32")]
MODES = ["rn", "rna", "rd", "ru", "rz", "ro"]


@pytest.mark.parametrize("name", SMALL)
def test_every_code_reads_as_decode_says(name: str) -> None:
    row = formats[name]
    table = numerics.decode_table(row)
    step = 1 if row.bits <= 8 else 7
    for code in range(0, 1 << row.bits, step):
        reading = read_code(code, row)
        value = float(table[code])
        assert reading.bits.replace(".", "") == f"{code:0{row.bits}b}"
        assert int(reading.hex, 16) == code
        if math.isnan(value):
            assert reading.kind == "nan"
        elif math.isinf(value):
            assert reading.kind == "infinity" and reading.number.negative == (value < 0)
        else:
            assert reading.number.fraction == Fraction(value)
            assert reading.number.negative == (math.copysign(1.0, value) < 0)
            assert parse(reading.number.decimal) == reading.number
            assert parse(reading.number.power) == reading.number


def test_fields_of_hif8_multiply_out() -> None:
    """The named fields alone give the value: sign, exponent sign and magnitude, fraction."""
    for code in range(256):
        reading = read_code(code, formats["hif8"])
        if reading.kind != "normal":
            continue
        fields = {f.name: f.bits for f in reading.fields}
        width = {"0001": 0, "001": 1, "01": 2, "10": 3, "11": 4}[fields["dot"]]
        exponent = 0
        if width:
            exponent = (1 << (width - 1)) | int(fields.get("exponent magnitude", "") or "0", 2)
            exponent = -exponent if fields["exponent sign"] == "1" else exponent
        fraction = fields["fraction"]
        value = (1 + Fraction(int(fraction, 2), 1 << len(fraction))) * Fraction(2) ** exponent
        assert reading.number.fraction == (-value if fields["sign"] == "1" else value), reading


def inputs(target: str, source: str) -> list[int]:
    """Codes of the source around every threshold of the target, plus ordinary and special ones."""
    row, origin = formats[target], formats[source]
    assert isinstance(origin, Magnitudes)
    draw = random.Random(f"{target} {source}")
    codes = {draw.getrandbits(origin.bits) for _ in range(10)}
    codes |= {0, origin.sign_bit, 1, origin.overflow_rank - 1, origin.overflow_rank, origin.nan_code or 0}
    marks = [code_number(draw.randrange(1 << row.bits), row) for _ in range(10)]
    values = [n.fraction for n in marks if n.fraction is not None]
    values += [Fraction(row.max) * k / 16 for k in (16, 17, 24, 33)]
    for value in values:
        factor = draw.choice((1, Fraction(17, 16), Fraction(9, 8), Fraction(5, 4), Fraction(3, 2)))
        code = explain_cast(str(value * factor), "hif8", source=source).source.code
        codes |= {c & origin.code_mask for c in (code - 1, code, code + 1)}
    return sorted(codes)


def check(e: Explanation, target: str) -> None:
    row = formats[target]
    number = e.source.number
    if e.below is None or e.above is None:
        assert e.away is None and e.position is None
        return
    assert number.fraction is not None
    below, above = e.below.number.fraction, e.above.number.fraction
    assert below is not None and above is not None and below < above
    assert below <= number.fraction <= above
    near, far = (above, below) if number.negative else (below, above)
    assert e.position == (number.fraction - near) / (far - near)
    assert e.tie is not None and e.tie.fraction == (below + above) / 2
    assert e.steps
    taken = (e.above if number.negative else e.below) if not e.away else (e.below if number.negative else e.above)
    if taken.reading is not None:
        assert taken.reading.code == e.saturating.code == e.not_saturating.code
        return
    top = row.max if not number.negative else row.min
    assert e.saturating.number.fraction == Fraction(top)
    assert "overflow" in e.steps[-1]
    if isinstance(row, IntFormat):
        assert taken.number.fraction is not None
        assert e.not_saturating.code == int(taken.number.fraction) & row.code_mask
    elif row.inf_code is not None:
        assert e.not_saturating.kind == "infinity"
    elif row.nan_code is not None:
        assert e.not_saturating.kind == "nan"


@pytest.mark.parametrize("source", ["fp32", "fp16", "bf16"])
@pytest.mark.parametrize("target", TARGETS)
def test_neighbours_bracket_and_the_rule_gives_what_encode_gives(target: str, source: str) -> None:
    for code in inputs(target, source):
        for mode in MODES:
            e = explain_cast(f"{code:#x}", target, rounding=mode, source=source, nan="zero")
            array = values_of(code, formats[source])
            for saturate, reading in ((True, e.saturating), (False, e.not_saturating)):
                codes = numerics.encode(array, formats[target], Rounding(mode), saturate=saturate, nan="zero")
                assert int(codes[0]) == reading.code
            check(e, target)


@pytest.mark.parametrize("compare", ["ge", "gt", "ge-nonzero"])
@pytest.mark.parametrize("source", ["fp32", "fp16"])
def test_hybrid_comparison_gives_what_encode_gives(source: str, compare: str) -> None:
    semantics = Semantics().override(hif8_hybrid_compare=compare)
    codes = [c for seed in ("hif8", "e4m3", "e5m2", "fp16") for c in inputs(seed, source)]
    # Low bits around the threshold: the same value with every relation of discarded bits and threshold.
    if source == "fp32":
        codes += [c & ~0x3FFF | low for c in codes[::3] for low in (0, 1, 0x1FFF, 0x2000, 0x3FFF)]
    compared = 0
    for code in codes:
        e = explain_cast(f"{code:#x}", "hif8", rounding="rh", source=source, semantics=semantics)
        check(e, "hif8")
        if e.hybrid is not None:
            compared += 1
            discarded, threshold = int(e.hybrid.discarded, 2), int(e.hybrid.threshold, 2)
            assert len(e.hybrid.discarded) == len(e.hybrid.threshold) == (14 if source == "fp32" else 2)
            up = discarded > threshold if compare == "gt" else discarded >= threshold
            assert e.away == e.hybrid.up == (up and (compare != "ge-nonzero" or discarded != 0))
    assert compared > 100


def test_integer_sources() -> None:
    for text in ("17", "-3", "127", "-128", "0"):
        e = explain_cast(text, "e4m3", source="s8")
        assert e.source.number.fraction == int(text)
        check(e, "e4m3")
    assert explain_cast("16777217", "fp32", source="s32").result.number.fraction == 16777216
    with pytest.raises(FormatError, match="is no value of s8"):
        explain_cast("1.5", "e4m3", source="s8")
    with pytest.raises(FormatError, match="-128 to 127"):
        explain_cast("200", "e4m3", source="s8")


def test_narrow_sources_are_decoded_exactly() -> None:
    e = explain_cast("0x41", "e4m3", source="hif8")
    assert (e.source.number.fraction, e.result.number.fraction) == (20, 20)


def test_decimal_text_is_first_written_in_the_source_format() -> None:
    e = explain_cast("0.1", "e4m3")
    assert e.source.hex == "0x3DCCCCCD"
    assert e.source_error == Fraction(13421773, 2**27) - Fraction(1, 10)
    assert explain_cast("0.1", "e4m3", source="fp16").source.hex == "0x2E66"
    assert explain_cast("1e39", "e4m3").source.kind == "infinity"
    assert explain_cast("65520", "fp32", source="fp16").source.hex == "0x7C00"
    assert explain_cast("65519.99", "fp32", source="fp16").source.hex == "0x7BFF"


@pytest.mark.parametrize("text", ["0.1", "1e-45", "3.4028236e38", "1.1754942e-38", "16777217", "-7.006492e-46", "0.3"])
def test_source_rounding_is_that_of_numpy(text: str) -> None:
    with np.errstate(over="ignore"):
        expected = int(np.float32(text).view(np.uint32))
    assert explain_cast(text, "bf16").source.code == expected


def test_documented_examples() -> None:
    tiny = explain_cast("-1e-9", "hif8", rounding="rh")
    assert tiny.result.hex == "0x00" and "below -23" in tiny.steps[0] and "sign is lost" in tiny.steps[1]
    sixteen = explain_cast("16", "hif8", rounding="rh")
    assert (sixteen.position, sixteen.away, sixteen.result.hex) == (0, True, "0x41")
    assert sixteen.open[0].matters
    assert [a.result.hex for a in sixteen.open[0].alternatives] == ["0x41", "0x40", "0x40"]
    edge = explain_cast("464", "e4m3", saturate=False)
    assert (edge.result.hex, edge.open[0].alternatives[1].result.hex, edge.open[0].matters) == ("0x7E", "0x7F", True)
    assert explain_cast("464.01", "e4m3", saturate=False).result.kind == "nan"
    assert explain_cast("65535.9", "fp16", rounding="rz", saturate=False).result.hex == "0x7BFF"
    assert explain_cast("65536", "fp16", rounding="rz", saturate=False).result.hex == "0x7C00"
    assert explain_code("0x7e", "e4m3").number.decimal == "448"
    assert explain_code("0b1111110", "fp8_e4m3fn_t").number.power == "1.75 * 2^8"


def test_specials() -> None:
    assert explain_cast("nan", "hif8").result.hex == "0x80"
    assert explain_cast("-inf", "e4m3").result.hex == "0xFE"
    assert explain_cast("-inf", "e5m2", saturate=False).result.hex == "0xFC"
    assert explain_cast("-0", "e4m3").result.hex == "0x80"
    assert explain_cast("-0", "hif8").result.hex == "0x00"
    assert explain_cast("-1", "e8m0").result.kind == "nan"
    assert explain_cast("0", "e8m0").result.kind == "nan"
    assert explain_cast("1e-40", "e8m0").result.hex == "0x00"
    assert explain_cast("nan", "s8", nan="zero").result.code == 0
    with pytest.raises(FormatError, match="has no NaN"):
        explain_cast("nan", "s8")


def test_open_points_show_each_reading() -> None:
    assert [a.result.hex for a in explain_cast("-0.1", "e2m1").open[0].alternatives] == ["0x8", "0x0"]
    assert [a.result.hex for a in explain_cast("inf", "e8m0").open[0].alternatives] == ["0xFF", "0xFE"]
    directed = explain_cast("1e30", "fp16", rounding="rz", saturate=False)
    assert {a.value: a.result.hex for a in directed.open[0].alternatives} == {"range-first": "0x7C00", "ieee": "0x7BFF"}
    assert explain_cast("1.5", "e4m3").open == ()


def test_bad_input() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean hif8"):
        explain_cast("1", "hif9")
    with pytest.raises(UnknownNameError, match="rounding mode"):
        explain_cast("1", "hif8", rounding="rq")
    with pytest.raises(UnsupportedCastError, match="hybrid"):
        explain_cast("1", "hif8", rounding="rh", source="bf16")
    with pytest.raises(UnsupportedCastError, match="hybrid"):
        explain_cast("1", "e4m3", rounding="rh")
    with pytest.raises(FormatError, match="has 9 bits"):
        explain_code("0x100", "e4m3")
    with pytest.raises(FormatError, match="a value, not a code"):
        explain_code("1.5", "e4m3")
    with pytest.raises(FormatError, match="has 33 bits"):
        explain_cast("0x1ffffffff", "e4m3")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("448", Fraction(448)),
        ("-1e-9", Fraction(-1, 10**9)),
        ("+.5", Fraction(1, 2)),
        ("5.", Fraction(5)),
        ("1_000", Fraction(1000)),
        ("3/8", Fraction(3, 8)),
        ("-0x1.8p3", Fraction(-12)),
        ("0x.8p-1", Fraction(1, 4)),
        ("2^-22", Fraction(1, 2**22)),
        ("-1.5 * 2^-15", Fraction(-3, 2**16)),
        ("3*2**4", Fraction(48)),
    ],
)
def test_value_forms(text: str, value: Fraction) -> None:
    assert parse(text) == Number(value, value < 0)


@pytest.mark.parametrize(
    "text", ["", "abc", ".", "-", "1/0", "0x", "0xg", "2^", "*2^3", "1e", "--1", "-0x7e", "1e9999999"]
)
def test_no_value(text: str) -> None:
    with pytest.raises(FormatError):
        parse(text)


def test_codes_and_specials() -> None:
    assert (parse("0x7E"), parse("0b11"), parse("0o17")) == (126, 3, 15)
    negative = parse("-inf")
    assert isinstance(negative, Number) and negative.special == "-inf"
    assert isinstance(parse("-0"), Number) and parse("-0") == Number(Fraction(0), negative=True)


def test_number_texts() -> None:
    assert decimal_text(Fraction(1, 10)) == "0.1"
    assert decimal_text(Fraction(1, 3)) == "1/3"
    assert short_text(Fraction(1, 3)) == "~0.333333333"
    assert short_text(Fraction(1, 2**149)) == "~1.40129846e-45"
    assert short_text(Fraction(10**30)) == "1e+30"
    assert short_text(Fraction(999999999999999999999, 10**30)).startswith("~1e-09")
    assert power_text(Fraction(13421773, 2**27)) == "13421773 * 2^-27"
    assert power_text(Fraction(-3, 4)) == "-1.5 * 2^-1"
    for exponent in range(-160, 130):
        for steps in (8, 9, 15):
            assert floor_log2(Fraction(steps, 8) * Fraction(2) ** exponent) == exponent


def test_json_form_is_plain() -> None:
    import json

    for e in (
        explain_cast("-1e-9", "hif8", rounding="rh"),
        explain_cast("16", "hif8", rounding="rh"),
        explain_cast("nan", "e4m3"),
        explain_cast("1e30", "s8"),
        explain_cast("-0", "fp16"),
    ):
        form = json.loads(json.dumps(e.to_json(), allow_nan=False))
        assert form["result"]["hex"] == e.result.hex
