"""What a store costs: instructions, rates by both tables, cycles."""

from dataclasses import dataclass

from narrowcast.catalog import machine
from narrowcast.errors import ShapeError
from narrowcast.fixpipe.addressing import C0

MOST_ROWS = 65535
FIELD_COLUMNS = 4095
MOST_COLUMNS = FIELD_COLUMNS // C0 * C0
"""Columns of one instruction when a matrix needs several: L0C is cut at fractals."""


@dataclass(frozen=True)
class Rate:
    """Elements a cycle on this route, by one table; None where the table has no such cell."""

    table: str
    elements_per_cycle: int | None
    cycles: int | None
    used: bool
    source: str

    def __str__(self) -> str:
        if self.elements_per_cycle is None:
            return f"{self.table}: no figure for this route and width [{self.source}]"
        return f"{self.table}: {self.elements_per_cycle} elements/cycle, {self.cycles} cycles [{self.source}]"


@dataclass(frozen=True)
class Chunk:
    """What one instruction handles: the parameter buffers hold 512 columns, the bias buffer 1024."""

    first_row: int
    rows: int
    first_column: int
    columns: int
    parameter_bytes: int


def chunks(
    rows: int, columns: int, *, quantization: bool, slopes: bool, bias: bool, enforce: bool
) -> tuple[Chunk, ...]:
    """Cut a matrix into instructions.

    Args:
        rows: M.
        columns: N.
        quantization: whether each column has its parameter word.
        slopes: whether each column has its ReLU slope.
        bias: whether the pipe adds a bias.
        enforce: refuse a matrix that one instruction cannot hold.

    Raises:
        ShapeError: such a matrix, naming the buffer.
    """
    used = [
        machine.buffer(name)
        for name, present in (("Quantization-pre", quantization), ("RELU-pre", slopes), ("Bias", bias))
        if present
    ]
    step = min([MOST_COLUMNS, *(row.entries for row in used)]) if columns > MOST_COLUMNS or used else max(columns, 1)
    for row in used:
        if enforce and columns > row.entries:
            raise ShapeError(
                f"N = {columns} columns of parameters exceed the {row.entries} entries "
                f"({row.size} bytes) of the {row.name} buffer.",
                hint=f"Leave enforce_limits off to issue one instruction per {row.entries} columns.",
                source=row.source,
            )
    width = sum(row.entry_bytes for row in used)
    return tuple(
        Chunk(top, min(MOST_ROWS, rows - top), left, min(step, columns - left), width * min(step, columns - left))
        for top in range(0, rows, MOST_ROWS)
        for left in range(0, columns, step)
    )


def rates(
    route: str,
    bits: int,
    elements: int,
    parts: tuple[Chunk, ...],
    dual: bool,
    table: str | None,
    strided: bool,
) -> tuple[Rate, ...]:
    """Return the rate and cycles of a store by both tables.

    Formula: per instruction ``26 + elements / rate``, plus ``26 + bytes / 32`` where it loads parameters.

    Args:
        route: GM, L1 or UB.
        bits: width of a result.
        elements: accumulators read, padding columns included.
        parts: instructions.
        dual: both unit buffers are written.
        table: the table to use; None: the seed's for GM, the vendor's for L1 and UB.
        strided: NZ2DN whose source rows lie apart, a quarter of the rate.
    """
    output = "dual" if dual else {32: "bypass", 16: "b16"}.get(bits, "b8")
    used = table or machine.DEFAULT_TABLE[route]
    start = len(parts) * machine.STORE_START_CYCLES
    for part in parts:
        if part.parameter_bytes and part.first_row == 0:
            bursts = -(-part.parameter_bytes // machine.PARAMETER_BYTES_PER_CYCLE)
            start += machine.PARAMETER_START_CYCLES + bursts
    found = []
    for name in ("vendor", "seed"):
        cell = machine.rate(name, route, output)
        rate = cell.rate if cell.rate is None or not strided else cell.rate // machine.STRIDED_DN_DIVISOR
        cycles = None if rate is None else start + -(-elements // rate)
        found.append(Rate(name, rate, cycles, name == used, cell.source))
    return tuple(found)
