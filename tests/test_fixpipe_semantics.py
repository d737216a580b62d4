"""Words of every chip, registers, the seed's pipe as drawn, activations, clips, and every switch read and audited."""

import numpy as np
import pytest

import narrowcast as nc
from narrowcast import fixpipe
from narrowcast.catalog.fixpipe_modes import fixpipe_modes
from narrowcast.catalog.fixpipe_switches import ROWS as SWITCHES
from narrowcast.fixpipe import QuantParam, QuantParam2201, SpecQuantParam
from narrowcast.fixpipe.pipeline import switches_of
from narrowcast.fixpipe.run import parameter_words

SEED = nc.Semantics("seed")
SPEC = nc.Semantics("pto-spec")


def one(acc: float | int, mode: str, param: object = None, **settings: object) -> float:
    """The value of one element, stored twice for the 4-bit modes."""
    dtype = {"s32": np.int32, "fp32": np.float32}[fixpipe_modes[mode].accumulator]
    return float(fixpipe.run(np.array([[acc, acc]], dtype=dtype), mode, param, **settings).values[0, 0])


# Words -----------------------------------------------------------------------------------------------------------


def test_scale_is_truncated_and_shown() -> None:
    assert QuantParam(0.1).truncated_scale == 0.0999755859375
    assert fixpipe.truncate_scale([0.1, -0.3]).tolist() == [0.0999755859375, -0.2998046875]


def test_word_errors() -> None:
    for bad in (np.inf, np.nan, 1e-40, -1e-39):
        with pytest.raises(nc.EncodingError):
            QuantParam(bad)
    for bad in (-257, 256, 1000):
        with pytest.raises(nc.EncodingError, match=r"outside -256\.\.255"):
            QuantParam(1.0, bad)
    with pytest.raises(nc.EncodingError, match="64 bits"):
        QuantParam.from_word(1 << 64)
    assert QuantParam(0.0).word == 0x400000000000
    # Bits the pipe ignores are dropped when decoding.
    assert QuantParam.from_word(0xFFFF8013_3DCCDFFF) == QuantParam.from_word(0x3DCCC000)


def test_word_of_2201_shifts_first() -> None:
    param = QuantParam2201(1.0, 0, True, shift=3, shifts=True)
    assert param.word == 0x4012_3F800000
    assert QuantParam2201.from_word(param.word) == param
    old = nc.Semantics(chip="2201")
    assert one(1000, "REQ8", param, semantics=old) == 125
    assert one(1000, "REQ8", param) == 127  # 3510 ignores N and MCB
    # Shifted and saturated to S16 before the multiply.
    assert one(2**31 - 1, "REQ8", QuantParam2201(2.0**-8, shift=1, shifts=True), semantics=old) == 127
    with pytest.raises(nc.EncodingError, match=r"outside 1..16"):
        QuantParam2201(1.0, shift=17)


def test_word_of_the_specification() -> None:
    for param in (SpecQuantParam(1.0, -16, "s4"), SpecQuantParam(0.5, -256, "s8"), SpecQuantParam(2.0, 65535, "s16")):
        assert SpecQuantParam.from_word(param.word, param.target) == param
    assert SpecQuantParam(0.0, target="shift", shift=16).word == 0xF_0000_0000
    for bad in ((1.0, 16, "s4"), (1.0, 256, "s8"), (1.0, 1, "float"), (0.0, 0, "s8"), (-1.0, 0, "s8")):
        with pytest.raises(nc.EncodingError):
            SpecQuantParam(*bad)
    with pytest.raises(nc.EncodingError, match="shift 2"):
        SpecQuantParam(1.0, shift=2)
    with pytest.raises(nc.EncodingError, match="reserved"):
        SpecQuantParam.from_word(QuantParam(1.0).word, "s8")
    with pytest.raises(nc.UnknownNameError):
        SpecQuantParam(1.0, target="s32")


def test_modes_of_the_specification() -> None:
    assert one(5, "REQ8", 2.0, offset=-3, semantics=SPEC) == 7
    assert one(100, "REQ4", 1.0, offset=-12, semantics=SPEC) == 3
    assert one(70000, "DEQS16", 1.0, offset=-40000, semantics=SPEC) == 25535  # s17, then the offset
    assert one(-5, "SHIFTS322S16", 1, semantics=SPEC) == -3  # an arithmetic shift is a floor
    assert one(-(2**31), "SHIFTS322S16", 4, semantics=SPEC) == -32768
    assert one(3.0, "QF32_2_BF16", 0.5, semantics=SPEC) == 1.5
    for mode in ("QF32_2_S4", "QF32_2_E5M2", "QF32_2_HiF8_HYBRID"):
        with pytest.raises(nc.UnsupportedCastError, match="authority pto-spec has no mode"):
            one(1.0, mode, 1.0, semantics=SPEC)
    with pytest.raises(nc.UnsupportedCastError, match="authority device has no mode DEQS16"):
        one(1, "DEQS16", 1.0)


