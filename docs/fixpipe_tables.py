"""Tables and the picture of the Fixpipe pages: ``python docs/fixpipe_tables.py`` draws docs/images/fixpipe.svg anew."""

import csv
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from narrowcast.catalog import cube, machine
from narrowcast.catalog.fixpipe_modes import FixpipeMode, fixpipe_modes
from narrowcast.catalog.fixpipe_stages import ROWS as STAGES
from narrowcast.catalog.switches import switches
from narrowcast.fixpipe.pipeline import switches_of
from narrowcast.fixpipe.rules import EMULATED, RULES

ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs" / "images" / "fixpipe.svg"
PAGES = ROOT / "docs" / "fixpipe"
GOLDEN = ROOT / "tests" / "golden" / "fixpipe.csv"

Table = Callable[[Sequence[str], Iterable[Sequence[str]]], str]

INK, PAPER, EDGE, SIDE = "#24292f", "#f6f8fa", "#8c959f", "#ddf4ff"


def code(text: object) -> str:
    return f"`{text}`"


def page_name(mode: str) -> str:
    """File of a mode's page."""
    return f"{mode.lower()}.md"


def formula(row: FixpipeMode) -> str:
    """What the mode computes, as the device default has it."""
    if row.bypass:
        return "y = acc"
    if row.shifts:
        return "y = clamp16(acc >> (field + 1))"
    acc = "fp32(acc)" if row.accumulator == "s32" else "acc"
    product = f"fp32({acc} * M)" if row.scaled else acc
    if row.integer:
        low, high = ("-65536", "65535") if row.targets == ("s16",) else ("-256", "255")
        return f"y = clamp_{'/'.join(row.targets)}(clamp(rint({product}), {low}, {high}) + offset)"
    if row.targets == ("fp32",):
        return f"y = {product}"
    return f"y = {row.targets[0]}({product}), rounding {row.rounding.value}"


def tables(table: Table) -> dict[str, Callable[[str], str]]:
    """Return the writers by name."""

    def modes(_: str) -> str:
        """Every mode on one line."""
        return table(
            ["mode", "from", "to", "purpose", "parameters", "vendor's name", "provenance"],
            [
                [
                    f"[{code(r.name)}](fixpipe/{page_name(r.name)})",
                    r.accumulator,
                    ", ".join(r.targets),
                    r.purpose,
                    _parameters(r),
                    code(r.vendor) if r.vendor else "-",
                    r.provenance.value,
                ]
                for r in fixpipe_modes.values()
            ],
        )

    def mode(name: str) -> str:
        """Facts, open questions and golden rows of one mode."""
        row = fixpipe_modes[name]
        facts = table(["fact", "value"], _facts(row))
        golden = [r for r in _golden() if fixpipe_modes[r["mode"]].name == row.name]
        examples = table(
            ["id", "accumulator", "word", "ReLU", "CTRL 48, 50", "by", "result", "rule"],
            [
                [
                    r["id"], code(r["acc"]), code(r["word"]) if r["word"] else "-", "yes" if r["relu"] == "1" else "-",
                    f"{r['ctrl48']}, {r['ctrl50']}", _by(r), _result(r), r["rule"],
                ]
                for r in golden
            ],
        )  # fmt: skip
        asked = switches_of(row, True, True)
        open_points = table(
            ["switch", "question", "values (default first)"],
            [
                [code(s.name), s.question, ", ".join(code(v) for v in _default_first(s.name))]
                for s in (switches[n] for n in asked)
            ],
        )
        parts = [f"{row.purpose[0].upper()}{row.purpose[1:]}.\n", f"```text\n{formula(row)}\n```\n", facts]
        if row.note:
            parts.append(f"{row.note}\n")
        if golden:
            parts += ["## Golden results\n", examples]
        parts += ["## Open questions it may touch\n", open_points]
        return "\n".join(parts)

    def rules(_: str) -> str:
        """The rules, with what breaking them does."""
        return table(
            ["rule", "what must hold", "why", "otherwise", "emulated", "fix", "source"],
            [[code(r.id), r.states, r.cause, r.effect.value, EMULATED.get(r.id, "-"), r.fix, r.source] for r in RULES],
        )

    def buffers(_: str) -> str:
        """Parameter buffers."""
        return table(
            ["buffer", "entries", "size", "use", "address in it", "address in L1", "source"],
            [
                [
                    r.name, f"{r.entries} x {r.entry_bytes} B", f"{r.size // 1024} KB", r.use,
                    f"multiple of {r.destination_alignment} B", f"multiple of {r.source_alignment} B", r.source,
                ]
                for r in machine.BUFFERS
            ],
        )  # fmt: skip

    def rates(_: str) -> str:
        """Elements a cycle by both tables."""

        def cell(name: str, route: str, output: str) -> str:
            rate = machine.rate(name, route, output).rate
            mark = " *" if rate is not None and machine.DEFAULT_TABLE[route] == name else ""
            return "no figure" if rate is None else f"{rate}{mark}"

        outputs = {"bypass": "S32, FP32", "b16": "16-bit", "b8": "8-bit, 4-bit", "dual": "FP32 to both unit buffers"}
        return table(
            ["route", "result", "vendor's appendix", "seed 2.4"],
            [
                [route, outputs[output], cell("vendor", route, output), cell("seed", route, output)]
                for route in machine.DEFAULT_TABLE
                for output in outputs
                if output != "dual" or route == "UB"
            ],
        )

    def stages(_: str) -> str:
        """Stages in order."""
        return table(
            ["stage", "does", "applies to", "reads", "open questions"],
            [
                [s.name, s.does, s.applies, ", ".join(s.buffers) or "-", ", ".join(code(n) for n in s.switches)]
                for s in STAGES
            ],
        )

    def pairs(_: str) -> str:
        """Operand pairs of the Cube."""
        return table(
            ["operands", "mixed", "accumulator", "scales", "K a step", "chips", "source"],
            [
                [
                    ", ".join(code(f) for f in r.formats), "yes" if r.mixed else "no", r.accumulator,
                    "E8M0 per 32 along K" if r.scaled else "-", str(r.k_step), ", ".join(r.chips), r.source,
                ]
                for r in cube.ROWS
            ],
        )  # fmt: skip

    return {
        "fixpipe-modes": modes,
        "fixpipe-mode": mode,
        "fixpipe-rules": rules,
        "fixpipe-buffers": buffers,
        "fixpipe-rates": rates,
        "fixpipe-stages": stages,
        "cube-pairs": pairs,
    }


