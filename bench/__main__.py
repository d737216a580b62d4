"""Measure in fresh processes and print tables: ``python -m bench [--quick]``.

A ratio is one of minima within a process; the table shows its median over the processes. Nanoseconds depend on the
machine and on its load: compare ratios.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
from pathlib import Path

import ml_dtypes
import numpy as np

from bench.peers import NAMES, missing
from narrowcast import kernels
from narrowcast.version import VERSION

SIZES = {"64 Ki": 1 << 16, "16 Mi": 1 << 24}
Minima = dict[str, dict[str, float]]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one process, five rounds, one thread")
    parser.add_argument("--processes", type=int, default=5, help="fresh processes (default 5)")
    parser.add_argument("--rounds", type=int, default=9, help="interleaved rounds in each (default 9)")
    parser.add_argument("--json", type=Path, help="also write every minimum to this file")
    given = parser.parse_args()
    processes, rounds = (1, 5) if given.quick else (given.processes, given.rounds)
    every = int(kernels.info()["threads"])
    counts = [1] if given.quick or every == 1 else [1, every]
    print(_machine())
    print(f"load before: {_load()}; {processes} processes of {rounds} rounds; kernels: {kernels.level()}")
    absent = missing()
    print(f"not installed, so not compared: {', '.join(absent)}" if absent else "every peer is installed")
    runs: dict[str, list[Minima]] = {}
    for threads in counts:
        for label, size in SIZES.items():
            title = f"{label} elements, {threads} thread{'s' if threads > 1 else ''}"
            runs[title] = [_fresh_process(size, threads, rounds) for _ in range(processes)]
            print(f"\n{title}: ns per element, and how many times slower than the limit; x faster than each peer")
            print(_table(runs[title], [name for name in NAMES if name not in absent]))
    print(f"\nload after: {_load()}")
    if given.json is not None:
        given.json.write_text(json.dumps(runs, indent=1))


def _fresh_process(size: int, threads: int, rounds: int) -> Minima:
    command = [sys.executable, "-m", "bench.worker"]
    command += ["--size", str(size), "--threads", str(threads), "--rounds", str(rounds)]
    environment = {**os.environ, "NARROWCAST_THREADS": str(threads), "OMP_NUM_THREADS": str(threads)}
    root = Path(__file__).resolve().parents[1]
    done = subprocess.run(command, cwd=root, env=environment, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.returncode)
    minima: Minima = json.loads(done.stdout)
    return minima


def _table(runs: list[Minima], peers: list[str]) -> str:
    heads = ["", "ns", "limit ns", "x limit", *peers]
    rows = [heads]
    for workload in runs[0]:
        minima = [run[workload] for run in runs]
        numbers = [_median(minima, "narrowcast"), _median(minima, "limit"), _median(minima, "narrowcast", "limit")]
        rows.append([workload, *numbers, *(_median(minima, peer, "narrowcast") for peer in peers)])
    widths = [max(len(row[i]) for row in rows) for i in range(len(heads))]
    return "\n".join(
        "  ".join(
            cell.ljust(w) if i == 0 else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    )


def _median(minima: list[dict[str, float]], top: str, bottom: str | None = None) -> str:
    """Median over the processes of one minimum, or of the ratio of two; a dash where one was not measured."""
    if any(key not in m for m in minima for key in (top, bottom) if key is not None):
        return "-"
    middle = statistics.median(m[top] / (1.0 if bottom is None else m[bottom]) for m in minima)
    return f"{middle:.1f}" if bottom == "narrowcast" and middle >= 10 else f"{middle:.2f}"


def _load() -> str:
    return " ".join(f"{x:.1f}" for x in os.getloadavg()) + f" on {os.cpu_count()} processors"


def _machine() -> str:
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [line.partition(":")[2].strip() for line in cpuinfo.read_text().splitlines() if "model name" in line]
        model = names[0] if names else model
    versions = f"Python {platform.python_version()}, NumPy {np.__version__}, ml_dtypes {ml_dtypes.__version__}"
    return f"narrowcast {VERSION} on {model}; {versions}"


if __name__ == "__main__":
    main()
