"""``narrowcast disasm``: bundle words to text."""

from pathlib import Path
from typing import Annotated

import typer

from narrowcast.cli.terminal import examples, print_json

EPILOG = examples(
    "narrowcast disasm words.bin",
    "narrowcast disasm --words '9EB19181 00109023 00F00043 00000001'",
    after="The text assembles to the same words. JSON keys: words (value bits text fields) assumed (the form with "
    "parameter tiles, whose bits no public source gives).",
)


def disasm(
    source: Annotated[Path | None, typer.Argument(metavar="[FILE]", help="Words in a file, little-endian.")] = None,
    words: Annotated[str | None, typer.Option("--words", metavar="HEX", help="Words in hexadecimal instead.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Disassemble bundle words."""
    from narrowcast.isa import disassemble, from_bytes, parse_words
    from narrowcast.isa.assembly import rests_on_assumption
    from narrowcast.isa.bundle import print_word

    if (source is None) == (words is None):
        raise typer.BadParameter("give a FILE or --words, one of them")
    found = from_bytes(source.read_bytes()) if source is not None else parse_words(str(words))
    if json:
        rows = [
            {"value": str(word), "bits": word.bits, "text": print_word(word), "fields": dict(word.codes)}
            for word in found
        ]
        print_json({"words": rows, "assumed": rests_on_assumption(found)})
        return
    print(disassemble(found), end="")
