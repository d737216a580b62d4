"""What every run of the suite shares: which kernels it tests, and which tests depend on them."""

import os
import zlib

import numpy as np
import pytest

KERNEL_MODULES = ("test_exact", "test_kernels", "test_cases", "test_properties")
"""Modules whose tests compare results of casts, by the start of their name; each path is tested with them."""


def pytest_configure() -> None:
    """Print in full: a width in the environment (pytest-xdist gives its workers one) would break lines.

    Tests of narrow output set their own.
    """
    os.environ.pop("COLUMNS", None)


def pytest_report_header() -> str:
    """Name the kernel level, so that a log says what it tested."""
    from narrowcast import kernels

    forced = [f"{n}={os.environ[n]}" for n in ("NARROWCAST_KERNELS", "NARROWCAST_ISA") if n in os.environ]
    return f"kernel level: {kernels.level()}" + (f" ({', '.join(forced)})" if forced else "")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.stem.startswith(KERNEL_MODULES):
            item.add_marker(pytest.mark.kernels)


@pytest.fixture(autouse=True)
def _any_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the width of the terminal that runs the suite out of what commands print: xdist passes it to its workers."""
    monkeypatch.delenv("COLUMNS", raising=False)


@pytest.fixture(autouse=True)
def _own_random_numbers(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A module's generator starts anew for each test: what a test draws doesn't depend on those before it."""
    if isinstance(getattr(request.module, "RNG", None), np.random.Generator):
        seed = zlib.crc32(request.node.nodeid.encode())
        monkeypatch.setattr(request.module, "RNG", np.random.default_rng(seed))
