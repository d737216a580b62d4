"""Bundle text: one line per word, both directions."""

import re
from collections.abc import Sequence

from narrowcast.catalog.encodings import REGISTERS, WORDS
from narrowcast.catalog.instructions import ROWS as INSTRUCTIONS
from narrowcast.catalog.instructions import instructions
from narrowcast.errors import EncodingError, NarrowcastError, UnknownNameError, unknown_name
from narrowcast.isa.fields import Word, encode

_HANDS = "TUMN"
_SELECTORS = {row.selector: row for row in INSTRUCTIONS if row.selector is not None}
MNEMONICS = (*dict.fromkeys(row.mnemonic for row in WORDS), "BSTART.VEC", "BSTART.SFU")
_DATR = ("Layout", "DataType", "PadValueOrByteId", "CMode", "RMode", "Sat", "Canonicalize")


def print_word(word: Word) -> str:
    """Write a word as a line of bundle text."""
    name, code = word.name, word.codes
    match word.row.mnemonic:
        case "BSTART.TEPL":
            row = _SELECTORS.get(word.selector)
            if row is None:
                return f"BSTART.TEPL {code['Mode']}, {code['Function']}, {name('DataType')}"
            return f"{row.start} {row.name}, {name('DataType')}"
        case "BSTART.TLOAD" | "BSTART.TSTORE" | "BSTART.TMOV":
            return f"{word.row.mnemonic} {name('DataType')}"
        case "B.DATR":
            parts = [name(f) if word.row.field(f).codes else str(code[f]) for f in _DATR]
            return f"B.DATR {{{', '.join(parts)}}}"
        case "B.DIM":
            return f"B.DIM {name('RegSrc')}, {code['uimm17']}, ->{word.row.name[-3:]}"
        case "C.B.DIMI":
            return f"C.B.DIMI {code['imm8']}, ->{name('LoopNest')}"
        case "B.IOR":
            return _print_ior(word)
        case "B.IOT":
            return _print_iot(word)
        case "B.IOS":
            if code["SizeCode"] == 0:
                return f"B.IOS S{code['SharedTID']}, mask={name('PEMode')}"
            return f"B.IOS mask={name('PEMode')}, ->S{code['SharedTID']}<{code['SizeCode']}>"
        case mnemonic:
            return mnemonic


def _print_ior(word: Word) -> str:
    sources = [word.name(f) for f in ("RegSrc0", "RegSrc1", "RegSrc2")]
    while sources and sources[-1] == "zero":
        sources.pop()
    if word.codes["RegDst"]:
        sources.append(f"->{word.name('RegDst')}")
    return f"B.IOR {', '.join(sources)}".rstrip()


def tile_name(index: int) -> str:
    """Name a tile by hand and slot: 0..15 T, 16..31 U, 32..47 M, 48..63 N."""
    return f"{_HANDS[index >> 4]}{index & 15}"


def tile_index(name: str) -> int | None:
    """Index of a tile name, None when it is none."""
    found = re.fullmatch(r"([TUMN])([0-9]|1[0-5])", name)
    return None if found is None else _HANDS.index(found[1]) << 4 | int(found[2])


def _print_iot(word: Word) -> str:
    parts = [tile_name(word.codes[f]) for f in ("SrcTile0", "SrcTile1") if f in word.codes]
    parts.append(f"mask={word.name('PEMode')}")
    if word.codes["L"]:
        parts.append("<last>")
    if "DstTile" in word.codes:
        parts.append(f"->{word.name('DstTile')}<{word.codes['SizeCode']}>")
    return f"B.IOT {', '.join(parts)}"


def print_bundle(words: Sequence[Word]) -> str:
    """Write words as bundle text, one line each."""
    return "".join(f"{print_word(word)}\n" for word in words)


def is_bundle_line(line: str) -> bool:
    """Whether a line starts with the mnemonic of a word."""
    head = line.split(None, 1)[0].upper() if line.strip() else ""
    return head in MNEMONICS or head.startswith(("BSTART.", "B.", "C.B", "L.B"))


def parse_line(line: str) -> Word:
    """Read one line of bundle text.

    Args:
        line: the line, without comment.

    Returns:
        The word.

    Raises:
        EncodingError: an unknown mnemonic, operand or reserved code; the message says which operand.

    Example:
        >>> str(parse_line("B.DIM zero, 15, ->LB0"))
        '00F00043'
    """
    head, _, rest = line.strip().partition(" ")
    mnemonic = head.upper()
    if mnemonic not in MNEMONICS:
        raise unknown_name("bundle mnemonic", head, MNEMONICS)
    operands = [part.strip() for part in rest.strip().strip("{}").split(",")] if rest.strip() else []
    match mnemonic:
        case "BSTART.TEPL" | "BSTART.VEC" | "BSTART.SFU":
            return _parse_start(mnemonic, operands)
        case "BSTART.TLOAD" | "BSTART.TSTORE" | "BSTART.TMOV":
            (kind,) = _count(mnemonic, operands, 1, "DataType")
            return encode(mnemonic, DataType=kind)
        case "B.DATR":
            given = _count(mnemonic, operands, 7, ", ".join(_DATR))
            row = next(r for r in WORDS if r.name == "B.DATR")
            return encode(
                "B.DATR", **{f: v if row.field(f).codes else _integer(v) for f, v in zip(_DATR, given, strict=True)}
            )
        case "B.DIM":
            register, constant, bound = _count(mnemonic, operands, 3, "RegSrc, uimm17, ->LBn")
            form = f"B.DIM.{_arrow(bound)}"
            if _arrow(bound) not in ("LB0", "LB1", "LB2"):
                raise EncodingError(f"B.DIM writes LB0, LB1 or LB2; got {bound!r}.")
            return encode(form, RegSrc=_register(register), uimm17=_integer(constant))
        case "C.B.DIMI":
            constant, bound = _count(mnemonic, operands, 2, "imm8, ->LBn")
            return encode("C.B.DIMI", imm8=_integer(constant), LoopNest=_arrow(bound))
        case "B.IOR":
            return _parse_ior(operands)
        case "B.IOT":
            return _parse_iot(operands)
        case "B.IOS":
            return _parse_ios(operands)
        case _:
            _count(mnemonic, operands, 0, "no operand")
            return encode(mnemonic)


