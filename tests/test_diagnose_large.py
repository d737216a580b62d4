"""Diagnosis in slabs: the same findings as in one piece, little memory, and exact percentiles."""

import math
import tracemalloc
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import narrowcast as nc
from narrowcast.insight import slabs as slabs_module
from narrowcast.insight.diagnosis import examine
from narrowcast.insight.slabs import Count, RowCount, Spread, sample_places, slabs
from narrowcast.report.diagnosis_page import diagnosis_page
from tests.planted import PLANTS, planted

RNG = np.random.default_rng(8)
SHAPES = [(), (0,), (7,), (3, 5), (1, 100), (100, 1), (2, 3, 50), (5, 1, 7, 2), (4, 0, 3)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("limit", [1, 4, 13, 1000])
def test_slabs_are_runs_in_order(shape: tuple[int, ...], limit: int) -> None:
    array = np.arange(math.prod(shape)).reshape(shape)
    found = list(slabs(shape, limit))
    joined = np.concatenate([array[s.where].reshape(-1) for s in found])
    assert np.array_equal(joined, array.reshape(-1))
    for slab in found:
        part = array[slab.where]
        assert part.size <= limit and (not part.size or part.reshape(-1)[0] == slab.start)


@pytest.mark.parametrize("blocks", [(1, 10), (4, 10), (1, 30), (8, 7), (3, 1)])
def test_parameters_of_a_slab_are_those_of_the_whole(blocks: tuple[int, int]) -> None:
    shape = (8, 30)
    grid = tuple(-(-n // b) for n, b in zip(shape, blocks, strict=True))
    scale = RNG.uniform(1, 2, grid)
    whole = np.repeat(np.repeat(scale, blocks[0], axis=0)[:8], blocks[1], axis=1)[:, :30]
    x = RNG.standard_normal(shape)
    spread, largest = Spread.of(scale, shape, blocks), np.zeros(grid)
    for slab in slabs(shape, 11):
        part = x[slab.where]
        assert np.array_equal(np.broadcast_to(spread.part(slab.where), part.shape), whole[slab.where])
        found, where = spread.largest(np.abs(part), slab)
        largest[where] = np.maximum(largest[where], found)
    assert np.array_equal(largest, nc.Blocks(blocks).reduce(np.abs(x), np.maximum))
    places = sample_places(x.size, 50)
    assert np.array_equal(spread.at(tuple(np.unravel_index(places, shape))), whole.reshape(-1)[places])


def test_counts_over_slabs() -> None:
    mask = RNG.random((9, 40)) < 0.05
    mask[0] = False
    count, rows = Count(), RowCount(40)
    for slab in slabs(mask.shape, 13):
        count.add(mask[slab.where], slab)
        rows.add(mask[slab.where], slab)
    assert count.number == rows.number == mask.sum() and rows.rows == mask.any(axis=1).sum()
    assert count.index(mask.shape) == [int(i) for i in np.argwhere(mask)[0]]


def test_findings_do_not_depend_on_the_slabs(monkeypatch: pytest.MonkeyPatch) -> None:
    cases = list(planted(3 * len(PLANTS), seed=77))
    whole = [[f.to_json() for f in nc.diagnose(**arguments)] for _, arguments in cases]
    monkeypatch.setattr(slabs_module, "SLAB", 37)
    for (rule, arguments), want in zip(cases, whole, strict=True):
        same([f.to_json() for f in nc.diagnose(**arguments)], want, rule)
    assert "Overflow clipping" in diagnosis_page(examine(**PLANTS["PIT-01"](np.eye(16, dtype=np.float32), RNG)), "x")


def same(found: Any, want: Any, where: str) -> None:
    """Equal, sums up to the order in which they were taken."""
    if isinstance(want, dict):
        assert found.keys() == want.keys(), where
        for key in want:
            same(found[key], want[key], f"{where} {key}")
    elif isinstance(want, list):
        assert len(found) == len(want), where
        for a, b in zip(found, want, strict=True):
            same(a, b, where)
    elif isinstance(want, float):
        assert found == pytest.approx(want, rel=1e-9), where
    else:
        assert found == want, where


@pytest.mark.parametrize(
    "arguments", [{}, {"scale": 0.01}, {"chain": ("bf16", "s8")}], ids=["healthy", "clipped", "chain"]
)
def test_memory_is_bounded(arguments: dict[str, Any]) -> None:
    x = RNG.standard_normal((1024, 4096), dtype=np.float32)
    nc.diagnose(x[:8], to="s8", **arguments)
    tracemalloc.start()
    try:
        examine(x, to="s8", **arguments)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # The codes and those of the fix take a byte per element each; float64 copies would take eight.
    assert peak < 2.5 * x.size + (8 << 20), peak / x.size


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16, np.float64, np.int8, np.int32])
@pytest.mark.parametrize("magnitude", [False, True])
def test_percentiles_are_exact(dtype: type, magnitude: bool) -> None:
    x = (RNG.standard_normal((333, 700)) * 50).astype(dtype)
    wide = np.abs(x.astype(np.float64)) if magnitude else x.astype(np.float64)
    q = [0, 0.1, 25, 50, 99, 99.9, 99.99, 100]
    np.testing.assert_allclose(nc.percentiles(x, q, magnitude=magnitude), np.percentile(wide, q), rtol=1e-11)


def test_percentiles_at_the_ends_of_the_range() -> None:
    x = np.float32([-0.0, 0.0, 1e-45, -1e-45, 3.4e38, -3.4e38, np.nan, np.inf, -np.inf])
    finite = np.sort(x[np.isfinite(x)].astype(np.float64))
    assert np.array_equal(nc.percentiles(x, np.arange(6) * 20.0), finite)
    assert np.isnan(nc.percentiles(np.float32([np.nan]), [50])).all()
    assert np.isnan(nc.percentiles(np.zeros((0, 3), np.float32), [50])).all()
    for q, words in (([101], "between 0 and 100"), ([np.nan], "between 0 and 100")):
        with pytest.raises(nc.FormatError, match=words):
            nc.percentiles(x, q)
    with pytest.raises(nc.FormatError, match="give numbers"):
        nc.percentiles(["a"])
