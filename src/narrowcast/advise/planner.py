"""Cycles, microseconds and bytes of the two ways out of a matrix product."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from narrowcast.advise.plan_result import PathPlan, Plan, Term
from narrowcast.advise.rates import TABLES, drain_rates, size_of
from narrowcast.catalog import machine
from narrowcast.catalog.fixpipe_modes import FixpipeMode, fixpipe_modes
from narrowcast.catalog.formats import formats
from narrowcast.catalog.planner import (
    FIXPIPE_SCALES,
    MATRIX,
    RECIPES,
    SCALES,
    MatrixRow,
    RecipeRow,
    SkuRow,
    constants,
    limits,
    recipes,
    skus,
)
from narrowcast.errors import ShapeError, UnsupportedCastError, unknown_name

ROUTES = ("GM", "L1", "UB")
LANES = 64  # 4-byte elements of a vector register
LARGEST_SIDE = 1 << 40


@dataclass(frozen=True)
class _Job:
    """What the terms are computed from: one busiest core's share."""

    sku: SkuRow
    acc: str
    out: str
    table: str
    limit: str
    route: str
    strided: bool
    tile: tuple[int, int]
    tiles: int
    elements: int
    per_channel: bool
    hoisted: bool
    ideal: bool

    @property
    def tile_elements(self) -> int:
        return self.elements // self.tiles


def plan(
    m: int,
    n: int,
    k: int,
    acc: str = "s32",
    out: str = "s8",
    *,
    scale: str = "per-tensor",
    inputs: str | None = None,
    sku: str = "950PR",
    table: str = "vendor",
    gm_limit: str = "none",
    route: str = "GM",
    strided: bool = False,
    tile: Sequence[int] | None = None,
    hoisted: bool = False,
    recipe: str | None = None,
    unit_flag: bool = False,
    ideal: bool = False,
) -> Plan:
    """Estimate what quantizing the result of a matrix product costs on each path.

    Formulas, per cube core with E elements in T tiles: path A ``T * 26 + E / R``, plus ``T * (26 + 8 n / 32)``
    when per-channel parameters are loaded for every tile; a path's stages overlap over the tiles,
    ``max + (sum - max) / T``; the result overlaps the product when two tiles fit in L0C, ``max(cube, stages)``
    and the last tile's tail. Loading the operands is not in the plan.

    Args:
        m: rows of the result.
        n: columns.
        k: inner size.
        acc: accumulator, ``s32`` or ``fp32``.
        out: format stored.
        scale: ``none``, ``per-tensor``, ``per-channel``, ``per-token`` or ``per-group``; the Fixpipe has the
            first three only.
        inputs: operand format; None: s8 for an s32 accumulator, fp16 for fp32.
        sku: product, see ``narrowcast.catalog.planner``.
        table: ``vendor`` (its appendix for L1 and UB, the seed's 2.4 for OUT) or ``seed`` (2.4 literally).
        gm_limit: ``none``, ``l2``, ``hbm`` or ``starved``: what all cores together can write.
        route: where path A stores: GM, L1 or UB.
        strided: NZ2DN with a source stride above 1.
        tile: rows and columns of an output tile; None: chosen so that two fit and every core has one.
        hoisted: per-channel parameters are loaded once, not for every tile.
        recipe: vector recipe; None: the exact one for the pair.
        unit_flag: the store follows the product in pieces of 512 B, so one tile may fill L0C.
        ideal: without the derating of the vector loops.

    Returns:
        A :class:`Plan`: the paths with their terms, each with its formula and source.

    Raises:
        ShapeError: a size below 1, or a tile that L0C cannot hold.
        UnknownNameError: an unknown format, SKU, table, limit, route, scale or recipe.
        UnsupportedCastError: operands that do not accumulate in ``acc``, a recipe for another pair.

    Source: cost model of docs/plan.md; every term names its own.

    Example:
        >>> best = plan(4096, 4096, 4096, gm_limit="l2").best
        >>> best.name, round(best.cycles), round(best.hide_from_k)
        ('A', 8608, 134)
    """
    _check_sizes(m=m, n=n, k=k)
    acc, out = _accumulator(acc), formats[out].name
    for kind, value, legal in (("scale", scale, SCALES), ("rate table", table, TABLES), ("route", route, ROUTES)):
        if value not in legal:
            raise unknown_name(kind, value, legal)
    product = _matrix_row(acc, inputs)
    sku_row, limit = skus[sku], limits[gm_limit]
    shape = _tile(m, n, tile, sku_row.cube_cores)
    all_tiles = math.ceil(m / shape[0]) * math.ceil(n / shape[1])
    tiles = math.ceil(all_tiles / sku_row.cube_cores)
    job = _Job(
        sku=sku_row,
        acc=acc,
        out=out,
        table=table,
        limit=limit.name,
        route=route,
        strided=strided,
        tile=shape,
        tiles=tiles,
        elements=tiles * shape[0] * shape[1],
        per_channel=scale == "per-channel",
        hoisted=hoisted,
        ideal=ideal,
    )
    bm, bn, bk = product.block
    cube = tiles * math.ceil(shape[0] / bm) * math.ceil(shape[1] / bn) * math.ceil(k / bk)
    overlaps = unit_flag or 2 * 4 * job.tile_elements <= constants["l0c"].value
    size, wide = size_of(out), size_of(acc)
    row = _recipe(acc, out, scale, recipe)

    def finish(name: str, title: str, terms: tuple[Term, ...], gm_bytes: float, notes: Sequence[str] = ()) -> PathPlan:
        return PathPlan.of(name, title, terms, job.tiles, gm_bytes, cube, overlaps, k, sku_row, tuple(notes))

    scales_bytes = 8 * n if job.per_channel else 0
    paths = [_path_a(job, scale, finish, m * n * size * (route == "GM") + scales_bytes)]
    for name, title, dual in (
        ("B-UB dual", "accumulators to both UBs, vector core, GM", True),
        ("B-UB", "accumulators to one UB, vector core, GM", False),
    ):
        paths.append(_vector_path(job, row, name, title, dual, finish, m * n * size))
    paths.append(_vector_path(job, row, "B-GM", "accumulators to GM, vector core, GM", None, finish,
                              m * n * (2 * wide + size)))  # fmt: skip
    return Plan(
        m=m,
        n=n,
        k=k,
        acc=acc,
        out=out,
        scale=scale,
        inputs=product.operands[0] if inputs is None else formats[inputs].name,
        sku=sku_row.name,
        table=table,
        gm_limit=limit.name,
        tile=shape,
        tiles=tiles,
        elements=job.elements,
        cube_cycles=cube,
        products_per_cycle=product.products,
        clock_hz=sku_row.clock_hz,
        overlaps=overlaps,
        paths=tuple(paths),
        notes=tuple(_notes(job, overlaps, m * n * size, limit.name)),
    )


