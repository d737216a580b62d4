"""``narrowcast advise``: which rounding mode, and which of the seed's scenarios."""

from typing import TYPE_CHECKING, Annotated

import typer

from narrowcast.cli.terminal import CONTEXT, Column, examples, line, print_json, print_table

if TYPE_CHECKING:
    from narrowcast.advise import PathAdvice, RoundingAdvice

ROUNDING_EPILOG = examples(
    "narrowcast advise rounding --inference --no-unbiased --prefer speed",
    "narrowcast advise rounding --training --to e4m3 --data x.npy",
    "narrowcast advise rounding --special accumulation --to fp16 --data x.npy",
    after="The tree and its answer are the seed's (5.3). With --data every mode is measured on your values, and a "
    "warning says where the seed's answer is illegal on the chip or loses.",
)
PATH_EPILOG = examples(
    "narrowcast advise path --from s32 --to s8 --after-matmul",
    "narrowcast advise path --from fp32 --to e4m3 --chip 2201",
    "narrowcast advise path --from bf16 --to e2m1 --scale per-group --snippet",
    after="Scenarios are the eleven of seed 4. The C++ is a skeleton, not code to compile as it is.",
)

app = typer.Typer(rich_markup_mode=None, context_settings=CONTEXT)


@app.callback(invoke_without_command=True)
def advise(context: typer.Context) -> None:
    """Advise a rounding mode, or the path from one format to another."""
    if context.invoked_subcommand is None:
        print(context.get_help())


@app.command(
    short_help="Walk the decision tree, and measure each mode.", epilog=ROUNDING_EPILOG, context_settings=CONTEXT
)
def rounding(
    training: Annotated[
        bool | None, typer.Option("--training/--inference", help="What the numbers are for.", show_default=False)
    ] = None,
    unbiased: Annotated[
        bool | None, typer.Option("--unbiased/--no-unbiased", help="Must errors cancel?", show_default=False)
    ] = None,
    prefer: Annotated[str | None, typer.Option(help="speed or accuracy.")] = None,
    special: Annotated[str | None, typer.Option(help="upper-bound, lower-bound or accumulation.")] = None,
    source: Annotated[
        str | None, typer.Option("--from", help="Format of the values [default: the data's].", metavar="FORMAT")
    ] = None,
    to: Annotated[str | None, typer.Option(help="Format to round to.", metavar="FORMAT")] = None,
    chip: Annotated[str, typer.Option(help="Chip whose legal modes are listed.")] = "3510",
    data: Annotated[
        str | None,
        typer.Option(
            help="Values to measure every mode on, .npy or model.safetensors:TENSOR; needs --to.", metavar="FILE"
        ),
    ] = None,
    scale: Annotated[
        float | None, typer.Option(help="Divide by this first [default: absmax / target, 1 for 16-bit floats].")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Walk the seed's decision tree; with --data, measure what each mode does to your values."""
    values = None
    if data is not None:
        from narrowcast.storage.arrays import load_array

        values = load_array(data)
    from narrowcast.advise import rounding as advise_rounding

    found = advise_rounding(
        training=training,
        unbiased=unbiased,
        prefer=prefer,
        special=special,
        source=source,
        target=to,
        chip=chip,
        data=values,
        scale=scale,
    )
    print_json(found.to_json()) if json else _print_rounding(found)


@app.command(short_help="Choose among the eleven scenarios.", epilog=PATH_EPILOG, context_settings=CONTEXT)
def path(
    source: Annotated[str, typer.Option("--from", help="Format of the data.", metavar="FORMAT")],
    to: Annotated[str, typer.Option(help="Format wanted.", metavar="FORMAT")],
    after_matmul: Annotated[bool, typer.Option("--after-matmul", help="The data is a product, still in L0C.")] = False,
    chip: Annotated[str, typer.Option(help="3510 or 2201.")] = "3510",
    scale: Annotated[str, typer.Option(help="none, per-tensor, per-channel, per-token or per-group.")] = "per-tensor",
    snippet: Annotated[bool, typer.Option("--snippet", help="Also print the C++ skeleton.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Choose among the eleven scenarios: API on each chip, constraints, cost, the call that emulates it."""
    from narrowcast.advise import path as advise_path

    found = advise_path(source, to, after_matmul=after_matmul, chip=chip, scale=scale)
    print_json(found.to_json()) if json else _print_path(found, snippet)


def _print_rounding(advice: "RoundingAdvice") -> None:
    for i, step in enumerate(advice.steps):
        line("tree" if i == 0 else "", f"{step.asks} ({step.original})  {step.answer}")
    if advice.open_question is not None:
        from narrowcast.catalog.advice import questions

        question = questions[advice.open_question]
        line("open", f"{question.asks} ({question.original})  {' or '.join(a for a, _ in question.branches)}")
        for mode, says in advice.possible:
            line("", f"  {mode:4} {says}")
    else:
        line("seed", f"{advice.mode}: {advice.says}  [{advice.source}]")
        line("", advice.original)
        line("", f"typical use of {advice.mode}: {advice.typical_use} [seed:3.5]")
    for i, row in enumerate(advice.legal):
        line("legal" if i == 0 else "", f"{row.where}: {', '.join(row.modes)} [{row.source}]")
    if advice.measured:
        print()
        line("measured", f"on your values, -> {advice.target}, scale {advice.measured[0].scale:g}; best first")
        columns = (
            Column("mode"),
            Column("SQNR dB", right=True),
            Column("bias", right=True),
            Column("magnitude", right=True),
            Column("worst error", right=True),
            Column("at", drop=1),
            Column("remark"),
        )
        legal = {m for row in advice.legal for m in row.modes}
        rows = [
            (
                m.mode,
                f"{m.sqnr_db:.2f}",
                f"{m.bias:.3g}",
                f"{m.shrinkage:+.3%}",
                f"{m.worst_error:.3g}",
                f"{list(m.worst_index)}",
                ", ".join(
                    w
                    for w, said in (("the seed's", m.mode == advice.mode), ("not on this chip", m.mode not in legal))
                    if said
                ),
            )
            for m in advice.measured
        ]
        print_table(columns, rows)
        print()
    for warning in advice.warnings:
        line("warning", warning)


def _print_path(advice: "PathAdvice", snippet: bool) -> None:
    row = advice.scenario
    if row is not None:
        line("scenario", f"{row.number}, {row.title}  [{row.source}]")
        line("", row.original)
        for chip, api in row.api.items():
            line(f"API {chip}", api)
        if advice.mode:
            line("mode", advice.mode)
        if row.modes and row.side == "vector":
            line("rounding", ", ".join(row.modes))
        line("data", row.place)
        line("needs", "; ".join(row.parameters))
        line("rules", ", ".join(row.constraints))
        line("cost", row.cost)
        for i, text in enumerate(row.emulation.splitlines()):
            line("here" if i == 0 else "", text)
    elif advice.chain:
        line("scenario", "none converts the pair at once")
        line("chain", " -> ".join(advice.chain))
    else:
        line("scenario", "none")
    for note in advice.notes:
        line("note", note)
    print()
    for i, other in enumerate(advice.alternatives):
        verdict = "" if other.possible else "no: "
        line("others" if i == 0 else "", f"{other.number:2} {other.title}: {verdict}{'; '.join(other.why_not)}")
    if snippet and row is not None:
        print()
        print(row.snippet)
