"""Calls as data: what to compute, whom to believe, what the program set, and what is still open."""

from narrowcast.operation.audit import Audit, AuditEntry, audit
from narrowcast.operation.cast import CastOp
from narrowcast.operation.control import Control
from narrowcast.operation.findings import Effect, Finding, Rule, rule
from narrowcast.operation.json_form import from_json, to_json
from narrowcast.operation.protocol import Operation, execute
from narrowcast.operation.semantics import Choices, Semantics

__all__ = [
    "Audit",
    "AuditEntry",
    "CastOp",
    "Choices",
    "Control",
    "Effect",
    "Finding",
    "Operation",
    "Rule",
    "Semantics",
    "audit",
    "execute",
    "from_json",
    "rule",
    "to_json",
]
