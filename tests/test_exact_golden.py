"""Published and exactly computed tables (tests/golden), row by row."""

from fractions import Fraction

import pytest

import narrowcast as nc
from tests.contract import encode
from tests.golden import CAST_TABLES, CastRow, cast_rows, read
from tests.oracle import expected
from tests.test_exact_to_fp32 import to_single

COUNTS = {
    "cast_bf16": 288,
    "cast_float_to_int": 182,
    "cast_fp16": 492,
    "cast_fp4_bf16": 880,
    "cast_fp8_rn": 172,
    "cast_hif8_fp16": 141,
    "cast_hif8_rh_fp32": 184,
    "cast_hif8_rna": 92,
    "cast_int_to_int": 35,
    "cast_others": 82,
    "disagreements": 36,
}


def of_oracle(row: CastRow) -> int:
    if row.target == "fp32":
        value = Fraction(int(row.value[0]))
        return to_single(value, value < 0, row.rounding, saturate=row.saturate)
    options = {"saturate": row.saturate, "nan": row.nan, "compare": row.compare}
    code = int(expected(row.value, row.target, row.rounding or "rn", **options)[0])
    return code % 2**64  # s64 comes as a signed number


def of_package(row: CastRow) -> int:
    options = {"saturate": row.saturate, "nan": row.nan, "compare": row.compare}
    mode = row.rounding or nc.formats[row.target].default_rounding.value
    return int(encode(row.value, row.target, mode, **options)[0]) % 2**64


def test_every_table_is_complete() -> None:
    assert {t: len(cast_rows(t)) for t in CAST_TABLES} == COUNTS


@pytest.mark.parametrize("table", CAST_TABLES)
def test_oracle_agrees(table: str) -> None:
    wrong = [
        f"{r.where}: {of_oracle(r):#x}, row says {r.expected:#x}"
        for r in cast_rows(table)
        if of_oracle(r) != r.expected
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("table", CAST_TABLES)
def test_package_agrees(table: str) -> None:
    wrong = [
        f"{r.where}: {of_package(r):#x}, row says {r.expected:#x}"
        for r in cast_rows(table)
        if of_package(r) != r.expected
    ]
    assert not wrong, "\n".join(wrong)


def test_every_format_has_a_golden_row() -> None:
    covered = {row.target for table in CAST_TABLES for row in cast_rows(table)}
    assert covered == set(nc.formats)


def test_every_row_has_producer_and_date() -> None:
    for table in (*CAST_TABLES, "decode_hif8"):
        for row in read(table):
            assert row["producer"] and row["date"], row
