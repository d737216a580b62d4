"""A comparison of scale rules as plain data, for ``--json``."""

from dataclasses import asdict
from typing import Any

from narrowcast.mx.comparison import BlockError, Comparison, RuleError, TensorComparison
from narrowcast.report.survey_json import number
from narrowcast.version import VERSION

SCHEMA = "narrowcast.mx/1"


def comparison_document(comparison: Comparison) -> dict[str, Any]:
    """Turn a comparison into JSON-ready data; infinite and undefined values become null.

    Args:
        comparison: the result of :func:`narrowcast.mx.compare_rules`.

    Returns:
        A dictionary of strings, numbers, lists and null only.
    """
    return {
        "schema": SCHEMA,
        "version": VERSION,
        "source": comparison.source,
        "format": comparison.format,
        "block": comparison.block,
        "saturate": True,
        "total": [rule_row(r) for r in comparison.total],
        "tensors": [_tensor_row(t) for t in comparison.tensors],
        "skipped": [{"name": name, "why": why} for name, why in comparison.skipped],
    }


def rule_row(error: RuleError) -> dict[str, Any]:
    """Describe one rule's errors."""
    row = asdict(error)
    row["sqnr_db"] = number(error.sqnr_db)
    row["worst"] = [_block_row(b) for b in error.worst]
    return row


def _block_row(block: BlockError) -> dict[str, Any]:
    return {**asdict(block), "row": list(block.row), "absmax": number(block.absmax), "sqnr_db": number(block.sqnr_db)}


def _tensor_row(tensor: TensorComparison) -> dict[str, Any]:
    return {
        "name": tensor.name,
        "dtype": tensor.dtype,
        "shape": list(tensor.shape),
        "padded": tensor.padded,
        "best": tensor.best,
        "rules": [rule_row(r) for r in tensor.rules],
    }
