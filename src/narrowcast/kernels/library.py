"""The compiled module: loaded on first use, absent where no compiler was, or switched off."""

import os
import warnings
from functools import cache
from types import ModuleType

from narrowcast.errors import NarrowcastError, unknown_name

LEVELS = ("v2", "v3", "aarch64")
"""Instruction-set levels the compiled module may hold."""

PARALLEL_FROM = 1 << 21
"""Elements from which a kernel uses more than one thread."""


@cache
def _load() -> ModuleType | None:
    choice = os.environ.get("NARROWCAST_KERNELS", "")
    if choice not in ("", "numpy"):
        raise unknown_name("value of NARROWCAST_KERNELS", choice, ("numpy",))
    if choice == "numpy":
        return None
    try:
        from narrowcast import _native
    except ImportError as error:
        if os.environ.get("NARROWCAST_NATIVE") == "require":
            raise NarrowcastError(
                f"NARROWCAST_NATIVE=require, and the compiled kernels cannot be loaded: {error}.",
                hint="Install narrowcast again with a C++17 compiler, or unset NARROWCAST_NATIVE.",
            ) from error
        return None
    isa = os.environ.get("NARROWCAST_ISA", "")
    if isa not in ("", *LEVELS):
        raise unknown_name("value of NARROWCAST_ISA", isa, LEVELS)
    if isa and isa != _native.level():
        raise NarrowcastError(
            f"NARROWCAST_ISA={isa}, and this machine runs {_native.level()} kernels.",
            hint="Unset it, or name a level the machine has.",
        )
    return _native


@cache
def native() -> ModuleType | None:
    """Return the compiled module, or None after one warning when it is missing and was not switched off."""
    module = _load()
    if module is None and os.environ.get("NARROWCAST_KERNELS") != "numpy":
        warnings.warn(
            "narrowcast has no compiled kernels here, so NumPy computes the same bits more slowly. Install it again "
            "with a C++17 compiler, or set NARROWCAST_KERNELS=numpy to accept this.",
            RuntimeWarning,
            stacklevel=2,
        )
    return module


def level() -> str:
    """Name the kernels in use: ``"v3"``, ``"v2"``, ``"aarch64"`` or ``"numpy"``."""
    module = _load()
    return "numpy" if module is None else str(module.level())


def thread_limit() -> int:
    """Threads a large array may use: ``NARROWCAST_THREADS``, else the processors this process may run on."""
    given = os.environ.get("NARROWCAST_THREADS", "")
    if given:
        if not given.isdecimal() or int(given) < 1:
            raise NarrowcastError(f"NARROWCAST_THREADS is {given!r}; it takes a number of threads, 1 or more.")
        return int(given)
    if hasattr(os, "sched_getaffinity"):
        return max(1, len(os.sched_getaffinity(0)))
    return os.cpu_count() or 1


def threads(size: int) -> int:
    """Threads for an array of ``size`` elements."""
    return 1 if size < PARALLEL_FROM else thread_limit()


def info() -> dict[str, str | int]:
    """Describe the kernels for ``narrowcast info``."""
    module = _load()
    facts: dict[str, str | int] = {"level": level(), "threads": thread_limit(), "threads_from_elements": PARALLEL_FROM}
    if module is not None:
        facts["module"] = str(module.__file__)
        facts["stream_from_bytes"] = int(module.cache_bytes())
    else:
        switched_off = os.environ.get("NARROWCAST_KERNELS") == "numpy"
        facts["why"] = "NARROWCAST_KERNELS=numpy" if switched_off else "no compiled module"
    return facts
