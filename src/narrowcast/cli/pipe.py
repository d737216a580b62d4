"""What ``fixpipe`` and ``matmul`` share: the options of the output pipe, and how its result is printed."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from narrowcast.cli.terminal import line, print_json

if TYPE_CHECKING:
    from narrowcast.cube import Mmad
    from narrowcast.fixpipe import Fixpipe, Store
    from narrowcast.operation import Control, Semantics

Output = Annotated[Path | None, typer.Option("-o", "--output", metavar="FILE", help="The .npy file to write.")]
Scale = Annotated[str | None, typer.Option("--scale", metavar="X|FILE", help="Scale, or N scales in a .npy file.")]
Offset = Annotated[str, typer.Option("--offset", metavar="N|FILE", help="Offset -256..255, or N of them.")]
Words = Annotated[
    Path | None, typer.Option("--words", metavar="FILE", help="Ready parameter words, uint64, instead of scales.")
]
Target = Annotated[str | None, typer.Option("--target", metavar="s8|u8", help="Result of an 8-bit mode. [default: s8]")]
Relu = Annotated[bool, typer.Option("--relu", help="ReLU.")]
Slope = Annotated[str | None, typer.Option("--slope", metavar="X|FILE", help="Leaky ReLU's slope, or N of them.")]
Clip = Annotated[float | None, typer.Option("--clip", metavar="X", help="Upper bound of clip-ReLU.")]
Layout = Annotated[str, typer.Option("--layout", metavar="NAME", help="NZ2ND, NZ2DN or NZ2NZ (ND, DN, NZ).")]
Route = Annotated[str, typer.Option("--route", metavar="NAME", help="GM, L1 or UB.")]
Stride = Annotated[int | None, typer.Option("--stride", metavar="N", help="Destination stride in elements.")]
Dual = Annotated[str | None, typer.Option("--dual", metavar="M|N", help="Halves to UB0 and UB1.")]
AcceptDummy = Annotated[bool, typer.Option("--accept-dummy", help="The consumer ignores dummy columns.")]
Ctrl = Annotated[
    str, typer.Option("--ctrl", metavar="BIT,...", help="CTRL bits that are set: 48 keeps infinity, 50 keeps NaN.")
]
Authority = Annotated[str, typer.Option("--authority", metavar="NAME", help="device, seed, pto-isa or pto-spec.")]
Chip = Annotated[str, typer.Option("--chip", metavar="NAME", help="3510, 2201, or cpu-sim under pto-isa.")]
Switch = Annotated[
    list[str] | None, typer.Option("--set", metavar="SWITCH=VALUE", help="Take another side of a disputed point.")
]
Element = Annotated[
    str | None, typer.Option("--explain-element", metavar="M,N", help="Follow one element through the pipe.")
]
Audit = Annotated[bool, typer.Option("--audit", help="Say which open questions change bits of this result.")]
Force = Annotated[bool, typer.Option("--force", help="Replace existing outputs.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]

JSON_KEYS = (
    "JSON keys: operation, product (matmul), semantics, control, store (format shape route elements bytes cycles rates "
    "chunks dummy_elements findings), and where asked file, element, audit."
)


@dataclass(frozen=True)
class Answer:
    """What a run of the pipe printed from."""

    op: "Fixpipe"
    inputs: Mapping[str, Any]
    semantics: "Semantics"
    control: "Control"
    store: "Store"
    product: "Mmad | None" = None
    factors: Mapping[str, Any] | None = None
    """With a product: its inputs, which an audit starts from."""


def semantics_of(authority: str, chip: str, switch: list[str] | None) -> "Semantics":
    """Build the semantics from their options."""
    from narrowcast.operation import Semantics

    changes = {}
    for item in switch or ():
        name, equals, value = item.partition("=")
        if not equals:
            raise typer.BadParameter(f"--set {item}: write SWITCH=VALUE")
        changes[name] = value
    return Semantics(authority, chip=chip).override(**changes)


def control_of(bits: str) -> "Control":
    """Build the control bits from a list such as ``48,50``."""
    from narrowcast.errors import EncodingError
    from narrowcast.operation import Control

    named = dict.fromkeys((f"ctrl{bit.strip()}" for bit in bits.split(",") if bit.strip()), 1)
    unknown = sorted(set(named) - set(Control().to_json()))
    if unknown:
        raise EncodingError(
            f"CTRL bit {unknown[0].removeprefix('ctrl')} is not one the model reads (48, 50, 53, 59, 60)."
        )
    return Control(**named)


def send(
    acc: Any,
    mode: str,
    *,
    scale: str | None,
    offset: str,
    words: Path | None,
    relu: bool,
    slope: str | None,
    bias: Any,
    semantics: "Semantics",
    control: "Control",
    **settings: Any,
) -> Answer:
    """Run the pipe on accumulators with parameters as they were typed."""
    import numpy as np

    from narrowcast.errors import FormatError
    from narrowcast.fixpipe import Fixpipe
    from narrowcast.fixpipe.files import number_or_array, read_array
    from narrowcast.fixpipe.run import parameter_words
    from narrowcast.operation import execute

    if scale is not None and words is not None:
        raise typer.BadParameter("give --scale or --words, not both")
    if relu and slope is not None:
        raise typer.BadParameter("give --relu or --slope, not both")
    alpha = None if slope is None else np.atleast_1d(number_or_array(slope, "slope")).astype(np.float32)
    activation = "relu" if relu else None if alpha is None else "leaky" if alpha.size == 1 else "prelu"
    op = Fixpipe(mode=mode, activation=activation, **settings)
    param: Any = None
    if words is not None:
        param = read_array(words)
        if param.dtype.name not in ("uint64", "int64"):
            raise FormatError(f"{words} holds {param.dtype}; parameter words are uint64 or int64.", hint="Use --scale.")
    elif scale is not None:
        param = number_or_array(scale, "scale")
        if param.dtype.name in ("uint64", "int64") and op.mode_row.scaled:
            raise FormatError(f"{scale} holds {param.dtype}, as words do; scales are floats.", hint="Use --words.")
        param = param.astype(np.int64) if op.mode_row.shifts else param.astype(np.float32)
    made = parameter_words(op, param, number_or_array(offset, "offset"), True, semantics)
    inputs = {"acc": acc, "words": made, "alpha": alpha, "bias": bias}
    return Answer(op, inputs, semantics, control, execute(op, inputs, semantics, control))


def report(
    answer: Answer, output: Path | None, element: str | None, audit: bool, force: bool, json: bool, before: str
) -> None:
    """Write the file where one is asked for, then print everything."""
    from narrowcast.fixpipe import journey
    from narrowcast.fixpipe.chain import ProductOut
    from narrowcast.fixpipe.files import write_store
    from narrowcast.operation import audit as ask
    from narrowcast.operation import to_json

    op, store = answer.op, answer.store
    way = None
    if element is not None:
        row, column = _element(element)
        way = journey(op, answer.inputs, row, column, answer.semantics, answer.control, store)
    found = None
    if audit and answer.product is not None and answer.factors is not None:
        chain = ProductOut(product=answer.product, pipe=op)
        sent = {name: answer.inputs[name] for name in ("words", "alpha")}
        found = ask(chain, {**answer.factors, **sent}, answer.semantics, answer.control)
    elif audit:
        found = ask(op, answer.inputs, answer.semantics, answer.control)
    record = {
        "operation": to_json(op),
        **({} if answer.product is None else {"product": to_json(answer.product)}),
        "semantics": answer.semantics.to_json(),
        "control": answer.control.to_json(),
    }
    written = write_store(store, output, record, force) if output is not None else None
    if json:
        form: dict[str, Any] = {**record, "store": store.summary()}
        form |= {} if written is None else {"file": written.to_json()}
        form |= {} if way is None else {"element": way.to_json()}
        form |= {} if found is None else {"audit": found.to_json()}
        print_json(form)
        return
    line("in", before)
    _print_store(op, store)
    if written is not None:
        shape = "x".join(map(str, written.shape))
        how = "row after row" if written.order == "rows" else "in destination order"
        line("wrote", f"{written.output}: {written.dtype} {shape}, {how}")
        line("", f"{written.sidecar}: how to read it")
    if way is not None:
        print()
        line("element", f"row {way.row}, column {way.column}")
        width = max(len(step.stage) for step in way.steps)
        result = max(len(step.result) for step in way.steps)
        for step in way.steps:
            line("", f"{step.stage:{width}}  {step.result:{result}}  {step.why}")
    if found is not None:
        print()
        for i, text in enumerate(str(found).splitlines()):
            line("" if i else "audit", text)
        for text in found.refused:
            line("", f"refused with {text}")


def _element(text: str) -> tuple[int, int]:
    parts = [part.strip() for part in text.split(",")]
    if len(parts) != 2 or not all(part.isdecimal() for part in parts):
        raise typer.BadParameter(f"--explain-element {text}: write M,N, for example 3,17")
    return int(parts[0]), int(parts[1])


def _print_store(op: "Fixpipe", store: "Store") -> None:
    shape = "x".join(map(str, store.shape))
    row = op.mode_row
    line("mode", f"{row.name}: {row.purpose}; {row.provenance.value} [{row.source}]")
    line(
        "out", f"{shape} {store.format}, {op.layout} to {op.route}: {store.elements:,} elements, {store.bytes:,} bytes"
    )
    for i, rate in enumerate(store.rates):
        line("" if i else "rate", f"{'*' if rate.used else ' '} {rate}")
    if len(store.chunks) > 1:
        widest = max(chunk.columns for chunk in store.chunks)
        line("chunks", f"{len(store.chunks)} instructions of at most {widest} columns")
    dummy = sum(int(d.sum()) for d in store.dummy)
    if dummy:
        line("dummy", f"{dummy:,} elements hold no result (columns beyond N)")
    for finding in store.findings:
        line("emulated", str(finding))
