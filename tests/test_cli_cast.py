"""``cast``: files of any layout give what encode gives, and a refusal leaves nothing behind."""

import errno
import json
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

import narrowcast as nc
from narrowcast.cli import main

Array = npt.NDArray[Any]

KEYS = (
    "source output sidecar shape source_format format rounding saturate nan dtype stored elements nans "
    "overflowed flushed max_error audit"
)


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("narrowcast.checkpoint.cast_file.CHUNK_ELEMENTS", 64)


def values() -> Array:
    rng = np.random.default_rng(7)
    spread = rng.standard_normal(600) * 2.0 ** rng.integers(-20, 12, 600)
    return spread.astype(np.float32).reshape(20, 30)


def names() -> list[str]:
    return sorted(p.name for p in Path().iterdir())


LAYOUTS: dict[str, Array] = {
    "c": values(),
    "fortran": np.asfortranarray(values()),
    "big-endian": values().astype(">f4"),
    "half": values().clip(-6e4, 6e4).astype(np.float16),
    "double": values().astype(np.float64) * (1 + 2.0**-40),
    "int32": (values() * 100).astype(np.int32),
    "scalar": np.float32(2.5).reshape(()),
    "empty": np.zeros((0, 3), np.float32),
    "three": values().reshape(2, 10, 30)[:, ::2],
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("target", ["hif8", "e4m3", "e2m1", "fp16", "bf16", "s8", "s32"])
def test_a_file_gives_what_encode_gives(layout: str, target: str) -> None:
    array = LAYOUTS[layout]
    np.save("in.npy", array)
    assert main(["cast", "in.npy", "-o", "out.npy", "--to", target, "--no-saturate"]) == 0
    result = np.load("out.npy")
    expected = nc.encode(array, target, saturate=False)
    assert result.shape == array.shape
    assert result.flags.f_contiguous == np.load("in.npy").flags.f_contiguous
    assert np.array_equal(result.view(expected.dtype), expected)
    assert result.dtype.name == {"fp16": "float16", "s8": "int8", "s32": "int32"}.get(target, expected.dtype.name)


def test_the_sidecar_says_how_to_read_the_codes(capsys: pytest.CaptureFixture[str]) -> None:
    np.save("in.npy", values())
    assert main(["cast", "in.npy", "-o", "out.npy", "--to", "hif8", "--rounding", "rh", "--no-saturate"]) == 0
    note = json.loads(Path("out.npy.json").read_text())
    assert note == {
        "format": "hif8",
        "stored": "codes",
        "dtype": "uint8",
        "shape": [20, 30],
        "rounding": "rh",
        "saturate": False,
        "nan": "keep",
        "source_format": "fp32",
        "hybrid_compare": "ge",
        "overflow": "after-rounding",
        "narrowcast": nc.__version__,
    }
    assert "out.npy.json" in capsys.readouterr().out


def test_codes_are_read_back_by_their_sidecar(capsys: pytest.CaptureFixture[str]) -> None:
    np.save("in.npy", values())
    assert main(["cast", "in.npy", "-o", "codes.npy", "--to", "hif8"]) == 0
    assert main(["cast", "codes.npy", "-o", "back.npy", "--to", "fp32"]) == 0
    assert np.array_equal(np.load("back.npy"), nc.round_to(values(), "hif8"))
    Path("codes.npy.json").unlink()
    assert main(["cast", "codes.npy", "-o", "named.npy", "--from", "hif8", "--to", "fp32"]) == 0
    assert np.array_equal(np.load("named.npy"), np.load("back.npy"))
    capsys.readouterr()


def test_bfloat16_has_to_be_named(capsys: pytest.CaptureFixture[str]) -> None:
    narrow = values().astype(ml_dtypes.bfloat16)
    np.save("in.npy", narrow)
    assert main(["cast", "in.npy", "-o", "out.npy", "--to", "e4m3"]) == 2
    assert "--from bf16" in capsys.readouterr().err
    assert main(["cast", "in.npy", "-o", "out.npy", "--to", "e4m3", "--from", "bf16"]) == 0
    assert np.array_equal(np.load("out.npy"), nc.encode(narrow, "e4m3"))


def test_json_and_counts(capsys: pytest.CaptureFixture[str]) -> None:
    np.save("in.npy", np.float32([1.0, 500.0, -1e-6, np.nan, -np.inf, 17.0]))
    assert main(["cast", "in.npy", "-o", "out.npy", "--to", "e4m3", "--json"]) == 0
    form = json.loads(capsys.readouterr().out)
    counted = (form["elements"], form["nans"], form["overflowed"], form["flushed"], form["max_error"])
    assert counted == (6, 1, 2, 1, 1.0)
    assert " ".join(form) == KEYS, "the documented keys, in order"


def test_audit_adds_up_over_pieces(capsys: pytest.CaptureFixture[str]) -> None:
    born = values().astype(ml_dtypes.bfloat16).astype(np.float32)
    born[0] = 1.0  # nothing open in the first row
    np.save("in.npy", np.asfortranarray(born))
    arguments = ["cast", "in.npy", "-o", "out.npy", "--to", "hif8", "--rounding", "rh", "--audit"]
    assert main([*arguments, "--json"]) == 0
    form = json.loads(capsys.readouterr().out)["audit"]
    whole = nc.audit(nc.CastOp(target="hif8", rounding="rh"), born)
    found = {(e["switch"], e["alternative"]): e["changed"] for e in form["entries"]}
    assert found and found == {(e.switch, e.alternative): e.changed for e in whole.entries}
    for entry in form["entries"]:
        assert entry["total"] == 600
        index = tuple(entry["first_index"])
        other = nc.Cast("fp32", "hif8", "rh", hybrid_compare=entry["alternative"])(born[index])
        assert int(other) != int(nc.encode(born[index], "hif8", "rh"))
    assert main([*arguments, "--force"]) == 0
    assert "hif8_hybrid_compare: " in capsys.readouterr().out


def test_a_clean_audit_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    np.save("in.npy", np.float32([1, 2]))
    assert main(["cast", "in.npy", "-o", "out.npy", "--to", "e4m3", "--no-saturate", "--audit"]) == 0
    assert "No open question touches your data" in capsys.readouterr().out


def test_nan_is_found_where_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    array = np.asfortranarray(values())
    array[13, 7] = np.nan
    np.save("in.npy", array)
    for target in ("s8", "e2m1"):
        assert main(["cast", "in.npy", "-o", "out.npy", "--to", target]) == 2
        message = capsys.readouterr().err
        assert "first at [13, 7]" in message and "--nan zero" in message and target in message
    assert main(["cast", "in.npy", "-o", "out.npy", "--to", "e4m3", "--nan", "error"]) == 2
    assert "the policy is error" in capsys.readouterr().err
    assert names() == ["in.npy"]
    assert main(["cast", "in.npy", "-o", "out.npy", "--to", "s8", "--nan", "zero"]) == 0
    assert np.load("out.npy")[13, 7] == 0


def test_force_replaces_both_files(capsys: pytest.CaptureFixture[str]) -> None:
    np.save("in.npy", values())
    Path("out.npy").write_bytes(b"mine")
    assert main(["cast", "in.npy", "-o", "out.npy", "--to", "s8"]) == 2
    assert "out.npy exists already" in capsys.readouterr().err
    assert Path("out.npy").read_bytes() == b"mine" and names() == ["in.npy", "out.npy"]
    Path("out.npy").rename("out.npy.json")
    assert main(["cast", "in.npy", "-o", "out.npy", "--to", "s8"]) == 2
    assert "out.npy.json exists already" in capsys.readouterr().err
    assert names() == ["in.npy", "out.npy.json"]
    assert main(["cast", "in.npy", "-o", "out.npy", "--to", "s8", "--force"]) == 0
    assert main(["cast", "out.npy", "-o", "out.npy", "--to", "fp16", "--force"]) == 0
    assert np.load("out.npy").dtype == np.float16


def write_bad_files() -> None:
    np.save("in.npy", values())
    whole = Path("in.npy").read_bytes()
    Path("short.npy").write_bytes(whole[:-5])
    Path("header.npy").write_bytes(whole[:40])
    Path("empty.npy").write_bytes(b"")
    Path("text.npy").write_text("1 2 3\n")
    Path("weights.npy").write_bytes((64).to_bytes(8, "little") + b'{"w":{}}')
    np.savez("zip.npz", a=values())
    np.save("complex.npy", np.zeros(3, np.complex64))
    np.save("object.npy", np.array([None, 1], dtype=object), allow_pickle=True)
    np.save("record.npy", np.zeros(3, dtype=[("a", "<f4")]))
    Path("folder").mkdir()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["short.npy", "--to", "s8"], "short.npy is truncated"),
        (["header.npy", "--to", "s8"], "damaged or truncated"),
        (["empty.npy", "--to", "s8"], "It is empty"),
        (["text.npy", "--to", "s8"], "is not a .npy file"),
        (["weights.npy", "--to", "s8"], "narrowcast quantize"),
        (["zip.npz", "--to", "s8"], "zip archive"),
        (["complex.npy", "--to", "s8"], "holds complex64"),
        (["object.npy", "--to", "s8"], "not numbers"),
        (["record.npy", "--to", "s8"], "not numbers"),
        (["missing.npy", "--to", "s8"], "missing.npy: No such file"),
        (["folder", "--to", "s8"], "Is a directory"),
        (["in.npy", "--to", "hif9"], "Did you mean hif8"),
        (["in.npy", "--to", "hif8", "--rounding", "rq"], "unknown rounding mode"),
        (["in.npy", "--to", "e4m3", "--rounding", "rh"], "rh"),
        (["in.npy", "--to", "s8", "--nan", "perhaps"], "unknown NaN policy"),
        (["in.npy", "--to", "s8", "--from", "hif8"], "hif8 codes are uint8"),
        (["in.npy", "--to", "s8", "-o", "nowhere/out.npy"], "the folder nowhere does not exist"),
        (["in.npy", "--to", "s8", "-o", "folder"], "folder is a folder"),
    ],
    ids=lambda v: " ".join(v) if isinstance(v, list) else None,
)
def test_refused_with_one_line_and_no_output(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    write_bad_files()
    before = names()
    output = [] if "-o" in arguments else ["-o", "out.npy"]
    assert main(["cast", *arguments, *output]) == 2
    shown = capsys.readouterr()
    assert shown.out == "" and message in shown.err and shown.err.count("\n") == 1
    assert names() == before


def test_a_full_disk_leaves_nothing(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def full(*arguments: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    np.save("in.npy", values())
    monkeypatch.setattr("narrowcast.checkpoint.cast_file.write_header", full)
    assert main(["cast", "in.npy", "-o", "out.npy", "--to", "s8"]) == 2
    assert "cannot write out.npy: the disk is full" in capsys.readouterr().err
    assert names() == ["in.npy"]
