"""``narrowcast cast``: an array file to the codes of a format."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from narrowcast.cli.terminal import ROUNDING_HELP, examples, line, print_json, progress

if TYPE_CHECKING:
    from narrowcast.checkpoint.cast_file import CastFile

EPILOG = examples(
    "narrowcast cast in.npy -o out.npy --to hif8",
    "narrowcast cast in.npy -o out.npy --to hif8 --rounding rh --audit",
    "narrowcast cast in.npy -o out.npy --to s8 --nan zero --no-saturate",
    "narrowcast cast bf16.npy -o out.npy --from bf16 --to e4m3     bfloat16 loses its name in .npy",
    "narrowcast cast out.npy -o back.npy --to fp32                 out.npy.json says what the codes are",
    after="Writes one code per element (uint8, uint16) and OUTPUT.json, which names the format; fp16, fp32 and "
    "integers are stored as NumPy's own types. JSON keys: source output sidecar shape source_format format rounding "
    "saturate nan dtype stored elements nans overflowed flushed max_error audit.",
)


def cast(
    source: Annotated[Path, typer.Argument(metavar="INPUT", help="A .npy file.")],
    output: Annotated[Path, typer.Option("-o", "--output", metavar="FILE", help="The .npy file to write.")],
    to: Annotated[str, typer.Option("--to", metavar="FORMAT", help="Target format or an alias.")],
    origin: Annotated[
        str | None,
        typer.Option("--from", metavar="FORMAT", help="What the elements are, where the file's type does not say it."),
    ] = None,
    rounding: Annotated[
        str | None,
        typer.Option("--rounding", metavar="MODE", help=ROUNDING_HELP),
    ] = None,
    saturate: Annotated[
        bool, typer.Option("--saturate/--no-saturate", help="Overflow gives the largest finite value.")
    ] = True,
    nan: Annotated[
        str, typer.Option("--nan", metavar="POLICY", help="keep (refused where the format has none), zero or error.")
    ] = "keep",
    audit: Annotated[
        bool, typer.Option("--audit", help="Say which open questions about the chip change bits of this result.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace existing outputs.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Cast the array of a .npy file to a format and write its codes."""
    from narrowcast.checkpoint.cast_file import cast_file
    from narrowcast.storage.npy import open_npy

    with progress(f"casting {source.name}", open_npy(source).elements) as advance:
        result = cast_file(
            source,
            output,
            to,
            source_format=origin,
            rounding=rounding,
            saturate=saturate,
            nan=nan,
            audited=audit,
            force=force,
            progress=advance,
        )
    print_json(result.to_json()) if json else _print(result)


def _print(result: "CastFile") -> None:
    shape = "x".join(map(str, result.shape)) or "scalar"
    line("cast", f"{result.source}: {shape}, {result.elements:,} elements of {result.source_format}")
    overflow = "saturating" if result.saturate else "not saturating"
    line("to", f"{result.format}, rounding {result.rounding}, {overflow}")
    line("wrote", f"{result.output}: {result.stored} as {result.dtype}")
    line("", f"{result.sidecar}: how to read them")
    kept = f"{result.nans:,} NaN, {result.overflowed:,} outside the range, {result.flushed:,} flushed to zero"
    line("values", kept)
    line("", f"largest error inside the range {result.max_error:.6g}")
    if result.audit is not None:
        for i, text in enumerate(str(result.audit).splitlines()):
            line("" if i else "audit", text)
