"""Tokens of PTO-AS text, with line and column."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from narrowcast.errors import EncodingError

_TOKEN = re.compile(
    r"""\s*(?:(?P<comment>//.*)
    |(?P<value>[%@][A-Za-z_0-9.$-]+)
    |(?P<type>!\s*pto\.[a-z_]+\s*<)
    |(?P<enum>\#pto(?:\.[a-z_]+)?\s*<[^<>]*>)
    |(?P<attribute>\#\s*[A-Za-z_]+\s*=\s*[A-Za-z_0-9.]+)
    |(?P<arrow>->)
    |(?P<number>-?(?:0x[0-9a-fA-F]+|\d+(?:\.\d+)?(?:e[+-]?\d+)?))
    |(?P<name>[A-Za-z_][A-Za-z_0-9.]*)
    |(?P<string>"[^"]*")
    |(?P<sign>[(){}\[\],:=])
    )""",
    re.VERBOSE,
)


@dataclass(frozen=True)
class Token:
    """One token: its kind, its text and where it begins."""

    kind: str
    text: str
    line: int
    column: int


def tokens(text: str) -> Iterator[Token]:
    """Yield the tokens of a text, an ``end`` token last."""
    line, start, position = 1, 0, 0
    while True:
        while position < len(text) and text[position] in " \t\r\n":
            if text[position] == "\n":
                # A newline is white space: statements end where the grammar says, or at a new one.
                line, start = line + 1, position + 1
            position += 1
        if position >= len(text):
            yield Token("end", "the end", line, position - start + 1)
            return
        if text[position] == "#" and not text[start:position].strip() and not text.startswith("#pto", position):
            position = _line_end(text, position)
            continue
        found = _TOKEN.match(text, position)
        column = position - start + 1
        if found is None:
            raise error(f"{text[position]!r} is not part of the language.", line, column)
        kind = str(found.lastgroup)
        end = _type_end(text, found.end(), line, column) if kind == "type" else found.end()
        if kind != "comment":
            yield Token(kind, text[position:end], line, column)
        for i in range(position, end):
            if text[i] == "\n":
                line, start = line + 1, i + 1
        position = end


def _line_end(text: str, position: int) -> int:
    end = text.find("\n", position)
    return len(text) if end < 0 else end


def _type_end(text: str, position: int, line: int, column: int) -> int:
    end = text.find(">", position)
    if end < 0 or "<" in text[position:end]:
        raise error("the type is not closed with >.", line, column)
    return end + 1


def error(message: str, line: int, column: int, hint: str | None = None) -> EncodingError:
    """Return the error for a place in the text."""
    return EncodingError(f"line {line}, column {column}: {message}", hint=hint, source="pto-isa:PTO-AS")
