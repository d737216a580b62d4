"""``narrowcast fixpipe``: accumulators through the Cube's output pipe."""

from pathlib import Path
from typing import Annotated

import typer

from narrowcast.cli import pipe
from narrowcast.cli.terminal import examples

EPILOG = examples(
    "narrowcast fixpipe acc.npy --mode REQ8 --scale scale.npy --offset 3 --relu --layout NZ2ND -o out.npy",
    "narrowcast fixpipe acc.npy --mode REQ8 --scale 0.01 --explain-element 0,5",
    "narrowcast fixpipe acc.npy --mode QF32_2_E4M3 --scale 0.5 --ctrl 48 --audit",
    "narrowcast fixpipe acc.npy --mode DEQF16 --scale 0.01 --authority seed --set nd_tail=trim",
    "narrowcast fixpipe l0c.npy --acc-layout NZ --rows 17 --columns 40 --mode REQ8 --scale 0.01 -o out.npy",
    after="Accumulators are int32 for the modes from S32 and float32 for those from FP32; the modes are listed in "
    "docs/fixpipe.md. A dense row-major result is written as [M, N], every other layout flat as it lies in memory, one "
    "code an element; OUTPUT.json says how to read it. Without -o nothing is written. " + pipe.JSON_KEYS,
)


def fixpipe(
    acc: Annotated[Path, typer.Argument(metavar="ACC", help="A .npy file of int32 or float32 accumulators.")],
    mode: Annotated[str, typer.Option("--mode", metavar="NAME", help="Quantization mode, seed's or vendor's name.")],
    output: pipe.Output = None,
    scale: pipe.Scale = None,
    offset: pipe.Offset = "0",
    words: pipe.Words = None,
    target: pipe.Target = None,
    relu: pipe.Relu = False,
    slope: pipe.Slope = None,
    clip: pipe.Clip = None,
    bias: Annotated[
        Path | None,
        typer.Option("--bias", metavar="FILE", help="N biases, where the pipe adds them (--authority seed)."),
    ] = None,
    layout: pipe.Layout = "NZ2ND",
    route: pipe.Route = "GM",
    stride: pipe.Stride = None,
    split: Annotated[bool, typer.Option("--split", help="FP32 channel split (NZ2NZ).")] = False,
    dual: pipe.Dual = None,
    accept_dummy: pipe.AcceptDummy = False,
    acc_layout: Annotated[
        str, typer.Option("--acc-layout", metavar="NAME", help="plain, or NZ for L0C's fractals, flat.")
    ] = "plain",
    rows: Annotated[int | None, typer.Option("--rows", metavar="M", help="Rows, of an NZ accumulator.")] = None,
    columns: Annotated[
        int | None, typer.Option("--columns", metavar="N", help="Columns, of an NZ accumulator.")
    ] = None,
    offset_bytes: Annotated[float, typer.Option("--offset-bytes", metavar="N", help="Destination offset.")] = 0,
    emulate: Annotated[
        bool, typer.Option("--emulate", help="Reproduce the documented consequence of a broken rule.")
    ] = False,
    ctrl: pipe.Ctrl = "",
    authority: pipe.Authority = "device",
    chip: pipe.Chip = "3510",
    switch: pipe.Switch = None,
    element: pipe.Element = None,
    audit: pipe.Audit = False,
    force: pipe.Force = False,
    json: pipe.Json = False,
) -> None:
    """Send accumulators through the Fixpipe: scale, activation, offset, conversion, layout, store."""
    from narrowcast.fixpipe.files import read_array

    array = read_array(acc)
    answer = pipe.send(
        array,
        mode,
        scale=scale,
        offset=offset,
        words=words,
        relu=relu,
        slope=slope,
        bias=None if bias is None else read_array(bias),
        semantics=pipe.semantics_of(authority, chip, switch),
        control=pipe.control_of(ctrl),
        target=target,
        clip=clip,
        layout=layout,
        route=route,
        stride=stride,
        split=split,
        dual=dual,
        accept_dummy=accept_dummy,
        acc_layout=acc_layout,
        m=rows,
        n=columns,
        batches=array.shape[0] if array.ndim == 3 and acc_layout == "plain" else 1,
        offset_bytes=offset_bytes,
        on_violation="emulate" if emulate else "raise",
    )
    shape = "x".join(map(str, array.shape))
    pipe.report(answer, output, element, audit, force, json, f"{acc}: {shape} {array.dtype} accumulators")
