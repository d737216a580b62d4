"""Quantizing a file: the same codes as in memory, the metadata, what is kept, what is refused."""

import json
import os
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from safetensors import safe_open

import narrowcast as nc
from narrowcast.checkpoint import TARGETS, load_quantized, quantize_file
from narrowcast.errors import CheckpointError, OutputError, UnknownNameError, UnsupportedCastError
from narrowcast.report.quantized_json import quantized_document
from narrowcast.storage import open_safetensors, save_tensors

RNG = np.random.default_rng(11)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.safetensors"
    x = (RNG.standard_t(5, (32, 48)) * 0.1).astype(np.float32)
    save_tensors(
        path,
        {
            "w": x,
            "half": x.astype(np.float16),
            "brain": x.astype(ml_dtypes.bfloat16),
            "wide": x.astype(np.float64),
            "conv": RNG.standard_normal((4, 3, 5)).astype(np.float32),
            "zeros": np.zeros((3, 3), np.float32),
            "none": np.zeros((0, 4), np.float32),
            "bias": np.ones(7, np.float32),
            "scalar": np.full((), 2.0, np.float32),
            "ids": np.arange(5),
            "old_scale": np.ones((32, 1), np.float32),
            "fp8": np.ones((2, 2), ml_dtypes.float8_e4m3fn),
        },
        {"format": "pt"},
    )
    return path


