"""Survey of a checkpoint: the figures against direct arithmetic, the pick, bounded memory, the page's text."""

import json
import math
import tracemalloc
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import narrowcast as nc
from narrowcast.errors import CheckpointError, UnknownNameError, UnsupportedCastError
from narrowcast.insight.picking import PickRule, percent
from narrowcast.insight.survey import DEFAULT_FORMATS, FormatStats, survey_file
from narrowcast.report.survey_json import survey_document
from narrowcast.report.survey_page import survey_page
from narrowcast.storage import SafeTensorsWriter, save_tensors

RNG = np.random.default_rng(7)
SUBNORMAL_LIMIT = {"hif8": 2.0**-15, "e4m3": 2.0**-6, "e5m2": 2.0**-14, "e2m1": 1.0}


def saved(folder: Path, **tensors: np.ndarray) -> Path:
    path = folder / "model.safetensors"
    save_tensors(path, tensors)
    return path


def one(path: Path, name: str, **options: object) -> FormatStats:
    return survey_file(path, [name], **options).tensors[0].stats[0]  # type: ignore[arg-type]


@pytest.mark.parametrize("name", DEFAULT_FORMATS)
@pytest.mark.parametrize("chunk", [1 << 20, 1000])
def test_figures_equal_direct_arithmetic(name: str, chunk: int, tmp_path: Path) -> None:
    x = (RNG.standard_t(4, (64, 129)) * 0.05).astype(np.float32)
    x[0, :7] = 0
    stats = one(saved(tmp_path, w=x), name, chunk_elements=chunk)
    q = nc.quantize(x, name)
    back = q.dequantize().astype(np.float64)
    error = x.astype(np.float64) - back
    assert stats.scale == float(q.scale)
    assert stats.noise == pytest.approx(float(np.square(error).sum()), rel=1e-12)
    assert stats.sqnr_db == pytest.approx(
        10 * math.log10(np.square(x.astype(np.float64)).sum() / np.square(error).sum()), abs=1e-9
    )
    assert stats.max_error == float(np.abs(error).max())
    assert stats.flushed == np.count_nonzero((x != 0) & (back == 0)) / np.count_nonzero(x)
    assert stats.saturated == 0
    values = np.abs(nc.decode(q.codes, name))
    if name in SUBNORMAL_LIMIT:
        assert stats.subnormal == np.count_nonzero((values > 0) & (values < SUBNORMAL_LIMIT[name])) / x.size
    else:
        assert stats.subnormal is None
    assert sum(stats.code_counts) == x.size
    assert sum(b.count for b in stats.binades) == np.count_nonzero(x)
    assert sum(b.noise for b in stats.binades) == pytest.approx(stats.noise)


# The largest float32 that still rounds to the format's maximum, and the smallest that is clamped to it.
EDGES = [
    ("e4m3", 464.0, np.nextafter(np.float32(464), np.float32(500))),
    ("e5m2", np.nextafter(np.float32(61440), np.float32(0)), 61440.0),
    ("hif8", np.nextafter(np.float32(40960), np.float32(0)), 40960.0),
    ("s8", np.nextafter(np.float32(127.5), np.float32(0)), 127.5),
    ("s8", -128.5, np.nextafter(np.float32(-128.5), np.float32(-200))),
    ("s4", -8.5, np.nextafter(np.float32(-8.5), np.float32(-9))),
    ("e2m1", np.nextafter(np.float32(7), np.float32(0)), 7.0),
    ("e2m1", np.nextafter(np.float32(-7), np.float32(0)), -7.0),
    ("fp16", np.nextafter(np.float32(65520), np.float32(0)), 65520.0),
]


@pytest.mark.parametrize(("name", "inside", "outside"), EDGES)
def test_saturation_starts_where_rounding_leaves_the_format(
    name: str, inside: float, outside: float, tmp_path: Path
) -> None:
    x = np.array([[inside, outside, 0, 1]], np.float32)
    assert one(saved(tmp_path, w=x), name, scaled=False).saturated == 0.25


def test_scaling_is_stated_and_can_be_left_out(tmp_path: Path) -> None:
    x = RNG.standard_normal((32, 32)).astype(np.float32)
    path = saved(tmp_path, w=x)
    scaled = survey_file(path, ["hif8", "e4m3", "s8", "fp16"])
    assert scaled.targets == {"hif8": 15, "e4m3": 448, "s8": 127, "fp16": None}
    assert scaled.tensors[0].stats[0].scale == float(np.float32(np.abs(x).max()) / np.float32(15))
    plain = survey_file(path, ["hif8", "s8"], scaled=False)
    assert plain.targets == {"hif8": None, "s8": None}
    assert all(s.scale == 1 for s in plain.tensors[0].stats)
    assert survey_document(plain)["application"]["scaling"] == "none (unscaled cast)"


