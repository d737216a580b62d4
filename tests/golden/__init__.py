"""Golden rows: small tables of published or exactly computed results, each with its producer and date."""

import csv
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from tests.oracle.grids import INTEGERS
from tests.oracle.sources import DTYPES

FOLDER = Path(__file__).parent
CAST_TABLES = (*sorted(p.stem for p in FOLDER.glob("cast_*.csv")), "disagreements")
SOURCE_DTYPES = {
    "fp32": DTYPES["float32"],
    "fp16": DTYPES["float16"],
    "bf16": DTYPES["bfloat16"],
    "s16": np.dtype("int16"),
    "s32": np.dtype("int32"),
    "u32": np.dtype("uint32"),
    "s64": np.dtype("int64"),
}


@dataclass(frozen=True)
class CastRow:
    """One cast of one value. `expected` is a code: hexadecimal for floats, the value for integers."""

    id: str
    source: str
    target: str
    rounding: str
    saturate: bool
    nan: str
    compare: str
    value: np.ndarray  # one element of the source type
    expected: int  # as low bits of the target
    where: str


def read(name: str) -> list[dict[str, str]]:
    with (FOLDER / f"{name}.csv").open(newline="") as f:
        return list(csv.DictReader(f))


@cache
def cast_rows(name: str) -> tuple[CastRow, ...]:
    """Return the rows of a cast table."""
    return tuple(map(cast_row, read(name)))


def cast_row(row: dict[str, str]) -> CastRow:
    dtype = SOURCE_DTYPES[row["source"]]
    if row["input_bits"]:
        value = np.array([int(row["input_bits"], 16)], f"u{dtype.itemsize}").view(dtype)
    else:
        value = np.array([int(row["input"])], dtype)
    if row["target"] in INTEGERS:
        expected = int(row["expected"]) % 2 ** INTEGERS[row["target"]][0]
    else:
        expected = int(row["expected"], 16)
    return CastRow(
        id=row["id"],
        source=row["source"],
        target=row["target"],
        rounding=row["rounding"],
        saturate=row["saturate"] == "1",
        nan=row["nan"],
        compare=row["compare"] or "ge",
        value=value,
        expected=expected,
        where=f"{row['id']}: {row['source']} {row['input']} -> {row['target']} {row['rounding']}",
    )
