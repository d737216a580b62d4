"""The project's own files: what a newcomer runs first, and what must not creep in."""

import re
import stat
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests import markdown

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def python_files(*folders: str) -> list[Path]:
    return [path for folder in folders for path in sorted((ROOT / folder).glob("**/*.py"))]


def test_licence_is_apache_2() -> None:
    text = (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert "Apache License" in text
    assert "Version 2.0, January 2004" in text
    assert "END OF TERMS AND CONDITIONS" in text
    assert PROJECT["project"]["license"] in ("Apache-2.0", {"text": "Apache-2.0"})


def test_ci_script_is_executable_and_strict() -> None:
    script = ROOT / ".ci" / "run"
    assert script.stat().st_mode & stat.S_IXUSR
    text = script.read_text(encoding="utf-8")
    assert "set -euo pipefail" in text
    assert "export NARROWCAST_NATIVE=require" in text
    assert re.search(r"^make test$", text, re.M)


def test_installed_package_carries_its_type_marker() -> None:
    import narrowcast

    assert (Path(narrowcast.__file__).parent / "py.typed").exists()


def test_version_is_the_same_everywhere() -> None:
    import narrowcast

    declared = PROJECT["project"].get("version")
    assert declared is None or narrowcast.__version__ == declared


@pytest.mark.parametrize("readme", ["README.md", "README.zh.md"])
def test_readme_names_the_two_commands(readme: str) -> None:
    text = (ROOT / readme).read_text(encoding="utf-8")
    assert "make demo" in text
    assert "make test" in text


def test_readmes_have_the_same_code() -> None:
    """The translation shows the same examples; only prose and comments differ."""

    def code(path: Path) -> list[str]:
        return [re.sub(r"\s*#.*", "", b.text) for b in markdown.blocks(path) if b.language != "text"]

    assert code(ROOT / "README.md") == code(ROOT / "README.zh.md")


def test_source_files_stay_short() -> None:
    """A file that outgrows about 400 lines lacks a concept; rows of the catalog are data."""
    long = [
        str(path.relative_to(ROOT))
        for path in python_files("src")
        if "catalog" not in path.parts and len(path.read_text(encoding="utf-8").splitlines()) > 450
    ]
    assert not long


def test_no_module_is_a_drawer() -> None:
    drawers = {"utils", "util", "common", "helpers", "misc"}
    assert not [path for path in python_files("src", "tests", "bench") if path.stem in drawers]


def test_no_module_hides_a_public_function() -> None:
    """``narrowcast.audit`` the function and a module of that name cannot both be reached."""
    import narrowcast

    public = {n for n in dir(narrowcast) if callable(getattr(narrowcast, n, None))}
    modules = {path.stem for path in (ROOT / "src" / "narrowcast").glob("*") if path.suffix in ("", ".py")}
    assert not public & modules


def test_demo_runs_offline_on_a_given_model(tmp_path: Path) -> None:
    import numpy as np
    from safetensors.numpy import save_file

    rng = np.random.default_rng(7)
    model = tmp_path / "tiny.safetensors"
    save_file({"layer.weight": rng.standard_normal((16, 32), dtype=np.float32)}, model)
    command = [sys.executable, str(ROOT / "examples" / "demo.py"), str(model), "--folder", str(tmp_path / "out dir")]
    for _ in range(2):  # a second run meets the first one's files
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
        assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "out dir" / "report.html").exists()
    assert (tmp_path / "out dir" / "tiny.hif8.safetensors").exists()
    assert "layer.weight" in done.stdout
