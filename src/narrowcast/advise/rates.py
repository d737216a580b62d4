"""Which figure of which table a term of the plan uses, and what the other table says."""

from dataclasses import dataclass

from narrowcast.catalog import machine
from narrowcast.catalog.formats import formats
from narrowcast.catalog.planner import RATE_RULE, LimitRow

TABLES = ("vendor", "seed")
DN_STRIDE_DIVISOR = 4  # NZ2DN with a source stride above 1 (asc-devkit: Cube performance appendix, table 8)


@dataclass(frozen=True)
class DrainRate:
    """Elements a cycle that leave one accumulator buffer.

    Attributes:
        table: ``vendor``, ``seed`` or ``inferred``.
        elements_per_cycle: None where the table has no such cell.
        note: which cell, or why there is none.
        source: the cell's row.
    """

    table: str
    elements_per_cycle: float | None
    note: str
    source: str


def size_of(name: str) -> float:
    """Bytes of one element; 4-bit elements take half."""
    return formats[name].bits / 8


def drain_rates(
    route: str, acc: str, out: str, *, dual: bool = False, strided: bool = False, limit: LimitRow
) -> dict[str, DrainRate]:
    """Read a store's rate from both tables.

    Args:
        route: GM, L1 or UB.
        acc: accumulator format.
        out: stored format.
        dual: both unit buffers at once.
        strided: NZ2DN with a source stride above 1.
        limit: what all cores together may write to GM.
    """
    return {table: _drain_rate(table, route, acc, out, dual, strided, limit) for table in TABLES}


def _drain_rate(table: str, route: str, acc: str, out: str, dual: bool, strided: bool, limit: LimitRow) -> DrainRate:
    bits = formats[out].bits
    output = "dual" if dual else {32: "bypass", 16: "b16"}.get(bits, "b8")
    cell = next((r for r in machine.RATES if (r.table, r.route, r.output) == (table, route, output)), None)
    used, rate, note = table, None if cell is None else cell.rate, f"L0C -> {route}, {out}"
    source = cell.source if cell is not None else _table_source(table)
    if table == "seed":
        if route == "UB" and output in ("bypass", "dual") and (acc == "fp32") != dual:
            rate = None
        if rate is None:
            note = f"{source} has no cell for {acc} -> {out} {'dual ' * dual}to {route}"
    elif route == "GM":
        seed = machine.rate("seed", "GM", output)
        used, rate, source = "seed", seed.rate, seed.source
        note = f"the appendix has no OUT rows; seed 2.4, L0C -> OUT, {out}"
        if rate is None:
            used, rate, source = "inferred", min(64, int(128 * 8 / bits)), RATE_RULE
            note = f"neither table has {out} to OUT: {RATE_RULE}"
    elif acc == "s32" and bits == 32:
        note = f"the appendix lists fp32 only; s32 {'dual' if dual else 'bypass'} is taken to be the same"
    value = None if rate is None else float(rate)
    if value is not None and strided:
        value /= DN_STRIDE_DIVISOR
    if value is not None and route == "GM" and limit.bytes_per_cycle is not None:
        capped = limit.bytes_per_cycle / size_of(out)
        if capped < value:
            value, note = (
                capped,
                f"{note}; limited to {limit.bytes_per_cycle:g} B/cycle: {limit.means} [{limit.source}]",
            )
    return DrainRate(used, value, note, source)


def _table_source(table: str) -> str:
    return next(r.source for r in machine.RATES if r.table == table)
