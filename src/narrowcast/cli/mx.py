"""``narrowcast mx``: what each MX scale rule costs on the tensors of a checkpoint."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from narrowcast.cli.terminal import Column, examples, note_left_out, print_json, print_table, progress

if TYPE_CHECKING:
    from narrowcast.mx.comparison import Comparison, RuleError
    from narrowcast.schema import Format

EPILOG = examples(
    "narrowcast mx model.safetensors",
    "narrowcast mx model.safetensors --format e4m3 --rules ocp-floor,ceil,cann-0,cann-1",
    "narrowcast mx model.safetensors --format e2m1 --rules cann-2:dst_type_max=6,cann-2:dst_type_max=7 --worst 5",
    "narrowcast mx model.safetensors --json > rules.json",
    after="Blocks run along the last axis of tensors with two axes and more; a short last block is padded with zeros. "
    "Elements saturate. A rule's parameters follow a colon; the rules are listed in docs/mx.md.",
)


def mx(
    model: Annotated[Path, typer.Argument(help="A .safetensors file.", metavar="MODEL")],
    format: Annotated[str, typer.Option(help="Element format: e4m3, e5m2, e2m1, e1m2, e3m2, e2m3 or s8.")] = "e2m1",
    rules: Annotated[
        str, typer.Option(help="Scale rules to compare, comma-separated; on a tie the first wins.", metavar="A,B,...")
    ] = "ocp-floor,ceil,even,mse2",
    block: Annotated[int, typer.Option(help="Elements per scale, a multiple of 32.")] = 32,
    worst: Annotated[int, typer.Option(help="How many of each rule's worst blocks to list.", min=0)] = 3,
    flatten: Annotated[
        bool, typer.Option("--flatten", help="Join all axes but the first: for convolution weights.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON, complete and in full precision.")] = False,
) -> None:
    """Compare MX scale rules on a checkpoint: error per tensor and in total, and the blocks each rule hurts."""
    result = _run(model, format, _split(rules), block, worst, flatten)
    if json:
        from narrowcast.report.mx_json import comparison_document

        print_json(comparison_document(result))
    else:
        _print(result)


def _split(text: str) -> list[str]:
    """Cut at commas, but not at those between one rule's parameters."""
    rules: list[str] = []
    for part in filter(None, (p.strip() for p in text.split(","))):
        if "=" in part and ":" not in part and rules and ":" in rules[-1]:
            rules[-1] += f",{part}"
        else:
            rules.append(part)
    return rules


def _run(model: Path, format: str, rules: list[str], block: int, worst: int, flatten: bool) -> "Comparison":
    import math

    from narrowcast.mx.comparison import compare_rules_in_file
    from narrowcast.storage import open_safetensors

    with open_safetensors(model) as file:
        total = sum(math.prod(file.info(name).array_shape) for name in file.names)
    with progress(f"comparing on {model.name}", total) as advance:
        return compare_rules_in_file(model, format, rules, block=block, worst=worst, flatten=flatten, progress=advance)


def _print(result: "Comparison") -> None:
    left_out = _print_tensors(result)
    print()
    left_out += _print_total(result)
    _print_worst(result)
    for rule in result.total:
        if rule.refused:
            print(f"\n{rule.rule}: {rule.refused}")
    if result.skipped:
        names = ", ".join(f"{name} ({why})" for name, why in result.skipped[:4])
        more = f" and {len(result.skipped) - 4} more" if len(result.skipped) > 4 else ""
        print(f"\nnot compared: {names}{more}.")
    note_left_out(left_out, "--json has all")


def _print_tensors(result: "Comparison") -> tuple[str, ...]:
    from narrowcast.report import figures

    columns = [Column("tensor"), Column("type", drop=2), Column("shape", drop=1)]
    columns += [Column(f"{rule.rule}\ndB", right=True) for rule in result.total]
    rows = []
    for t in result.tensors:
        levels = [
            "-" if r.refused else figures.decibel(r.sqnr_db) + (" *" if r.rule == t.best else "") for r in t.rules
        ]
        shape = "x".join(map(str, t.shape)) + (f" (+{t.padded})" if t.padded else "")
        rows.append([t.name, t.dtype, shape, *levels])
    title = f"SQNR of {result.format} in blocks of {result.block} under each scale rule (* least error)"
    return print_table(columns, rows, title=title)


def _print_total(result: "Comparison") -> tuple[str, ...]:
    from narrowcast.report import figures

    columns = [
        Column("all tensors"),
        Column("rounding", drop=4),
        Column("SQNR dB", right=True),
        Column("max error", right=True, drop=5),
        Column("clipped", right=True, drop=1),
        Column("in blocks", right=True, drop=2),
        Column("flushed", right=True, drop=1),
        Column("whole blocks", right=True, drop=2),
        Column("ties", right=True, drop=3),
        Column("NaN blocks", right=True, drop=6),
    ]
    rows = [_total_row(rule) for rule in result.total]
    left_out = print_table(columns, rows)
    row = _format_row(result.format)
    print(
        f"clipped: scaled values beyond {row.max:g}; flushed: values that became zero; ties: scaled values halfway "
        f"between two codes. {figures.count(max(r.blocks for r in result.total))} blocks in all; elements saturate."
    )
    return left_out


def _total_row(rule: "RuleError") -> list[str]:
    from narrowcast.report import figures

    if rule.refused:
        return [rule.rule, rule.rounding, "-", "-", "-", "-", "-", "-", "-", "-"]
    return [
        rule.rule,
        rule.rounding,
        figures.decibel(rule.sqnr_db),
        figures.real(rule.max_error),
        figures.count(rule.clipped),
        figures.count(rule.clipped_blocks),
        figures.count(rule.flushed),
        figures.count(rule.flushed_blocks),
        figures.count(rule.ties),
        figures.count(rule.nan_blocks),
    ]


def _format_row(name: str) -> "Format":
    from narrowcast.catalog.formats import formats

    return formats[name]


def _print_worst(result: "Comparison") -> None:
    from narrowcast.report import figures

    rows: list[list[str]] = []
    for rule in result.total:
        head = rule.rule
        for b in rule.worst:
            place = "[" + ", ".join(map(str, b.row)) + "]"
            rows.append(
                [head, b.tensor, place, str(b.block), figures.real(b.absmax), str(b.byte), f"{b.sqnr_db:.1f}", b.why]
            )
            head = ""
    if rows:
        print()
        columns = [
            Column("worst blocks of"),
            Column("tensor"),
            Column("row"),
            Column("block", right=True),
            Column("absmax", right=True),
            Column("byte", right=True),
            Column("SQNR dB", right=True),
            Column("why"),
        ]
        print_table(columns, rows)
