"""Disputed points of block scaling; ``narrowcast.catalog.switches`` lists them with the others."""

from narrowcast.schema import Claim, Provenance, SwitchRow

_DOC = Provenance.DOCUMENTED
_SIM = Provenance.SIMULATED
_ASSUMED = Provenance.ASSUMED

ROWS: tuple[SwitchRow, ...] = (
    SwitchRow(
        name="mx_tiny_block",
        question="What does DynamicMxQuant do with a block whose exponent field is at most emax (scale byte 0)?",
        claims=(
            Claim(
                value="flush",
                means="the multiplier is 0: every element becomes a signed zero",
                provenance=_DOC,
                source="ops-nn:dynamic_mx_quant_tail_axis, the kernel",
            ),
            Claim(
                value="keep",
                means="byte 0 multiplies by 2**127 and the elements survive",
                provenance=_DOC,
                source="OCP MX v1.0, as gfloat, microxcaling and pto-isa have it",
            ),
        ),
        defaults={"device": "flush"},
        conflict=True,
        example="cann-0 e4m3, amax 1.5 * 2**-119: codes 0 or 124",
    ),
    SwitchRow(
        name="mx_zero_low_bound",
        question="Which byte has an all-zero block under scaleAlg 1 with a maxLowBound?",
        claims=(
            Claim(
                value="zero",
                means="0: the kernel tests for zero first",
                provenance=_DOC,
                source="ops-nn:dynamic_mx_quant_tail_axis_fp8, the kernel",
            ),
            Claim(
                value="bound",
                means="the byte of maxLowBound",
                provenance=_DOC,
                source="ops-nn:DynamicMxQuantV3, the formula's text",
            ),
        ),
        defaults={"device": "zero"},
        conflict=True,
        example="cann-1 e4m3, max_low_bound 0.5, zero block: byte 0 or 118",
    ),
    SwitchRow(
        name="mx_infinite_block",
        question="Which byte does TQUANT's OCP mode give a block with an infinity?",
        claims=(
            Claim(
                value="number",
                means="infinity counts as exponent field 255: 247 for e4m3, 253 for e2m1",
                provenance=_DOC,
                source="pto-isa:a5/TQuant.hpp",
            ),
            Claim(
                value="nan",
                means="255",
                provenance=_DOC,
                source="pto-isa:tquant_dn/gen_data.py, fp32",
            ),
        ),
        defaults={"device": "number"},
        conflict=True,
        example="pto-ocp e4m3, one infinity: byte 247 or 255",
    ),
    SwitchRow(
        name="mx_nan_maximum",
        question="Does a NaN enter the block maximum of TQUANT?",
        claims=(
            Claim(
                value="propagate",
                means="a NaN makes the whole block NaN (byte 255)",
                provenance=_DOC,
                source="pto-isa:a5 integer maximum; tquant/gen_data.py",
            ),
            Claim(
                value="ignore",
                means="the maximum is taken over the other elements",
                provenance=_ASSUMED,
                source="a numeric vector maximum may drop NaN; no source says",
            ),
            Claim(
                value="simulator",
                means="ignored for e4m3; for e2m1 in OCP mode a NaN is cut to bf16 first and may look like infinity",
                provenance=_SIM,
                source="pto-isa:cpu/TQuant.hpp",
            ),
        ),
        defaults={"device": "propagate", "pto-isa:cpu-sim": "simulator"},
        conflict=True,
        example="pto-ocp e4m3, 1.0 and one NaN: byte 255, or 119",
    ),
    SwitchRow(
        name="mx_zero_sign",
        question="Does TQUANT keep the sign of an e4m3 zero?",
        claims=(
            Claim(value="keep", means="code 0x80", provenance=_DOC, source="pto-isa:a5/TQuant.hpp, ROUND_R cast"),
            Claim(
                value="simulator",
                means="OCP mode: -0 and negatives down to -2**-10 give 0x00; NV mode: only -2**-10 itself does",
                provenance=_SIM,
                source="pto-isa:cpu/TQuant.hpp",
            ),
        ),
        defaults={"device": "keep", "pto-isa:cpu-sim": "simulator"},
        conflict=True,
        example="pto-ocp e4m3, -0: 0x80 or 0x00",
    ),
    SwitchRow(
        name="mx_fp8_nan",
        question="Which code does TQUANT write for an e4m3 element whose scaled value is NaN?",
        claims=(
            Claim(
                value="control",
                means="0x00, or 0x7F when CTRL[50] is set",
                provenance=_DOC,
                source="asc-devkit:Cast; asc-devkit:SetCtrlSpr",
            ),
            Claim(value="nan", means="0x7F", provenance=_DOC, source="pto-isa:tquant/gen_data.py"),
        ),
        defaults={"device": "control", "pto-isa": "nan"},
        conflict=True,
        example="pto-ocp e4m3, one NaN in the block: 0x00 or 0x7F",
    ),
    SwitchRow(
        name="mx_fp4_nan",
        question="Which FP4 code has an element whose scaled value is NaN?",
        claims=(
            Claim(value="zero", means="0x0", provenance=_DOC, source="asc-devkit:Cast"),
            Claim(value="max", means="0x7", provenance=_DOC, source="pto-isa:tquant/gen_data.py"),
        ),
        defaults={"device": "zero", "pto-isa": "max"},
        conflict=True,
        example="cann-0 e2m1, one NaN in the block: 0x0 or 0x7",
    ),
    SwitchRow(
        name="mx_subnormal_product",
        question="Does the multiply before an FP4 cast toward -inf keep subnormal products?",
        claims=(
            Claim(
                value="keep",
                means="the product is rounded to bf16 (fp32 for other sources) with gradual underflow",
                provenance=_ASSUMED,
                source="design rule: subnormals are never flushed",
            ),
            Claim(
                value="flush",
                means="a product below 2**-126 becomes a signed zero",
                provenance=_ASSUMED,
                source="no source says either",
            ),
        ),
        defaults={"device": "keep"},
        conflict=False,
        example="cann-0 e2m1 rd, scaled value -2**-128: code 9 or 8",
    ),
)