def test_source_types_and_skipped_tensors(tmp_path: Path) -> None:
    x = RNG.standard_normal((16, 16))
    path = saved(
        tmp_path,
        f32=x.astype(np.float32),
        f16=x.astype(np.float16),
        bf16=x.astype(ml_dtypes.bfloat16),
        f64=x,
        f8=x.astype(ml_dtypes.float8_e4m3fn),
        ids=np.arange(4),
        norm=np.ones(8, np.float32),
        scalar=np.float32(2).reshape(()),
        empty=np.zeros((0, 4), np.float32),
        weight_scale=np.ones((16, 1), np.float32),
    )
    by_name = {t.name: t for t in survey_file(path, ["hif8", "s8"]).tensors}
    for name in ("f32", "f16", "bf16", "f64"):
        assert by_name[name].pick == "s8", name
        q = nc.quantize(
            x.astype({"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f64": np.float64}.get(name, np.float32)), "s8"
        )
        assert by_name[name].stats[1].scale == float(q.scale), name
    assert by_name["f8"].pick is None and "narrower than F8_E4M3" in by_name["f8"].reason
    assert by_name["ids"].stats == () and by_name["ids"].skipped
    assert by_name["norm"].pick is None and "1-D" in by_name["norm"].reason
    assert by_name["scalar"].pick is None and by_name["scalar"].stats
    assert by_name["empty"].reason == "empty."
    assert "scale" in by_name["weight_scale"].reason


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.float64, ml_dtypes.bfloat16, ml_dtypes.float8_e5m2])
def test_non_finite_elements_are_reported_not_fatal(dtype: type, tmp_path: Path) -> None:
    x = np.ones((4, 8), np.float32)
    x[0, 0], x[1, 1], x[2, 2] = np.nan, np.inf, -np.inf
    survey = survey_file(saved(tmp_path, w=x.astype(dtype)), ["hif8", "s8"], chunk_elements=10)
    t = survey.tensors[0]
    assert (t.nans, t.infinities, t.absmax, t.rms) == (1, 2, 1.0, 1.0)
    assert t.pick is None and "1 NaN and 2 infinite" in t.reason
    assert all(math.isfinite(s.noise) for s in t.stats)
    json.dumps(survey_document(survey), allow_nan=False)
    assert "1 NaN, 2 inf" in survey_page(survey)


@pytest.mark.parametrize("value", [0.0, 1e-45, 1e-40, 3e38])
def test_extreme_tensors_have_defined_figures(value: float, tmp_path: Path) -> None:
    survey = survey_file(saved(tmp_path, w=np.full((2, 2), value, np.float32)))
    for s in survey.tensors[0].stats:
        assert s.scale > 0 and math.isfinite(s.scale)
        assert math.isfinite(s.noise)
        if value > 1e-38:  # a subnormal scale is too coarse to reach the target, and says so
            assert s.saturated == 0
    assert survey_page(survey)
    if not value:
        assert survey.tensors[0].reason == "every element is zero."
        assert math.isnan(survey.tensors[0].stats[0].sqnr_db)


def test_huge_float64_is_survivable(tmp_path: Path) -> None:
    survey = survey_file(saved(tmp_path, w=np.array([[1e300, 1.0]])), ["s8"])
    assert survey_page(survey)
    json.dumps(survey_document(survey), allow_nan=False)


def stats(name: str, bits: int, db: float, saturated: float = 0.0, flushed: float = 0.0) -> FormatStats:
    return FormatStats(name, bits, 1.0, 10 ** (db / 10), 1.0, 0.0, saturated, flushed, None, (), ())


@pytest.mark.parametrize(
    ("measured", "pick", "words"),
    [
        ([stats("hif8", 8, 31), stats("s8", 8, 42)], "s8", "42.0 dB, 11.0 dB ahead of hif8"),
        ([stats("hif8", 8, 31.45), stats("e4m3", 8, 31.5)], "hif8", "level with e4m3"),
        ([stats("e4m3", 8, 31.5), stats("hif8", 8, 31.45)], "e4m3", "level with hif8"),
        ([stats("hif8", 8, 31), stats("s4", 4, 26)], "s4", "the only 4-bit format"),
        ([stats("hif8", 8, 31), stats("s4", 4, 20)], "hif8", "s4 reaches only 20.0 dB"),
        ([stats("hif8", 8, 31), stats("s8", 8, 20)], "hif8", "the only 8-bit format that qualifies; s8 reaches only"),
        ([stats("hif8", 8, 31), stats("s8", 8, 42, flushed=0.2)], "hif8", "flushes 20% of the non-zero"),
        ([stats("hif8", 8, 31), stats("e4m3", 8, 40, saturated=0.01)], "hif8", "clamps 1% of the elements"),
        ([stats("s4", 4, 12)], None, "no format qualifies; the nearest, s4, reaches only 12.0 dB"),
        ([stats("fp16", 16, 70)], None, "narrower than F16"),
        ([stats("hif8", 8, math.inf), stats("s8", 8, math.inf)], "hif8", "exact, level with s8"),
    ],
)
def test_pick_follows_the_rule(measured: list[FormatStats], pick: str | None, words: str) -> None:
    name, reason = PickRule().pick(measured, stored="F16", stored_bits=16)
    assert name == pick
    assert words in reason


