"""Points on which the sources of the tile instructions disagree or are silent."""

from narrowcast.schema import Claim, Provenance, SwitchRow

_DOC = Provenance.DOCUMENTED
_SIM = Provenance.SIMULATED
_OWN = Provenance.IMPLEMENTATION_DEFINED
_ASSUMED = Provenance.ASSUMED

ROWS: tuple[SwitchRow, ...] = (
    SwitchRow(
        name="tdequant_parameter_column",
        question="Which column of a parameter tile with several columns does TDEQUANT read?",
        claims=(
            Claim(
                value="clamped",
                means="column min(j, max(1, scale's valid columns) - 1), of both parameter tiles",
                provenance=_DOC,
                source="seed:000, 001; pto-isa:TDEQUANT; its simulator",
            ),
            Claim(
                value="first",
                means="column 0: a row's parameter is broadcast from its first element",
                provenance=_OWN,
                source="pto-isa:a5/TDeQuant.hpp, a2a3/TDequant.hpp",
            ),
        ),
        defaults={"device": "clamped", "pto-isa": "first", "pto-isa:cpu-sim": "clamped"},
        conflict=True,
        example="scale row [2, 4], code 1: columns 0.. give 2, 4, 4, ... or 2, 2, 2, ...",
    ),
    SwitchRow(
        name="tdequant_tail_predicate",
        question="Does TDEQUANT on chip 3510 write past the valid columns, up to a multiple of 64?",
        claims=(
            Claim(
                value="exact",
                means="each step of 64 lanes is masked to the valid columns",
                provenance=_DOC,
                source="pto-isa:950ed1d3; seed:000 (the valid region)",
            ),
            Claim(
                value="whole-register",
                means="the mask is made once from all valid columns, so above 64 the last step writes all its lanes",
                provenance=_OWN,
                source="pto-isa:a5/TDeQuant.hpp at 3186c381",
            ),
        ),
        defaults={"device": "exact"},
        conflict=True,
        example="100 valid columns of 128: columns 100..127 keep their bits, or hold (padding - offset) * scale",
    ),
    SwitchRow(
        name="tdequant_kirinx90",
        question="Does chip kirinx90 have TDEQUANT?",
        claims=(
            Claim(
                value="documented",
                means="yes; S8 goes through US_B8 and an interleave",
                provenance=_DOC,
                source="seed:000, 001; pto-isa:TDEQUANT",
            ),
            Claim(
                value="absent",
                means="no: its header includes no TDEQUANT",
                provenance=_OWN,
                source="pto-isa:kirinX90/header.hpp at 3186c381",
            ),
        ),
        defaults={"device": "documented"},
        conflict=True,
        example="Semantics('pto-isa', chip='kirinx90'): the documented result, or a refusal",
    ),
    SwitchRow(
        name="tquant_formula",
        question="Does integer TQUANT divide and add the offset after rounding, or multiply and add it before?",
        claims=(
            Claim(
                value="as-given",
                means="the operand decides: scale= divides as the documents, multiplier= multiplies as the code",
                provenance=_DOC,
                source="the two sources below, each for its own operand",
            ),
            Claim(
                value="documents",
                means="round(x / scale) + offset; a given multiplier is inverted in fp32",
                provenance=_DOC,
                source="seed:000, 001; pto-isa:TQUANT",
            ),
            Claim(
                value="instruction",
                means="round(x * multiplier + offset); a given scale is inverted in fp32",
                provenance=_SIM,
                source="pto-isa:TQuant.hpp, its golden data and simulator",
            ),
        ),
        defaults={"device": "as-given"},
        conflict=True,
        example="x / scale = 0.5, offset 1: 1 or 2",
    ),
    SwitchRow(
        name="exponent_zz_order",
        question="In which order does a 16x2 box of MX exponents hold its bytes?",
        claims=(
            Claim(
                value="row-major",
                means="two bytes of one row, then the next row",
                provenance=_SIM,
                source="pto-isa:TQUANT golden data and simulator",
            ),
            Claim(
                value="column-major",
                means="16 bytes of the first column, then the second",
                provenance=_DOC,
                source="pto-isa:TMOV page, formula of ND to ZZ",
            ),
        ),
        defaults={"device": "row-major"},
        conflict=True,
        example="exponents of rows 0 and 1: E[0,0] E[0,1] E[1,0] E[1,1], or E[0,0] E[1,0] E[2,0] ...",
    ),
    SwitchRow(
        name="tcvt_edge_alignment",
        question="What does an unsaturated TCVT of fp32 or fp16 to s16 or s8 give for infinity?",
        claims=(
            Claim(
                value="torch",
                means="it goes through a saturating s32, whose low bits remain: +inf is -1, -inf is 0",
                provenance=_OWN,
                source="pto-isa:a5/TCvt.hpp, a2a3/TCvt.hpp with EDGE_CASE_ALIGN_ENABLE 1, as they are",
            ),
            Claim(
                value="vector",
                means="the vector cast's own rule: infinity gives the integer's limit",
                provenance=_DOC,
                source="asc-devkit:Reg boundary values; the headers with EDGE_CASE_ALIGN_ENABLE 0",
            ),
        ),
        defaults={"device": "torch"},
        conflict=True,
        example="fp16 inf -> s8, not saturating: -1 or 127",
    ),
)
