"""Checks: every rule that can be decided before anything runs, on one operation or between many."""

from narrowcast.checks.checking import check
from narrowcast.checks.operations import DataCopy, LoadParameters
from narrowcast.checks.program import Program, Region, Step
from narrowcast.checks.program_file import read_program
from narrowcast.checks.program_rules import PROGRAM_RULES, ProgramRule

__all__ = [
    "PROGRAM_RULES",
    "DataCopy",
    "LoadParameters",
    "Program",
    "ProgramRule",
    "Region",
    "Step",
    "check",
    "read_program",
]
