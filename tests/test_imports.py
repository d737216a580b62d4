"""What loading the package and asking for help may cost."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import typer

from narrowcast.cli import app

HEAVY = ("numpy", "plotly", "jinja2", "safetensors")
LOADED = "import sys, json; {code}; print(json.dumps(sorted({{m.split('.')[0] for m in sys.modules}})))"


def loaded(code: str) -> set[str]:
    """Top-level modules of a fresh interpreter after running some code."""
    done = subprocess.run([sys.executable, "-c", LOADED.format(code=code)], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_import_loads_only_numpy_and_ml_dtypes() -> None:
    base = loaded("import numpy, ml_dtypes")
    extra = loaded("import numpy, ml_dtypes, narrowcast") - base - set(sys.stdlib_module_names)
    assert extra == {"narrowcast"}


def test_import_is_lazy() -> None:
    code = (
        "import narrowcast, sys; "
        "deep = [m for m in sys.modules if m.startswith('narrowcast.') and m.split('.')[1] in "
        "('numerics', 'kernels', 'quant', 'vector', 'report', 'cli', 'checkpoint', 'insight')]; "
        "assert not deep, deep"
    )
    loaded(code)


def help_modules(*arguments: str) -> set[str]:
    code = (
        "import sys, json, atexit\n"
        "def report():\n"
        "    sys.stderr.write('\\n' + json.dumps(sorted({m.split('.')[0] for m in sys.modules})))\n"
        "atexit.register(report)\n"
        f"sys.argv = ['narrowcast', *{list(arguments)!r}]\n"
        "from narrowcast.cli import main\n"
        "sys.exit(main())\n"
    )
    environment = {**os.environ, "NO_COLOR": "1"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    assert "Usage" in done.stdout
    return set(json.loads(done.stderr.splitlines()[-1]))


def command_lines(group: Any, path: tuple[str, ...] = ()) -> Iterator[str]:
    """Every command of the tool by name, groups and their commands included."""
    yield " ".join(path)
    for name, command in getattr(group, "commands", {}).items():
        yield from command_lines(command, (*path, name))


@pytest.mark.parametrize("command", [*command_lines(typer.main.get_command(app))])
def test_help_loads_nothing_heavy(command: str) -> None:
    assert not help_modules(*command.split(), "--help") & set(HEAVY)
