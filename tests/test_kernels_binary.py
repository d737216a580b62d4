"""What the compiler made of the kernels: no code shared between levels, and vector instructions where it counts.

An inline or template function with a weak symbol is kept once by the linker, so a v2 kernel could run the AVX2 copy
of it. A kernel unit therefore has no weak symbol, and calls nothing but memory functions.
"""

import platform
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MACHINE = {"AMD64": "x86_64", "arm64": "aarch64"}.get(platform.machine(), platform.machine())
LEVELS = {"x86_64": ("v2", "v3"), "aarch64": ("aarch64",)}.get(MACHINE, ())

# The fewest vector instructions a kernel's loops have; a loop left scalar has none or a handful.
HOT = {
    "encode_table14": 10,
    "encode_float8": 150,
    "encode_hybrid": 150,
    "encode_bf16": 60,
    "encode_fp16": 60,
    "encode_integer": 100,
    "decode_table8": 40,
    "decode_fp16": 10,
    "decode_bf16": 5,
    "round_float8": 150,
    "round_table14": 10,
    "round_hybrid": 150,
    "quantize_row": 20,
    "dequantize_row": 12,
    "multiply_row": 20,
    "absmax": 8,
    "mx_row": 1000,
    "summarize": 30,
    "pack4": 8,
    "unpack4": 5,
    "limit_4to1": 5,
    "limit_4to2": 3,
    "limit_1to4": 3,
    "limit_2to4": 3,
    "limit_4to4": 2,
    "limit_2to1": 3,
    "limit_1to2": 2,
    "limit_read": 4,
}
# Operands of a vector instruction that uses the level's whole width.
WIDE = {"v3": r"%ymm\d", "v2": r"\bp\w+\s.*%xmm\d|\b\w+ps\s.*%xmm\d", "aarch64": r"\bv\d+\.(16b|8h|4s)"}
ALLOWED = {"memcpy", "memset", "memmove", "_GLOBAL_OFFSET_TABLE_"}


@pytest.fixture(scope="session")
def objects(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Build the kernel objects of this machine's levels, as the package's build does."""
    if not LEVELS:
        pytest.skip(f"no compiled kernels for {MACHINE}")
    missing = [tool for tool in ("nm", "objdump") if shutil.which(tool) is None]
    if missing:
        pytest.skip(f"binutils is not installed: no {' and no '.join(missing)}")
    if shutil.which("cmake") is None:
        pytest.skip("cmake is not on the path")
    build = tmp_path_factory.mktemp("kernels")
    configure = ["cmake", "-S", str(ROOT), "-B", str(build), "-DNARROWCAST_KERNELS_ONLY=ON"]
    done = subprocess.run(configure, capture_output=True, text=True, check=False)
    if done.returncode and ("CMAKE_CXX_COMPILER" in done.stderr or "C++ compiler" in done.stderr):
        pytest.skip("no C++ compiler works here")
    assert done.returncode == 0, done.stderr
    subprocess.run(["cmake", "--build", str(build)], capture_output=True, text=True, check=True)
    found = {level: list(build.rglob(f"{level}.cpp.o")) for level in LEVELS}
    assert all(len(paths) == 1 for paths in found.values()), found
    return {level: paths[0] for level, paths in found.items()}


def output(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("level", LEVELS)
def test_no_symbol_is_shared(level: str, objects: dict[str, Path]) -> None:
    symbols = [line.split()[-2:] for line in output("nm", "-C", str(objects[level])).splitlines()]
    kinds = {name: kind for kind, name in symbols if len(kind) == 1}
    weak = {name for name, kind in kinds.items() if kind in "WwVvu"}
    undefined = {name for name, kind in kinds.items() if kind == "U"}
    shared = {name for name, kind in kinds.items() if kind in "TDRBCG"}
    assert not weak
    assert undefined <= ALLOWED
    assert shared == {f"narrowcast::kernels_{level}"}


@pytest.mark.parametrize("level", LEVELS)
def test_hot_kernels_use_vectors(level: str, objects: dict[str, Path]) -> None:
    listing = output("objdump", "-dC", "--no-show-raw-insn", str(objects[level]))
    bodies: dict[str, str] = {}
    for block in re.split(r"\n(?=[0-9a-f]+ <)", listing):
        header = block.partition("\n")[0]
        match = re.search(r"\(anonymous namespace\)::(\w+?)(_mode<\d>)?\(", header)
        if match:
            bodies[match[1]] = bodies.get(match[1], "") + block
    assert set(HOT) <= set(bodies)
    counts = {name: len(re.findall(WIDE[level], bodies[name])) for name in HOT}
    poor = {name: count for name, count in counts.items() if count < HOT[name]}
    assert not poor


@pytest.mark.parametrize("level", [name for name in LEVELS if name == "v2"])
def test_the_older_level_has_no_newer_instruction(level: str, objects: dict[str, Path]) -> None:
    listing = output("objdump", "-d", "--no-show-raw-insn", str(objects[level]))
    assert not re.findall(r"%ymm\d+|%zmm\d+|\tv[a-z]+\s.*%xmm", listing)