def _check_sizes(**sizes: int) -> None:
    for name, value in sizes.items():
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= LARGEST_SIDE:
            raise ShapeError(f"{name} is {value!r}; a matrix has sides of 1 to 2^40 elements.")


def _accumulator(name: str) -> str:
    row = formats[name].name
    if row not in ("s32", "fp32"):
        raise UnsupportedCastError(
            f"the Cube accumulates in s32 or fp32, not in {row}.", hint="Use acc='s32' for s8 operands, else 'fp32'."
        )
    return row


def _matrix_row(acc: str, inputs: str | None) -> MatrixRow:
    name = formats[inputs or {"s32": "s8", "fp32": "fp16"}[acc]].name
    row = next((r for r in MATRIX if name in r.operands), None)
    if row is None:
        known = ", ".join(o for r in MATRIX for o in r.operands)
        raise UnsupportedCastError(
            f"the Cube takes no {name} operands (it takes {known}).",
            hint="Convert s4 to s8 first." if name == "s4" else None,
            source=MATRIX[0].source,
        )
    if row.accumulator != acc:
        raise UnsupportedCastError(
            f"the plan contradicts itself: {name} operands accumulate in {row.accumulator}, not in {acc}.",
            hint=f"Use acc={row.accumulator!r}, or other operands.",
            source=row.source,
        )
    return row


