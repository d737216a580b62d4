"""Between programs, bundle text and words."""

import warnings
from collections.abc import Iterable, Sequence

from narrowcast.catalog.encodings import REGISTERS
from narrowcast.catalog.instructions import instructions
from narrowcast.catalog.rounding import roundings
from narrowcast.errors import EncodingError, UnverifiedWarning
from narrowcast.isa.bundle import is_bundle_line, parse_bundle, print_bundle
from narrowcast.isa.fields import Word, decode, encode
from narrowcast.isa.program import Operand, Statement, TileProgram
from narrowcast.isa.text import parse
from narrowcast.tile.types import TileType

ALL_PES = "1111"
LARGEST_SIZE = 10
_HANDS = "TUMN"
_SPEC_RMODE = {"rn": "RNE", "rna": "RNA", "rd": "RTM", "ru": "RTP", "rz": "RTZ", "ro": "RTO"}
_LAYOUT = {
    ("ND", "DN"): "ND2DN",
    ("ND", "ZN"): "ND2ZN",
    ("ND", "NZ"): "ND2NZ",
    ("DN", "ND"): "DN2ND",
    ("DN", "ZN"): "DN2ZN",
    ("DN", "NZ"): "DN2NZ",
    ("ZN", "ND"): "ZN2ND",
    ("ZN", "DN"): "ZN2DN",
    ("ZN", "NZ"): "ZN2NZ",
    ("NZ", "ND"): "NZ2ND",
    ("NZ", "DN"): "NZ2DN",
    ("NZ", "ZN"): "NZ2ZN",
}
_TYPES = {
    "fp32": "FP32", "fp16": "FP16", "bf16": "BF16", "hif8": "HiF8", "e4m3": "E4M3", "e5m2": "E5M2", "e3m2": "E3M2",
    "e2m3": "E2M3", "e2m1": "E2M1X2", "e1m2": "E1M2X2", "e8m0": "E8M0", "s64": "S64", "s32": "S32", "s16": "S16",
    "s8": "S8", "s4": "S4X2", "u32": "U32", "u16": "U16", "u8": "U8", "u4": "U4X2",
}  # fmt: skip


def size_code(kind: TileType) -> int:
    """Return the smallest capacity code that holds a tile: 1 is 128 B, each next one twice as much."""
    for code in range(1, LARGEST_SIZE + 1):
        if kind.size_bytes <= 128 << (code - 1):
            return code
    most = 128 << (LARGEST_SIZE - 1)
    raise EncodingError(
        f"tile {kind.short} has {kind.size_bytes} bytes; a destination holds at most {most} per PE.",
        hint="Cut the program into smaller tiles.",
        source="pto-spec:0.58.3",
    )


