"""Advice: how to round, which path to take, what it costs."""

from narrowcast.advise.path_choice import Alternative, PathAdvice, path
from narrowcast.advise.plan_result import PathPlan, Plan, Term
from narrowcast.advise.plan_sweep import Axis, Sweep, sweep
from narrowcast.advise.planner import plan
from narrowcast.advise.rounding_choice import RoundingAdvice, rounding

__all__ = [
    "Alternative",
    "Axis",
    "PathAdvice",
    "PathPlan",
    "Plan",
    "RoundingAdvice",
    "Sweep",
    "Term",
    "path",
    "plan",
    "rounding",
    "sweep",
]