def _tile(m: int, n: int, tile: Sequence[int] | None, cores: int) -> tuple[int, int]:
    """128 x 256 holds two accumulator tiles in L0C; fewer rows where cores would be idle."""
    if tile is None:
        columns = min(256, _ceil(n, 16))
        rows = min(128, _ceil(m, 16))
        while rows > 16 and math.ceil(m / rows) * math.ceil(n / columns) < cores:
            rows = _ceil(rows // 2, 16)
        return rows, columns
    if len(tile) != 2 or any(isinstance(t, bool) or not isinstance(t, int) or t < 1 for t in tile):
        raise ShapeError(f"tile is {tile!r}; it has two positive sides.")
    rows, columns = min(_ceil(tile[0], 16), _ceil(m, 16)), min(_ceil(tile[1], 16), _ceil(n, 16))
    capacity = int(constants["l0c"].value)
    if rows * columns * 4 > capacity:
        raise ShapeError(
            f"a {rows} x {columns} tile of 4-byte accumulators takes {rows * columns * 4} B; L0C has {capacity} B.",
            hint="Use a tile of at most 256 x 256.",
            source=constants["l0c"].source,
        )
    return rows, columns


def _ceil(value: int, step: int) -> int:
    return -(-value // step) * step


def _recipe(acc: str, out: str, scale: str, name: str | None) -> RecipeRow | None:
    """The recipe of a pair: the named one, else an exact one, else any; None where there is none."""
    fitting = [
        r for r in RECIPES if r.source_format == acc and out in r.targets and r.grouped == (scale == "per-group")
    ]
    if name is None:
        return next((r for r in fitting if r.exact), fitting[0] if fitting else None)
    row = recipes[name]
    if row not in fitting:
        known = ", ".join(r.name for r in fitting) or "none"
        raise UnsupportedCastError(f"recipe {name!r} is not for {acc} -> {out}, scale {scale} (for it: {known}).")
    return row


def _drain(job: _Job, route: str, stored: str, *, dual: bool = False) -> Term:
    """The store out of L0C: a start for each tile, then elements at the route's rate."""
    both = drain_rates(route, job.acc, stored, dual=dual, strided=job.strided, limit=limits[job.limit])
    used = both[job.table]
    start = machine.STORE_START_CYCLES

    def cycles(rate: float | None) -> float | None:
        return None if rate is None else job.tiles * start + job.elements / rate

    shown = "?" if used.elements_per_cycle is None else f"{used.elements_per_cycle:g}"
    others = tuple(
        (name, rate.elements_per_cycle, cycles(rate.elements_per_cycle))
        for name, rate in both.items()
        if name != job.table and rate.elements_per_cycle != used.elements_per_cycle
    )
    return Term(
        name=f"store {stored} to {'both UBs' if dual else route}",
        unit="FIXP",
        cycles=cycles(used.elements_per_cycle),
        formula=f"{job.tiles} tiles x {start} + {job.elements} / {shown}",
        source=f"{used.note} [{used.source}]",
        missing="" if used.elements_per_cycle is not None else used.note,
        other_tables=others,
    )


def _path_a(job: _Job, scale: str, finish: Callable[..., PathPlan], gm_bytes: float) -> PathPlan:
    title = f"the Fixpipe converts on the way to {job.route}"
    if scale not in FIXPIPE_SCALES:
        why = f"the Fixpipe's scale is one, or one per column, not {scale} [asc-devkit:on-the-fly quantization]"
        return PathPlan.unavailable("A", title, why)
    mode = fixpipe_mode(job.acc, job.out, scale)
    if isinstance(mode, str):
        return PathPlan.unavailable("A", title, mode)
    terms = [_drain(job, job.route, job.out)]
    if job.per_channel:
        loads = 1 if job.hoisted else job.tiles
        columns = job.tile[1]
        chunks = math.ceil(columns / machine.buffer("Quantization-pre").entries)
        each = chunks * machine.PARAMETER_START_CYCLES + 8 * columns / machine.PARAMETER_BYTES_PER_CYCLE
        terms.append(
            Term(
                name="load scales",
                unit="FIXP",
                cycles=loads * each,
                formula=f"{loads} x ({machine.PARAMETER_START_CYCLES} + 8 x {columns} / 32)",
                source="L1 to the parameter buffer, charged to the Fixpipe [asc-devkit:load_data_perf]",
            )
        )
    notes = [f"mode {mode.name}"] + ([mode.note] if mode.note else [])
    return finish("A", title, tuple(terms), gm_bytes, notes)


def fixpipe_mode(acc: str, out: str, scale: str = "per-tensor") -> FixpipeMode | str:
    """Find the Fixpipe mode for a pair on chip 3510, or say why there is none."""
    rows = [
        r
        for r in fixpipe_modes.values()
        if r.accumulator == acc and out in r.targets and "device" in r.authorities and "3510" in r.chips
    ]
    plain = [r for r in rows if not r.scaled] if scale == "none" else []
    fitting = plain or [r for r in rows if r.scaled or acc == out]
    if scale == "per-channel":
        fitting = [r for r in fitting if r.vector]
    if fitting:
        return fitting[0]
    targets = dict.fromkeys(t for r in fixpipe_modes.values() if r.accumulator == acc and "device" in r.authorities
                            for t in r.targets)  # fmt: skip
    what = f"{acc} -> {out}" + (f" with a {scale} scale" if rows else "")
    return f"the Fixpipe has no mode {what} (from {acc}: {', '.join(targets)}) [seed:2.1]"


def _vector_path(
    job: _Job,
    row: RecipeRow | None,
    name: str,
    title: str,
    dual: bool | None,
    finish: Callable[..., PathPlan],
    gm_bytes: float,
) -> PathPlan:
    """Store accumulators (to UB, or to GM and back for ``dual=None``), convert, store again."""
    if job.acc == job.out:
        return PathPlan.unavailable(name, title, f"{job.acc} -> {job.out} converts nothing")
    if row is None:
        known = ", ".join(f"{r.name} ({r.source_format} -> {'/'.join(r.targets)})" for r in RECIPES)
        return PathPlan.unavailable(name, title, f"no vector recipe for {job.acc} -> {job.out} (there are: {known})")
    half = job.elements / 2  # two vector cores serve one cube core
    drain = _drain(job, "GM", job.acc) if dual is None else _drain(job, "UB", job.acc, dual=dual)
    terms = [drain]
    if dual is None:
        terms.append(_transfer(job, "load accumulators to UB", "MTE2", half * 4, "ub_load"))
    terms.append(_vector(job, row, half))
    terms.append(_transfer(job, f"store {job.out} to GM", "MTE3", half * size_of(job.out), "ub_store"))
    notes = [f"recipe {row.name}: {', '.join(row.steps)}" + (f" ({row.note})" if row.note else "")]
    if not row.exact:
        notes.append("the recipe rounds more than once; path A rounds once")
    if dual and job.acc == "s32":
        notes.append("no page says whether an s32 dual destination is legal")
    if dual is not None:
        held = 2 * job.tile_elements * 4 / (2 if dual else 1)
        if held > constants["ub"].value:
            notes.append(
                f"two accumulator tiles take {held:.0f} B and UB has {constants['ub'].value:.0f} B: "
                "with this tile the stages overlap less than computed here"
            )
    return finish(name, title, tuple(terms), gm_bytes, notes)


def _vector(job: _Job, row: RecipeRow, elements: float) -> Term:
    issue, ports = (1.0, 1.0) if job.ideal else (constants["issue_share"].value, constants["buffer_share"].value)
    each = max(row.intervals / 2 / issue, (row.loads + row.stores) / 2 / ports, row.stores)
    start = constants["vector_start"].value + constants["vector_chain"].value * row.chain
    return Term(
        name=row.name,
        unit="V",
        cycles=elements / LANES * each + job.tiles * start,
        formula=f"{elements:.0f} / {LANES} x {each:.4g} + {job.tiles} x {start:g}",
        source=f"{row.source}; {'ideal' if job.ideal else 'derated 0.9 and 0.7'}",
    )


def _transfer(job: _Job, name: str, unit: str, nbytes: float, constant: str) -> Term:
    row, least = constants[constant], constants["dma"].value * job.tiles
    by_bytes = nbytes / row.value
    return Term(
        name=name,
        unit=unit,
        cycles=max(by_bytes, least),
        formula=f"{nbytes:.0f} B / {row.value:g}"
        if by_bytes >= least
        else f"{job.tiles} commands x {least / job.tiles:g}",
        source=f"{row.means} [{row.source}]",
    )


def _notes(job: _Job, overlaps: bool, out_bytes: float, limit: str) -> list[str]:
    notes = []
    if not overlaps:
        notes.append(
            f"a {job.tile[0]} x {job.tile[1]} tile leaves no room for a second in L0C: product and store take turns"
        )
    if limit == "none":
        row = limits["l2"]
        notes.append(f"gm_limit is off; --gm-limit l2 applies {row.bytes_per_cycle:g} B/cycle: {row.means}")
    if out_bytes > job.sku.l2_bytes and limit in ("none", "l2"):
        notes.append(
            f"the output, {out_bytes / 1e6:.0f} MB, is larger than L2 ({job.sku.l2_bytes / 1e6:.0f} MB): "
            "it streams to memory; see --gm-limit hbm"
        )
    return notes