class _Lowering:
    """Assign tile indices and registers as values appear, and write the words."""

    def __init__(self) -> None:
        self.words: list[Word] = []
        self.index: dict[str, int] = {}
        self.types: dict[str, TileType] = {}
        self.registers: dict[str, str] = {}

    def statement(self, statement: Statement) -> None:
        getattr(self, f"_{statement.op}")(statement)
        self.words.append(encode("BSTOP"))

    def _error(self, statement: Statement, operand: Operand, message: str) -> EncodingError:
        return EncodingError(f"line {statement.line}, column {operand.column}: {statement.op}: {message}")

    def _source(self, statement: Statement, i: int) -> int:
        operand = statement.sources[i]
        if operand.name not in self.index:
            raise self._error(statement, operand, f"{operand} is not defined.")
        return self.index[operand.name]

    def _define(self, statement: Statement) -> TileType:
        operand = statement.results[0]
        if operand.name in self.index:
            raise self._error(statement, operand, f"{operand} is defined already; a word allocates a new tile.")
        if not statement.result_types or not isinstance(statement.result_types[0], TileType):
            raise self._error(statement, operand, f"{operand} has no tile type.")
        if len(self.index) == 64:
            raise self._error(statement, operand, "more than 64 tiles are live.")
        kind = statement.result_types[0]
        self.index[operand.name] = len(self.index)
        self.types[operand.name] = kind
        return kind

    def _start(self, name: str, dtype: str) -> None:
        row = instructions[name]
        if row.mode is None or row.function is None:
            self.words.append(encode(row.start, DataType=_TYPES[dtype]))
        else:
            self.words.append(encode("BSTART.TEPL", DataType=_TYPES[dtype], Mode=row.mode, Function=row.function))

    def _dims(self, kind: TileType) -> None:
        for bound, value in enumerate((kind.valid[1], kind.valid[0], kind.cols)):
            self.words.append(encode(f"B.DIM.LB{bound}", uimm17=value))

    def _datr(self, dtype: str, **fields: int | str) -> None:
        self.words.append(encode("B.DATR", DataType=_TYPES[dtype], **fields))

    def _bind(self, sources: Sequence[int], result: Operand | None) -> None:
        """B.IOT words: two sources each, the last one with the destination."""
        groups = [sources[i : i + 2] for i in range(0, len(sources), 2)] or [()]
        for group in groups:
            last = group is groups[-1]
            fields: dict[str, int | str] = {f"SrcTile{i}": index for i, index in enumerate(group)}
            fields |= {"PEMode": ALL_PES, "L": int(last)}
            form = f"B.IOT.{len(group) or ''}"
            if last and result is not None:
                fields |= {
                    "DstTile": _HANDS[self.index[result.name] >> 4],
                    "SizeCode": size_code(self.types[result.name]),
                }
                form = f"{form}>D" if group else "B.IOT.D"
            self.words.append(encode(form, **fields))

    def _address(self, statement: Statement, operand: Operand) -> None:
        """The base address and the byte row stride of a memory, in two registers of its own."""
        if any(operand.offsets):
            raise self._error(statement, operand, f"{operand}: an offset belongs into the base register.")
        if operand.name not in self.registers:
            first = 2 + 2 * len(self.registers)
            if first + 1 >= len(REGISTERS):
                raise self._error(statement, operand, "more memories than register pairs (11).")
            self.registers[operand.name] = REGISTERS[first]
        first = REGISTERS.index(self.registers[operand.name])
        self.words.append(encode("B.IOR", RegSrc0=first, RegSrc1=first + 1))

    def _tload(self, statement: Statement) -> None:
        kind = self._define(statement)
        self._start("TLOAD", kind.dtype)
        self._dims(kind)
        self._address(statement, statement.sources[0])
        self._bind((), statement.results[0])

    def _tstore(self, statement: Statement) -> None:
        index = self._source(statement, 0)
        kind = self.types[statement.sources[0].name]
        if statement.attributes.get("atomic", "none") != "none":
            raise self._error(statement, statement.results[0], "an atomic store has no described encoding.")
        self._start("TSTORE", kind.dtype)
        self._dims(kind)
        self._address(statement, statement.results[0])
        self._bind((index,), None)

    def _tmov(self, statement: Statement) -> None:
        index = self._source(statement, 0)
        before = self.types[statement.sources[0].name]
        kind = self._define(statement)
        layout = "NORM" if before.layout == kind.layout else _LAYOUT.get((before.layout, kind.layout))
        if layout is None or statement.attributes.get("axis", "1") != "1":
            raise self._error(statement, statement.results[0], f"{before.layout} to {kind.layout} has no Layout code.")
        self._start("TMOV", before.dtype)
        self._datr(kind.dtype, Layout=layout)
        self._dims(kind)
        self._bind((index,), statement.results[0])

    def _tcvt(self, statement: Statement) -> None:
        index = self._source(statement, 0)
        before = self.types[statement.sources[0].name]
        kind = self._define(statement)
        mode = statement.attributes.get("rmode", "rn")
        rmode = "Default" if mode.lower() in ("none", "cast_none") else _SPEC_RMODE.get(roundings[mode].rounding.value)
        if rmode is None:
            raise self._error(statement, statement.sources[0], f"rounding {mode} has no RMode code.")
        self._start("TCVT", before.dtype)
        saturates = statement.attributes.get("sat", "off").lower() in ("on", "true")
        self._datr(kind.dtype, RMode=rmode, Sat=int(saturates), PadValueOrByteId="Null")
        self._dims(kind)
        self._bind((index,), statement.results[0])

    def _tdequant(self, statement: Statement) -> None:
        self._with_parameters("TDEQUANT", statement)

    def _tquant(self, statement: Statement) -> None:
        self._with_parameters("TQUANT", statement)

    def _with_parameters(self, name: str, statement: Statement) -> None:
        """Parameter tiles as B.IOT operands: the operand order is documented, the bits are inferred."""
        sources = [self._source(statement, i) for i in range(len(statement.sources))]
        before = self.types[statement.sources[0].name]
        kind = self._define(statement)
        self._start(name, before.dtype)
        self._datr(kind.dtype, RMode="RNE", Sat=int(name == "TQUANT"))
        self._dims(kind)
        self._bind(sources, statement.results[0])


