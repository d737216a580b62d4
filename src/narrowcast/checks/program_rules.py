"""Rules between the steps of a program."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations

from narrowcast.catalog.memories import memories
from narrowcast.checks.operations import DataCopy, LoadParameters
from narrowcast.checks.program import Program, Step
from narrowcast.fixpipe import Fixpipe
from narrowcast.operation import Effect, Finding

VECTOR_PARAMETERS = "Quantization-pre"


@dataclass(frozen=True)
class ProgramRule:
    """A constraint between steps: like an operation's rule, and each violation names the step it is about."""

    id: str
    states: str
    cause: str
    effect: Effect
    fix: str
    source: str
    predicate: Callable[[Program], Iterator[tuple[Step, str]]]

    def findings(self, program: Program) -> Iterator[Finding]:
        """Yield one finding for each violation."""
        for step, message in self.predicate(program):
            yield Finding(
                rule=self.id,
                place=step.place or step.label,
                message=f"{message} ({self.effect.value}: {self.cause})",
                fix=self.fix,
                source=self.source,
            )


def _routes(step: Step) -> frozenset[str]:
    return frozenset(step.op.route.split("+")) if isinstance(step.op, Fixpipe) else frozenset()


def _one_destination(program: Program) -> Iterator[tuple[Step, str]]:
    stores = [s for s in program.steps if isinstance(s.op, Fixpipe)]
    for first, second in combinations(stores, 2):
        a, b = _routes(first), _routes(second)
        if a != b and len(a) == len(b) == 1 and first.during(second):
            yield second, f"{second.label} writes {min(b)} while {first.label} writes {min(a)}"


def _parameters_loaded(program: Program) -> Iterator[tuple[Step, str]]:
    """Only programs that show their loads are asked for them."""
    loads = [s for s in program.steps if isinstance(s.op, LoadParameters)]
    if not loads:
        return
    for i, step in enumerate(program.steps):
        if not isinstance(step.op, Fixpipe) or not step.op.mode_row.scaled:
            continue
        earlier = [
            s for s in program.steps[:i] if isinstance(s.op, LoadParameters) and s.op.buffer == VECTOR_PARAMETERS
        ]
        if not earlier:
            yield step, f"{step.label} needs quantization parameters, and none are loaded before it"
        elif any(s.during(step) for s in earlier):
            late = next(s for s in earlier if s.during(step))
            yield step, f"{step.label} runs while {late.label} still loads its parameters"


def _product_first(program: Program) -> Iterator[tuple[Step, str]]:
    products = [s for s in program.steps if s.kind in ("Mmad", "MmadMx")]
    for step in program.steps:
        if not isinstance(step.op, Fixpipe):
            continue
        for product in products:
            shared = any(w.overlaps(r) for w in product.writes for r in step.reads) or (
                product.gives is not None and product.gives in step.takes
            )
            if shared and product.during(step):
                yield step, f"{step.label} reads accumulators while {product.label} still writes them"


def _no_races(program: Program) -> Iterator[tuple[Step, str]]:
    for first, second in combinations(program.steps, 2):
        if not first.during(second):
            continue
        if {first.pipe, second.pipe} == {"M", "FIX"}:  # a rule of its own
            continue
        pairs = [(w, o) for w in first.writes for o in (*second.writes, *second.reads)]
        pairs += [(w, o) for w in second.writes for o in first.reads]
        hit = next(((a, b) for a, b in pairs if a.overlaps(b)), None)
        if hit is not None:
            yield second, f"{second.label} and {first.label} use {hit[0]} and {hit[1]} at the same time"


def _regions_fit(program: Program) -> Iterator[tuple[Step, str]]:
    for step in program.steps:
        for region in (*step.reads, *step.writes):
            size = memories[region.memory].size
            if size is not None and region.end > size:
                yield step, f"{step.label} reaches {region}; {region.memory} has {size} B"


def _flow(program: Program) -> Iterator[tuple[Step, str]]:
    made: dict[str, tuple[Step, str | None]] = {}
    for step in program.steps:
        wanted = takes_format(step)
        for name in step.takes:
            if name in made and wanted is not None:
                maker, given = made[name]
                if given is not None and given != wanted:
                    yield step, f"{step.label} takes {name} as {wanted}; {maker.label} made it {given}"
        if step.gives is not None:
            made[step.gives] = (step, gives_format(step))


def takes_format(step: Step) -> str | None:
    """Format of what a step consumes, None when its operation does not say."""
    if isinstance(step.op, Fixpipe):
        return step.op.mode_row.accumulator
    if isinstance(step.op, DataCopy):
        return step.op.format
    return getattr(step.op, "source", None)


def gives_format(step: Step) -> str | None:
    """Format of what a step makes, None when its operation does not say."""
    if isinstance(step.op, Fixpipe):
        return step.op.target or step.op.mode_row.targets[0]
    if isinstance(step.op, DataCopy):
        return step.op.format
    if step.kind in ("Mmad", "MmadMx"):
        accumulator: str = step.op.pair.accumulator
        return accumulator
    return getattr(step.op, "target", None)


PROGRAM_RULES: tuple[ProgramRule, ...] = (
    ProgramRule(
        "FIXP-06",
        states="L1, UB and OUT are not written at the same time.",
        cause="the three share the Fixpipe",
        effect=Effect.DROPPED,
        fix="Order the stores: let one end before the next begins.",
        source="seed:5.1#6",
        predicate=_one_destination,
    ),
    ProgramRule(
        "PROG-02",
        states="Parameters are in their buffer before the Fixpipe needs them.",
        cause="the buffer holds whatever the last load left",
        effect=Effect.WRONG_RESULT,
        fix="Load them from L1 first, and wait for the load.",
        source="seed:5.1#9; asc-devkit:DataCopy L1 to Fixpipe buffer",
        predicate=_parameters_loaded,
    ),
    ProgramRule(
        "PROG-03",
        states="The Fixpipe reads an accumulator after the Cube has finished it.",
        cause="without a flag the pipe reads L0C as it is",
        effect=Effect.WRONG_RESULT,
        fix="Set an M to FIX flag, or enable the unit flag on both.",
        source="pto-isa:Fixpipe model",
        predicate=_product_first,
    ),
    ProgramRule(
        "PROG-04",
        states="Steps that run at once do not write what the other uses.",
        cause="pipes are not ordered without a flag",
        effect=Effect.WRONG_RESULT,
        fix="Wait with a flag, or use another range (double buffer).",
        source="asc-devkit:synchronization",
        predicate=_no_races,
    ),
    ProgramRule(
        "PROG-05",
        states="Every range lies in its memory.",
        cause="the memory ends there",
        effect=Effect.HARDWARE_EXCEPTION,
        fix="Use a smaller tile.",
        source="asc-devkit:architecture 3510; seed:2.2",
        predicate=_regions_fit,
    ),
    ProgramRule(
        "PROG-06",
        states="A tensor is read in the format it was written in.",
        cause="the bits would be taken for another format",
        effect=Effect.WRONG_RESULT,
        fix="Correct the source format, or cast between.",
        source="follows from the formats",
        predicate=_flow,
    ),
)
