"""What every run of the suite shares: which kernels it tests, and which tests depend on them."""

import os

import pytest

KERNEL_MODULES = ("test_exact", "test_kernels", "test_cases", "test_properties")
"""Modules whose tests compare results of casts, by the start of their name; each path is tested with them."""


def pytest_report_header() -> str:
    """Name the kernel level, so that a log says what it tested."""
    from narrowcast import kernels

    forced = [f"{n}={os.environ[n]}" for n in ("NARROWCAST_KERNELS", "NARROWCAST_ISA") if n in os.environ]
    return f"kernel level: {kernels.level()}" + (f" ({', '.join(forced)})" if forced else "")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.stem.startswith(KERNEL_MODULES):
            item.add_marker(pytest.mark.kernels)