def _count(mnemonic: str, operands: list[str], wanted: int, what: str) -> list[str]:
    if len(operands) != wanted:
        raise EncodingError(f"{mnemonic} takes {what}; got {len(operands)} operands.")
    return operands


def _integer(text: str) -> int:
    try:
        return int(text, 0)
    except ValueError:
        raise EncodingError(f"{text!r} is not a whole number.") from None


def _arrow(text: str) -> str:
    if not text.startswith("->"):
        raise EncodingError(f"a destination is written ->name; got {text!r}.")
    return text[2:].strip()


def _register(name: str) -> str:
    if name not in REGISTERS:
        raise unknown_name("register", name, REGISTERS)
    return name


def _parse_start(mnemonic: str, operands: list[str]) -> Word:
    if len(operands) == 3:
        return encode("BSTART.TEPL", Mode=_integer(operands[0]), Function=_integer(operands[1]), DataType=operands[2])
    name, kind = _count(mnemonic, operands, 2, "the instruction and its data type")
    if name.isdigit():
        selector = int(name)
        if selector > 0x7F:
            raise EncodingError(f"selector {selector} does not fit 7 bits.")
        return encode("BSTART.TEPL", Mode=selector >> 5, Function=selector & 31, DataType=kind)
    row = instructions[name]
    if row.mode is None or row.function is None:
        raise EncodingError(f"{row.name} has a word of its own.", hint=f"Write {row.start} {kind}.")
    if mnemonic not in ("BSTART.TEPL", row.start):
        raise EncodingError(f"{row.name} runs on {row.engine}; write {row.start} or BSTART.TEPL, not {mnemonic}.")
    return encode("BSTART.TEPL", Mode=row.mode, Function=row.function, DataType=kind)


def _parse_ior(operands: list[str]) -> Word:
    sources = [o for o in operands if not o.startswith("->")]
    targets = [o for o in operands if o.startswith("->")]
    if len(sources) > 3 or len(targets) > 1:
        raise EncodingError(f"B.IOR takes at most three sources and one ->destination; got {', '.join(operands)}.")
    values = {f"RegSrc{i}": _register(name) for i, name in enumerate(sources)}
    if targets:
        values["RegDst"] = _register(_arrow(targets[0]))
    return encode("B.IOR", **values)


def _size(text: str) -> tuple[str, int]:
    found = re.fullmatch(r"->\s*([A-Za-z]+\d*)<(\d+)>", text)
    if found is None:
        raise EncodingError(f"a tile destination is written ->T<SizeCode>; got {text!r}.")
    return found[1], int(found[2])


def _parse_iot(operands: list[str]) -> Word:
    values: dict[str, int | str] = {}
    sources: list[int] = []
    form = ""
    for operand in operands:
        if operand.startswith("mask="):
            values["PEMode"] = operand[5:]
        elif operand == "<last>":
            values["L"] = 1
        elif operand.startswith("->"):
            values["DstTile"], values["SizeCode"] = _size(operand)
            form = ">D"
        else:
            index = tile_index(operand)
            if index is None:
                raise EncodingError(f"B.IOT: {operand!r} is no tile (T0..T15, U0..U15, M0..M15, N0..N15).")
            sources.append(index)
    if "PEMode" not in values:
        raise EncodingError("B.IOT needs mask=, the PEs that take part, e.g. mask=1111.")
    if len(sources) > 2 or not (sources or form):
        raise EncodingError(f"B.IOT takes one or two source tiles, a destination, or both; got {', '.join(operands)}.")
    for i, index in enumerate(sources):
        values[f"SrcTile{i}"] = index
    return encode(f"B.IOT.{len(sources) or ''}{form}" if sources else "B.IOT.D", **values)


def _parse_ios(operands: list[str]) -> Word:
    shared, size, mask = None, 0, None
    for operand in operands:
        if operand.startswith("mask="):
            mask = operand[5:]
            continue
        name, size = _size(operand) if operand.startswith("->") else (operand, 0)
        if not re.fullmatch(r"S\d+", name):
            raise EncodingError(f"B.IOS: {operand!r} is no shared tile (S0..S255).")
        shared = int(name[1:])
    if shared is None or mask is None:
        raise EncodingError("B.IOS takes a shared tile and mask=, e.g. S7, mask=1111.")
    return encode("B.IOS", SharedTID=shared, SizeCode=size, PEMode=mask)


def parse_bundle(text: str) -> list[Word]:
    """Read bundle text: one word per line, ``#`` or ``//`` comments; errors name the line and column."""
    words = []
    for number, raw in enumerate(text.splitlines(), 1):
        line = re.split(r"#|//", raw, maxsplit=1)[0]
        if not line.strip():
            continue
        try:
            words.append(parse_line(line))
        except NarrowcastError as error:
            column = len(line) - len(line.lstrip()) + 1
            raise at(error, number, column) from None
    return words


def at(error: NarrowcastError, line: int, column: int) -> NarrowcastError:
    """Say where in a text an error is."""
    kind = EncodingError if isinstance(error, UnknownNameError) else type(error)
    return kind(f"line {line}, column {column}: {error.message}", code=error.code, hint=error.hint, source=error.source)