@pytest.mark.parametrize("chunk", [1 << 20, 101])
@pytest.mark.parametrize("target", TARGETS)
def test_codes_and_scales_equal_quantize_in_memory(target: str, chunk: int, model: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.safetensors"
    result = quantize_file(model, out, target, chunk_elements=chunk)
    with open_safetensors(model) as file:
        for name in ("w", "half", "brain", "wide", "conv", "zeros", "none"):
            expected = nc.quantize(np.array(file.read(name)), target)
            got = load_quantized(out, name)
            np.testing.assert_array_equal(got.codes, expected.codes, err_msg=name)
            assert got.scale == expected.scale, name
            assert got.record.to_json() == expected.record.to_json(), name
            assert got.shape == file.info(name).shape
        by_name = {t.name: t for t in result.tensors}
        x = np.array(file.read("w")).astype(np.float64)
        error = x - load_quantized(out, "w").dequantize()
        assert by_name["w"].noise == pytest.approx(float(np.square(error).sum()))
        assert by_name["w"].max_error == float(np.abs(error).max())
        assert by_name["w"].flushed == np.count_nonzero((x != 0) & (x == error)) / np.count_nonzero(x)
        for name in ("bias", "scalar", "ids", "old_scale", "fp8"):
            assert by_name[name].kept, name
    with open_safetensors(out) as copy, open_safetensors(model) as file:
        for name in ("bias", "scalar", "ids", "old_scale", "fp8"):
            assert copy.info(name).dtype == file.info(name).dtype
            assert copy.read(name).tobytes() == file.read(name).tobytes()
        stored = {"hif8": "U8", "e4m3": "F8_E4M3", "e5m2": "F8_E5M2", "s8": "I8", "s4": "U8", "e2m1": "F4"}
        assert copy.info("w").dtype == stored[target] == by_name["w"].stored
        assert sum(t.stored_bytes for t in result.tensors) == sum(copy.info(n).nbytes for n in copy.names)
    assert result.output_bytes == out.stat().st_size


def test_metadata_describes_every_tensor(model: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.safetensors"
    quantize_file(model, out, "s4")
    with safe_open(out, "np") as file:
        metadata = file.metadata()
        names = set(file.keys())
    assert metadata["format"] == "pt"  # what the source said is kept
    whole = json.loads(metadata["narrowcast"])
    assert whole["format"] == "s4" and whole["version"] == nc.__version__
    form = json.loads(metadata["narrowcast:conv"])
    assert form["shape"] == [4, 3, 5] and form["scale"] == "conv.scale" in names
    assert form["blocks"] == [] and form["source_dtype"] == "F32" and "low nibble" in form["packing"]
    record = form["record"]
    assert (record["rounding"], record["saturate"], record["denominator"]) == ("rn", True, 7.0)
    assert "narrowcast:bias" not in metadata


def test_an_fp8_file_reads_in_other_libraries(model: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.safetensors"
    quantize_file(model, out, "e4m3")
    with safe_open(out, "np") as file:
        assert file.get_slice("w").get_dtype() == "F8_E4M3"
        assert file.get_slice("w").get_shape() == [32, 48]


def test_everything_and_keep(model: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.safetensors"
    result = quantize_file(model, out, "hif8", everything=True, keep=["b*", "conv"])
    kept = {t.name: t.kept for t in result.kept}
    assert kept == {
        "bias": "named by --keep",
        "brain": "named by --keep",
        "conv": "named by --keep",
        "ids": "not floating point",
        "fp8": "already narrow",
    }
    assert load_quantized(out, "scalar").dequantize() == pytest.approx(2.0)
    with pytest.raises(UnknownNameError, match=r"matches none of the 12 tensors.*Did you mean conv"):
        quantize_file(model, tmp_path / "x.safetensors", "hif8", keep=["convv"])


def test_unscaled_cast(model: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.safetensors"
    quantize_file(model, out, "hif8", scaled=False)
    with open_safetensors(model) as file:
        np.testing.assert_array_equal(load_quantized(out, "w").codes, nc.encode(file.read("w"), "hif8"))
    loaded = load_quantized(out, "w")
    assert loaded.scale == 1 and loaded.record.scale_from == "given"


@pytest.mark.parametrize(
    ("policy", "target"), [("saturate", "hif8"), ("keep", "hif8"), ("saturate", "s8"), ("keep", "s8")]
)
def test_non_finite_values(policy: str, target: str, tmp_path: Path) -> None:
    path, out = tmp_path / "bad.safetensors", tmp_path / "out.safetensors"
    x = np.ones((4, 4), np.float32)
    x[1, 2], x[3, 3] = np.nan, -np.inf
    save_tensors(path, {"fine": np.ones((2, 2), np.float32), "w": x})
    with open_safetensors(path) as file:
        at = file.info("w").offset_bytes + 6 * 4
    with pytest.raises(CheckpointError, match=rf"tensor 'w', byte {at}: element 6 is nan.*--nonfinite"):
        quantize_file(path, out, target, chunk_elements=4)
    assert sorted(os.listdir(tmp_path)) == ["bad.safetensors"]
    result = quantize_file(path, out, target, nonfinite=policy, chunk_elements=4)
    expected = nc.quantize(x, target, nonfinite=policy)
    np.testing.assert_array_equal(load_quantized(out, "w").codes, expected.codes)
    assert result.tensors[1].nonfinite == 2
    with pytest.raises(UnknownNameError, match="non-finite policy"):
        quantize_file(path, out, target, nonfinite="ignore", force=True)


def test_refusals_leave_nothing(model: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.safetensors"
    with pytest.raises(UnknownNameError, match="hif8"):
        quantize_file(model, out, "hif9")
    with pytest.raises(UnsupportedCastError, match="not stored as fp16"):
        quantize_file(model, out, "fp16")
    raw = model.read_bytes()
    cut = tmp_path / "cut.safetensors"
    cut.write_bytes(raw[:-10])
    with pytest.raises(CheckpointError, match="truncated"):
        quantize_file(cut, out, "hif8")
    cut.unlink()
    out.write_text("mine")
    with pytest.raises(OutputError, match="exists already"):
        quantize_file(model, out, "hif8")
    assert out.read_text() == "mine"
    assert sorted(os.listdir(tmp_path)) == ["model.safetensors", "out.safetensors"]
    quantize_file(model, out, "hif8", force=True)
    quantize_file(model, model, "hif8", force=True)  # in place: the source is read before it is replaced
    assert model.read_bytes() == out.read_bytes()
    assert sorted(os.listdir(tmp_path)) == ["model.safetensors", "out.safetensors"]


def test_name_of_a_scale_that_is_taken(tmp_path: Path) -> None:
    path = tmp_path / "taken.safetensors"
    save_tensors(path, {"w": np.ones((2, 2), np.float32), "w.scale": np.ones(1, np.float32)})
    with pytest.raises(CheckpointError, match=r"tensor 'w': its scale would be called 'w\.scale'.*--keep 'w'"):
        quantize_file(path, tmp_path / "out.safetensors", "hif8")


def test_quantized_file_is_not_quantized_twice(model: Path, tmp_path: Path) -> None:
    first, second = tmp_path / "first.safetensors", tmp_path / "second.safetensors"
    quantize_file(model, first, "e4m3")
    result = quantize_file(first, second, "hif8", everything=True)
    assert {t.name for t in result.quantized} == {"bias", "scalar", "old_scale"}
    with open_safetensors(first) as a, open_safetensors(second) as b:
        for name in ("w", "w.scale", "conv", "conv.scale"):
            assert a.read(name).tobytes() == b.read(name).tobytes()
    assert load_quantized(second, "w").format == "e4m3"
    assert load_quantized(second, "bias").format == "hif8"


@pytest.mark.parametrize("failure", [KeyboardInterrupt, OSError(28, "No space left on device")])
def test_interruption_leaves_nothing(failure: BaseException, model: Path, tmp_path: Path) -> None:
    def stop(done: int, total: int, name: str) -> None:
        if done > total // 2:
            raise failure

    with pytest.raises((KeyboardInterrupt, OSError)):
        quantize_file(model, tmp_path / "out.safetensors", "hif8", progress=stop)
    assert os.listdir(tmp_path) == ["model.safetensors"]


def test_load_says_what_is_not_quantized(model: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.safetensors"
    quantize_file(model, out, "hif8")
    with pytest.raises(CheckpointError, match="'bias' has no quantization record"):
        load_quantized(out, "bias")
    with pytest.raises(UnknownNameError):
        load_quantized(out, "nothing")


def test_document_is_plain(model: Path, tmp_path: Path) -> None:
    result = quantize_file(model, tmp_path / "out.safetensors", "e2m1")
    document = json.loads(json.dumps(quantized_document(result), allow_nan=False))
    assert document["schema"] == "narrowcast.quantized/1"
    assert {t["name"] for t in document["quantized"]} | {t["name"] for t in document["kept"]} == {
        t.name for t in result.tensors
    }


def test_damaged_record_is_named(tmp_path: Path) -> None:
    path = tmp_path / "edited.safetensors"
    for text in ("{", "[]", '{"format": "hif8"}'):
        save_tensors(path, {"w": np.ones((2, 2), np.float32)}, {"narrowcast:w": text}, force=True)
        with pytest.raises(CheckpointError, match="tensor 'w': its record in the metadata lacks"):
            load_quantized(path, "w")
        with pytest.raises(CheckpointError, match="its record"):
            quantize_file(path, tmp_path / "out.safetensors", "hif8")
