"""Words of a tile bundle: fixed bits, fields and the legal codes of each field. Both directions read these rows."""

from dataclasses import dataclass

from narrowcast.schema import Provenance

_SPEC = "pto-spec:0.58.3"


@dataclass(frozen=True, kw_only=True)
class CodeSet:
    """Legal codes of a field with the name of each; a code that is not listed is reserved."""

    name: str
    codes: dict[int, str]
    reserved: str = "reserved for future extension"

    def code(self, text: str) -> int | None:
        """Code of a name, ignoring case; None when there is none."""
        return {v.lower(): k for k, v in self.codes.items()}.get(text.lower())


@dataclass(frozen=True, kw_only=True)
class FieldRow:
    """One field: its bit ranges from the most significant piece, and the set of its legal codes.

    ``codes`` is a key of ``CODE_SETS``; empty means every value the bits hold is legal.
    """

    name: str
    pieces: tuple[tuple[int, int], ...]
    codes: str = ""
    role: str = ""

    @property
    def width(self) -> int:
        """Number of bits."""
        return sum(high - low + 1 for high, low in self.pieces)


@dataclass(frozen=True, kw_only=True)
class WordRow:
    """One form of a bundle word: which bits are fixed, to what, and the fields in the others."""

    name: str
    mnemonic: str
    bits: int
    mask: int
    match: int
    fields: tuple[FieldRow, ...]
    role: str
    source: str = _SPEC
    provenance: Provenance = Provenance.DOCUMENTED
    note: str = ""

    def field(self, name: str) -> FieldRow:
        """The field with this name."""
        return next(f for f in self.fields if f.name == name)


def _field(name: str, high: int, low: int, codes: str = "", role: str = "") -> FieldRow:
    return FieldRow(name=name, pieces=((high, low),), codes=codes, role=role)


DATA_TYPES = {
    0: "FP64",
    1: "FP32",
    2: "TF32",
    3: "HF32",
    4: "FP16",
    5: "BF16",
    6: "HiF8",
    7: "E4M3",
    8: "E5M2",
    9: "E3M2",
    10: "E2M3",
    11: "E2M1X2",
    12: "E1M2X2",
    13: "E8M0",
    14: "HiF4X2",
    16: "S64",
    17: "S32",
    18: "S16",
    19: "S8",
    20: "S4X2",
    24: "U64",
    25: "U32",
    26: "U16",
    27: "U8",
    28: "U4X2",
}
NO_TYPE = 31
"""Code of DTYPE_NONE, legal only where a field's code set lists it."""

REGISTERS = (
    "zero", "sp", "a0", "a1", "a2", "a3", "a4", "a5", "a6", "a7", "ra", "s0",
    "s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "x0", "x1", "x2", "x3",
)  # fmt: skip

PE_MASKS = {0: "0000", 1: "1000", 2: "0100", 3: "0010", 4: "0001", 5: "1100", 6: "1110", 7: "1111"}

LAYOUTS = {
    0: "NORM",
    1: "ND2DN",
    3: "ND2ZN",
    4: "ND2NZ",
    6: "DN2ND",
    8: "DN2ZN",
    9: "DN2NZ",
    17: "ZN2ND",
    18: "ZN2DN",
    20: "ZN2NZ",
    21: "ND2M32",
    22: "ND2M16",
    23: "ND2N8",
    24: "M322ND",
    25: "M162ND",
    26: "N82ND",
    27: "NZ2ND",
    28: "NZ2DN",
    30: "NZ2ZN",
}

