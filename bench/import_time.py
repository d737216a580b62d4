"""What ``import narrowcast`` adds to ``import numpy, ml_dtypes``, in milliseconds.

Fresh processes of both kinds take turns, so that a change in the machine's load reaches both; the figure is
the difference of their medians.
"""

import statistics
import subprocess
import sys
import time

ROUNDS = 11
BASE = "import numpy, ml_dtypes"
WITH = "import numpy, ml_dtypes, narrowcast"


def seconds(code: str) -> float:
    """Run one fresh interpreter and return how long it took."""
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True)
    return time.perf_counter() - start


def added_milliseconds(rounds: int = ROUNDS) -> tuple[float, float]:
    """Return the median of the base and what the package adds to it, in milliseconds."""
    for code in (BASE, WITH):  # fills the disk cache and writes the byte code
        seconds(code)
    pairs = [(seconds(BASE), seconds(WITH)) for _ in range(rounds)]
    base = statistics.median(b for b, _ in pairs)
    full = statistics.median(f for _, f in pairs)
    return 1000 * base, 1000 * (full - base)


def main() -> None:
    base, added = added_milliseconds()
    print(f"{BASE}: {base:.1f} ms; narrowcast adds {added:.1f} ms (median of {ROUNDS} interleaved runs)")


if __name__ == "__main__":
    main()
