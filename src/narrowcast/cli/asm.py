"""``narrowcast asm``: tile programs and bundle text to words."""

from pathlib import Path
from typing import Annotated

import typer

from narrowcast.cli.terminal import examples, print_json

EPILOG = examples(
    "narrowcast asm prog.pto",
    "narrowcast asm prog.pto -o words.bin",
    "narrowcast asm bundle.txt --json",
    after="Reads PTO-AS (%d = pto.tdequant ...) or bundle text (BSTART.SFU TDEQUANT, S8). JSON keys: words (value "
    "bits text) assumed (the form with parameter tiles, whose bits no public source gives) output.",
)


def asm(
    source: Annotated[Path, typer.Argument(metavar="FILE", help="The program.")],
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="Write the words, little-endian.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing output.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Assemble a tile program into bundle words."""
    from narrowcast.isa import assemble, to_bytes
    from narrowcast.isa.assembly import rests_on_assumption
    from narrowcast.isa.bundle import print_word
    from narrowcast.isa.reading import read_text
    from narrowcast.storage.atomic import atomic_output

    words = assemble(read_text(source))
    if output is not None:
        with atomic_output(output, force=force) as file:
            file.write(to_bytes(words))
    if json:
        rows = [{"value": str(word), "bits": word.bits, "text": print_word(word)} for word in words]
        written = None if output is None else str(output)
        print_json({"words": rows, "assumed": rests_on_assumption(words), "output": written})
        return
    if output is not None:
        print(f"wrote {output}: {len(words)} words, {len(to_bytes(words))} bytes")
        return
    for word in words:
        print(f"{word!s:>16}  {print_word(word)}")
