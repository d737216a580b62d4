"""Encode and decode one word from its row, and check the rows themselves."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import combinations

from narrowcast.catalog.encodings import CODE_SETS, FORMER_WORDS, RESERVED_SELECTORS, WORDS, FieldRow, WordRow
from narrowcast.catalog.instructions import ROWS as INSTRUCTIONS
from narrowcast.errors import EncodingError, unknown_name


@dataclass(frozen=True, eq=False)
class Word:
    """One decoded word: its form and the code in each field. Where an integer is wanted, it is its bits."""

    row: WordRow
    codes: Mapping[str, int]

    @property
    def value(self) -> int:
        """The bits."""
        word = self.row.match
        for field in self.row.fields:
            word |= scatter(field, self.codes[field.name])
        return word

    @property
    def bits(self) -> int:
        """Its length."""
        return self.row.bits

    def name(self, field: str) -> str:
        """Name of the code in a field that has a set of codes."""
        return CODE_SETS[self.row.field(field).codes].codes[self.codes[field]]

    @property
    def selector(self) -> int:
        """Mode << 5 | Function of a BSTART.TEPL word."""
        return self.codes["Mode"] << 5 | self.codes["Function"]

    def __str__(self) -> str:
        return f"{self.value:0{self.bits // 4}X}"

    def __index__(self) -> int:
        return self.value

    def __eq__(self, other: object) -> bool:
        """Compare bits, with another word of the same length or with a plain integer."""
        if isinstance(other, Word):
            return (self.value, self.bits) == (other.value, other.bits)
        return self.value == other if isinstance(other, int) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.value)


def scatter(field: FieldRow, code: int) -> int:
    """Put a code into the field's bits."""
    word = 0
    for high, low in reversed(field.pieces):
        width = high - low + 1
        word |= (code & ((1 << width) - 1)) << low
        code >>= width
    return word


def gather(field: FieldRow, word: int) -> int:
    """Read the field's bits."""
    code = 0
    for high, low in field.pieces:
        code = code << (high - low + 1) | (word >> low) & ((1 << (high - low + 1)) - 1)
    return code


@cache
def word_rows() -> dict[str, WordRow]:
    """Every current form by name."""
    return {row.name: row for row in WORDS}


def encode(form: str, **values: int | str) -> Word:
    """Build a word from field values.

    Args:
        form: name of the word's row, e.g. ``"BSTART.TEPL"`` or ``"B.IOT.1>D"``.
        values: a code or its name for every field; fields left out are 0.

    Returns:
        The word; ``.value`` is its bits.

    Raises:
        UnknownNameError: an unknown form or field.
        EncodingError: a value too wide for its field, or a reserved code.

    Source: catalog/encodings.py.

    Example:
        >>> str(encode("BSTART.TEPL", DataType="S8", Mode=3, Function=11))
        '9EB19181'
    """
    rows = {**word_rows(), **{row.name: row for row in FORMER_WORDS}}
    if form not in rows:
        raise unknown_name("word form", form, rows)
    row = rows[form]
    names = [field.name for field in row.fields]
    for name in values:
        if name not in names:
            raise unknown_name(f"field of {form}", name, names)
    word = Word(row, {field.name: _code(row, field, values.get(field.name, 0)) for field in row.fields})
    _check(word)
    return word


def _code(row: WordRow, field: FieldRow, value: int | str) -> int:
    if isinstance(value, str):
        if not field.codes:
            raise EncodingError(f"{row.mnemonic} {field.name} takes a number; got {value!r}.", source=row.source)
        code = CODE_SETS[field.codes].code(value)
        if code is None:
            raise unknown_name(
                f"{field.codes} in {row.mnemonic} {field.name}", value, CODE_SETS[field.codes].codes.values()
            )
        return code
    if not 0 <= value < 1 << field.width:
        raise EncodingError(
            f"{row.mnemonic} {field.name} is {field.width} bits wide; {value} does not fit "
            f"(0..{(1 << field.width) - 1}).",
            source=row.source,
        )
    return value


def _check(word: Word) -> None:
    row = word.row
    for field in row.fields:
        if field.codes and word.codes[field.name] not in CODE_SETS[field.codes].codes:
            legal = CODE_SETS[field.codes]
            raise EncodingError(
                f"{row.mnemonic} {field.name} = {word.codes[field.name]} has no meaning ({legal.reserved}; legal: "
                f"{', '.join(f'{k} {v}' if str(k) != v else v for k, v in legal.codes.items())}).",
                code="reserved",
                source=row.source,
            )
    if row.name == "BSTART.TEPL" and word.selector in RESERVED_SELECTORS:
        raise EncodingError(
            f"BSTART.TEPL selector {word.selector:#05x} (Mode {word.codes['Mode']}, Function "
            f"{word.codes['Function']}) is reserved.",
            code="reserved",
            hint=_neighbours(),
            source=row.source,
        )


