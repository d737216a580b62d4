"""Which kernels run, what the process around them may do, and what a missing module means."""

import ctypes
import ctypes.util
import os
import platform
import subprocess
import sys
import textwrap

import numpy as np
import pytest

from narrowcast import kernels, numerics
from narrowcast.catalog.formats import formats
from narrowcast.schema import Rounding
from tests.kernel_inputs import bits_of, upper_halves

NATIVE = kernels.level() != "numpy"
needs_native = pytest.mark.skipif(not NATIVE, reason="no compiled kernels run here")

START = """
import sys, warnings
import numpy as np
from narrowcast import kernels
from narrowcast.catalog.formats import formats
from narrowcast.schema import Rounding
def encode(x): return kernels.encode(np.float32(x), formats["e4m3"], Rounding.RN, saturate=True, nan="keep").tolist()
"""


def run(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a fresh interpreter; environment variables given as empty are removed."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("NARROWCAST_")}
    return subprocess.run(
        [sys.executable, "-c", START + textwrap.dedent(code)],
        capture_output=True,
        text=True,
        env={**kept, **environment},
        check=False,
    )


def test_info_describes_what_runs() -> None:
    info = kernels.info()
    assert info["level"] == kernels.level()
    assert info["level"] in ("v3", "v2", "aarch64", "numpy")
    assert ("module" in info) == NATIVE and ("why" in info) != NATIVE


def test_numpy_can_be_forced() -> None:
    done = run("print(kernels.level(), encode([1.5]))", NARROWCAST_KERNELS="numpy")
    assert done.stdout.split() == ["numpy", "[60]"] and done.stderr == ""


@needs_native
@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="v2 is a level of x86-64")
def test_the_older_level_can_be_forced() -> None:
    done = run("print(kernels.level(), encode([1.5]))", NARROWCAST_ISA="v2")
    assert done.stdout.split() == ["v2", "[60]"] and done.stderr == ""


def test_an_unknown_choice_of_kernels_is_named() -> None:
    done = run("encode([1.0])", NARROWCAST_KERNELS="nunpy")
    assert done.returncode and "NARROWCAST_KERNELS" in done.stderr and "numpy" in done.stderr


@needs_native
@pytest.mark.parametrize(
    ("level", "message"), [("v9", "unknown value of NARROWCAST_ISA"), ("absent", "this machine runs")]
)
def test_a_level_that_cannot_run_is_refused(level: str, message: str) -> None:
    other = "v2" if platform.machine() == "aarch64" else "aarch64"
    done = run("encode([1.0])", NARROWCAST_ISA=other if level == "absent" else level)
    assert done.returncode and message in done.stderr


def test_a_missing_module_warns_once_and_serves() -> None:
    done = run(
        """
        sys.modules["narrowcast._native"] = None
        print(kernels.level(), encode([1.5]), encode([2.5]))
        """
    )
    assert done.stdout.split() == ["numpy", "[60]", "[66]"]
    assert done.stderr.count("RuntimeWarning") == 1 and "no compiled kernels" in done.stderr


def test_a_missing_module_can_be_an_error() -> None:
    done = run('sys.modules["narrowcast._native"] = None\nencode([1.5])', NARROWCAST_NATIVE="require")
    assert done.returncode and "NARROWCAST_NATIVE=require" in done.stderr


@pytest.mark.parametrize("value", ["0", "two", "-1"])
def test_a_bad_number_of_threads_is_named(value: str) -> None:
    done = run("encode(np.zeros(1 << 21))", NARROWCAST_THREADS=value)
    if NATIVE:
        assert done.returncode and "NARROWCAST_THREADS" in done.stderr


@needs_native
def test_threads_after_fork() -> None:
    """The child of a process whose threads have started has none of them, and starts its own."""
    done = run(
        """
        import os
        x = np.linspace(-500, 500, 1 << 22, dtype=np.float32)
        def codes(): return kernels.encode(x, formats["hif8"], Rounding.RNA, saturate=True, nan="keep")
        want = codes()
        child = os.fork()
        if child == 0:
            os._exit(0 if np.array_equal(codes(), want) and np.array_equal(codes(), want) else 1)
        print(os.waitpid(child, 0)[1], np.array_equal(codes(), want))
        """,
        NARROWCAST_THREADS="3",
    )
    assert done.stdout.split() == ["0", "True"], done.stderr


@needs_native
def test_two_python_threads_at_once() -> None:
    done = run(
        """
        from concurrent.futures import ThreadPoolExecutor
        x = np.linspace(-500, 500, 1 << 22, dtype=np.float32)
        def codes(_): return kernels.encode(x, formats["hif8"], Rounding.RNA, saturate=True, nan="keep")
        want = codes(0)
        with ThreadPoolExecutor(4) as pool:
            print(all(np.array_equal(c, want) for c in pool.map(codes, range(12))))
        """,
        NARROWCAST_THREADS="2",
    )
    assert done.stdout.split() == ["True"], done.stderr


UPWARD = {"x86_64": 0x800, "AMD64": 0x800, "aarch64": 0x400000}


@needs_native
@pytest.mark.skipif(platform.machine() not in UPWARD, reason="the rounding mode's number is not known here")
def test_the_thread_rounding_mode_does_not_matter() -> None:
    """Kernels round in integers or name the mode; only the division of quantize_rows follows the thread."""
    name = ctypes.util.find_library("m")
    if name is None:
        pytest.skip("no C mathematics library found")
    libm = ctypes.CDLL(name)
    values = upper_halves(16)
    cases = [("e4m3", Rounding.RN), ("hif8", Rounding.RNA), ("hif8", Rounding.RH), ("e2m1", Rounding.RU)]
    cases += [(n, m) for n in ("fp16", "bf16", "s8") for m in Rounding if m is not Rounding.RH]
    rule = {"saturate": False, "nan": "zero"}
    want = [numerics.encode(values, formats[n], m, **rule) for n, m in cases]  # type: ignore[arg-type]
    for n, m in cases:  # tables are built now, by the specification
        kernels.encode(values[:4], formats[n], m, **rule)  # type: ignore[arg-type]
        kernels.round_to(values[:4], formats[n], m, **rule)  # type: ignore[arg-type]
    codes = np.arange(1 << 16, dtype=np.uint16)
    kernels.decode(codes, formats["fp16"])
    got, rounded = [], []
    before = libm.fegetround()
    assert libm.fesetround(UPWARD[platform.machine()]) == 0
    try:
        for n, m in cases:
            got.append(kernels.encode(values, formats[n], m, **rule))  # type: ignore[arg-type]
            rounded.append(kernels.round_to(values, formats[n], m, **rule))  # type: ignore[arg-type]
        halves = kernels.decode(codes, formats["fp16"])
        assert libm.fegetround() == UPWARD[platform.machine()]
    finally:
        libm.fesetround(before)
    for (n, m), g, r, w in zip(cases, got, rounded, want, strict=True):
        assert np.array_equal(g, w), (n, m)
        assert np.array_equal(bits_of(r), bits_of(numerics.decode(w, formats[n]))), (n, m)
    assert np.array_equal(bits_of(halves), bits_of(numerics.decode(codes, formats["fp16"])))
