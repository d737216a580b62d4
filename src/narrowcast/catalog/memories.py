"""On-chip memories: capacity and grain of each, for one core."""

from dataclasses import dataclass

from narrowcast.catalog import Catalog


@dataclass(frozen=True, kw_only=True)
class MemoryRow:
    """One memory; ``size`` is None where the program does not see an end."""

    name: str
    size: int | None
    grain: int
    title: str
    source: str = "asc-devkit:architecture 3510"


ROWS: tuple[MemoryRow, ...] = (
    MemoryRow(name="GM", size=None, grain=1, title="global memory"),
    MemoryRow(name="L1", size=512 << 10, grain=32, title="L1 of a cube core"),
    MemoryRow(name="UB", size=248 << 10, grain=32, title="unified buffer of a vector core, user default"),
    MemoryRow(name="L0A", size=64 << 10, grain=512, title="left operand"),
    MemoryRow(name="L0B", size=64 << 10, grain=512, title="right operand"),
    MemoryRow(name="L0C", size=256 << 10, grain=64, title="accumulators"),
    MemoryRow(name="Bias", size=4 << 10, grain=64, title="bias table", source="seed:2.2"),
    MemoryRow(name="RELU-pre", size=2 << 10, grain=64, title="ReLU slopes", source="seed:2.2"),
    MemoryRow(name="Quantization-pre", size=4 << 10, grain=64, title="quantization parameters", source="seed:2.2"),
)

memories: Catalog[MemoryRow] = Catalog(
    "memory",
    {row.name: row for row in ROWS},
    {"OUT": "GM", "DDR": "GM", "UB0": "UB", "UB1": "UB", "BT": "Bias", "FB0": "Quantization-pre", "FB1": "RELU-pre"},
)

PARAMETER_BUFFERS = ("Bias", "RELU-pre", "Quantization-pre")
UNITS = ("M", "V", "FIX", "MTE1", "MTE2", "MTE3", "S")
"""Pipes: matrix, vector, Fixpipe, three transfer engines, scalar."""
