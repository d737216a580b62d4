"""200 tensors with one planted pitfall each, 200 healthy ones: the right detector first, no false alarm."""

from collections import Counter

import narrowcast as nc
from tests.planted import PLANTS, healthy, planted

FIRST_SHARE = 0.95
FALSE_ALARMS = 0.02


def test_the_right_detector_ranks_first() -> None:
    missed: Counter[tuple[str, str]] = Counter()
    count: Counter[str] = Counter()
    for rule, arguments in planted(200):
        found = nc.diagnose(**arguments)
        count[rule] += 1
        if not found or found[0].rule != rule:
            missed[rule, found[0].rule if found else "nothing"] += 1
    assert sum(count.values()) == 200 and set(count) == set(PLANTS)
    assert sum(missed.values()) <= (1 - FIRST_SHARE) * 200, missed
    assert max(Counter(rule for rule, _ in missed.elements()).values(), default=0) <= 2, missed


def test_other_draws_do_as_well() -> None:
    """The thresholds were not fitted to one draw."""
    missed = 0
    for seed in (101, 102):
        for rule, arguments in planted(200, seed=seed):
            found = nc.diagnose(**arguments)
            missed += not found or found[0].rule != rule
    assert missed <= (1 - FIRST_SHARE) * 400


def test_healthy_weights_raise_no_alarm() -> None:
    alarms = [[f.rule for f in found] for arguments in healthy(200) if (found := nc.diagnose(**arguments))]
    assert len(alarms) <= FALSE_ALARMS * 200, alarms
