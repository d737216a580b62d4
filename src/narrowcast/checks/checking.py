"""Check an operation, or a program of them, against every rule that can be decided without running it."""

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from narrowcast.catalog.authorities import chips
from narrowcast.checks.operations import DataCopy, LoadParameters
from narrowcast.checks.program import Program, Step
from narrowcast.checks.program_rules import PROGRAM_RULES
from narrowcast.errors import NarrowcastError, unknown_name
from narrowcast.fixpipe import Fixpipe
from narrowcast.fixpipe import rules as fixpipe_rules
from narrowcast.fixpipe.call import Call
from narrowcast.fixpipe.words import split_words
from narrowcast.operation import Finding, Semantics
from narrowcast.vector.rules import PURPOSES, USE_RULES, CastUse

MOVES = (DataCopy, LoadParameters)
_MADE_FOR_MX = ("MxQuant", "TQuantMx", "RegCast")
_SAME_CAUSE = {"VEC-12": ("VEC-01", "UnsupportedCastError"), "VEC-15": ("VEC-01",)}
"""A rule of the seed and the matrix both refuse the same call; the seed's reason is kept."""


def check(
    subject: Any,
    semantics: Semantics | None = None,
    *,
    inputs: Mapping[str, npt.ArrayLike] | None = None,
    purpose: str | None = None,
    after_matmul: bool = False,
    mask_format: str | None = None,
    stored_bytes: int | None = None,
) -> list[Finding]:
    """Check an operation, executed or not, or a whole program.

    Args:
        subject: any Operation (``CastOp``, ``VectorCast``, ``Fixpipe``, ``TQuant``...), a :class:`Program`, or the
            path of a program file (.yaml, .json, .pto).
        semantics: whom to believe, for which chip; a program file's own chip wins over the default.
        inputs: data of a Fixpipe that its rules look at: ``acc`` accumulators, ``scale`` and ``alpha`` parameters.
        purpose: ``inference`` or ``training``.
        after_matmul: the cast's source is a matrix product that the Fixpipe could convert.
        mask_format: format that a cast's predicate mask was built for.
        stored_bytes: bytes a program gives the 4-bit side of a cast.

    Returns:
        Every violated rule: id, place, what it does, fix, source. Empty when nothing is wrong.

    Raises:
        UnknownNameError: an unknown purpose, format or authority.
        EncodingError: a program file that does not read; with line and column.

    Source: the rules' own rows; seed:5.1, seed:5.2.

    Example:
        >>> from narrowcast.vector import VectorCast
        >>> [f.rule for f in check(VectorCast(source="e4m3", target="fp32", mode="rn"))]
        ['VEC-15']
    """
    if purpose is not None and purpose not in PURPOSES:
        raise unknown_name("purpose", purpose, PURPOSES)
    if isinstance(subject, (str, os.PathLike)):
        from narrowcast.checks.program_file import read_program

        subject = read_program(subject)
    if not isinstance(subject, Program):
        step = Step(op=subject, mask_format=mask_format)
        program_semantics = semantics or Semantics()
        found = list(_check_step(step, program_semantics, purpose, after_matmul, stored_bytes))
        if inputs is not None and isinstance(subject, Fixpipe):
            found += [f for f in fixpipe_rules.check(_call(subject, inputs)) if f.rule not in {g.rule for g in found}]
        return found
    program_semantics = semantics or Semantics(subject.authority, chips[subject.chip])
    found = []
    products = _products(subject)
    for step in subject.steps:
        after = any(name in products for name in step.takes)
        found += _check_step(step, program_semantics, purpose or subject.purpose, after, _stored(step))
    for rule in PROGRAM_RULES:
        found += rule.findings(subject)
    return sorted(found, key=lambda f: _order(f, subject))


def _call(op: Fixpipe, inputs: Mapping[str, npt.ArrayLike]) -> Call:
    acc = None if "acc" not in inputs else np.asarray(inputs["acc"])
    names = {"scale": "scale", "alpha": "slope"}
    found = [(name, np.atleast_1d(np.asarray(inputs[k], np.float32))) for k, name in names.items() if k in inputs]
    if "words" in inputs and op.mode_row.scaled:
        found.append(("scale", split_words(np.atleast_1d(np.asarray(inputs["words"])).view(np.uint64))[0]))
    shape = acc.shape[-2:] if acc is not None and acc.ndim >= 2 and op.acc_layout == "plain" else (0, 0)
    return Call(op, acc, tuple(found), shape)


def _order(finding: Finding, program: Program) -> int:
    places = [step.place or step.label for step in program.steps]
    return places.index(finding.place) if finding.place in places else len(places)


def _check_step(
    step: Step, semantics: Semantics, purpose: str | None, after_matmul: bool, stored_bytes: int | None
) -> Iterator[Finding]:
    place = step.place or step.label
    found = [replace(f, place=place) for f in _violations(step.op, semantics)]
    for use in _uses(step, semantics.chip, purpose, after_matmul, stored_bytes):
        for each in USE_RULES:
            found += each.findings(use, place)
    drop = {other for f in found for other in _SAME_CAUSE.get(f.rule, ())}
    yield from (f for f in found if f.rule not in drop)


def _violations(op: Any, semantics: Semantics) -> Iterable[Finding]:
    if isinstance(op, Fixpipe) and op.on_violation != "raise":
        op = replace(op, on_violation="raise")
    try:
        return list(op.violations(semantics))
    except NarrowcastError as error:
        return [Finding(error.code, type(op).__name__, error.message, fix=error.hint or "", source=error.source or "")]


def _uses(
    step: Step, chip: str, purpose: str | None, after_matmul: bool, stored_bytes: int | None
) -> Iterator[CastUse]:
    op = step.op
    if isinstance(op, DataCopy):
        yield CastUse(source=op.format, target=op.format, chip=chip, scale=True)
        return
    if isinstance(op, Fixpipe):
        yield CastUse(source=op.mode_row.accumulator, target=op.target or op.mode_row.targets[0], chip=chip)
        return
    target = getattr(op, "target", None) or getattr(op, "format", None)
    if not isinstance(target, str) or isinstance(op, MOVES) or step.kind == "VectorRound":
        return
    yield CastUse(
        source=getattr(op, "source", None),
        target=target,
        mode=getattr(op, "mode", None) or getattr(op, "rounding", None),
        chip=chip,
        purpose=purpose,
        mask_format=step.mask_format,
        count=getattr(op, "count", None),
        stored_bytes=stored_bytes,
        after_matmul=after_matmul,
        scale=step.kind in _MADE_FOR_MX,
    )


def _products(program: Program) -> set[str]:
    """Tensors that hold a matrix product as it left the Cube."""
    found: set[str] = set()
    for step in program.steps:
        bypass = isinstance(step.op, Fixpipe) and step.op.mode_row.bypass
        moved = isinstance(step.op, DataCopy) and bool(set(step.takes) & found)
        if step.gives is not None and (step.kind in ("Mmad", "MmadMx") or bypass or moved):
            found.add(step.gives)
    return found


def _stored(step: Step) -> int | None:
    """Bytes a program gives the 4-bit side of a cast."""
    source, target = getattr(step.op, "source", None), getattr(step.op, "target", None)
    if target in ("e2m1", "e1m2") and step.writes:
        return step.writes[0].bytes
    if source in ("e2m1", "e1m2") and step.reads:
        return step.reads[0].bytes
    return None
