"""``narrowcast plan``: what quantizing the result of a matrix product costs, on each path."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from narrowcast.cli.terminal import Column, examples, line, note_left_out, print_json, print_table
from narrowcast.errors import ShapeError

if TYPE_CHECKING:
    from narrowcast.advise import PathPlan, Plan, Sweep

EPILOG = examples(
    "narrowcast plan 4096x4096x4096 --acc s32 --out s8",
    "narrowcast plan 4096x4096x4096 --out s8 --scale per-channel --gm-limit l2",
    "narrowcast plan 8192x8192x512 --acc fp32 --inputs e4m3 --out bf16 --table seed",
    "narrowcast plan 4096x4096x4096 --sweep K=64..8192 --plot plan.html",
    after="Paths: A, the Fixpipe converts on the way out; B-UB, accumulators go to UB and the vector core converts "
    "them; B-GM, they go through GM. Loading the operands is not in the plan. The numbers are a model's, not "
    "measurements; each names its source.",
)


def plan(
    size: Annotated[str, typer.Argument(help="M, N and K of the product.", metavar="MxNxK")],
    acc: Annotated[str, typer.Option(help="Accumulator: s32 or fp32.")] = "s32",
    out: Annotated[str, typer.Option(help="Format stored.")] = "s8",
    scale: Annotated[str, typer.Option(help="none, per-tensor, per-channel, per-token or per-group.")] = "per-tensor",
    inputs: Annotated[
        str | None, typer.Option(help="Operand format [default: s8 for s32, fp16 for fp32].", metavar="FORMAT")
    ] = None,
    sku: Annotated[str, typer.Option(help="950PR, 950PR-28, 950PR-957bx, 950DT or 950DT-28.")] = "950PR",
    table: Annotated[
        str, typer.Option(help="vendor: its appendix, the seed's 2.4 for OUT; seed: 2.4 literally.")
    ] = "vendor",
    gm_limit: Annotated[
        str, typer.Option(help="What all cores together can write: none, l2, hbm or starved.")
    ] = "none",
    route: Annotated[str, typer.Option(help="Where path A stores: GM, L1 or UB.")] = "GM",
    tile: Annotated[str | None, typer.Option(help="Rows and columns of an output tile.", metavar="MxN")] = None,
    hoisted: Annotated[bool, typer.Option("--hoisted", help="Load per-channel scales once, not per tile.")] = False,
    unit_flag: Annotated[bool, typer.Option("--unit-flag", help="Product and store share one L0C tile.")] = False,
    recipe: Annotated[str | None, typer.Option(help="Vector recipe, e.g. fp32-mulscast.", metavar="NAME")] = None,
    ideal: Annotated[bool, typer.Option("--ideal", help="Vector loops without derating.")] = False,
    sweep: Annotated[
        str | None, typer.Option(help="Vary one size: K=64..8192, K=64..8192/64 or K=64,96.", metavar="RANGE")
    ] = None,
    plot: Annotated[Path | None, typer.Option(help="Write the sweep as a page with a plot.", metavar="FILE")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON, complete and in full precision.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing --plot file.")] = False,
) -> None:
    """Plan the way out of a matrix product: cycles, microseconds and bytes of each path, each term with its source."""
    m, n, k = _sizes(size, 3, "the product")
    settings: dict[str, Any] = {
        "scale": scale,
        "inputs": inputs,
        "sku": sku,
        "table": table,
        "gm_limit": gm_limit,
        "route": route,
        "tile": None if tile is None else _sizes(tile, 2, "a tile"),
        "hoisted": hoisted,
        "unit_flag": unit_flag,
        "recipe": recipe,
        "ideal": ideal,
    }
    if plot is not None and sweep is None:
        raise typer.BadParameter("--plot draws a sweep: add --sweep K=64..8192")
    from narrowcast import advise

    if sweep is None:
        result = advise.plan(m, n, k, acc, out, **settings)
        print_json(result.to_json()) if json else _print_plan(result)
        return
    swept = advise.sweep(sweep, m, n, k, acc, out, **settings)
    if plot is not None:
        from narrowcast.report.plan_page import plan_page
        from narrowcast.storage import atomic_output

        with atomic_output(plot, force=force) as file:
            file.write(plan_page(swept).encode())
    print_json(swept.to_json()) if json else _print_sweep(swept)


def _sizes(text: str, count: int, what: str) -> tuple[int, ...]:
    if not re.fullmatch(r"\d+" + r"\s*[xX*,×]\s*\d+" * (count - 1), text.strip()):
        shape = "x".join("MNK"[:count])
        raise ShapeError(f"{text!r} is no size of {what}; write {shape}, such as {'x'.join(['4096'] * count)}.")
    return tuple(int(part) for part in re.findall(r"\d+", text))


def _print_plan(plan: "Plan") -> None:
    line("product", f"{plan.m} x {plan.n} x {plan.k}, {plan.inputs} -> {plan.acc} -> {plan.out}, scale {plan.scale}")
    line("on", f"{plan.sku}, {plan.tiles} tiles of {plan.tile[0]} x {plan.tile[1]} on the busiest core")
    line(
        "Cube", f"{plan.cube_cycles} cycles, {plan.cube_microseconds:.2f} us, {plan.products_per_cycle} products/cycle"
    )
    line("rates", f"table {plan.table}, gm-limit {plan.gm_limit}")
    print()
    columns = (
        Column("path"),
        Column("cycles", right=True),
        Column("us", right=True),
        Column("hides from K", right=True, drop=1),
        Column("tail", right=True, drop=2),
        Column("with the product, us", right=True),
        Column("GM MB", right=True),
        Column("limit", drop=3),
    )
    left_out = print_table(columns, [_row(p) for p in plan.paths])
    note_left_out(left_out, "--json has them")
    print()
    for path in plan.paths:
        _print_terms(path)
    line("advice", plan.advice)
    for note in plan.notes:
        line("note", note)


def _row(path: "PathPlan") -> tuple[str, ...]:
    if not path.available:
        return (path.name, "-", "-", "", "", "-", "", "not available")
    if path.cycles is None or path.total_microseconds is None:
        return (path.name, "no figure", "", "", "", "", f"{path.gm_bytes / 1e6:.1f}", "")
    return (
        path.name,
        f"{path.cycles:.0f}",
        f"{path.microseconds:.2f}",
        f"{path.hide_from_k:.0f}{' (hidden)' if path.hidden else ''}",
        f"{path.tail_cycles:.0f}",
        f"{path.total_microseconds:.2f}",
        f"{path.gm_bytes / 1e6:.1f}",
        path.limiting,
    )


def _print_terms(path: "PathPlan") -> None:
    print(f"{path.name}: {path.title}")
    if not path.available:
        line("", f"not available: {path.why_not}")
    for term in path.terms:
        cycles = "no figure" if term.cycles is None else f"{term.cycles:.0f} cycles"
        line("", f"{term.unit:4} {term.name}: {cycles} = {term.formula}")
        line("", f"       {term.source}")
        for table, rate, other in term.other_tables:
            line("", f"       {table} table: " + ("no cell" if rate is None or other is None else
                                                  f"{rate:g} elements/cycle, {other:.0f} cycles"))  # fmt: skip
    for note in path.notes:
        line("", note)
    print()


def _print_sweep(swept: "Sweep") -> None:
    first = swept.plans[0]
    line(
        "product",
        f"{first.m} x {first.n} x {first.k}, {first.acc} -> {first.out}, {first.sku}, {swept.axis.name} varies",
    )
    line("rates", f"table {first.table}, gm-limit {first.gm_limit}; product and path together, us (* hidden)")
    print()
    names = [p.name for p in first.paths]
    columns = [Column(swept.axis.name, right=True), Column("Cube", right=True)]
    columns += [Column(name, right=True) for name in names]
    columns += [Column("best"), Column("limit", drop=1)]
    rows = []
    for value, plan in zip(swept.axis.values, swept.plans, strict=True):
        best = plan.best
        cells = [
            "-" if p.total_microseconds is None else f"{p.total_microseconds:.2f}{'*' * p.hidden}" for p in plan.paths
        ]
        rows.append(
            [
                str(value),
                f"{plan.cube_microseconds:.2f}",
                *cells,
                best.name if best else "-",
                best.limiting if best else "",
            ]
        )
    print_table(columns, rows)
