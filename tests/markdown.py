"""Fenced code blocks of the documentation, read and run."""

import doctest
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FENCE = re.compile(r"^(?P<fence>```+)(?P<language>[A-Za-z]*)[^\n]*\n(?P<text>.*?)^(?P=fence)\s*$", re.M | re.S)
# A block that cannot run in a test says so, and why, in a comment on the line before it.
EXCUSE = re.compile(r"<!-- not run: (?P<reason>.+?) -->\s*\Z", re.S)

PYTHON = frozenset({"python", "pycon", "py"})
SHELL = frozenset({"console", "bash", "sh", "shell"})
# Figures, formulas, and files; a language outside all three sets is a mistake.
INERT = frozenset({"text", "json", "toml", "make", "html", "cpp"})

DOCTEST_FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
TIMEOUT_SECONDS = 120


@dataclass(frozen=True)
class Block:
    """One fenced block: its language, text, first line in the file, and why it does not run, if it does not."""

    language: str
    text: str
    line: int
    excuse: str | None

    @property
    def runs(self) -> bool:
        return self.excuse is None and self.language in PYTHON | SHELL


def blocks(path: Path) -> Iterator[Block]:
    """Yield the fenced blocks of a Markdown file in order."""
    source = path.read_text(encoding="utf-8")
    for match in FENCE.finditer(source):
        excuse = EXCUSE.search(source, 0, match.start())
        yield Block(
            language=match["language"].lower(),
            text=match["text"],
            line=source.count("\n", 0, match.start()) + 2,
            excuse=excuse["reason"] if excuse else None,
        )


def run_python(block: Block, path: Path, namespace: dict[str, Any]) -> None:
    """Run a block in the page's namespace: as a doctest where it has prompts, else as a program."""
    if ">>> " not in block.text:
        # Padding keeps the line numbers of a traceback those of the page.
        exec(compile("\n" * (block.line - 1) + block.text, str(path), "exec"), namespace)
        return
    report: list[str] = []
    test = doctest.DocTestParser().get_doctest(block.text, namespace, path.name, str(path), block.line - 1)
    runner = doctest.DocTestRunner(optionflags=DOCTEST_FLAGS, verbose=False)
    runner.run(test, out=report.append, clear_globs=False)
    if runner.failures:
        raise AssertionError("".join(report))
    namespace.update(test.globs)


@dataclass(frozen=True)
class Command:
    """A shell command of a console block, the output shown under it, and the exit code it announces."""

    text: str
    expected: str
    line: int


def commands(block: Block) -> Iterator[Command]:
    """Yield the commands of a shell block: lines after ``$``, or every line where no line has a prompt."""
    lines = block.text.splitlines()
    if not any(line.startswith("$ ") for line in lines):
        for offset, line in enumerate(lines):
            if line.strip() and not line.startswith("#"):
                yield Command(line, "", block.line + offset)
        return
    start = 0
    while start < len(lines):
        first, text = start, lines[start].removeprefix("$ ")
        while text.endswith("\\"):
            start += 1
            text = text[:-1] + lines[start].removeprefix("> ")
        end = start + 1
        while end < len(lines) and not lines[end].startswith("$ "):
            end += 1
        yield Command(text, "\n".join(lines[start + 1 : end]), block.line + first)
        start = end


def run_command(command: Command, path: Path, folder: Path, environment: dict[str, str]) -> None:
    """Run one command and compare its output; ``# exit 2`` at the end announces another exit code than 0.

    A page shows results, and what a refusal says; not the remarks that a successful run makes on stderr.
    """
    wanted = re.search(r"#\s*exit (\d+)\s*$", command.text)
    done = subprocess.run(
        command.text,
        shell=True,
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=False,
    )
    place = f"{path.name}:{command.line}: {command.text}"
    code = int(wanted[1]) if wanted else 0
    if done.returncode != code:
        raise AssertionError(f"{place}\nexit code {done.returncode}, not {code}\n{done.stdout}{done.stderr}")
    shown = done.stdout + (done.stderr if code else "")
    if command.expected.strip() and not doctest.OutputChecker().check_output(
        command.expected.rstrip() + "\n", shown.rstrip() + "\n", DOCTEST_FLAGS
    ):
        raise AssertionError(f"{place}\nshown in the page:\n{command.expected}\nprinted:\n{shown}")