def lower(program: TileProgram) -> list[Word]:
    """Return a program's words."""
    lowering = _Lowering()
    for statement in program.statements:
        lowering.statement(statement)
    return lowering.words


_PARAMETER_TILES = frozenset(instructions[name].selector for name in ("TDEQUANT", "TQUANT"))


def rests_on_assumption(words: Iterable[Word]) -> bool:
    """Whether a TDEQUANT or TQUANT has more than one source tile: that form has no published bits."""
    selector, sources = None, 0
    for word in words:
        if word.row.mnemonic.startswith("BSTART."):
            selector, sources = (word.selector if word.row.name == "BSTART.TEPL" else None), 0
        sources += sum(name in word.codes for name in ("SrcTile0", "SrcTile1"))
        if selector in _PARAMETER_TILES and sources > 1:
            return True
    return False


def assemble(source: str | TileProgram) -> list[Word]:
    """Assemble bundle text, PTO-AS text or a program into words.

    PTO-AS values become tile indices in order of appearance, memories pairs of registers (base address, byte row
    stride) from ``a0`` on. TDEQUANT and TQUANT with parameter tiles are encoded as inferred from the documented
    operand list ``dst, src, scale, offset``: two ``B.IOT`` words, of which the last one allocates.

    Args:
        source: text, or a program.

    Returns:
        The words; ``str()`` of one is its hexadecimal form.

    Raises:
        EncodingError: text or values that have no encoding, with line and column.

    Warns:
        UnverifiedWarning: the form with parameter tiles, whose bits no public source gives.

    Source: pto-spec:0.58.3; seed:000, 001; pto-isa:TDEQUANT, encoding.

    Example:
        >>> [str(word) for word in assemble("BSTART.SFU TDEQUANT, S8")]
        ['9EB19181']
    """
    if isinstance(source, str):
        lines = [line for line in source.splitlines() if line.strip() and not line.lstrip().startswith(("#", "//"))]
        if lines and is_bundle_line(lines[0]):
            return parse_bundle(source)
        source = parse(source)
    words = lower(source)
    if rests_on_assumption(words):
        warnings.warn(
            "The encoding of TDEQUANT and TQUANT with parameter tiles is inferred: the page gives the operands "
            "dst, src, scale, offset and no bits [pto-isa:TDEQUANT, encoding].",
            UnverifiedWarning,
            stacklevel=2,
        )
    return words


def disassemble(words: Iterable[Word | int]) -> str:
    """Write words as bundle text, one line each.

    Args:
        words: words, or their bits (their length follows from the lowest bits).

    Raises:
        EncodingError: bits that match no described form, or a reserved code.

    Source: pto-spec:0.58.3.

    Example:
        >>> disassemble([0x9EB19181, 0x00F00043])
        'BSTART.SFU TDEQUANT, S8\\nB.DIM zero, 15, ->LB0\\n'
    """
    return print_bundle([word if isinstance(word, Word) else decode(word) for word in words])