_CODE_SETS: tuple[CodeSet, ...] = (
    CodeSet(name="data type", codes=DATA_TYPES),
    CodeSet(name="data type or none", codes={**DATA_TYPES, NO_TYPE: "DTYPE_NONE"}),
    CodeSet(
        name="rounding",
        codes={0: "Default", 1: "RNE", 2: "RTZ", 3: "RTM", 4: "RTP", 5: "RNA", 6: "RTO", 7: "RHB"},
    ),
    CodeSet(name="comparison", codes={0: "EQ", 1: "NE", 2: "LT", 3: "GT", 4: "LE", 5: "GE"}),
    CodeSet(name="padding", codes={0: "Zero", 1: "Max", 2: "Min", 3: "Null"}),
    CodeSet(name="layout", codes=LAYOUTS),
    CodeSet(name="register", codes=dict(enumerate(REGISTERS))),
    CodeSet(name="loop bound", codes={0: "LB0", 1: "LB1", 2: "LB2"}),
    CodeSet(name="hand", codes={0: "T", 1: "U", 2: "M", 3: "N"}),
    CodeSet(name="participation", codes=PE_MASKS),
    CodeSet(
        name="size",
        codes={code: str(code) for code in range(1, 11)},
        reserved="a destination has size code 1 (128 B) to 10 (64 KiB)",
    ),
    CodeSet(
        name="shared size",
        codes={code: str(code) for code in range(13)},
        reserved="a shared tile has size code 0 (source) to 12",
    ),
    CodeSet(name="unused", codes={0: "0"}, reserved="these bits belong to no field and are written as 0"),
)
CODE_SETS: dict[str, CodeSet] = {row.name: row for row in _CODE_SETS}

_DIM_FIELDS = (
    FieldRow(name="uimm17", pieces=((11, 7), (31, 20)), role="constant that is added to the register"),
    _field("RegSrc", 19, 15, "register"),
)
_SOURCE0 = _field("SrcTile0", 25, 20, role="first source: tile index 0..63")
_SOURCE1 = _field("SrcTile1", 31, 26, role="second source: tile index 0..63")
_LAST = _field("L", 19, 19, role="closes the sequence of B.IOT words")
_SIZE = _field("SizeCode", 18, 15, "size", "capacity per PE: 128 B shifted left by SizeCode - 1")
_PE = _field("PEMode", 11, 9, "participation", "which of the four PEs take part")
_HAND = _field("DstTile", 8, 7, "hand", "hand of the new destination; its slot is the first free one")
_NO_DESTINATION = _field("Unused", 8, 7, "unused")
_SOURCE_NOTE = "Bits 8:7 belong to no field of this form; a canonical word has them 0."


def _dim(index: int) -> WordRow:
    return WordRow(
        name=f"B.DIM.LB{index}",
        mnemonic="B.DIM",
        bits=32,
        mask=0x0000707F,
        match=0x00000043 | index << 12,
        fields=_DIM_FIELDS,
        role=f"LB{index} = low 16 bits of register + constant",
    )


def _start(name: str, match: int, types: str) -> WordRow:
    return WordRow(
        name=f"BSTART.{name}",
        mnemonic=f"BSTART.{name}",
        bits=32,
        mask=0x07FFFFFF,
        match=match,
        fields=(_field("DataType", 31, 27, types, "element type"),),
        role=f"opens a {name} bundle",
    )


