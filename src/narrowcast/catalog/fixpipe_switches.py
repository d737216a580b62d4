"""Disputed points of the Fixpipe."""

from narrowcast.schema import Claim, Provenance, SwitchRow

_DOC = Provenance.DOCUMENTED
_SIM = Provenance.SIMULATED
_ASSUMED = Provenance.ASSUMED


def _claim(value: str, means: str, provenance: Provenance, source: str) -> Claim:
    return Claim(value=value, means=means, provenance=provenance, source=source)


ROWS: tuple[SwitchRow, ...] = (
    SwitchRow(
        name="fixpipe_bias",
        question="Where is the bias added?",
        claims=(
            _claim(
                "accumulator", "Mmad starts from it; the pipe adds nothing", _DOC, "asc-devkit:Mmad; pto-isa:mad-bias"
            ),
            _claim("pipe", "first stage of the pipe, before the scale", _DOC, "seed:2.3"),
        ),
        defaults={"device": "accumulator", "seed": "pipe"},
        conflict=True,
        example="product sum 100, bias 3 given to the pipe, scale 2: refused, or 206",
    ),
    SwitchRow(
        name="fixpipe_word",
        question="Which fields does a parameter word have?",
        claims=(
            _claim(
                "3510",
                "scale 31:13, signed offset 45:37, sign flag 46; the rest is ignored",
                _DOC,
                "asc-devkit:on-the-fly quantization, table 2",
            ),
            _claim(
                "2201",
                "as 3510, with a right shift N - 1 in 35:32 that REQ8 applies when bit 36 is set",
                _DOC,
                "asc-devkit:on-the-fly quantization, table 1",
            ),
            _claim(
                "pto-spec",
                "positive scale 31:13, an offset as wide as the intermediate, no sign flag; other bits must be 0",
                _SIM,
                "pto-spec:matrix-postprocess",
            ),
        ),
        defaults={"device": "3510", "device:2201": "2201", "pto-spec": "pto-spec"},
        conflict=True,
        example="word 0x00004012_3F800000, acc 1000, shift 3 enabled: 127 after 255, or 125",
    ),
    SwitchRow(
        name="fixpipe_s32_to_fp32",
        question="How does an S32 accumulator become FP32 before the multiply?",
        claims=(
            _claim(
                "rne", "rounded to nearest, ties to even", _ASSUMED, "asc-devkit:example scripts convert to float32"
            ),
            _claim("rz", "rounded toward zero", _ASSUMED, "no source excludes it"),
            _claim("exact", "not rounded: the product is exact", _SIM, "pto-spec:matrix-postprocess"),
        ),
        defaults={"device": "rne", "pto-spec": "exact"},
        conflict=True,
        example="S32 16842753 * 1 -> BF16: 0x4B80 or 0x4B81",
    ),
    SwitchRow(
        name="fixpipe_product",
        question="Is the product rounded to FP32 before it is converted?",
        claims=(
            _claim(
                "fp32", "rounded to nearest, ties to even", _ASSUMED, "asc-devkit:example scripts multiply in float32"
            ),
            _claim("exact", "the exact product is converted once", _SIM, "pto-spec:matrix-postprocess"),
        ),
        defaults={"device": "fp32", "pto-spec": "exact"},
        conflict=True,
        example="FP32 0x409FD80A * 0x3F002000 -> S8: 2 or 3",
    ),
    SwitchRow(
        name="fixpipe_relu_order",
        question="Does ReLU act on the accumulator's sign or on the result?",
        claims=(
            _claim(
                "multiplier",
                "a negative accumulator selects multiplier 0, before the offset",
                _DOC,
                "asc-devkit:quantization with ReLU; example scripts",
            ),
            _claim(
                "after-offset", "max(0, scale * data + offset)", _DOC, "seed:2.3; pto-isa:micro-ISA; pto-isa:cpu-sim"
            ),
        ),
        defaults={"device": "multiplier", "seed": "after-offset", "pto-isa:cpu-sim": "after-offset"},
        conflict=True,
        example="acc -5, scale 2, offset 10, ReLU: 10 (clamped at real zero) or 0 (clamped at code zero)",
    ),
    SwitchRow(
        name="fixpipe_s9",
        question="Is the rounded product clamped to nine signed bits before the offset?",
        claims=(
            _claim("clamp", "to -256..255", _DOC, "asc-devkit:example scripts; pto-spec"),
            _claim("none", "the offset is added in FP32, then one rounding", _DOC, "seed:2.3; pto-isa:cpu-sim"),
        ),
        defaults={"device": "clamp", "seed": "none", "pto-isa:cpu-sim": "none"},
        conflict=True,
        example="acc 300, scale 1, offset -200: 55 or 100",
    ),
    SwitchRow(
        name="fixpipe_offset_sign",
        question="Is the nine-bit offset signed?",
        claims=(
            _claim("signed", "-256..255", _DOC, "aclnnTransQuantParam; register name s9"),
            _claim("unsigned", "0..511", _DOC, "asc-devkit:example scripts; pto-isa:cpu-sim"),
        ),
        defaults={"device": "signed", "pto-isa": "unsigned"},
        conflict=True,
        example="field 0x1FD: -3 or 509",
    ),
    SwitchRow(
        name="fixpipe_scale_bits",
        question="How many bits of the scale does the pipe read?",
        claims=(
            _claim("fp19", "bits 31:13", _DOC, "asc-devkit:on-the-fly quantization"),
            _claim("fp32", "all 32", _SIM, "pto-isa:cpu-sim, scalar modes; NumPy goldens that skip the truncation"),
            _claim(
                "cpu-sim",
                "bits 31:13 for VREQ8, VDEQF16 and VQF322B8, a zero exponent read as 2**-127; all 32 otherwise",
                _SIM,
                "pto-isa:cpu-sim",
            ),
        ),
        defaults={"device": "fp19", "pto-isa:cpu-sim": "cpu-sim"},
        conflict=True,
        example="acc 15, scale 0.1 -> S8: 1 or 2",
    ),
    SwitchRow(
        name="fixpipe_s4_offset",
        question="How wide are the offset and the intermediate of the S4 modes?",
        claims=(
            _claim("s9", "nine bits at 45:37, clamped to -256..255", _DOC, "asc-devkit:newer C-API pages"),
            _claim("s5", "five bits at 41:37, clamped to -16..15", _SIM, "pto-spec:matrix-postprocess"),
        ),
        defaults={"device": "s9", "pto-spec": "s5"},
        conflict=True,
        example="word 0x3E03F800000, acc 5: 7 or 4",
    ),
    SwitchRow(
        name="fixpipe_integer_overflow",
        question="What happens to an integer result that does not fit?",
        claims=(
            _claim("saturate", "clamped, whatever the control bits say", _DOC, "asc-devkit:on-the-fly quantization"),
            _claim("wrap", "low bits kept when Sat = 0", _SIM, "pto-spec:matrix-postprocess"),
        ),
        defaults={"device": "saturate"},
        conflict=True,
        example="140 -> S8: 127 or -116",
    ),
    SwitchRow(
        name="fixpipe_clip_domain",
        question="Where does clip-ReLU apply its upper bound?",
        claims=(
            _claim(
                "destination", "min(bound, result), in the destination format", _DOC, "asc-devkit:SetFixPipeClipRelu"
            ),
            _claim("fp32", "on scale * data + offset, in FP32, before conversion", _DOC, "seed:2.3"),
            _claim("product", "on the FP32 product, before the offset", _ASSUMED, "another reading of seed:2.3"),
        ),
        defaults={"device": "destination", "seed": "fp32"},
        conflict=True,
        example="product 100, offset +20, U8, bound 110: 110 (either of the first two) or 120",
    ),
    SwitchRow(
        name="fixpipe_hif8_rounding",
        question="How does the pipe round to HiF8?",
        claims=(
            _claim("mode", "ties away, or hybrid, as the mode says", _DOC, "asc-devkit:on-the-fly quantization"),
            _claim("half-up", "ties toward plus infinity; above 32768 overflows", _SIM, "pto-spec RHB"),
        ),
        defaults={"device": "mode", "pto-spec": "half-up"},
        conflict=True,
        example="FP32 -1.0625: 0x89 or 0x88",
    ),
    SwitchRow(
        name="fixpipe_zero_sign",
        question="Which sign has a negative result that rounds to zero?",
        claims=(
            _claim("ieee", "minus, where the format has a -0", _ASSUMED, "IEEE 754"),
            _claim("positive", "plus", _SIM, "pto-spec:matrix-postprocess"),
        ),
        defaults={"device": "ieee", "pto-spec": "positive"},
        conflict=True,
        example="FP32 -1e-10 -> FP16: 0x8000 or 0x0000",
    ),
    SwitchRow(
        name="fixpipe_integer_rounding",
        question="How does the pipe round a product to an integer?",
        claims=(
            _claim("rn", "ties to even", _DOC, "asc-devkit:example scripts; pto-spec, its default"),
            _claim("rna", "ties away from zero", _ASSUMED, "pto-spec: the mode is selectable there"),
        ),
        defaults={"device": "rn"},
        conflict=False,
        example="acc 5, scale 0.5 -> S8: 2 or 3",
    ),
    SwitchRow(
        name="fixpipe_float_offset",
        question="Does a floating-point result get the word's offset?",
        claims=(
            _claim("ignored", "the field is live for 8-bit and 4-bit integers only", _DOC, "asc-devkit:table 2"),
            _claim("added", "scale * data + offset for every result", _DOC, "seed:2.3"),
        ),
        defaults={"device": "ignored", "seed": "added"},
        conflict=True,
        example="DEQF16, acc 4, scale 0.5, offset field 3: 2.0 or 5.0",
    ),
    SwitchRow(
        name="fixpipe_float_rounding",
        question="Is a product rounded to an integer before it becomes FP16?",
        claims=(
            _claim("once", "no: one conversion of the product", _DOC, "asc-devkit:on-the-fly quantization"),
            _claim("integer-first", "yes", _SIM, "asc-devkit:example scripts; pto-isa:goldens of 3510"),
        ),
        defaults={"device": "once"},
        conflict=True,
        example="DEQF16, acc 1, scale 0.75: 0x3A00 (0.75) or 0x3C00 (1.0)",
    ),
    SwitchRow(
        name="fixpipe_float_saturation",
        question="What decides overflow and NaN of an FP16 or BF16 result?",
        claims=(
            _claim("ctrl48", "CTRL[48]: 0 saturates, 1 keeps infinity and NaN", _DOC, "asc-devkit:Fixpipe L0C to GM"),
            _claim("always", "DEQF16 and F322BF16 always saturate", _DOC, "asc-devkit:older C-API pages"),
            _claim(
                "cpu-sim",
                "DEQF16 saturates; scaled FP32 modes clamp finite values, infinity and NaN only with bit 48 set; "
                "BF16 clamps at the FP32 maximum; the others never",
                _SIM,
                "pto-isa:cpu-sim",
            ),
        ),
        defaults={"device": "ctrl48", "pto-isa:cpu-sim": "cpu-sim"},
        conflict=True,
        example="F322BF16 of the FP32 maximum: 0x7F7F or 0x7F80",
    ),
    SwitchRow(
        name="fixpipe_shift",
        question="How does a shifted S32 accumulator become S16?",
        claims=(
            _claim("saturate", "shifted, then clamped", _SIM, "pto-spec:matrix-postprocess; pto-isa:goldens"),
            _claim("wrap", "shifted, then its low 16 bits kept", _SIM, "pto-isa:cpu-sim"),
        ),
        defaults={"device": "saturate", "pto-isa:cpu-sim": "wrap"},
        conflict=True,
        example="0x7FFFFFFF >> 1: 32767 or -1",
    ),
    SwitchRow(
        name="fixpipe_parameter_axis",
        question="Does parameter word i belong to column i or to row i?",
        claims=(
            _claim("column", "to column i", _DOC, "asc-devkit:on-the-fly quantization; pto-isa:cpu-sim TEXTRACT"),
            _claim("row", "to row i: TSTORE of a column-major tile", _SIM, "pto-isa:cpu-sim TSTORE"),
        ),
        defaults={"device": "column", "pto-isa:cpu-sim": "row"},
        conflict=True,
        example="a 2 x 2 accumulator, words of scale 1 and 2: columns or rows are scaled",
    ),
    SwitchRow(
        name="nd_tail",
        question="Does NZ2ND or NZ2DN write the dummy columns of the last group of 16?",
        claims=(
            _claim("trim", "only n columns are written", _DOC, "asc-devkit:NZ2ND, loop guard"),
            _claim("dummy", "row m writes ceil16(n) columns from m * stride", _DOC, "seed:5.1#8"),
        ),
        defaults={"device": "trim", "seed": "dummy"},
        conflict=True,
        example="n = 20: 20 or 32 columns a row",
    ),
)
