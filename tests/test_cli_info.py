"""``info``: versions, the kernel level and why."""

import json

import numpy as np
import pytest

import narrowcast
from narrowcast import kernels
from narrowcast.cli import main


@pytest.mark.kernels
def test_info(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info"]) == 0
    text = capsys.readouterr().out
    assert f"narrowcast {narrowcast.__version__}" in text and f"numpy {np.__version__}" in text
    assert f"kernels   {kernels.level()}: " in text


@pytest.mark.kernels
def test_info_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info", "--json"]) == 0
    form = json.loads(capsys.readouterr().out)
    assert set(form) == {"narrowcast", "python", "platform", "libraries", "kernels", "environment", "peers"}
    assert form["kernels"]["level"] == kernels.level()
    assert form["libraries"]["numpy"] == np.__version__


def test_info_names_what_is_not_installed(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("narrowcast.cli.info.PEERS", ("surely_not_installed",))
    monkeypatch.setenv("NARROWCAST_THREADS", "1")
    assert main(["info"]) == 0
    text = capsys.readouterr().out
    assert "not installed (optional): surely_not_installed" in text and "NARROWCAST_THREADS=1" in text