WORDS: tuple[WordRow, ...] = (
    WordRow(
        name="BSTART.TEPL",
        mnemonic="BSTART.TEPL",
        bits=32,
        mask=0x000FFFFF,
        match=0x00019181,
        fields=(
            _field("DataType", 31, 27, "data type", "element type of the source"),
            _field("Mode", 26, 25, role="high two bits of the selector"),
            _field("Function", 24, 20, role="low five bits of the selector"),
        ),
        role="opens a bundle of a tile instruction",
        note="BSTART.VEC and BSTART.SFU are the canonical spellings; the bits are the same.",
    ),
    _start("TLOAD", 0x00011181, "data type"),
    _start("TSTORE", 0x00111181, "data type"),
    _start("TMOV", 0x00211181, "data type or none"),
    WordRow(
        name="B.DATR",
        mnemonic="B.DATR",
        bits=32,
        mask=0x000C707F,
        match=0x00001023,
        fields=(
            _field("CMode", 31, 29, "comparison"),
            _field("PadValueOrByteId", 28, 27, "padding"),
            _field("Sat", 26, 26, role="1 saturates"),
            _field("Canonicalize", 25, 25),
            _field("DataType", 24, 20, "data type or none", "element type of the destination"),
            _field("RMode", 17, 15, "rounding"),
            _field("Layout", 11, 7, "layout"),
        ),
        role="data attributes",
    ),
    _dim(0),
    _dim(1),
    _dim(2),
    WordRow(
        name="C.B.DIMI",
        mnemonic="C.B.DIMI",
        bits=16,
        mask=0x003F,
        match=0x003C,
        fields=(_field("LoopNest", 15, 14, "loop bound"), _field("imm8", 13, 6)),
        role="a loop bound below 256 in 16 bits",
    ),
    WordRow(
        name="B.IOR",
        mnemonic="B.IOR",
        bits=32,
        mask=0x0600707F,
        match=0x00000013,
        fields=(
            _field("RegSrc2", 31, 27, "register"),
            _field("RegSrc1", 24, 20, "register"),
            _field("RegSrc0", 19, 15, "register"),
            _field("RegDst", 11, 7, "register"),
        ),
        role="scalar operands",
    ),
    WordRow(
        name="B.IOT.1>D",
        mnemonic="B.IOT",
        bits=32,
        mask=0xFC00707F,
        match=0x00005013,
        fields=(_SOURCE0, _LAST, _SIZE, _PE, _HAND),
        role="one source, one new destination",
    ),
    WordRow(
        name="B.IOT.2>D",
        mnemonic="B.IOT",
        bits=32,
        mask=0x0000707F,
        match=0x00004013,
        fields=(_SOURCE1, _SOURCE0, _LAST, _SIZE, _PE, _HAND),
        role="two sources, one new destination",
    ),
    WordRow(
        name="B.IOT.1",
        mnemonic="B.IOT",
        bits=32,
        mask=0xFC07F07F,
        match=0x00005013,
        fields=(_SOURCE0, _LAST, _PE, _NO_DESTINATION),
        role="one source",
        note=_SOURCE_NOTE,
    ),
    WordRow(
        name="B.IOT.2",
        mnemonic="B.IOT",
        bits=32,
        mask=0x0007F07F,
        match=0x00004013,
        fields=(_SOURCE1, _SOURCE0, _LAST, _PE, _NO_DESTINATION),
        role="two sources",
        note=_SOURCE_NOTE,
    ),
    WordRow(
        name="B.IOT.D",
        mnemonic="B.IOT",
        bits=32,
        mask=0xFFF0707F,
        match=0x00006013,
        fields=(_LAST, _SIZE, _PE, _HAND),
        role="a new destination without a source",
    ),
    WordRow(
        name="B.IOS",
        mnemonic="B.IOS",
        bits=32,
        mask=0xF00871FF,
        match=0x00001013,
        fields=(_field("SharedTID", 27, 20), _field("SizeCode", 18, 15, "shared size"), _PE),
        role="a shared tile: source with size code 0, else destination",
    ),
    WordRow(
        name="BSTOP",
        mnemonic="BSTOP",
        bits=32,
        mask=0xFFFFFFFF,
        match=0x00000001,
        fields=(),
        role="closes a bundle",
    ),
    WordRow(
        name="C.BSTOP",
        mnemonic="C.BSTOP",
        bits=16,
        mask=0xFFFF,
        match=0x0000,
        fields=(),
        role="closes a bundle in 16 bits",
    ),
    WordRow(
        name="L.BSTOP",
        mnemonic="L.BSTOP",
        bits=64,
        mask=0xFFFFFFFFFFFFFFFF,
        match=0x00000001_0000000F,
        fields=(),
        role="closes a bundle in 64 bits",
    ),
)

FORMER_WORDS: tuple[WordRow, ...] = (
    WordRow(
        name="BSTART.TEPL@0.57.0",
        mnemonic="BSTART.TEPL",
        bits=32,
        mask=0x06007FFF,
        match=0x02001181,
        fields=(_field("DataType", 31, 27, "data type"), _field("TileOpcode", 24, 15)),
        role="opens a bundle of a tile instruction",
        source="pto-spec:0.57.0; changed by 0.57.1",
        note="TileOpcode was a ten-bit number of its own: TDEQUANT 0x084, TQUANT 0x083, TCVT 0x00D.",
    ),
)
"""Word forms that a later version replaced: recognised so that an old word is named, never assembled."""

RESERVED_SELECTORS: frozenset[int] = frozenset({0x061, 0x069, *range(0x075, 0x080)})
"""Selectors (Mode << 5 | Function) that the ISA holds back."""