def test_vendor_operator() -> None:
    words = fixpipe.trans_quant_param([0.1, 2.0], [1000.0, -1.4])
    assert words.dtype == np.uint64
    assert [hex(w) for w in words] == ["0x5fe03dccc000", "0x7fe040000000"]
    assert np.array_equal(fixpipe.trans_quant_param([0.1, 2.0], [1000.0, -1.4], dtype="int64").view(np.uint64), words)
    assert fixpipe.trans_quant_param([0.3], round_mode=1)[0] == 0x40003E99A000
    assert fixpipe.trans_quant_param([0.3])[0] == 0x40003E998000
    # Words of either type go into the pipe.
    acc = np.int32([[100, 100]])
    signed = fixpipe.trans_quant_param([0.1, 2.0], dtype="int64")
    op = fixpipe.Fixpipe(mode="REQ8")
    assert nc.execute(op, {"acc": acc, "words": signed}).values.tolist() == [[10, 127]]
    refused: list[tuple[dict[str, object], type[Exception]]] = [
        ({"scale": [np.nan]}, nc.EncodingError),
        ({"scale": [1.0], "offset": [np.nan]}, nc.EncodingError),
        ({"scale": [1.0, 2.0], "offset": [1, 2, 3]}, nc.ShapeError),
        ({"scale": [1.0], "round_mode": 2}, nc.UnsupportedCastError),
        ({"scale": [1.0], "dtype": "int32"}, nc.UnknownNameError),
    ]
    for bad, error in refused:
        with pytest.raises(error):
            fixpipe.trans_quant_param(**bad)


def test_registers() -> None:
    alpha = fixpipe.ReluAlpha(0.1)
    assert (alpha.slope, alpha.word) == (0.0999755859375, 0x3DCCC000)
    assert fixpipe.ReluAlpha.from_word(0x3DCCDFFF) == alpha
    assert fixpipe.ReluAlpha(0.0).word == 0
    with pytest.raises(nc.EncodingError, match="post-stage slope"):
        fixpipe.ReluAlpha.from_word(1 << 45)
    clip = fixpipe.ClipRelu(6.0, "fp16")
    assert clip.word == 0x4600
    assert fixpipe.ClipRelu.from_word(0x4600, "fp16") == clip
    assert fixpipe.ClipRelu(110, "u8").word == 110
    with pytest.raises(nc.FormatError, match="is no fp16 value"):
        fixpipe.ClipRelu(0.1, "fp16")
    with pytest.raises(nc.FormatError, match="holds 16 bits"):
        fixpipe.ClipRelu(1.0, "fp32")
    with pytest.raises(nc.EncodingError, match="post-stage bound"):
        fixpipe.ClipRelu.from_word(1 << 16, "fp16")


# Activations and clips ---------------------------------------------------------------------------------------------


def test_leaky_and_parametric_slopes_replace_the_scale() -> None:
    acc = np.int32([[-100, 100, -8, 8]])
    leaky = fixpipe.run(acc, "REQ8", 0.5, relu=0.125, offset=1)
    assert leaky.values.tolist() == [[-11, 51, 0, 5]]  # -12.5 rounds to -12
    slopes = np.float32([0.25, 0.25, 0.0, 0.0])
    assert fixpipe.run(acc, "REQ8", 0.5, relu=slopes).values.tolist() == [[-25, 50, 0, 4]]
    half = fixpipe.run(acc, "DEQF16", 0.5, relu=slopes).codes
    assert half[0, 2] == 0  # a zero slope gives +0
    fp32 = fixpipe.run(acc.astype(np.float32), "FP32", relu=0.5)
    assert fp32.values.tolist() == [[-50, 100, -4, 8]]
    assert fixpipe.run(acc, "S32", relu=True).values.tolist() == [[0, 100, 0, 8]]
    late = nc.Semantics().override(fixpipe_relu_order="after-offset")
    assert fixpipe.run(acc, "REQ8", 0.5, relu=0.5, offset=2, semantics=late).values.tolist() == [[-24, 52, -1, 6]]


