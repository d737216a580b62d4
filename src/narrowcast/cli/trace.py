"""``narrowcast trace``: what a chip executes for a tile instruction."""

from enum import StrEnum
from typing import Annotated

import typer

from narrowcast.cli.terminal import Column, examples, note_left_out, print_json, print_table

EPILOG = examples(
    "narrowcast trace tdequant --src s8 --shape 4x100 --chip 3510",
    "narrowcast trace tdequant --src s8 --shape 1x8 --chip kirinx90 --lanes",
    "narrowcast trace tquant --to u8 --shape 2x64 --chip 2201 --json",
    after="JSON keys: op chip source steps (step op detail writes reads row column lanes offset_bytes) and, with "
    "--lanes, elements (step lane active element).",
)


class Instruction(StrEnum):
    """Instructions with micro-operations on record."""

    TDEQUANT = "tdequant"
    TQUANT = "tquant"


def trace(
    instruction: Annotated[Instruction, typer.Argument(help="The instruction.")],
    shape: Annotated[str, typer.Option("--shape", metavar="RxC", help="Valid shape, e.g. 4x100.")],
    src: Annotated[str, typer.Option("--src", metavar="FORMAT", help="Code format of tdequant: s8 or s16.")] = "s8",
    to: Annotated[str, typer.Option("--to", metavar="FORMAT", help="Code format of tquant: s8 or u8.")] = "s8",
    chip: Annotated[str, typer.Option("--chip", help="3510, 2201 or kirinx90.")] = "3510",
    lanes: Annotated[
        bool, typer.Option("--lanes", help="One line per lane, with the tile element it works on.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List the micro-operations a chip executes for a tile instruction of a given shape."""
    from narrowcast.tile import TDequant, TQuant
    from narrowcast.tile import trace as trace_call

    rows, cols = _shape(shape)
    op = (
        TDequant.on(src, rows, cols) if instruction is Instruction.TDEQUANT else TQuant.on(to, rows, cols, "multiplier")
    )
    found = trace_call(op, chip)
    if json:
        form = {
            "op": instruction.value,
            "chip": found.semantics.chip,
            "source": found.source,
            "steps": found.to_json(),
        }
        if lanes:
            form["elements"] = [
                {"step": lane.step, "lane": lane.lane, "active": lane.active, "element": lane.element}
                for lane in found.lanes()
            ]
        print_json(form)
        return
    title = f"{instruction.value} {shape} on chip {found.semantics.chip} [{found.source}]"
    number, name = Column("#", right=True), Column("micro-operation")
    if lanes:
        columns = [number, name, Column("lane", right=True), Column("element")]
        table = [
            [
                str(lane.step),
                str(found.steps[lane.step]),
                str(lane.lane),
                "masked" if lane.element is None else f"[{lane.element[0]}, {lane.element[1]}]",
            ]
            for lane in found.lanes()
        ]
    else:
        columns = [number, Column("row", right=True), Column("columns"), name, Column("lanes", right=True)]
        table = [
            [str(i), str(s.row), f"{s.column}..{s.column + s.lanes - 1}", str(s), str(s.lanes)]
            for i, s in enumerate(found.steps)
        ]
    note_left_out(print_table(columns, table, title=title), "use --json")


def _shape(text: str) -> tuple[int, int]:
    rows, cross, cols = text.lower().partition("x")
    if not (cross and rows.isdigit() and cols.isdigit() and int(rows) and int(cols)):
        raise typer.BadParameter(f"a shape is written RxC, e.g. 4x100; got {text!r}", param_hint="--shape")
    return int(rows), int(cols)
