"""What commands print with: tables that fit the terminal, JSON, progress. Rich loads only when one is used."""

import json
import os
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

CONTEXT: dict[str, Any] = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
"""Settings every command shares."""
ROUNDING_HELP = "rn rna rd ru rz ro rh, or CAST_RINT.. [default: the format's]"
FINDINGS = 1
"""Exit code of a command that ran and found something wrong."""

_GAP = 2
_LABEL = 9
_UNLIMITED = 10_000


def examples(*lines: str, after: str = "") -> str:
    """Lay out the end of a command's help: one example a line, not reflowed."""
    text = "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)
    return f"{text}\n\n{after}" if after else text


@dataclass(frozen=True)
class Column:
    """One column of a table.

    Args:
        title: heading.
        right: numbers, aligned right.
        wrap: text that may take several lines; everything else stays on one.
        minimum: narrowest useful width of a wrapping column.
        drop: 0 for a column that always shows; others go first from the highest number when space is short.
    """

    title: str
    right: bool = False
    wrap: bool = False
    minimum: int = 16
    drop: int = 0


def width() -> int:
    """Give the columns to print in: the terminal's, or no limit when the output is a file or a pipe."""
    given = os.environ.get("COLUMNS", "")
    if given.isdigit() and int(given) > 0:
        return int(given)
    if not sys.stdout.isatty():
        return _UNLIMITED
    return os.get_terminal_size(sys.stdout.fileno()).columns or 80


def console(*, stderr: bool = False) -> "Console":
    """Give a Rich console that changes nothing in the text it is given."""
    from rich.console import Console

    return Console(stderr=stderr, width=None if stderr else width(), highlight=False, markup=False, emoji=False)


def print_table(columns: Sequence[Column], rows: Sequence[Sequence[str]], *, title: str = "") -> tuple[str, ...]:
    """Print a table in the terminal's width: numbers never wrap, and columns that do not fit are left out.

    Returns:
        Titles of the columns left out.
    """
    from rich import box
    from rich.table import Table
    from rich.text import Text

    filled = [i for i in range(len(columns)) if any(row[i] for row in rows) or not rows]
    columns = [columns[i] for i in filled]
    cells = [[str(row[i]) for i in filled] for row in rows]
    natural = [
        max([len(line) for line in column.title.split("\n")] + [len(row[i]) for row in cells])
        for i, column in enumerate(columns)
    ]
    shown, widths = _fit(columns, natural, width())
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, _GAP - 1, 0, 0))
    for i in shown:
        table.add_column(
            columns[i].title,
            justify="right" if columns[i].right else "left",
            width=widths[i],
            no_wrap=not columns[i].wrap,
            overflow="fold" if columns[i].wrap else "ellipsis",
            header_style="bold",
        )
    for row in cells:
        table.add_row(*(Text(row[i]) for i in shown))
    out = console()
    if title:
        out.print(Text(title, style="bold"))
    with out.capture() as capture:
        out.print(table)
    sys.stdout.write("\n".join(line.rstrip() for line in capture.get().split("\n")))
    return tuple(columns[i].title.replace("\n", " ") for i in range(len(columns)) if i not in shown)


def _fit(columns: Sequence[Column], natural: Sequence[int], limit: int) -> tuple[list[int], dict[int, int]]:
    """Choose the columns that fit, and the width of each."""
    shown = list(range(len(columns)))

    def least(i: int) -> int:
        return min(natural[i], columns[i].minimum) if columns[i].wrap else natural[i]

    def fits(chosen: Sequence[int]) -> bool:
        return sum(least(i) + _GAP for i in chosen) - _GAP <= limit

    while not fits(shown):
        victim = max(shown, key=lambda i: columns[i].drop)
        if columns[victim].drop == 0:
            break
        shown.remove(victim)
    # A wide column may have gone after narrow ones that still have room.
    for i in sorted(set(range(len(columns))) - set(shown), key=lambda i: columns[i].drop):
        if fits([*shown, i]):
            shown = sorted([*shown, i])
    widths = {i: least(i) for i in shown}
    spare = limit - sum(w + _GAP for w in widths.values()) + _GAP
    # The narrowest texts get their full width first, so that as few columns as possible wrap.
    for left, i in enumerate(sorted(shown, key=lambda i: natural[i] - widths[i])):
        grow = max(0, min(natural[i] - widths[i], spare // (len(shown) - left)))
        widths[i] += grow
        spare -= grow
    return shown, widths


def line(label: str, text: str) -> None:
    """Print a labelled line; a long one continues under its own text."""
    start = len(text) - len(text.lstrip())
    room = max(width() - _LABEL - 1, 30)
    wrapper = textwrap.TextWrapper(room, break_long_words=False, break_on_hyphens=False)
    wrapper.subsequent_indent = " " * (start + 2)
    parts = wrapper.wrap(text)
    for i, part in enumerate(parts if len(text) > room else [text]):
        print(f"{label if i == 0 else '':{_LABEL}} {part}".rstrip())


def note_left_out(titles: Sequence[str], more: str) -> None:
    """Say which columns did not fit and where they are, on stderr so that a pipe stays clean."""
    if titles:
        print(f"not shown in {width()} columns: {', '.join(titles)} ({more})", file=sys.stderr)


def print_json(value: Any) -> None:
    """Print a result for programs: keys stay, values that JSON has no number for are strings."""
    print(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False))


@contextmanager
def progress(label: str, total: int) -> Iterator[Callable[[int], None]]:
    """Show a bar on stderr while a long job runs; nothing when stderr is no terminal.

    Args:
        label: what is being done.
        total: the size of the job, in the unit that the callback is given.

    Returns:
        A context manager over ``advance(amount)``.
    """
    if not sys.stderr.isatty():
        yield lambda amount: None
        return
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    parts = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*parts, console=console(stderr=True), transient=True) as bar:
        task = bar.add_task(label, total=total)
        yield lambda amount: bar.advance(task, amount)