def test_rule_is_stated_with_its_own_numbers() -> None:
    sentence = PickRule(min_sqnr_db=30, max_flushed=0.2).sentence
    assert "30 dB" in sentence and "20%" in sentence and "0.01%" in sentence


def test_percent_hides_no_loss() -> None:
    assert [percent(s) for s in (0, 1e-9, 0.00012, 0.5, 0.9999, 1)] == [
        "0%", "<0.001%", "0.012%", "50%", ">99.9%", "100%",
    ]  # fmt: skip


def test_refusals(tmp_path: Path) -> None:
    path = saved(tmp_path, w=np.ones((2, 2), np.float32))
    with pytest.raises(UnknownNameError, match="hif8"):
        survey_file(path, ["hif9"])
    for name in ("e8m0", "u8", "fp32", "s32"):
        with pytest.raises(UnsupportedCastError, match="signed formats of at most 16 bits"):
            survey_file(path, [name])
    with pytest.raises(UnsupportedCastError, match="no format"):
        survey_file(path, [])
    with pytest.raises(CheckpointError):
        survey_file(tmp_path / "none.safetensors")


def test_total_weights_every_element_alike(tmp_path: Path) -> None:
    a, b = RNG.standard_normal((8, 8)).astype(np.float32), RNG.standard_normal((64, 64)).astype(np.float32)
    survey = survey_file(saved(tmp_path, a=a, b=b), ["s4"])
    total = survey.total("s4")
    assert total is not None
    parts = [t.stats[0] for t in survey.tensors]
    assert total.noise == sum(p.noise for p in parts)
    zeros = sum(p.flushed * t.elements for p, t in zip(parts, survey.tensors, strict=True))
    assert total.flushed == pytest.approx(zeros / (a.size + b.size))
    assert sum(total.code_counts) == a.size + b.size


def test_progress_reaches_the_end_in_order(tmp_path: Path) -> None:
    seen: list[tuple[int, int, str]] = []
    path = saved(tmp_path, a=np.ones((10, 10), np.float32), b=np.ones((5, 5), np.float16), c=np.arange(3))
    survey_file(path, ["s8"], progress=lambda *event: seen.append(event), chunk_elements=7)
    done = [event[0] for event in seen]
    assert done == sorted(done) and done[-1] == 125
    assert {event[1] for event in seen} == {125}
    assert {event[2] for event in seen} == {"a", "b"}


def test_memory_is_bounded_by_a_piece(tmp_path: Path) -> None:
    path = tmp_path / "big.safetensors"
    rows = 1 << 12
    with SafeTensorsWriter(path, {"w": ("F32", (rows, 1024))}) as out:
        for _ in range(rows // 64):
            out.append("w", RNG.standard_normal((64, 1024)).astype(np.float32))
    survey_file(path, ["s8"], chunk_elements=1 << 14)  # tables and imports are in place now
    tracemalloc.start()
    survey_file(path, ["hif8", "s8"], chunk_elements=1 << 14)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 6 << 20, f"{peak / 2**20:.1f} MiB for a 16 MiB tensor"


def test_document_is_plain_and_complete(tmp_path: Path) -> None:
    survey = survey_file(
        saved(tmp_path, w=RNG.standard_normal((8, 8)).astype(np.float32), one=np.ones((1, 1), np.float32))
    )
    document = json.loads(json.dumps(survey_document(survey), allow_nan=False))
    assert document["schema"] == "narrowcast.survey/1"
    row = document["tensors"][0]
    assert row["name"] == "w" and row["shape"] == [8, 8]
    assert set(row["formats"]) == set(DEFAULT_FORMATS)
    assert {"sqnr_db", "max_error", "saturated_percent", "flushed_percent", "subnormal_percent", "scale"} <= set(
        row["formats"]["hif8"]
    )
    assert row["pick"] and row["reason"]
    exact = document["tensors"][1]["formats"]["hif8"]
    assert exact["exact"] and exact["sqnr_db"] is None
