"""``narrowcast matmul``: a matrix product and its way out of the Cube, in one command."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from narrowcast.cli import pipe
from narrowcast.cli.terminal import examples

EPILOG = examples(
    "narrowcast matmul a.npy b.npy --mode REQ8 --scale scale.npy --offset 3 --relu -o out.npy",
    "narrowcast matmul a.npy b.npy --bias bias.npy --mode DEQF16 --scale 0.01 -o out.npy",
    "narrowcast matmul a.npy b.npy --a-format e4m3 --b-format e5m2 --mode QF32_2_BF16 --scale 1 -o out.npy",
    "narrowcast matmul a.npy b.npy --a-format hif8 --set cube_accumulation=fp32-k64 --audit",
    after="A is [M, K], B is [K, N]: int8, float16 or float32 arrays, or codes with a named format. The product is "
    "S32, exact, for s8 operands, and FP32 for all others, in the order the switch cube_accumulation names. The bias "
    "starts the accumulator; under --authority seed it goes to the pipe. Without --mode accumulators leave as they "
    "are. " + pipe.JSON_KEYS,
)


def matmul(
    a: Annotated[Path, typer.Argument(metavar="A", help="A .npy file: [M, K].")],
    b: Annotated[Path, typer.Argument(metavar="B", help="A .npy file: [K, N].")],
    mode: Annotated[
        str | None, typer.Option("--mode", metavar="NAME", help="Quantization mode. [default: none, S32 or FP32]")
    ] = None,
    output: pipe.Output = None,
    a_format: Annotated[
        str | None, typer.Option("--a-format", metavar="FORMAT", help="Format of A. [default: the array's type]")
    ] = None,
    b_format: Annotated[
        str | None, typer.Option("--b-format", metavar="FORMAT", help="Format of B. [default: that of A]")
    ] = None,
    bias: Annotated[Path | None, typer.Option("--bias", metavar="FILE", help="N biases, int32 or float32.")] = None,
    scale: pipe.Scale = None,
    offset: pipe.Offset = "0",
    words: pipe.Words = None,
    target: pipe.Target = None,
    relu: pipe.Relu = False,
    slope: pipe.Slope = None,
    clip: pipe.Clip = None,
    layout: pipe.Layout = "NZ2ND",
    route: pipe.Route = "GM",
    stride: pipe.Stride = None,
    dual: pipe.Dual = None,
    accept_dummy: pipe.AcceptDummy = False,
    ctrl: pipe.Ctrl = "",
    authority: pipe.Authority = "device",
    chip: pipe.Chip = "3510",
    switch: pipe.Switch = None,
    element: pipe.Element = None,
    audit: pipe.Audit = False,
    force: pipe.Force = False,
    json: pipe.Json = False,
) -> None:
    """Multiply two matrices and send the accumulators through the Fixpipe."""
    from narrowcast.cube import Mmad
    from narrowcast.fixpipe.files import read_array
    from narrowcast.operation import execute

    left, right = read_array(a), read_array(b)
    semantics = pipe.semantics_of(authority, chip, switch)
    first = a_format or _format_of(left.dtype.name, a)
    product = Mmad(a_format=first, b_format=b_format or first)
    start = None if bias is None else read_array(bias)
    in_pipe = start is not None and semantics.choose("fixpipe_bias") == "pipe"
    acc = execute(product, {"a": left, "b": right, "bias": None if in_pipe else start}, semantics)
    answer = pipe.send(
        acc,
        mode or product.pair.accumulator.upper(),
        scale=scale,
        offset=offset,
        words=words,
        relu=relu,
        slope=slope,
        bias=start if in_pipe else None,
        semantics=semantics,
        control=pipe.control_of(ctrl),
        target=target,
        clip=clip,
        layout=layout,
        route=route,
        stride=stride,
        dual=dual,
        accept_dummy=accept_dummy,
    )
    answer = replace(answer, product=product, factors={"a": left, "b": right, "bias": start})
    size = f"{left.shape[0]}x{left.shape[1]} {product.a_format} by {right.shape[0]}x{right.shape[1]} {product.b_format}"
    before = f"{size} -> {product.pair.accumulator} accumulators"
    pipe.report(answer, output, element, audit, force, json, before)


def _format_of(dtype: str, path: Path) -> str:
    known = {"int8": "s8", "float16": "fp16", "float32": "fp32"}
    if dtype not in known:
        from narrowcast.errors import FormatError

        raise FormatError(
            f"{path} is {dtype}: it may hold codes of several formats.",
            hint="Name it: --a-format bf16, hif8, e4m3, e5m2 or s8.",
        )
    return known[dtype]
