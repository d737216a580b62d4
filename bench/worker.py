"""One fresh process: verify every output, then time everything in turns, and print the minima as JSON.

Kernels, limits and peers take turns within a round, so that a change in the machine's load reaches all of them, and
the minimum over the rounds is what the machine can do. With one thread, time is the calling thread's processor time:
a 5 ms call on a busy machine is interrupted every time, and waiting is not the kernel's. With several, it is the
clock on the wall.
"""

import argparse
import json
import sys
import time
import warnings
from collections.abc import Callable

import numpy as np

from bench.peers import Peer, cut, peers
from bench.workloads import Workload, workloads

LONG_ENOUGH = 1e-3  # seconds; shorter calls are repeated within a round


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--size", type=int, required=True)
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--rounds", type=int, required=True)
    given = parser.parse_args()
    warnings.simplefilter("ignore")  # overflow in a peer's cast is no news here
    with np.errstate(all="ignore"):
        json.dump(measure(given.size, given.threads, given.rounds), sys.stdout)


def measure(size: int, threads: int, rounds: int) -> dict[str, dict[str, float]]:
    """Return, for each workload, nanoseconds per element: ours, the limit's, and each peer's."""
    jobs = workloads(size, threads)
    wrong = [job.name for job in jobs if not job.check()]
    if wrong:
        raise SystemExit(f"not timed: wrong results for {', '.join(wrong)}")
    timers: list[tuple[str, str, _Timer]] = []
    for job in jobs:
        timers.append((job.name, "narrowcast", _Timer(job.call, size, threads)))
        if job.limit is not None:
            timers.append((job.name, "limit", _Timer(job.limit, size, threads)))
        timers += [(job.name, peer.library, _peer_timer(job, peer, size, threads)) for peer in _of(job)]
    for _ in range(rounds):
        for _, _, timer in timers:
            timer.run()
    result: dict[str, dict[str, float]] = {job.name: {} for job in jobs}
    for workload, who, timer in timers:
        result[workload][who] = timer.nanoseconds
    return result


def _of(job: Workload) -> list[Peer]:
    return [peer for peer in peers() if peer.workload == job.name]


def _peer_timer(job: Workload, peer: Peer, size: int, threads: int) -> "_Timer":
    inputs = cut(job.inputs, min(size, peer.elements))
    return _Timer(peer.build(inputs, threads), next(iter(inputs.values())).size, threads)


class _Timer:
    """The shortest time of one call, per element."""

    def __init__(self, call: Callable[[], object], elements: int, threads: int) -> None:
        self._call, self._elements, self._best = call, elements, float("inf")
        self._clock = time.thread_time if threads == 1 else time.perf_counter
        self._repeats = 1
        for _ in range(3):  # the first call builds tables and fills caches
            self.run()
        self._repeats = max(1, round(LONG_ENOUGH / max(self._best, 1e-9)))

    def run(self) -> None:
        begin = self._clock()
        for _ in range(self._repeats):
            self._call()
        self._best = min(self._best, (self._clock() - begin) / self._repeats)

    @property
    def nanoseconds(self) -> float:
        return 1e9 * self._best / self._elements


if __name__ == "__main__":
    main()