def _neighbours() -> str:
    return (
        "Described: " + ", ".join(f"{r.name} {r.selector:#05x}" for r in INSTRUCTIONS if r.selector is not None) + "."
    )


@cache
def _candidates(bits: int) -> tuple[WordRow, ...]:
    # The form with the most fixed bits first: a source-only B.IOT is a B.IOT whose size code is 0.
    rows = [row for row in WORDS if row.bits == bits]
    return tuple(sorted(rows, key=lambda row: -row.mask.bit_count()))


def word_bits(low: int) -> int:
    """Length of the word whose lowest 16 bits are ``low``: 16 when bit 0 is clear, 64 after 1111, else 32."""
    if low & 1 == 0:
        return 16
    return 64 if low & 0xF == 0xF else 32


def decode(value: int, bits: int | None = None) -> Word:
    """Read one word.

    Args:
        value: its bits.
        bits: its length; by default what its lowest bits say.

    Returns:
        The word.

    Raises:
        EncodingError: no form matches, or a field holds a reserved code.

    Source: catalog/encodings.py.

    Example:
        >>> decode(0x00F00043).codes["uimm17"]
        15
    """
    bits = bits or word_bits(value)
    if not 0 <= value < 1 << bits:
        raise EncodingError(f"{value:#x} does not fit a word of {bits} bits.")
    for row in _candidates(bits):
        if value & row.mask == row.match:
            word = Word(row, {field.name: gather(field, value) for field in row.fields})
            _check(word)
            return word
    raise EncodingError(f"word {value:0{bits // 4}X} matches no described form.", hint=_former(value, bits))


def _former(value: int, bits: int) -> str:
    for row in FORMER_WORDS:
        if row.bits == bits and value & row.mask == row.match:
            opcode = gather(row.field("TileOpcode"), value)
            named = next((r for r in INSTRUCTIONS if r.former_opcode == opcode), None)
            if named is not None and named.mode is not None and named.function is not None:
                new = encode(
                    "BSTART.TEPL",
                    DataType=gather(row.field("DataType"), value),
                    Mode=named.mode,
                    Function=named.function,
                )
                return f"It is {named.name} as encoded up to 0.57.0; since 0.57.1 that is {new}."
    return "Known mnemonics: " + ", ".join(dict.fromkeys(row.mnemonic for row in WORDS)) + "."


def problems(rows: Iterable[WordRow] = WORDS) -> Iterator[str]:
    """List what is wrong with a table of word forms: bits claimed twice or by nobody, forms that collide.

    Args:
        rows: the table.

    Returns:
        One line per problem, none for a sound table.
    """
    rows = tuple(rows)
    for row in rows:
        claimed = row.mask
        if row.match & ~row.mask:
            yield f"{row.name}: match has bits outside the mask: {row.match & ~row.mask:#x}"
        for field in row.fields:
            own = 0
            for high, low in field.pieces:
                piece = ((1 << (high - low + 1)) - 1) << low
                if own & piece:
                    yield f"{row.name}.{field.name}: pieces overlap"
                own |= piece
            if claimed & own:
                yield f"{row.name}.{field.name}: bits {claimed & own:#x} are claimed twice"
            claimed |= own
            if field.codes:
                yield from (
                    f"{row.name}.{field.name}: code {code} does not fit"
                    for code in CODE_SETS[field.codes].codes
                    if code >> field.width
                )
        gap = ((1 << row.bits) - 1) & ~claimed
        if gap:
            yield f"{row.name}: bits {gap:#x} belong to nobody"
        if claimed >> row.bits:
            yield f"{row.name}: claims bits beyond {row.bits}"
    for a, b in combinations(rows, 2):
        if a.bits == b.bits and not (a.mask & b.mask & (a.match ^ b.match)) and not _told_apart(a, b):
            yield f"{a.name} and {b.name} match the same words"


def _told_apart(a: WordRow, b: WordRow) -> bool:
    """Whether a code set of the looser form excludes what the stricter one fixes."""
    loose, strict = (a, b) if a.mask & b.mask == a.mask else (b, a)
    for field in loose.fields:
        bits = scatter(field, (1 << field.width) - 1)
        if (
            field.codes
            and bits & strict.mask == bits
            and gather(field, strict.match) not in CODE_SETS[field.codes].codes
        ):
            return True
    return False
