"""``narrowcast check``: the rules that a program breaks, before anything runs."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from narrowcast.cli.terminal import FINDINGS, examples, line, print_json

if TYPE_CHECKING:
    from narrowcast.operation import Finding

EPILOG = examples(
    "narrowcast check program.yaml",
    "narrowcast check program.yaml --chip 2201 --json",
    "narrowcast check kernel.pto",
    after="A program is a list of operations with formats, addresses, routes and times; docs/check.md shows one. "
    "Exit code 0 when nothing is wrong, 1 with findings, 2 when the file does not read.",
)


def check(
    path: Annotated[Path, typer.Argument(help="A program: .yaml, .json or .pto.", metavar="PATH")],
    chip: Annotated[str | None, typer.Option(help="Check for this chip [default: the program's].")] = None,
    authority: Annotated[str | None, typer.Option(help="device, seed, pto-isa or pto-spec.")] = None,
    purpose: Annotated[str | None, typer.Option(help="inference or training.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Check a program against the constraints of its operations and those between them."""
    from narrowcast.checks import check as check_program
    from narrowcast.checks import read_program
    from narrowcast.operation import Semantics

    program = read_program(path)
    semantics = Semantics(authority or program.authority, chip or program.chip)
    found = check_program(program, semantics, purpose=purpose)
    if json:
        print_json(
            {
                "path": str(path),
                "chip": semantics.chip,
                "operations": len(program.steps),
                "findings": [f.to_json() for f in found],
            }
        )
    else:
        _print(found, len(program.steps), semantics.chip)
    if found:
        raise typer.Exit(FINDINGS)


def _print(found: "list[Finding]", operations: int, chip: str) -> None:
    many = "operation" if operations == 1 else "operations"
    if not found:
        print(f"{operations} {many} on chip {chip}: nothing wrong.")
        return
    for finding in found:
        print(f"{finding.rule}  {finding.place}")
        line("", finding.message)
        line("fix", finding.fix)
        line("source", finding.source)
        print()
    print(f"{operations} {many} on chip {chip}: {len(found)} finding{'s' * (len(found) > 1)}.")