def _parameters(row: FixpipeMode) -> str:
    if not row.takes_word:
        return "-"
    if not row.vector:
        return "one word"
    return "one word or one a column" + ("" if row.seed_vector else " (the seed: one)")


def _facts(row: FixpipeMode) -> list[list[str]]:
    def numbers(pair: tuple[int | None, int | None]) -> str:
        return " / ".join("-" if n is None else str(n) for n in pair)

    saturation = "always saturates" if row.integer else row.float_saturation.value
    return [
        ["accumulator", row.accumulator],
        [
            "result",
            ", ".join(code(t) for t in row.targets) + (" by bit 46 of the word" if len(row.targets) > 1 else ""),
        ],
        ["parameters", _parameters(row)],
        ["offset", "nine signed bits" if row.offset else "none"],
        ["rounding", row.rounding.value if not row.bypass else "none"],
        ["overflow", saturation],
        ["routes", ", ".join(row.routes)],
        ["chips", ", ".join(row.chips)],
        ["authorities", ", ".join(a for a in row.authorities if a != "seed" or row.in_seed)],
        ["in the seed's table", "yes" if row.in_seed else "no"],
        ["other names", ", ".join(code(n) for n in dict.fromkeys((*filter(None, [row.vendor]), *row.aliases))) or "-"],
        ["number in the C310 compiler header (scalar / vector)", numbers(row.compiler_code)],
        ["number in pto-isa and pto-spec (scalar / vector)", numbers(row.pto_code)],
        ["provenance", f"{row.provenance.value} [{row.source}]"],
    ]


def _golden() -> list[dict[str, str]]:
    with GOLDEN.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _by(row: dict[str, str]) -> str:
    chip = "" if row["chip"] == "3510" else f" {row['chip']}"
    return " ".join([f"{row['authority']}{chip}", *(code(o) for o in row["overrides"].split())])


def _result(row: dict[str, str]) -> str:
    if row["expected"] == "error":
        return "refused"
    value = int(row["expected"])
    return str(value) if row["target"] in ("s8", "u8", "s4", "s16") else f"0x{value:X}"


def _default_first(name: str) -> list[str]:
    row = switches[name]
    return sorted(row.values, key=lambda value: value != row.defaults["device"])


# The picture -----------------------------------------------------------------------------------------------------

WIDTH, BOX, GAP, LEFT, TOP = 860, 62, 16, 230, 70