def test_clip_in_each_domain() -> None:
    """Product 100, offset +20, U8, bound 110."""
    given = {"offset": 20, "signed": False, "relu": True, "clip": 110.0}
    for domain, expected in (("destination", 110), ("fp32", 110), ("product", 120)):
        semantics = nc.Semantics().override(fixpipe_clip_domain=domain)
        assert one(100, "REQ8", 1.0, semantics=semantics, **given) == expected
    assert one(100, "DEQF16", 1.0, relu=True, clip=6.0) == 6
    assert one(5, "DEQF16", 1.0, relu=True, clip=6.0) == 5


# The seed's pipe ----------------------------------------------------------------------------------------------------


def test_bias_comes_first() -> None:
    """Product sum 100, bias 3, scale 2: 206."""
    acc = np.int32([[100, 100]])
    bias = np.int32([3, -3])
    assert fixpipe.run(acc, "S32", bias=bias, semantics=SEED).values.tolist() == [[103, 97]]
    assert fixpipe.run(acc, "DEQF16", 2.0, bias=bias, semantics=SEED).values.tolist() == [[206, 194]]
    with pytest.raises(nc.NarrowcastError, match="belongs in the accumulator"):
        fixpipe.run(acc, "DEQF16", 2.0, bias=bias)
    inside = nc.cube.mmad(np.int8([[10]]), np.int8([[10, 10]]), bias=bias)
    assert fixpipe.run(inside, "DEQF16", 2.0).values.tolist() == [[206, 194]]
    with pytest.raises(nc.FormatError, match=r"does not fit S32, first 2147483648 at \[0, 0\]"):
        fixpipe.run(np.int32([[2**31 - 1]]), "S32", bias=np.int32([1]), semantics=SEED)
    with pytest.raises(nc.FormatError, match="takes a int32 bias"):
        fixpipe.run(acc, "S32", bias=np.float32([1, 2]), semantics=SEED)
    with pytest.raises(nc.ShapeError, match=r"N = 2 columns need \(2,\)"):
        fixpipe.run(acc, "S32", bias=np.int32([1, 2, 3]), semantics=SEED)


def test_offset_is_added_in_fp32_before_the_one_rounding() -> None:
    assert one(1, "REQ8", 0.5, offset=1, semantics=SEED) == 2  # 1.5 rounds to 2; the device gives 0 + 1
    assert one(1, "REQ8", 0.5, offset=1) == 1
    assert one(300, "REQ8", 1.0, offset=-200, semantics=SEED) == 100  # no s9
    assert one(4, "DEQF16", 0.5, offset=3, semantics=SEED) == 5.0
    assert one(4, "DEQF16", 0.5, offset=3) == 2.0


def test_relu_and_clip_work_on_the_scaled_sum() -> None:
    assert one(-5, "REQ8", 2.0, offset=12, relu=True, semantics=SEED) == 2
    assert one(-5, "REQ8", 2.0, offset=12, relu=True) == 12
    assert one(100, "REQ8", 1.0, offset=20, relu=True, clip=110.4, semantics=SEED) == 110


# Switches ----------------------------------------------------------------------------------------------------------


def test_every_switch_is_declared_by_some_mode() -> None:
    declared = {
        name
        for row in fixpipe_modes.values()
        for activation in (False, True)
        for clip in (False, True)
        for name in switches_of(row, activation, clip)
    }
    assert {row.name for row in SWITCHES} <= declared


# switch: mode, accumulator, parameter, settings, and what its values give, in the row's order
AUDITED = {
    "fixpipe_s32_to_fp32": ("QS322BF16", 16973823, 1.0, {}),
    "fixpipe_product": ("QF322B8_PRE", 4.9951219558715820, 0.50048828125, {}),
    "fixpipe_relu_order": ("REQ8", -5, 2.0, {"offset": 10, "relu": True}),
    "fixpipe_s9": ("REQ8", 300, 1.0, {"offset": -200}),
    "fixpipe_offset_sign": ("REQ8", 10, 1.5, {"offset": -3}),
    "fixpipe_scale_bits": ("REQ8", 15, np.uint64([0x40003DCCCCCD]), {}),
    "fixpipe_s4_offset": ("REQ4", 5, 1.0, {"offset": 31}),
    "fixpipe_integer_overflow": ("REQ8", 140, 1.0, {}),
    "fixpipe_clip_domain": ("REQ8", 100, 1.0, {"offset": 20, "signed": False, "relu": True, "clip": 110.0}),
    "fixpipe_hif8_rounding": ("QF32_2_HiF8", -1.0625, 1.0, {}),
    "fixpipe_zero_sign": ("QF322F16", -1e-10, 1.0, {}),
    "fixpipe_integer_rounding": ("REQ8", 5, 0.5, {}),
    "fixpipe_float_offset": ("DEQF16", 4, 0.5, {"offset": 3}),
    "fixpipe_float_rounding": ("DEQF16", 1, 0.75, {}),
    "fixpipe_float_saturation": ("QF32_2_BF16", 3.4028235e38, 1.0, {}),
    "hif8_hybrid_compare": ("QF32_2_HiF8_HYBRID", 16.0, 1.0, {}),
    "fixpipe_word": ("REQ8", 1000, np.uint64([0x4012_3F800000]), {}),
    "nd_tail": ("REQ8", 1, 1.0, {}),
}


