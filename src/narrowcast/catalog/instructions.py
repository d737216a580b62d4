"""Tile instructions: selector, operands, meaning and where the public material is."""

from dataclasses import dataclass

from narrowcast.catalog import Catalog
from narrowcast.schema import Provenance


@dataclass(frozen=True, kw_only=True)
class OperandRow:
    """One operand of a tile instruction."""

    name: str
    direction: str
    dtypes: tuple[str, ...]
    shape: str
    layout: str
    meaning: str


@dataclass(frozen=True, kw_only=True)
class InstructionRow:
    """One tile instruction. ``selector`` is Mode << 5 | Function of the TEPL carrier, None for a word of its own."""

    name: str
    title: str
    formula: str
    pipe: str
    engine: str
    operands: tuple[OperandRow, ...]
    signature: str
    tests: tuple[str, ...]
    source: str
    mode: int | None = None
    function: int | None = None
    former_opcode: int | None = None
    provenance: Provenance = Provenance.DOCUMENTED
    note: str = ""
    header: str = "pto/pto-inst.hpp"
    declared_in: str = "pto/common/pto_instr.hpp"

    @property
    def selector(self) -> int | None:
        """Selector in the TEPL carrier."""
        return None if self.mode is None or self.function is None else self.mode << 5 | self.function

    @property
    def start(self) -> str:
        """Canonical mnemonic of the word that opens its bundle."""
        return f"BSTART.{self.engine}" if self.selector is not None else f"BSTART.{self.name}"


def _parameter(name: str, meaning: str) -> OperandRow:
    return OperandRow(
        name=name, direction="in", dtypes=("fp32",), shape="M x 1", layout="column-major", meaning=meaning
    )


_ANY = ("every tile type",)