def draw() -> str:
    """Draw the pipe from the rows of its stages, buffers and rates."""
    height = TOP + len(STAGES) * (BOX + GAP) + 130
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
        f'font-family="sans-serif" font-size="12" fill="{INK}">',
        "<title>The Fixpipe: from the accumulator in L0C to GM, L1 or UB</title>",
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
        _box(LEFT, 12, 400, 40, "L0C: S32 or FP32 accumulators in 16 x 16 fractals", ""),
    ]
    y = TOP
    for stage in STAGES:
        parts.append(_arrow(LEFT + 200, y - GAP - (2 if stage is STAGES[0] else 0), y))
        parts.append(_box(LEFT, y, 400, BOX, f"{stage.name} ({stage.applies})", stage.does))
        for i, name in enumerate(stage.buffers):
            row = machine.buffer(name)
            top = y + i * (BOX // len(stage.buffers))
            high = BOX // len(stage.buffers) - 4
            parts.append(_side(10, top, 190, high, f"{name}: {row.entries} x {row.entry_bytes} B"))
            parts.append(_line(200, top + high / 2, LEFT))
        count = len(stage.switches)
        parts.append(
            f'<text x="{LEFT + 412}" y="{y + BOX / 2 + 4}" fill="{EDGE}">'
            f"{count} open question{'s' * (count != 1)}</text>"
        )
        y += BOX + GAP
    routes = list(machine.DEFAULT_TABLE)
    for i, route in enumerate(routes):
        x = LEFT + i * 138
        parts.append(_arrow(x + 62, y - GAP, y))
        parts.append(_box(x, y, 124, 70, route, *_route_lines(route)))
    parts.append(
        f'<text x="{LEFT}" y="{y + 92}" fill="{EDGE}">one of the three per instruction; elements a cycle</text>'
    )
    return "\n".join([*parts, "</svg>"]) + "\n"


def _route_lines(route: str) -> tuple[str, str]:
    used = machine.DEFAULT_TABLE[route]

    def rate(output: str) -> str:
        found = machine.rate(used, route, output).rate
        return "?" if found is None else str(found)

    return f"4-byte {rate('bypass')}, 2-byte {rate('b16')}", f"8-bit, 4-bit {rate('b8')}"


def _box(x: float, y: float, width: float, height: float, title: str, *lines: str) -> str:
    text = [f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="6" fill="{PAPER}" stroke="{EDGE}"/>']
    shown = [part for line in lines if line for part in _wrapped(line, int(width / 6.0))][:2]
    start = y + height / 2 + 4 - 8 * len(shown)
    text.append(
        f'<text x="{x + width / 2}" y="{start}" text-anchor="middle" font-weight="bold">{_escaped(title)}</text>'
    )
    for i, line in enumerate(shown):
        text.append(
            f'<text x="{x + width / 2}" y="{start + 16 * (i + 1)}" text-anchor="middle">{_escaped(line)}</text>'
        )
    return "".join(text)


def _wrapped(text: str, most: int) -> list[str]:
    lines = [""]
    for word in text.split():
        if lines[-1] and len(lines[-1]) + len(word) + 1 > most:
            lines.append(word)
        else:
            lines[-1] = f"{lines[-1]} {word}".strip()
    return lines


def _side(x: float, y: float, width: float, height: float, text: str) -> str:
    return (
        f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="4" fill="{SIDE}" stroke="{EDGE}"/>'
        f'<text x="{x + width / 2}" y="{y + height / 2 + 4}" text-anchor="middle">{_escaped(text)}</text>'
    )


def _line(x: float, y: float, to: float) -> str:
    return f'<path d="M{x} {y}H{to}" stroke="{EDGE}" fill="none"/>'


def _arrow(x: float, top: float, bottom: float) -> str:
    return (
        f'<path d="M{x} {top}V{bottom - 5}" stroke="{EDGE}" fill="none"/>'
        f'<path d="M{x - 4} {bottom - 7}L{x} {bottom}L{x + 4} {bottom - 7}Z" fill="{EDGE}"/>'
    )


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;")


def page(mode: str) -> str:
    """The page of a mode before its tables are filled in."""
    return (
        f"# {mode}\n\n[All modes](../fixpipe.md) of the Fixpipe, the Cube's output pipe.\n\n"
        f"<!-- generated: fixpipe-mode {mode} -->\n<!-- end -->\n"
    )


def main() -> None:
    PICTURE.write_text(draw(), encoding="utf-8")
    PAGES.mkdir(exist_ok=True)
    for name in fixpipe_modes:
        target = PAGES / page_name(name)
        if not target.exists():
            target.write_text(page(name), encoding="utf-8")


if __name__ == "__main__":
    main()