@pytest.mark.parametrize("switch", AUDITED)
def test_audit_finds_the_switch(switch: str) -> None:
    """Data made to be touched: the audit names the switch, both results and both sources."""
    mode, acc, param, settings = AUDITED[switch]
    fields = dict(settings)
    offset, signed = fields.pop("offset", 0), fields.pop("signed", True)
    relu = "relu" if fields.pop("relu", False) else None
    op = fixpipe.Fixpipe(mode=mode, activation=relu, **fields)
    kind = {"s32": np.int32, "fp32": np.float32}[fixpipe_modes[mode].accumulator]
    words = parameter_words(op, param, offset, signed)
    found = nc.audit(op, {"acc": np.array([[acc, acc]], dtype=kind), "words": words})
    entries = [e for e in found.entries if e.switch == switch]
    assert entries, str(found)
    assert entries[0].chosen_source
    assert entries[0].alternative_source
    assert str(entries[0]).startswith(switch)


def test_audit_of_the_remaining_switches() -> None:
    """Bias place, parameter axis, shift, E4M3 overflow: each needs its own authority or control bit."""
    acc = np.int32([[10, 10], [10, 10]])
    words = fixpipe.quant_words([1.0, 2.0], 0, True)
    op = fixpipe.Fixpipe(mode="REQ8", n=2)
    by_row = nc.audit(op, {"acc": acc, "words": words})
    assert "fixpipe_parameter_axis" in {e.switch for e in by_row.entries}
    shift = nc.audit(
        fixpipe.Fixpipe(mode="SHIFTS322S16"), {"acc": np.int32([[2**31 - 1]]), "words": np.uint64([0])}, SPEC
    )
    assert "fixpipe_shift" in {e.switch for e in shift.entries}
    e4m3 = nc.audit(
        fixpipe.Fixpipe(mode="QF32_2_E4M3"), {"acc": np.float32([[450]]), "words": np.uint64([0x3F800000])},
        control=nc.Control(ctrl48=1),
    )  # fmt: skip
    assert "e4m3_overflow" in {e.switch for e in e4m3.entries}
    bias = nc.audit(fixpipe.Fixpipe(mode="S32"), {"acc": acc[:, :1], "bias": np.int32([1])}, SEED)
    assert any(text.startswith("fixpipe_bias=accumulator") for text in bias.refused)


def test_audit_is_clean_where_nothing_is_open() -> None:
    acc = np.arange(-64, 64, dtype=np.int32).reshape(4, 32)
    found = nc.audit(fixpipe.Fixpipe(mode="REQ8"), {"acc": acc, "words": np.uint64([QuantParam(1.0).word])})
    assert found.clean
    assert str(found).startswith("No open question touches your data")


def test_zero_scale_is_audited() -> None:
    found = nc.audit(fixpipe.Fixpipe(mode="REQ8"), {"acc": np.int32([[-1] * 16]), "words": np.uint64([0x40E000000000])})
    assert any("fixpipe_word=pto-spec" in text and "reserved" in text for text in found.refused)


@pytest.mark.parametrize("mode", [r.name for r in fixpipe_modes.values() if "device" in r.authorities])
def test_names_of_a_mode(mode: str) -> None:
    """Every vendor spelling finds the row, and a row has a purpose, a source and an accumulator."""
    row = fixpipe_modes[mode]
    for alias in row.aliases:
        assert fixpipe_modes[alias] is row
    if not row.bypass and row.vendor:
        assert fixpipe_modes[row.vendor] is row
    assert row.purpose
    assert row.source
    assert row.accumulator in ("s32", "fp32")
    assert all(nc.formats[target] for target in row.targets)


