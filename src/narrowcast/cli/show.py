"""``narrowcast show``: the catalog as tables."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from narrowcast.cli import show_casts, show_rounding
from narrowcast.cli.terminal import CONTEXT, Column, examples, line, note_left_out, print_json, print_table

if TYPE_CHECKING:
    from narrowcast.insight.exact import Number
    from narrowcast.schema import Format

app = typer.Typer(
    rich_markup_mode=None,
    context_settings=CONTEXT,
    epilog=examples(
        "narrowcast show formats                      every format, one line each",
        "narrowcast show formats --format hif8        one format, with its whole code table",
        "narrowcast show rounding --format e4m3       the modes, and what each does to the same values",
        "narrowcast show casts --format hif8          the conversions of the chips",
    ),
)
FormatOption = Annotated[str | None, typer.Option("--format", metavar="FORMAT", help="Only this format, in detail.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.callback(invoke_without_command=True)
def show(context: typer.Context) -> None:
    """Show the catalog: number formats, rounding modes, conversions."""
    if context.invoked_subcommand is None:
        print(context.get_help())


@app.command(
    short_help="Show layout, range, special codes and aliases.",
    context_settings=CONTEXT,
    epilog=examples(
        "narrowcast show formats",
        "narrowcast show formats --format float8_e4m3fn     any alias will do",
        "narrowcast show formats --json",
        after="JSON keys: name title kind bits layout signed bias max min min_normal min_subnormal inf nan zero "
        "default_rounding on_chip aliases dtype_code ml_dtype provenance source note; with --format also codes "
        "(hex, bits, kind, value, power), in value order, for formats of at most 8 bits.",
    ),
)
def formats(format: FormatOption = None, json: JsonOption = False) -> None:
    """Show number formats: layout, range, special codes, aliases, provenance."""
    from narrowcast.catalog.formats import formats as catalog

    if format is not None:
        _show_format(catalog[format], json)
    elif json:
        print_json([_format_json(row) for row in catalog.values()])
    else:
        columns = [
            Column("format"),
            Column("bits", right=True),
            Column("layout"),
            Column("bias", right=True, drop=3),
            Column("max", right=True),
            Column("min\nnormal", right=True),
            Column("min\nsubnormal", right=True),
            Column("inf", right=True, drop=1),
            Column("nan", right=True, drop=1),
            Column("zero", drop=4),
            Column("default", drop=5),
            Column("chips", drop=6),
            Column("provenance", drop=7),
            Column("aliases", wrap=True, minimum=30, drop=8),
        ]
        left_out = print_table(columns, [_format_cells(row) for row in catalog.values()])
        note_left_out(left_out, "see --format FORMAT, --json, or a wider terminal")


def _format_cells(row: "Format") -> list[str]:
    codes = [_hex(row, row.inf_code), _hex(row, row.nan_code)]
    limits = [_limit(row.max), _limit(row.min_normal), _limit(row.min_subnormal)]
    bias = getattr(row, "bias", None)
    cells = [row.name, str(row.bits), _layout(row), "-" if bias is None else str(bias), *limits, *codes, _zero(row)]
    chips = ", ".join(row.on_chip) or "none"
    return [*cells, row.default_rounding.value, chips, row.provenance.value, ", ".join(row.aliases)]


def _layout(row: "Format") -> str:
    if row.is_integer:
        return "signed" if row.signed else "unsigned"
    if row.kind.value == "tapered":
        return "tapered"
    if len(row.layout) <= 10:
        return row.layout
    return ".".join(part if len(part) == 1 else f"{part[0]}{len(part)}" for part in row.layout.split("."))


def _limit(value: float | None) -> str:
    """A power of two where that is exact and short; wide floats keep the digits float32 needs."""
    if value is None:
        return "-"
    if isinstance(value, int):
        exponent = value.bit_length()
        return str(value) if exponent <= 16 else f"2^{exponent}-1"
    mantissa, _, exponent_text = value.hex().partition("p")
    if mantissa == "0x1.0000000000000" and not 0.1 < value < 100_000:
        return f"2^{int(exponent_text)}"
    return f"{value:.8g}"


def _hex(row: "Format", code: int | None) -> str:
    return "-" if code is None else f"0x{code:0{(row.bits + 3) // 4}X}"


def _zero(row: "Format") -> str:
    if not getattr(row, "has_zero", True):
        return "none"
    return "+0 -0" if row.has_negative_zero else "0"


def _format_json(row: "Format") -> dict[str, Any]:
    return {
        "name": row.name,
        "title": row.title,
        "kind": row.kind.value,
        "bits": row.bits,
        "layout": row.layout,
        "signed": row.signed,
        "bias": getattr(row, "bias", None),
        "max": row.max,
        "min": row.min,
        "min_normal": row.min_normal,
        "min_subnormal": row.min_subnormal,
        "inf": None if row.inf_code is None else _hex(row, row.inf_code),
        "nan": None if row.nan_code is None else _hex(row, row.nan_code),
        "zero": _zero(row),
        "default_rounding": row.default_rounding.value,
        "on_chip": list(row.on_chip),
        "aliases": list(row.aliases),
        "dtype_code": row.dtype_code,
        "ml_dtype": row.ml_dtype,
        "provenance": row.provenance.value,
        "source": row.source,
        "note": row.note,
    }


def _show_format(row: "Format", json: bool) -> None:
    from narrowcast.insight.anatomy import codes_in_value_order

    readings = codes_in_value_order(row) if row.bits <= 8 else []
    if json:
        codes = [{k: r.to_json()[k] for k in ("hex", "bits", "kind", "value", "power")} for r in readings]
        print_json({**_format_json(row), "codes": codes})
        return
    line("format", f"{row.name}: {row.title}, {row.bits} bits")
    line("aliases", ", ".join(row.aliases) or "none")
    line("layout", row.layout)
    if (bias := getattr(row, "bias", None)) is not None:
        line("bias", str(bias))
    line("max", _both(row.max))
    line("min", _both(row.min))
    if row.min_normal is not None:
        line("normal", f"from {_both(row.min_normal)}")
    if row.min_subnormal is not None:
        line("subnormal", f"from {_both(row.min_subnormal)}")
    line("special", f"inf {_hex(row, row.inf_code)}, nan {_hex(row, row.nan_code)}, zero {_zero(row)}")
    line("rounding", f"{row.default_rounding.value} unless another is named")
    line(
        "array", f"{row.ml_dtype} (NumPy, ml_dtypes)" if row.ml_dtype else f"no type of its own: {row.code_dtype} codes"
    )
    line("chips", ", ".join(row.on_chip) or "none")
    line("says who", f"{row.provenance.value} [{row.source}]")
    if row.note:
        line("note", row.note)
    if readings:
        print()
        _print_grid([(r.hex, _compact(r.number)) for r in readings])
    else:
        print()
        line("codes", f"{1 << row.bits} codes; read one with `narrowcast explain 0x... --format {row.name}`")


def _both(value: float) -> str:
    from fractions import Fraction

    from narrowcast.insight.exact import Number

    number = Number(Fraction(value), value < 0)
    plain = isinstance(value, int) or number.power == number.short
    return number.short if plain else f"{number.short} = {number.power}"


def _compact(number: "Number") -> str:
    return number.short if len(number.short) <= 9 else number.power.replace(" ", "")


def _print_grid(cells: list[tuple[str, str]]) -> None:
    """Print code and value pairs in columns, each read from top to bottom."""
    from narrowcast.cli.terminal import width

    codes = max(len(code) for code, _ in cells)
    values = max(len(value) for _, value in cells)
    across = max(1, min(8, (min(width(), 120) + 3) // (codes + values + 5)))
    down = -(-len(cells) // across)
    for i in range(down):
        row = cells[i::down]
        print("   ".join(f"{code:{codes}}  {value:{values}}" for code, value in row).rstrip())


for _module, _function in ((show_rounding, show_rounding.rounding), (show_casts, show_casts.casts)):
    app.command(short_help=_module.SHORT, epilog=_module.EPILOG, context_settings=CONTEXT)(_function)
