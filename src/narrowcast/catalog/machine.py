"""Buffers, alignments and rates of the Cube's output side."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class BufferRow:
    """A side buffer of the Fixpipe."""

    name: str
    entries: int
    entry_bytes: int
    use: str
    destination_alignment: int  # bytes
    source_alignment: int  # bytes, in L1
    table_unit: int | None  # bytes that the table address register counts in; None: the bias has no register
    source: str

    @property
    def size(self) -> int:
        """Capacity in bytes."""
        return self.entries * self.entry_bytes


BUFFERS: tuple[BufferRow, ...] = (
    BufferRow(
        name="Bias",
        entries=1024,
        entry_bytes=4,
        use="bias added to the accumulator",
        destination_alignment=64,
        source_alignment=32,
        table_unit=None,
        source="seed:2.2; asc-devkit:DataCopy L1 to bias table",
    ),
    BufferRow(
        name="RELU-pre",
        entries=512,
        entry_bytes=4,
        use="ReLU threshold or slope",
        destination_alignment=64,
        source_alignment=32,
        table_unit=64,
        source="seed:2.2; asc-devkit:DataCopy L1 to Fixpipe buffer",
    ),
    BufferRow(
        name="Quantization-pre",
        entries=512,
        entry_bytes=8,
        use="quantization scale and offset",
        destination_alignment=64,
        source_alignment=32,
        table_unit=128,
        source="seed:2.2; asc-devkit:DataCopy L1 to Fixpipe buffer",
    ),
)


@dataclass(frozen=True, kw_only=True)
class RateRow:
    """Elements a cycle leave the accumulator on a route, by one table."""

    table: str  # vendor or seed
    route: str
    output: str  # bypass, b16, b8, dual
    rate: int | None  # None: the table has no such cell
    source: str


_SEED = "seed:2.4"
_VENDOR = "asc-devkit:Cube performance appendix, table 8"

RATES: tuple[RateRow, ...] = (
    RateRow(table="seed", route="GM", output="bypass", rate=32, source=_SEED),
    RateRow(table="seed", route="GM", output="b16", rate=None, source=_SEED),
    RateRow(table="seed", route="GM", output="b8", rate=64, source=_SEED),
    RateRow(table="seed", route="L1", output="bypass", rate=64, source=_SEED),
    RateRow(table="seed", route="L1", output="b16", rate=128, source=_SEED),
    RateRow(table="seed", route="L1", output="b8", rate=128, source=_SEED),
    RateRow(table="seed", route="UB", output="bypass", rate=32, source=_SEED),
    RateRow(table="seed", route="UB", output="dual", rate=64, source=_SEED),
    RateRow(table="seed", route="UB", output="b16", rate=None, source=_SEED),
    RateRow(table="seed", route="UB", output="b8", rate=None, source=_SEED),
    RateRow(table="vendor", route="GM", output="bypass", rate=None, source=_VENDOR),
    RateRow(table="vendor", route="GM", output="b16", rate=None, source=_VENDOR),
    RateRow(table="vendor", route="GM", output="b8", rate=None, source=_VENDOR),
    RateRow(table="vendor", route="L1", output="bypass", rate=32, source=_VENDOR),
    RateRow(table="vendor", route="L1", output="b16", rate=64, source=_VENDOR),
    RateRow(table="vendor", route="L1", output="b8", rate=64, source=_VENDOR),
    RateRow(table="vendor", route="UB", output="bypass", rate=32, source=_VENDOR),
    RateRow(table="vendor", route="UB", output="dual", rate=64, source=_VENDOR),
    RateRow(table="vendor", route="UB", output="b16", rate=64, source=_VENDOR),
    RateRow(table="vendor", route="UB", output="b8", rate=64, source=_VENDOR),
)

DEFAULT_TABLE = {"GM": "seed", "L1": "vendor", "UB": "vendor"}
"""Whose figure is used by default: the vendor's where it has one."""

STORE_START_CYCLES = 26  # L0C to L1 or UB, per instruction (asc-devkit:fixpipe_perf)
PARAMETER_START_CYCLES = 26  # L1 to the Fixpipe buffer (asc-devkit:load_data_perf)
PARAMETER_BYTES_PER_CYCLE = 32
STRIDED_DN_DIVISOR = 4  # NZ2DN whose source rows lie apart (asc-devkit:Cube performance appendix)


def buffer(name: str) -> BufferRow:
    """Return a side buffer's row."""
    return next(row for row in BUFFERS if row.name == name)


def rate(table: str, route: str, output: str) -> RateRow:
    """Return one cell of a rate table; a cell the table does not have says so."""
    for row in RATES:
        if (row.table, row.route, row.output) == (table, route, output):
            return row
    return RateRow(table=table, route=route, output=output, rate=None, source="no such cell")
