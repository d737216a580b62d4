"""The documentation is true: its code runs, its tables are current, its links lead somewhere."""

import doctest
import importlib
import importlib.util
import os
import pkgutil
import re
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import narrowcast
from tests import markdown

ROOT = Path(__file__).resolve().parent.parent
PAGES = [*sorted(ROOT.glob("README*.md")), *sorted((ROOT / "docs").glob("**/*.md"))]
TOOL = f"#!{sys.executable}\nimport sys\nfrom narrowcast.cli import main\nsys.exit(main())\n"


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.fixture
def shell(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment in which ``narrowcast`` and ``python`` are those of this run."""
    scripts = Path(sysconfig.get_path("scripts"))
    folder = tmp_path_factory.mktemp("bin")
    if not (scripts / "narrowcast").exists():  # run from a source tree
        tool = folder / "narrowcast"
        tool.write_text(TOOL)
        tool.chmod(0o755)
    path = os.pathsep.join([str(folder), str(scripts), os.environ.get("PATH", "")])
    return {**os.environ, "PATH": path, "COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb"}


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_page_runs(page: Path, shell: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the blocks of a page in order, in one folder and one Python namespace."""
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, Any] = {"__name__": "__page__"}
    for block in markdown.blocks(page):
        if not block.runs:
            continue
        if block.language in markdown.PYTHON:
            markdown.run_python(block, page, namespace)
        else:
            for command in markdown.commands(block):
                markdown.run_command(command, page, tmp_path, shell)


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_block_has_a_known_language(page: Path) -> None:
    known = markdown.PYTHON | markdown.SHELL | markdown.INERT
    unknown = [(b.line, b.language) for b in markdown.blocks(page) if b.language not in known]
    assert not unknown


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    assert not [t for t in targets if not (page.parent / t).exists()]


def test_generated_tables_are_current() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "docs" / "generate.py"), "--check"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


def modules() -> list[str]:
    found = pkgutil.walk_packages(narrowcast.__path__, "narrowcast.")
    return ["narrowcast", *(m.name for m in found if not m.name.rpartition(".")[2].startswith("_"))]


@pytest.mark.parametrize("module", modules())
def test_docstring_examples(module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    given = {"nc": narrowcast, "np": np, "ml_dtypes": ml_dtypes}  # as a reader of the documentation has them
    result = doctest.testmod(importlib.import_module(module), extraglobs=given, optionflags=markdown.DOCTEST_FLAGS)
    assert result.failed == 0
