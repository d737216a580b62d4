"""``narrowcast explain``: one code or one value, and why."""

from typing import TYPE_CHECKING, Annotated

import typer

from narrowcast.cli.terminal import ROUNDING_HELP, examples, line, print_json

if TYPE_CHECKING:
    from fractions import Fraction

    from narrowcast.insight.anatomy import Reading
    from narrowcast.insight.explain import Explanation, Neighbour
    from narrowcast.insight.open_points import OpenPoint

PARSING = {"ignore_unknown_options": True}  # so that -1e-9 is a value
EPILOG = examples(
    "narrowcast explain 0x7e --format e4m3                  what a code means",
    "narrowcast explain 17 --to e4m3                        an exact tie, and where it goes",
    "narrowcast explain -1e-9 --to hif8 --rounding rh       hybrid rounding, bit by bit",
    "narrowcast explain 0x3f80 --from bf16 --to hif8        a code of the source format",
    "narrowcast explain 1.5*2^-15 --to fp16 --json          for programs",
    "narrowcast explain 0x00004C803FC00000 --as quant-word  a Fixpipe parameter word",
    after="A value is 448, -1e-9, 3/8, 0x1.8p3 (hex float), 1.5*2^-15, inf or nan; 0x7e and 0b1010 are codes. "
    "JSON keys: typed source source_error target rounding saturate below above position tie steps hybrid "
    "result error saturating not_saturating on_chip on_chip_note provenance open; exact values are strings.",
)


