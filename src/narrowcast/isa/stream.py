"""Words as bytes: little-endian, 16, 32 or 64 bits each."""

from collections.abc import Iterable

from narrowcast.errors import EncodingError
from narrowcast.isa.fields import Word, decode, word_bits


def to_bytes(words: Iterable[Word]) -> bytes:
    """Lay words out in memory."""
    return b"".join(word.value.to_bytes(word.bits // 8, "little") for word in words)


def from_bytes(data: bytes) -> list[Word]:
    """Read words from memory; an undecodable one is an error that names its byte offset."""
    words = []
    offset = 0
    while offset < len(data):
        if len(data) - offset < 2:
            raise EncodingError(f"byte offset {offset}: one byte is left over; words have 2, 4 or 8.")
        bits = word_bits(int.from_bytes(data[offset : offset + 2], "little"))
        size = bits // 8
        if offset + size > len(data):
            raise EncodingError(
                f"byte offset {offset}: the word needs {size} bytes, {len(data) - offset} are left.",
                hint="The file is cut short, or is no bundle file.",
            )
        try:
            words.append(decode(int.from_bytes(data[offset : offset + size], "little"), bits))
        except EncodingError as error:
            raise EncodingError(
                f"byte offset {offset}: {error.message}", code=error.code, hint=error.hint, source=error.source
            ) from None
        offset += size
    return words


def parse_words(text: str) -> list[Word]:
    """Read words written in hexadecimal, 4, 8 or 16 digits each, separated by spaces."""
    words = []
    for number, part in enumerate(text.split(), 1):
        digits = part.removeprefix("0x")
        try:
            value = int(digits, 16)
        except ValueError:
            raise EncodingError(f"word {number}: {part!r} is not hexadecimal.") from None
        if len(digits) not in (4, 8, 16):
            raise EncodingError(f"word {number}: {part!r} has {len(digits)} digits; words have 4, 8 or 16.")
        words.append(decode(value, 4 * len(digits)))
    return words
