"""Command line of the sweeps."""

import argparse
import sys
import time

import narrowcast as nc
from narrowcast import kernels
from tests.exhaustive.every_fp32 import CASTS, sweep
from tests.exhaustive.structured import FORMATS, MODES, compare_many

PARTS = ["every", "structured"]


def main() -> int:
    """Run the chosen sweeps; return 1 when any input differs from the oracle."""
    parser = argparse.ArgumentParser(prog="python -m tests.exhaustive", description=__doc__)
    parser.add_argument("part", nargs="*", help="every, structured; default both")
    parser.add_argument("--count", type=int, default=10_000_000, help="structured inputs per format and mode")
    parser.add_argument("--bits", type=int, default=32, help="sweep only the first 2**BITS patterns of each sign half")
    parser.add_argument("--format", action="append", help="only this target, repeatable")
    options = parser.parse_args()
    parts = options.part or PARTS
    if unknown := set(parts) - set(PARTS):
        parser.error(f"unknown part {', '.join(sorted(unknown))}; choose from {', '.join(PARTS)}")

    print(f"narrowcast {getattr(nc, '__version__', '?')}, kernels: {kernels.level()}", flush=True)
    failures: list[str] = []
    begin = time.perf_counter()
    if "every" in parts:
        for cast in CASTS:
            if not options.format or cast.name in options.format:
                failures += sweep(cast, bits=options.bits)
    if "structured" in parts:
        for name in FORMATS:
            if not options.format or name in options.format:
                failures += compare_many(name, MODES, options.count)
    for line in failures:
        print("DIFFERS", line)
    print(f"{'FAILED' if failures else 'equal'} in {time.perf_counter() - begin:.0f} s")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