def explain(
    context: typer.Context,
    value: Annotated[str, typer.Argument(help="A value (448, -1e-9, inf, nan) or a code (0x7e).", show_default=False)],
    format: Annotated[
        str | None, typer.Option("--format", metavar="FORMAT", help="Read the code in this format.")
    ] = None,
    to: Annotated[str | None, typer.Option("--to", metavar="FORMAT", help="Explain the cast to this format.")] = None,
    source: Annotated[str, typer.Option("--from", metavar="FORMAT", help="Format of the value that is cast.")] = "fp32",
    rounding: Annotated[
        str | None,
        typer.Option("--rounding", metavar="MODE", help=ROUNDING_HELP),
    ] = None,
    saturate: Annotated[
        bool, typer.Option("--saturate/--no-saturate", help="Overflow gives the largest finite value.")
    ] = True,
    nan: Annotated[
        str, typer.Option("--nan", metavar="POLICY", help="NaN where the format has none: keep (refuse), zero, error.")
    ] = "keep",
    kind: Annotated[
        str | None, typer.Option("--as", metavar="KIND", help="quant-word: a 64-bit parameter word of the Fixpipe.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Explain a code of a format, or what a cast does to a value and which rule decided.

    Fields, the exact value, the neighbours on both sides, the tie between them, the rule, the result with and
    without saturation, who states it, and which questions are open.
    """
    if kind is not None:
        _explain_word(context, value, kind, json)
        return
    if value.startswith("--") or (format is None) == (to is None):
        wrong = "say which format" if format is None else "give one of them"
        raise typer.BadParameter(f"{wrong}: --format FORMAT reads a code, --to FORMAT explains a cast", context)
    from narrowcast.insight.exact import parse
    from narrowcast.insight.explain import explain_cast, explain_code

    if format is not None and isinstance(parse(value), int):
        reading = explain_code(value, format)
        print_json(reading.to_json()) if json else _print_reading(reading)
        return
    explanation = explain_cast(value, to or format or "", rounding=rounding, source=source, saturate=saturate, nan=nan)
    print_json(explanation.to_json()) if json else _print_explanation(explanation)


def _explain_word(context: typer.Context, value: str, kind: str, json: bool) -> None:
    if kind != "quant-word":
        raise typer.BadParameter(f"--as {kind}: the one kind of word is quant-word", context)
    from narrowcast.insight.quant_word import explain_word

    try:
        word = int(value, 0)
    except ValueError:
        raise typer.BadParameter(f"{value} is no whole number such as 0x00004C803FC00000", context) from None
    reading = explain_word(word)
    if json:
        print_json(reading.to_json())
        return
    line("word", f"0x{reading.word:016X}")
    widths = [max(map(len, column)) for column in zip(*((f.bits, f.name, f.raw) for f in reading.fields), strict=True)]
    for field in reading.fields:
        texts = (f"{text:{width}}" for text, width in zip((field.bits, field.name, field.raw), widths, strict=True))
        line("", f"  {'  '.join(texts)}  {field.means or 'ignored'}")
    line("does", reading.summary)
    for text in reading.warnings:
        line("note", text)
    width = max(len(name) for name, _ in reading.others)
    for i, (name, text) in enumerate(reading.others):
        line("" if i else "also", f"{name:{width}}  {text}")
    line("says who", reading.source)


def _print_reading(reading: "Reading") -> None:
    from narrowcast.catalog.formats import formats

    row = formats[reading.format]
    line("code", f"{reading.format} {reading.hex} = {_number(reading)}")
    if reading.kind not in ("integer", "zero", "nan", "infinity"):
        line("kind", reading.kind)
    _print_fields(reading)
    line("says who", f"{row.provenance.value} [{row.source}]")


def _print_fields(reading: "Reading") -> None:
    line("bits", reading.bits)
    widths = [max(map(len, column)) for column in zip(*((f.name, f.bits) for f in reading.fields), strict=True)]
    for field in reading.fields:
        line("", f"  {field.name:{widths[0]}}  {field.bits:{widths[1]}}  {field.means}")


def _print_explanation(e: "Explanation") -> None:
    target = e.target
    line("cast", f"{e.source.format} -> {target}, rounding {e.rounding}")
    line("source", f"{e.source.format} {e.source.hex} = {_number(e.source)}")
    if e.source_error is not None and e.typed.lower().strip() != e.source.hex.lower():
        line("", f"  {_typing(e)}")
    _print_fields(e.source)
    print()
    _print_neighbours(e)
    for i, step in enumerate(e.steps):
        line("rule" if i == 0 else "", step)
    print()
    if e.saturating == e.not_saturating:
        line("result", f"{target} {e.result.hex} = {_number(e.result)}, saturating or not")
    else:
        here, there = ("saturating", "not saturating") if e.saturate else ("not saturating", "saturating")
        other = e.not_saturating if e.saturate else e.saturating
        line("result", f"{target} {e.result.hex} = {_number(e.result)}, {here}")
        line("", f"{target} {other.hex} = {_number(other)}, {there}")
    if e.error is not None:
        line("error", _error(e.error, e.source.number.fraction))
    _print_fields(e.result)
    print()
    for i, (what, level, source) in enumerate(e.provenance):
        line("" if i else "says who", f"{what}: {level} [{source}]")
    line("", e.on_chip_note)
    for i, point in enumerate(e.open):
        _print_open("open" if i == 0 else "", point)


def _typing(e: "Explanation") -> str:
    from narrowcast.insight.exact import parse

    typed = parse(e.typed)
    if not e.source_error or isinstance(typed, int):
        return f"{e.typed} is a value of {e.source.format}: nothing was lost in writing it"
    return f"{e.typed} rounded to {e.source.format} (rn): off by {_error(e.source_error, typed.fraction)}"


def _print_neighbours(e: "Explanation") -> None:
    if e.below is None or e.above is None or e.position is None or e.tie is None:
        return
    from narrowcast.insight.exact import power_text

    negative = e.source.number.negative
    near = e.above if negative else e.below
    value = ("value", "", e.source.number.short, _position(e, near))
    tie = ("tie", "", e.tie.short, e.tie.power)
    outer, inner = ("above", *_neighbour(e.above)), ("below", *_neighbour(e.below))
    if e.position == 0:
        middle = [tie]
        note = "the value itself"
        if negative:
            outer = ("value", *outer[1:3], note)
        else:
            inner = ("value", *inner[1:3], note)
    elif e.position.denominator == 2:
        middle = [value]
    else:
        middle = [tie, value] if (e.position.numerator * 2 < e.position.denominator) != negative else [value, tie]
    rows = [outer, *middle, inner]
    codes = max(len(row[1]) for row in rows)
    # One more place in front of positive numbers where negative ones stand in the same column.
    signed = any(row[2].lstrip("~").startswith("-") for row in rows)
    numbers = [row[2] if not signed or "-" in row[2][:2] else f" {row[2]}" for row in rows]
    width = max(map(len, numbers))
    for (label, code, _, note), number in zip(rows, numbers, strict=True):
        line(label, f"{code:{codes}}  {number:{width}}  {note}")
    if e.position.denominator >= 10_000:
        line("", f"the value lies exactly {power_text(e.position)} of the gap away from there")
    if e.hybrid is not None:
        line("hybrid", f"discarded  {e.hybrid.discarded}  ({int(e.hybrid.discarded, 2)})")
        line("", f"threshold  {e.hybrid.threshold}  ({int(e.hybrid.threshold, 2)}), {e.hybrid.threshold_is}")


def _neighbour(neighbour: "Neighbour") -> tuple[str, str, str]:
    number = neighbour.number
    if neighbour.reading is None:
        return "none", number.short, "no code: beyond the largest finite value"
    return neighbour.reading.hex, number.short, number.power if number.power != number.short else ""


def _position(e: "Explanation", near: "Neighbour") -> str:
    from narrowcast.insight.exact import short_text

    assert e.position is not None
    start = near.reading.hex if near.reading else near.number.short
    if e.position.denominator == 2:
        return f"an exact tie: half of the gap from {start}"
    fraction = f"{e.position} = " if e.position.denominator < 10_000 else ""
    return f"{fraction}{short_text(e.position, 9)} of the gap from {start}"


def _number(reading: "Reading") -> str:
    number = reading.number
    if reading.kind in ("nan", "infinity", "zero", "integer") or number.power == number.short:
        return number.short
    return f"{number.short} = {number.power}"


def _error(error: "Fraction", reference: "Fraction | None") -> str:
    from narrowcast.insight.exact import short_text

    if error == 0:
        return "0"
    text = short_text(abs(error), 9)
    sign = "-" if error < 0 else "+"
    relative = f" ({100 * float(abs(error / reference)):.3g}% of the value)" if reference else ""
    return (f"~{sign}{text[1:]}" if text.startswith("~") else f"{sign}{text}") + relative


def _print_open(label: str, point: "OpenPoint") -> None:
    verdict = "changes this result" if point.matters else "does not touch this result"
    line(label, f"{point.switch}: {verdict}")
    line("", f"  {point.question}")
    names = max(len(a.value) for a in point.alternatives)
    for a in point.alternatives:
        mark = "*" if a.value == point.chosen else " "
        line("", f"  {mark} {a.value:{names}}  {a.result.hex} = {a.result.number.short}  {a.level} [{a.source}]")
