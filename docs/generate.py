"""Tables of the documentation that come from the catalog and from the command line.

A page holds ``<!-- generated: NAME ARGUMENT -->`` and ``<!-- end -->``; what stands between them is written by
the function of that name. ``--check`` compares instead of writing and lists the pages that are out of date.
"""

import argparse
import contextlib
import io
import os
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import fixpipe_tables
import mx_tables
import tile_tables

from narrowcast.catalog import capi, casts
from narrowcast.catalog.formats import formats
from narrowcast.catalog.rounding import roundings
from narrowcast.catalog.switches import switches
from narrowcast.schema import Format, Magnitudes, TaperedFormat

ROOT = Path(__file__).resolve().parent.parent
MARK = re.compile(
    r"(?P<begin><!-- generated: (?P<name>[a-z-]+)(?: (?P<argument>[^>]*?))? -->\n).*?(?P<end>^<!-- end -->$)",
    re.M | re.S,
)


def pages() -> list[Path]:
    """Every page that may hold a generated part, in a fixed order."""
    return [*sorted(ROOT.glob("README*.md")), *sorted((ROOT / "docs").glob("**/*.md"))]


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Lay out a Markdown table; a bar inside a cell is escaped."""
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    lines += ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def code(text: object) -> str:
    return f"`{text}`"


def power(value: float | None) -> str:
    """Write a value as people do in this field: a plain number, or a power of two when that is shorter."""
    if value is None:
        return "-"
    if value == int(value) and abs(value) < 100_000:
        return str(int(value))
    mantissa, exponent = value.hex().split("p")
    significand = float.fromhex(mantissa)
    if significand == 1:
        return f"2^{int(exponent)}" if not 0.1 < value < 1 else f"{value:g}"
    if abs(significand) == 1:
        return f"-2^{int(exponent)}"
    return f"{value:g}" if 0.01 < abs(value) < 100_000 else f"{value:.6g}"


def integer_limit(value: int) -> str:
    """Write an integer limit in full up to 16 bits, as a power of two beyond."""
    if abs(value) < 100_000:
        return str(value)
    near = abs(value).bit_length()
    return f"-2^{near - 1}" if value < 0 else f"2^{near} - 1"


def codes_hex(row: Format, value: int | None) -> str:
    return "-" if value is None else code(f"0x{value:0{(row.bits + 3) // 4}X}")


def fields(row: Format) -> str:
    """Sign, exponent and fraction widths, or the family where they are not fixed."""
    if row.is_integer:
        return "two's complement" if row.signed else "unsigned"
    if isinstance(row, TaperedFormat):
        return "tapered"
    return code(row.layout) if len(row.layout) < 16 else code(compact(row.layout))


def compact(layout: str) -> str:
    """Shorten runs of one letter: ``S.EEEEEEEE.MMM`` becomes ``S.E8.M3``."""
    return re.sub(r"(E+|M+)", lambda m: f"{m[0][0]}{len(m[0])}", layout)


def format_rows(kind: str) -> list[Format]:
    return [row for row in formats.values() if row.is_integer == (kind == "integer")]


def formats_table(argument: str) -> str:
    """The float formats: widths, range, special codes."""
    if argument == "zh":
        header = ["格式", "位数", "字段", "最大值", "最小规格化数", "最小正数", "无穷", "NaN", "舍入"]
    else:
        header = ["format", "bits", "fields", "max", "min normal", "min positive", "inf", "NaN", "rounding"]
    rows = []
    for row in format_rows("float"):
        assert isinstance(row, Magnitudes)
        smallest = row.min_subnormal if row.min_subnormal is not None else row.min_normal
        rows.append(
            [
                code(row.name),
                str(row.bits),
                fields(row),
                power(row.max),
                power(row.min_normal),
                power(smallest),
                codes_hex(row, row.inf_code),
                codes_hex(row, row.nan_code),
                code(row.default_rounding.value),
            ]
        )
    return table(header, rows)


def integers_table(argument: str) -> str:
    """The integer formats and their limits."""
    header = ["格式", "位数", "最小值", "最大值"] if argument == "zh" else ["format", "bits", "min", "max"]
    return table(
        header,
        [
            [code(row.name), str(row.bits), integer_limit(int(row.min)), integer_limit(int(row.max))]
            for row in format_rows("integer")
        ],
    )


def aliases_table(_: str) -> str:
    """Every spelling of every format, and where the row comes from."""
    return table(
        ["format", "also called", "on chips", "provenance", "source"],
        [
            [
                code(row.name),
                ", ".join(map(code, row.aliases)) or "-",
                ", ".join(row.on_chip) or "-",
                row.provenance.value,
                row.source,
            ]
            for row in formats.values()
        ],
    )


def notes_list(_: str) -> str:
    """The remarks of the rows that have one."""
    return "\n".join(f"- `{row.name}`: {row.note}" for row in formats.values() if row.note) + "\n"


def rounding_table(argument: str) -> str:
    """The rounding modes and their rules."""
    titles = {
        "rn": "就近，平局取偶",
        "rna": "就近，平局远离零",
        "rd": "向负无穷",
        "ru": "向正无穷",
        "rz": "向零（截断）",
        "ro": "向奇数",
        "rh": "混合（仅 HiF8）",
    }
    if argument == "zh":
        return table(
            ["模式", "含义", "Ascend C 名称"],
            [[code(n), titles[n], code(row.ascendc)] for n, row in roundings.items()],
        )
    return table(
        ["mode", "meaning", "rule for the magnitude", "into"],
        [[code(n), row.title, row.rule, row.targets] for n, row in roundings.items()],
    )


def ordinals_table(_: str) -> str:
    """Name and number of each mode in each namespace."""

    def cell(value: object) -> str:
        return "-" if value is None else code(value)

    return table(
        ["mode", "Ascend C", "its number", "PTO number", "PTO spec RMode", "vcvt"],
        [
            [code(n), cell(r.ascendc), cell(r.ascendc_ordinal), cell(r.pto_ordinal), cell(r.spec_rmode), cell(r.vcvt)]
            for n, r in roundings.items()
        ],
    )


def switches_list(_: str) -> str:
    """Every disputed point with all its claims."""
    parts = []
    for row in switches.values():
        mark = " (CONFLICT)" if row.conflict else ""
        defaults = ", ".join(f"{authority}: `{value}`" for authority, value in row.defaults.items())
        claims = table(
            ["value", "means", "provenance", "source"],
            [[code(c.value), c.means, c.provenance.value, c.source] for c in row.claims],
        )
        parts.append(
            f"### `{row.name}`{mark}\n\n{row.question}\n\n{claims}\nDefault: {defaults}. Example: {row.example}.\n"
        )
    return "\n".join(parts)


def modes(names: Sequence[str], ignored: bool = False) -> str:
    return "any (ignored)" if ignored else " ".join(names)


def casts_table(_: str) -> str:
    """The Basic ``Cast``: modes of each pair on each chip."""
    both: dict[tuple[str, str], dict[str, str]] = {}
    for row in casts.rows(interface="basic"):
        if row.emulated:
            both.setdefault((row.source, row.target), {})[row.chip] = modes(row.modes, row.scaled)
    return table(
        ["source", "target", "chip 3510", "chip 2201"],
        [[code(s), code(t), cell.get("3510", "-"), cell.get("2201", "-")] for (s, t), cell in both.items()],
    )


def register_casts_table(_: str) -> str:
    """The register ``Cast``: modes, parts, and whether the instruction may choose not to saturate."""
    return table(
        ["source", "target", "modes", "parts", "own saturation choice"],
        [
            [code(r.source), code(r.target), modes(r.modes), str(r.parts), "yes" if r.sat_trait else "-"]
            for r in casts.rows(interface="reg")
        ],
    )


def capi_table(_: str) -> str:
    """The C-API functions by name."""
    return table(
        ["function", "source", "target", "modes", "chips", "vendor's name"],
        [
            [
                code(r.name),
                code(r.source),
                code(r.target),
                modes(r.modes) or "none",
                ", ".join(r.chips),
                code(r.vendor_name),
            ]
            for r in capi.ROWS
        ],
    )


def integral_table(_: str) -> str:
    """The functions that round to an integer and keep the type."""
    return table(
        ["function", "rounds", "on 3510", "on 2201"],
        [
            [code(r.name), r.title, *(" ".join(r.types.get(chip, ())) or "-" for chip in ("3510", "2201"))]
            for r in casts.INTEGRAL_ROWS
        ],
    )


def unemulated_list(_: str) -> str:
    """Pairs that exist on the chip and are not modelled."""
    pairs = dict.fromkeys((r.source, r.target) for r in casts.ROWS if not r.emulated)
    return ", ".join(f"`{s}` -> `{t}`" for s, t in pairs) + "\n"


def cast_notes_list(_: str) -> str:
    """Remarks of the cast rows."""
    notes = dict.fromkeys((r.source, r.target, r.note) for r in casts.ROWS if r.note)
    return "\n".join(f"- `{s}` -> `{t}`: {note}" for s, t, note in notes) + "\n"


def help_text(command: str) -> str:
    """What ``narrowcast COMMAND --help`` prints."""
    from narrowcast.cli import main as narrowcast

    os.environ["COLUMNS"] = "100"
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown):
        narrowcast([*command.split(), "--help"])
    return f"```text\n{shown.getvalue().strip()}\n```\n"


TABLES: dict[str, Callable[[str], str]] = {
    "formats": formats_table,
    "integers": integers_table,
    "aliases": aliases_table,
    "format-notes": notes_list,
    "rounding": rounding_table,
    "rounding-numbers": ordinals_table,
    "switches": switches_list,
    "casts": casts_table,
    "register-casts": register_casts_table,
    "capi": capi_table,
    "integrals": integral_table,
    "unemulated-casts": unemulated_list,
    "cast-notes": cast_notes_list,
    "help": help_text,
    **tile_tables.tables(table),
    **mx_tables.tables(table),
    **fixpipe_tables.tables(table),
}


def render(text: str) -> str:
    """Return a page with every generated part brought up to date."""

    def replace(match: re.Match[str]) -> str:
        return f"{match['begin']}\n{TABLES[match['name']](match['argument'] or '')}\n{match['end']}"

    return MARK.sub(replace, text)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="report pages that are out of date, write nothing")
    check = parser.parse_args().check
    stale = []
    for page in pages():
        before = page.read_text(encoding="utf-8")
        after = render(before)
        if after != before:
            stale.append(page.relative_to(ROOT))
            if not check:
                page.write_text(after, encoding="utf-8")
    for name in stale:
        print(f"{name}: {'out of date, run `make docs`' if check else 'rewritten'}")
    if check and not stale:
        print("generated tables: up to date")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