def test_modes_of_the_seed_are_all_there() -> None:
    listed = {
        *("REQ8", "REQ4", "DEQF16", "QS322BF16", "QF32_2_B8", "QF32_2_S4", "QF32_2_HiF8", "QF32_2_E4M3"),
        *("QF32_2_E5M2", "QF32_2_BF16", "QF322F16", "FP32", "S32"),
    }
    assert {r.name for r in fixpipe_modes.values() if r.in_seed} == listed
    for mode in listed:
        acc = np.ones((2, 16), dtype={"s32": np.int32, "fp32": np.float32}[fixpipe_modes[mode].accumulator])
        scaled = fixpipe_modes[mode].scaled
        for semantics in (nc.Semantics(), SEED):
            assert (fixpipe.run(acc, mode, 1.0 if scaled else None, semantics=semantics).values == 1).all()


def test_e5m2_follows_the_control_bits_of_e4m3() -> None:
    acc = np.float32([[1e6, -np.inf, np.nan, 1.1]])
    assert [hex(c) for c in fixpipe.run(acc, "QF32_2_E5M2", 1.0).codes[0]] == ["0x7b", "0xfb", "0x0", "0x3c"]
    kept = fixpipe.run(acc, "QF32_2_E5M2", 1.0, control=nc.Control(ctrl48=1)).codes[0]
    assert [hex(c) for c in kept] == ["0x7c", "0xfc", "0x7e", "0x3c"]
    nan = fixpipe.run(acc, "QF32_2_E5M2", 1.0, control=nc.Control(ctrl50=1)).codes[0]
    assert nan[2] == 0x7E


def test_words_of_the_operator_go_in_as_they_come() -> None:
    """Its int64 output holds the same bits, and is not an array of scales."""
    acc = np.arange(-8, 8, dtype=np.int32).reshape(1, 16)
    words = fixpipe.trans_quant_param([0.5] * 16, [3])
    signed = fixpipe.trans_quant_param([0.5] * 16, [3], dtype="int64")
    assert np.array_equal(fixpipe.run(acc, "REQ8", signed).codes, fixpipe.run(acc, "REQ8", words).codes)


def test_an_offset_beside_a_word_is_refused() -> None:
    acc = np.ones((1, 16), np.int32)
    for param in (QuantParam(1.0), np.uint64([QuantParam(1.0).word])):
        with pytest.raises(nc.errors.FormatError, match="its own offset"):
            fixpipe.run(acc, "REQ8", param, offset=9)
    with pytest.raises(nc.errors.EncodingError, match="300"):
        fixpipe.quant_words([1.0], [300], True)


def test_bit_46_is_left_clear_where_it_means_nothing() -> None:
    assert int(parameter_words(fixpipe.Fixpipe(mode="DEQF16"), 0.5)[0]) == 0x3F000000
    assert int(parameter_words(fixpipe.Fixpipe(mode="REQ8"), 0.5)[0]) == 0x4000_3F000000


def test_audit_counts_the_dummy_columns_alone() -> None:
    """One more column group in the last row: the results themselves stay."""
    op, words = fixpipe.Fixpipe(mode="REQ8"), np.uint64([QuantParam(1.0).word])
    entry = nc.audit(op, {"acc": np.ones((3, 40), np.int32), "words": words}).entries[0]
    assert (entry.switch, entry.changed, entry.total, entry.first_index) == ("nd_tail", 8, 128, (120,))
    assert (entry.chosen_result, entry.alternative_result) == ("nothing", "0xa5")


def test_journey_under_the_seed_shows_every_stage() -> None:
    """A floating-point result gets the offset there, and a slope acts after it."""
    op = fixpipe.Fixpipe(mode="DEQF16", activation="leaky")
    inputs = {"acc": np.full((1, 16), -10, np.int32), "words": np.uint64([QuantParam(1.0, 4).word]), "alpha": [0.5]}
    steps = {s.stage: s.result for s in fixpipe.journey(op, inputs, 0, 0, SEED).steps}
    assert (steps["offset"], steps["ReLU"]) == ("-6", "-3")
    assert steps["conversion"].endswith("= -3")


def test_dummy_columns_go_through_relu() -> None:
    """What the array holds beyond N takes the same way as the rest."""
    acc = np.full((1, 32), -5, np.int32)
    store = fixpipe.run(
        acc, "REQ8", QuantParam(1.0), relu=True, n=20, semantics=nc.Semantics().override(nd_tail="dummy")
    )
    assert store.storage[0].tolist() == [0] * 32
