"""``narrowcast run``: a tile program on arrays."""

from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from narrowcast.cli.terminal import FINDINGS, examples, print_json

EPILOG = examples(
    "narrowcast run prog.pto --in s=src.npy sc=scale.npy of=offset.npy --out d=dst.npy",
    "narrowcast run prog.pto --in s=src.npy --out d=dst.npy --chip 2201 --authority pto-isa",
    after="A name is a memory of the program: what tload reads, what tstore writes (then its file is the output, and "
    "--in gives its first content). JSON keys: outputs (name path shape dtype) findings.",
)
_LISTS = ("--in", "--out")


class Command(TyperCommand):
    """A command whose ``--in`` and ``--out`` take several NAME=FILE words each."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Repeat the option before every word that belongs to it."""
        spread: list[str] = []
        option, fresh = "", False
        for word in args:
            if option and not fresh and "=" in word and not word.startswith("-"):
                spread.append(option)
            elif not fresh:
                option = next((name for name in _LISTS if word == name or word.startswith(f"{name}=")), "")
            fresh = word in _LISTS
            spread.append(word)
        return super().parse_args(ctx, spread)


def run(
    program: Annotated[Path, typer.Argument(metavar="PROGRAM", help="PTO-AS text.")],
    inputs: Annotated[
        list[str] | None, typer.Option("--in", metavar="NAME=FILE ...", help="Arrays that the program loads (.npy).")
    ] = None,
    outputs: Annotated[
        list[str] | None, typer.Option("--out", metavar="NAME=FILE ...", help="Where to write what it stores (.npy).")
    ] = None,
    authority: Annotated[str, typer.Option("--authority", help="device, seed, pto-isa or pto-spec.")] = "device",
    chip: Annotated[str, typer.Option("--chip", help="3510, 2201, kirinx90 or cpu-sim.")] = "3510",
    force: Annotated[bool, typer.Option("--force", help="Replace existing outputs.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Run a tile program on arrays."""
    import numpy as np

    from narrowcast.errors import NarrowcastError
    from narrowcast.isa import parse
    from narrowcast.isa import run as run_program
    from narrowcast.isa.reading import read_array, read_text
    from narrowcast.operation import Semantics
    from narrowcast.storage.atomic import atomic_output

    semantics = Semantics(authority, chip)
    parsed = parse(read_text(program))
    given = dict(_binding(word) for word in inputs or ())
    wanted = dict(_binding(word) for word in outputs or ())
    if not wanted:
        known = ", ".join(parsed.outputs) or "nothing"
        raise NarrowcastError(f"no output is named (the program stores: {known}).", hint="Add --out NAME=FILE.")
    for name in wanted:
        if name not in parsed.outputs:
            known = ", ".join(parsed.outputs) or "none"
            raise NarrowcastError(f"the program stores no memory {name} (it stores: {known}).")
    result = run_program(parsed, {name: read_array(path) for name, path in given.items()}, semantics)
    written: list[dict[str, Any]] = []
    for name, path in wanted.items():
        array = result.arrays[name]
        plain = (
            array
            if array.dtype.kind in "fiu" and array.dtype.isbuiltin
            else array.view(f"uint{8 * array.dtype.itemsize}")
        )
        with atomic_output(path, force=force) as file:
            np.lib.format.write_array(file, plain, allow_pickle=False)
        written.append({"name": name, "path": str(path), "shape": list(array.shape), "dtype": array.dtype.name})
    if json:
        print_json({"outputs": written, "findings": [finding.to_json() for finding in result.findings]})
    else:
        for row in written:
            print(f"wrote {row['path']}: {row['name']}, {row['dtype']} {'x'.join(map(str, row['shape']))}")
        for finding in result.findings:
            print(finding)
    if result.findings:
        raise typer.Exit(FINDINGS)


def _binding(word: str) -> tuple[str, Path]:
    name, equals, path = word.partition("=")
    if not equals or not name or not path:
        raise typer.BadParameter(f"a file is given as NAME=FILE; got {word!r}")
    return name.lstrip("%@"), Path(path)
