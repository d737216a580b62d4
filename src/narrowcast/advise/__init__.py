"""Advice: how to round, which path to take, what it costs."""

from narrowcast.advise.plan_result import PathPlan, Plan, Term
from narrowcast.advise.plan_sweep import Axis, Sweep, sweep
from narrowcast.advise.planner import plan

__all__ = ["Axis", "PathPlan", "Plan", "Sweep", "Term", "plan", "sweep"]
