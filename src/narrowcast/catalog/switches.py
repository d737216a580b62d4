"""Disputed points. Each row keeps every claim; a ``Semantics`` selects one, and results record which."""

from narrowcast.catalog import Catalog, cube, fixpipe_switches, mx_switches, tile_switches
from narrowcast.schema import Claim, Provenance, SwitchRow

_DOC = Provenance.DOCUMENTED
_ASSUMED = Provenance.ASSUMED

ROWS: tuple[SwitchRow, ...] = (
    SwitchRow(
        name="hif8_hybrid_compare",
        question="Does hybrid rounding go up when the discarded bits equal the threshold?",
        claims=(
            Claim(
                value="ge",
                means="up iff discarded >= threshold, literally: an exact value with zero low bits moves up",
                provenance=_DOC,
                source="asc-devkit:Reg Cast page; asc-devkit:matmul_fp8 example converter",
            ),
            Claim(
                value="gt",
                means="up iff discarded > threshold",
                provenance=_ASSUMED,
                source="the page's prose calls the mode a random rounding, which keeps exact values",
            ),
            Claim(
                value="ge-nonzero",
                means="up iff discarded >= threshold and the discarded bits are not all zero",
                provenance=_ASSUMED,
                source="as `ge`, with exact values kept",
            ),
        ),
        defaults={"device": "ge"},
        conflict=True,
        example="fp32 16.0 -> hif8 rh: 0x41 (20) with ge, 0x40 (16) with gt and ge-nonzero",
    ),
    SwitchRow(
        name="e4m3_overflow",
        question="Is E4M3 overflow judged after rounding or on the source value?",
        claims=(
            Claim(
                value="after-rounding",
                means="448 < |x| <= 464 rounds back to 448",
                provenance=_ASSUMED,
                source="IEEE practice; ml_dtypes",
            ),
            Claim(
                value="before-rounding",
                means="every |x| > 448 overflows: NaN, or 448 when saturating",
                provenance=_ASSUMED,
                source="pto-spec; literal wording of asc-devkit:Reg Cast",
            ),
        ),
        defaults={"device": "after-rounding", "pto-spec": "before-rounding"},
        conflict=True,
        example="fp32 450 -> e4m3, not saturating: 0x7E (448) or 0x7F (NaN)",
    ),
    SwitchRow(
        name="directed_overflow",
        question="What does a directed mode (rd, ru, rz, ro) give far above the largest finite value?",
        claims=(
            Claim(
                value="range-first",
                means="an exponent above the format's gives infinity in every mode",
                provenance=_ASSUMED,
                source="fits every consistent asc-devkit:SIMT page",
            ),
            Claim(
                value="ieee",
                means="rz, ro and the mode pointing inward give the largest finite value",
                provenance=_ASSUMED,
                source="IEEE 754-2019 7.4",
            ),
        ),
        defaults={"device": "range-first"},
        conflict=True,
        example="fp32 65536 -> fp16 rz, not saturating: 0x7C00 or 0x7BFF",
    ),
    SwitchRow(
        name="integral_special",
        question="Do fp16 and bf16 ceil/floor/round/rint/trunc saturate inf and NaN when CTRL[48] = 0?",
        claims=(
            Claim(
                value="saturate",
                means="inf becomes the largest finite value, NaN becomes 0",
                provenance=_DOC,
                source="asc-devkit:SIMT half2half pages",
            ),
            Claim(
                value="keep",
                means="inf and NaN pass unchanged",
                provenance=_DOC,
                source="asc-devkit:Reg boundary values, table 33",
            ),
        ),
        defaults={"device": "saturate"},
        conflict=True,
        example="fp16 NaN, rint, CTRL[48] = 0: 0 or NaN",
    ),
    SwitchRow(
        name="integral_zero_sign",
        question="Which sign has a zero result of ceil/floor/round/rint/trunc?",
        claims=(
            Claim(value="ieee", means="the source's sign: rint(-0.3) = -0", provenance=_ASSUMED, source="IEEE 754"),
            Claim(
                value="positive",
                means="+0 always",
                provenance=_DOC,
                source="asc-devkit:Reg boundary values; MemBV for 2201 float -> float",
            ),
        ),
        defaults={"device": "ieee", "device:2201": "positive", "pto-isa": "ieee"},
        conflict=True,
        example="fp32 -0.3, rint: 0x80000000 or 0x00000000",
    ),
    SwitchRow(
        name="half_bf16_special",
        question="Do fp16 -> bf16 and hif8 -> fp16 saturate inf and NaN when CTRL[48] = 0?",
        claims=(
            Claim(
                value="saturate",
                means="inf becomes the largest finite value, NaN becomes 0, whatever CTRL[60] is",
                provenance=_DOC,
                source="asc-devkit:SIMT conversion overview, table 4",
            ),
            Claim(
                value="keep",
                means="inf and NaN pass unchanged",
                provenance=_DOC,
                source="asc-devkit:Reg boundary values, table 34",
            ),
        ),
        defaults={"device": "saturate"},
        conflict=True,
        example="fp16 inf -> bf16, CTRL[48] = 0: 0x7F7F or 0x7F80",
    ),
    SwitchRow(
        name="fp4_zero_sign",
        question="Does a negative value that rounds to zero keep its sign in FP4?",
        claims=(
            Claim(value="keep", means="code 0x8", provenance=_ASSUMED, source="IEEE practice; ml_dtypes, en_dtypes"),
            Claim(value="positive", means="code 0x0", provenance=_ASSUMED, source="no source says either"),
        ),
        defaults={"device": "keep"},
        conflict=False,
        example="bf16 -0.0625 -> e2m1 rn: 0x8 or 0x0",
    ),
    SwitchRow(
        name="e8m0_zero",
        question="What is the bf16 value of the E8M0 code 0 in a Reg Cast?",
        claims=(
            Claim(
                value="zero",
                means="+0.0: the code is shifted into the exponent field",
                provenance=_DOC,
                source="asc-devkit:Reg Cast implementation",
            ),
            Claim(value="power", means="2^-127 (bf16 0x0040)", provenance=_DOC, source="OCP MX v1.0; pto-spec:e8m0"),
        ),
        defaults={"device": "zero", "pto-spec": "power"},
        conflict=True,
        example="e8m0 0x00 -> bf16: 0x0000 or 0x0040",
    ),
    SwitchRow(
        name="e8m0_infinity",
        question="Which E8M0 code does bf16 infinity give in a Reg Cast?",
        claims=(
            Claim(
                value="nan", means="0xFF", provenance=_DOC, source="asc-devkit:Reg Cast implementation, boundary values"
            ),
            Claim(value="max", means="0xFE", provenance=_DOC, source="asc-devkit:Reg Cast page, prose"),
        ),
        defaults={"device": "nan"},
        conflict=True,
        example="bf16 inf -> e8m0: 0xFF or 0xFE",
    ),
    SwitchRow(
        name="half_s16_wrap",
        question="What does fp16 -> s16 give for +-65504 when not saturating?",
        claims=(
            Claim(
                value="low-bits",
                means="the low 16 bits of the integer: -32 and 32",
                provenance=_DOC,
                source="asc-devkit:rounding_mode, general truncation rule",
            ),
            Claim(
                value="limits",
                means="32767 and -32768",
                provenance=_DOC,
                source="asc-devkit:Reg boundary values, that row alone",
            ),
        ),
        defaults={"device": "low-bits"},
        conflict=True,
        example="fp16 65504 -> s16 rn, CTRL[60] = 1, CTRL[59] = 1: -32 or 32767",
    ),
    SwitchRow(
        name="cast_none",
        question="Does the Basic Cast of chip 3510 take CAST_NONE for fp16 -> s4/s8/u8, s16 -> fp16 and s32 -> fp32?",
        claims=(
            Claim(
                value="refuse",
                means="the table of legal modes omits it",
                provenance=_DOC,
                source="asc-devkit:Memory Cast, table of chip 3510",
            ),
            Claim(
                value="rint",
                means="it acts as CAST_RINT",
                provenance=Provenance.IMPLEMENTATION_DEFINED,
                source="asc-devkit:Memory Cast implementation; the prose of CAST_NONE",
            ),
        ),
        defaults={"device": "refuse"},
        conflict=True,
        example="fp16 2.5 -> s8, CAST_NONE: refused, or 2",
    ),
    SwitchRow(
        name="integer_saturation_2201",
        question="Does CTRL[59] = 1 make integer results of chip 2201 keep their low bits?",
        claims=(
            Claim(
                value="ctrl59",
                means="yes, as the control register's page says",
                provenance=_DOC,
                source="asc-devkit:SetCtrlSpr, tables 4-5",
            ),
            Claim(
                value="always",
                means="no, integer results always saturate",
                provenance=_DOC,
                source="asc-devkit:Memory boundary values, both columns",
            ),
        ),
        defaults={"device": "ctrl59"},
        conflict=True,
        example="chip 2201, fp16 200 -> s8, CTRL[59] = 1: -56 or 127",
    ),
    SwitchRow(
        name="bfloat162half_rn",
        question="Which rounding does the C-API function bfloat162half with suffix rn use?",
        claims=(
            Claim(
                value="rn",
                means="ties to even, as the name says",
                provenance=_DOC,
                source="asc-devkit:C-API data type conversion",
            ),
            Claim(
                value="ru",
                means="up: the implementation passes the wrong constant",
                provenance=Provenance.IMPLEMENTATION_DEFINED,
                source="asc-devkit:asc_bfloat162half_rn implementation",
            ),
        ),
        defaults={"device": "rn"},
        conflict=True,
        example="bf16 2.3465e-10 -> fp16: 0x0000 or 0x0001",
    ),
)

ALL: tuple[SwitchRow, ...] = (*ROWS, *fixpipe_switches.ROWS, *cube.SWITCHES, *mx_switches.ROWS, *tile_switches.ROWS)

switches: Catalog[SwitchRow] = Catalog("switch", {row.name: row for row in ALL}, {})
