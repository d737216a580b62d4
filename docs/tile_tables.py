"""Tables of the tile and instruction pages."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from narrowcast.catalog import tile_casts
from narrowcast.catalog.encodings import CODE_SETS, FORMER_WORDS, WORDS
from narrowcast.catalog.instructions import instructions
from narrowcast.operation.findings import Rule
from narrowcast.tile import convert_rules, dequantize_rules, memory, move, quantize_mx, quantize_rules, types
from narrowcast.tile import trace as trace_call
from narrowcast.tile.dequantize import TDequant
from narrowcast.tile.quantize import TQuant

Table = Callable[[Sequence[str], Iterable[Sequence[str]]], str]

RULES: dict[str, tuple[Rule[Any], ...]] = {
    "TILE": types.RULES,
    "TDEQUANT": (*dequantize_rules.ALL,),
    "TQUANT": (*quantize_rules.ALL, quantize_rules.scratch_tile),
    "TQUANT-MX": (*quantize_mx.RULES, quantize_mx.no_fp4_from_fp32),
    "TCVT": (convert_rules.same_valid_shape, convert_rules.same_layout, convert_rules.destination_exists),
    "TRANSFER": memory.RULES,
    "TMOV": move.RULES,
}


def code(text: object) -> str:
    return f"`{text}`"


def tables(table: Table) -> dict[str, Callable[[str], str]]:
    """Return the writers by name."""

    def operands(name: str) -> str:
        """Operands, C++ call and public tests of an instruction."""
        row = instructions[name]
        listed = table(
            ["operand", "direction", "types", "shape", "layout", "meaning"],
            [[code(o.name), o.direction, ", ".join(o.dtypes), o.shape, o.layout, o.meaning] for o in row.operands],
        )
        folders = "\n".join(f"- `{folder}`" for folder in row.tests)
        return (
            f"{listed}\nPipe {row.pipe}. In C++, `#include <{row.header}>` (declared in `{row.declared_in}`):\n\n"
            f"```cpp\n{row.signature}\n```\n\nThe public examples, in the tile library's repository:\n\n{folders}\n"
        )

    def selectors(_: str) -> str:
        """Selectors of the instructions, now and before 0.57.1."""
        return table(
            ["instruction", "opens with", "Mode", "Function", "selector", "up to 0.57.0"],
            [
                [
                    code(row.name),
                    code(row.start),
                    "-" if row.mode is None else str(row.mode),
                    "-" if row.function is None else str(row.function),
                    "-" if row.selector is None else f"0x{row.selector:03X}",
                    "-" if row.former_opcode is None else f"0x{row.former_opcode:03X}",
                ]
                for row in instructions.values()
            ],
        )

    def words(_: str) -> str:
        """Every word form with its fixed bits and fields."""
        rows = []
        for row in (*WORDS, *FORMER_WORDS):
            digits = row.bits // 4
            fields = []
            for field in row.fields:
                pieces = ",".join(f"{h}:{low}" if h != low else str(h) for h, low in field.pieces)
                fields.append(f"{field.name}[{pieces}]")
            rows.append(
                [
                    code(row.name), str(row.bits), code(f"{row.mask:0{digits}X}"), code(f"{row.match:0{digits}X}"),
                    " ".join(fields) or "-", row.role,
                ]
            )  # fmt: skip
        return table(["form", "bits", "mask", "match", "fields", "role"], rows)

    def codes(_: str) -> str:
        """Codes of every field that has names."""
        return table(
            ["codes", "values"],
            [
                [row.name, ", ".join(f"{k} {v}" if str(k) != v else v for k, v in row.codes.items())]
                for row in CODE_SETS.values()
                if row.name != "unused"
            ],
        )

    def rules(name: str) -> str:
        """Rules with the reasons the documents give."""
        return table(["rule", "states", "reason"], [[code(r.id), r.states, r.cause] for r in RULES[name]])

    def pairs(_: str) -> str:
        """Pairs of TCVT and what a call that names no saturation gets."""
        both: dict[tuple[str, str], dict[str, str]] = {}
        for row in tile_casts.ROWS:
            cell = "saturates" if row.saturates else "keeps low bits"
            both.setdefault((row.source, row.target), {})[row.chip] = f"{cell}, {row.fixed}" if row.fixed else cell
        return table(
            ["source", "target", "3510", "2201"],
            [[code(s), code(t), cell.get("3510", "-"), cell.get("2201", "-")] for (s, t), cell in both.items()],
        )

    def micro(argument: str) -> str:
        """The micro-operations of one row of one instruction on one chip."""
        name, dtype, chip = argument.split()
        op = TDequant.on(dtype, 1, 64) if name == "tdequant" else TQuant.on(dtype, 1, 64, "multiplier")
        found = trace_call(op, chip)
        lines = "\n".join(f"{i:2}  {step}" for i, step in enumerate(found.steps))
        return f"```text\n{lines}\n```\n"

    return {
        "instruction": operands,
        "selectors": selectors,
        "words": words,
        "codes": codes,
        "rules": rules,
        "tile-casts": pairs,
        "micro": micro,
    }