ROWS: tuple[InstructionRow, ...] = (
    InstructionRow(
        name="TDEQUANT",
        title="integer codes to fp32, one scale and one offset per row",
        formula="dst = (src - offset) * scale",
        pipe="V",
        engine="SFU",
        mode=3,
        function=11,
        former_opcode=0x084,
        operands=(
            OperandRow(
                name="dst", direction="out", dtypes=("fp32",), shape="M x N", layout="row-major", meaning="values"
            ),
            OperandRow(
                name="src", direction="in", dtypes=("s8", "s16"), shape="M x N", layout="row-major", meaning="codes"
            ),
            _parameter("scale", "step of each row"),
            _parameter("offset", "zero point of each row"),
        ),
        signature=(
            "template <typename TileDataDst, typename TileDataSrc, typename TileDataPara, typename... WaitEvents>\n"
            "PTO_INST RecordEvent TDEQUANT(TileDataDst &dst, TileDataSrc &src, TileDataPara &scale,\n"
            "                              TileDataPara &offset, WaitEvents &...events);"
        ),
        tests=(
            "tests/npu/a5/src/st/testcase/tdequant/",
            "tests/npu/a2a3/src/st/testcase/tdequant/",
            "tests/cpu/st/testcase/tdequant/",
        ),
        source="seed:000, 001; pto-isa:TDEQUANT",
        note="Two roundings: the subtraction's and the multiplication's.",
    ),
    InstructionRow(
        name="TQUANT",
        title="fp32, fp16 or bf16 to int8, MXFP8 or MXFP4",
        formula="dst = round(src / scale) + offset",
        pipe="V",
        engine="SFU",
        mode=3,
        function=10,
        former_opcode=0x083,
        operands=(
            OperandRow(
                name="dst",
                direction="out",
                dtypes=("s8", "u8", "e4m3", "e2m1"),
                shape="M x N",
                layout="row-major",
                meaning="codes",
            ),
            OperandRow(
                name="src",
                direction="in",
                dtypes=("fp32", "fp16", "bf16"),
                shape="M x N",
                layout="row-major",
                meaning="values",
            ),
            _parameter("scale", "step of each row; the instruction's own operand is its reciprocal, the multiplier"),
            _parameter("offset", "zero point of each row, asymmetric only"),
        ),
        signature=(
            "template <auto quant_type, typename TileDataOut, typename TileDataSrc, typename TileDataPara,\n"
            "          typename... WaitEvents>\n"
            "PTO_INST RecordEvent TQUANT(TileDataOut &dst, TileDataSrc &src, TileDataPara &scale,\n"
            "                            TileDataPara *offset = nullptr, WaitEvents &...events);"
        ),
        tests=(
            "tests/npu/a5/src/st/testcase/tquant/",
            "tests/npu/a2a3/src/st/testcase/tquant/",
            "tests/cpu/st/testcase/tquant/",
        ),
        source="seed:000, 001; pto-isa:TQUANT",
        note="CONFLICT: the documents divide by the scale and add the offset after rounding, the code multiplies "
        "by the reciprocal and adds the offset before rounding.",
    ),
    InstructionRow(
        name="TCVT",
        title="element type conversion with a rounding mode",
        formula="dst = cast(src)",
        pipe="V",
        engine="VEC",
        mode=0,
        function=27,
        former_opcode=0x00D,
        operands=(
            OperandRow(
                name="dst", direction="out", dtypes=_ANY, shape="M x N", layout="row-major", meaning="converted"
            ),
            OperandRow(name="src", direction="in", dtypes=_ANY, shape="M x N", layout="row-major", meaning="values"),
        ),
        signature=(
            "template <typename TileDataD, typename TileDataS, typename... WaitEvents>\n"
            "PTO_INST RecordEvent TCVT(TileDataD &dst, TileDataS &src, RoundMode mode, SaturationMode satMode,\n"
            "                          WaitEvents &...events);"
        ),
        tests=(
            "tests/npu/a5/src/st/testcase/tcvt/",
            "tests/npu/a2a3/src/st/testcase/tcvt/",
            "tests/cpu/st/testcase/tcvt/",
        ),
        source="pto-isa:TCVT",
    ),
    InstructionRow(
        name="TLOAD",
        title="global memory to a tile",
        formula="dst[i, j] = src[r0 + i, c0 + j]",
        pipe="MTE2",
        engine="TLSU",
        operands=(
            OperandRow(name="dst", direction="out", dtypes=_ANY, shape="M x N", layout="any", meaning="tile"),
            OperandRow(
                name="src", direction="in", dtypes=_ANY, shape="at least M x N", layout="ND or DN", meaning="memory"
            ),
        ),
        signature=(
            "template <typename TileData, typename GlobalData, typename... WaitEvents>\n"
            "PTO_INST RecordEvent TLOAD(TileData &dst, GlobalData &src, WaitEvents &...events);"
        ),
        tests=("tests/npu/a5/src/st/testcase/tload/", "tests/cpu/st/testcase/tload/"),
        source="pto-isa:TLOAD",
    ),
    InstructionRow(
        name="TSTORE",
        title="a tile's valid region to global memory",
        formula="dst[r0 + i, c0 + j] = src[i, j]",
        pipe="MTE3",
        engine="TLSU",
        operands=(
            OperandRow(
                name="dst", direction="out", dtypes=_ANY, shape="at least M x N", layout="ND or DN", meaning="memory"
            ),
            OperandRow(name="src", direction="in", dtypes=_ANY, shape="M x N", layout="any", meaning="tile"),
        ),
        signature=(
            "template <typename TileData, typename GlobalData, AtomicType atomicType = AtomicType::AtomicNone,\n"
            "          typename... WaitEvents>\n"
            "PTO_INST RecordEvent TSTORE(GlobalData &dst, TileData &src, WaitEvents &...events);"
        ),
        tests=("tests/npu/a5/src/st/testcase/tstore/", "tests/cpu/st/testcase/tstore/"),
        source="pto-isa:TSTORE",
    ),
    InstructionRow(
        name="TMOV",
        title="tile to tile, changing the layout",
        formula="dst[i, j] = src[i, j]",
        pipe="V",
        engine="TLSU",
        operands=(
            OperandRow(name="dst", direction="out", dtypes=_ANY, shape="M x N", layout="any", meaning="tile"),
            OperandRow(name="src", direction="in", dtypes=_ANY, shape="M x N", layout="any", meaning="tile"),
        ),
        signature=(
            "template <typename DstTileData, typename SrcTileData, typename... WaitEvents>\n"
            "PTO_INST RecordEvent TMOV(DstTileData &dst, SrcTileData &src, WaitEvents &...events);"
        ),
        tests=("tests/npu/a5/src/st/testcase/tmov/", "tests/cpu/st/testcase/tmov/"),
        source="pto-isa:TMOV",
    ),
)

instructions: Catalog[InstructionRow] = Catalog(
    "tile instruction", {row.name: row for row in ROWS}, {f"pto.{row.name}": row.name for row in ROWS}
)
