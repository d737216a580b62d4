"""Streamed safetensors and atomic outputs: what is refused, what survives a failure."""

import errno
import io
import json
import os
import stat
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors import safe_open
from safetensors.numpy import save_file

from narrowcast.errors import CheckpointError, OutputError, ShapeError, UnknownNameError
from narrowcast.storage import (
    AtomicFile,
    SafeTensorsWriter,
    atomic_output,
    open_safetensors,
    parse_header,
    save_tensors,
)


def raw_file(table: object, data: bytes = b"") -> bytes:
    head = table if isinstance(table, bytes) else json.dumps(table).encode()
    return len(head).to_bytes(8, "little") + head + data


def entry(dtype: str, shape: list[int], begin: int, end: int) -> dict[str, object]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


BAD = {
    "empty": (b"", "eight-byte header length"),
    "short": (b"\x02\0\0", "eight-byte header length"),
    "lfs pointer": (b"version https://git-lfs.github.com/spec/v1\noid sha256:0", "git lfs pull"),
    "zip": (b"PK\x03\x04" + bytes(60), "PyTorch"),
    "gguf": (b"GGUF" + bytes(60), "GGUF"),
    "header length": ((10**12).to_bytes(8, "little") + b"{}", "limit"),
    "cut header": ((1000).to_bytes(8, "little") + b"{}", "truncated"),
    "no brace": (raw_file(b"[1, 2]"), "does not start"),
    "bad json": (raw_file(b'{"w": {"dtype": }}'), "byte 24: the header is not valid JSON"),
    "not utf-8": (raw_file(b'{"\xff": 1}'), "byte 10: the header is not UTF-8"),
    "deep": (raw_file(b'{"a":' + b"[" * 100_000), "JSON"),
    "twice": (
        raw_file(
            b'{"w":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"w":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}',
            b"a",
        ),
        "tensor 'w': the name appears twice",
    ),
    "no fields": (raw_file({"w": {"dtype": "U8"}}), "needs dtype, shape"),
    "dtype": (raw_file({"w": entry("FP8", [1], 0, 1)}, b"a"), "unknown dtype 'FP8'"),
    "negative": (raw_file({"w": entry("U8", [-1], 0, 1)}, b"a"), "shape"),
    "boolean": (raw_file({"w": {"dtype": "U8", "shape": [True], "data_offsets": [0, 1]}}, b"a"), "shape"),
    "one offset": (raw_file({"w": {"dtype": "U8", "shape": [1], "data_offsets": [0]}}, b"a"), "pair"),
    "reversed": (raw_file({"w": entry("U8", [1], 1, 0)}, b"a"), "before they begin"),
    "past the end": (raw_file({"w": entry("F32", [4], 0, 16)}, bytes(12)), "past the end"),
    "byte count": (raw_file({"w": entry("F32", [4], 0, 12)}, bytes(12)), "takes 16 bytes"),
    "overlap": (
        raw_file({"a": entry("U8", [4], 0, 4), "b": entry("U8", [4], 2, 6)}, bytes(6)),
        "overlaps tensor 'a'",
    ),
    "gap": (raw_file({"a": entry("U8", [2], 0, 2), "b": entry("U8", [2], 4, 6)}, bytes(6)), "belong to none"),
    "appended": (raw_file({"a": entry("U8", [2], 0, 2)}, bytes(3)), "after the last tensor"),
    "odd F4": (raw_file({"w": entry("F4", [2, 3], 0, 3)}, bytes(3)), "F4 packs two"),
    "F6": (raw_file({"w": entry("F6_E3M2", [3], 0, 2)}, bytes(2)), "whole bytes"),
    "metadata": (raw_file({"__metadata__": {"a": 1}}), "strings"),
}


@pytest.mark.parametrize("case", BAD)
def test_malformed_file_is_refused_with_its_place(case: str, tmp_path: Path) -> None:
    raw, expected = BAD[case]
    path = tmp_path / "bad.safetensors"
    path.write_bytes(raw)
    with pytest.raises(CheckpointError, match=r"bad\.safetensors") as caught:
        open_safetensors(path)
    assert expected in str(caught.value)


@pytest.mark.parametrize("length", [640, 640 + 65536])
def test_a_header_length_that_looks_like_a_pickle(length: int) -> None:
    """640 is 80 02 in bytes, as a pickle begins."""
    header = json.dumps({"w": entry("U8", [1], 0, 1)}).encode().ljust(length)
    raw = length.to_bytes(8, "little") + header + b"a"
    assert list(parse_header(io.BytesIO(raw), "w.safetensors")[0]) == ["w"]
    with pytest.raises(CheckpointError, match="pickle"):
        parse_header(io.BytesIO(b"\x80\x02}q\x00" + bytes(60)), "w.safetensors")


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(raw: bytes) -> None:
    try:
        parse_header(io.BytesIO(raw), "fuzz.safetensors")
    except CheckpointError as error:
        assert "fuzz.safetensors" in str(error)


@given(st.integers(0, 120), st.integers(0, 255))
def test_any_damaged_byte_is_read_or_refused(position: int, value: int) -> None:
    raw = bytearray(raw_file({"a": entry("F32", [2], 0, 8), "b": entry("BF16", [3], 8, 14)}, bytes(14)))
    raw[position % len(raw)] = value
    try:
        entries, _ = parse_header(io.BytesIO(bytes(raw)), "fuzz.safetensors")
    except CheckpointError:
        return
    assert all(e.offset_bytes + e.nbytes <= len(raw) for e in entries.values())


def test_missing_file_and_folder(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="cannot read"):
        open_safetensors(tmp_path / "none.safetensors")
    with pytest.raises(CheckpointError, match="is a folder"):
        open_safetensors(tmp_path)


def test_reads_what_the_reference_library_writes(tmp_path: Path) -> None:
    path = tmp_path / "ref.safetensors"
    rng = np.random.default_rng(1)
    tensors = {
        "w": rng.standard_normal((5, 7)).astype(np.float32),
        "h": rng.standard_normal(9).astype(np.float16),
        "scalar": np.array(3.0),
        "empty": np.zeros((0, 4), np.float32),
        "odd": np.arange(3, dtype=np.int8),
        "flag": np.array([True, False]),
    }
    save_file(tensors, path, {"who": "reference"})
    with open_safetensors(path) as file:
        assert set(file.names) == set(tensors)
        assert file.metadata == {"who": "reference"}
        for name, expected in tensors.items():
            np.testing.assert_array_equal(file.read(name), expected)
            assert not file.read(name).size or not file.read(name).flags.writeable
            pieces = [p.copy() for p in file.chunks(name, 4)]
            got = np.concatenate(pieces) if pieces else np.zeros(0)
            np.testing.assert_array_equal(got, expected.reshape(-1))
        with pytest.raises(UnknownNameError) as caught:
            file.info("scala")
        assert caught.value.suggestions == ("scalar",)


def test_round_trip_of_every_type(tmp_path: Path) -> None:
    path = tmp_path / "all.safetensors"
    odd = np.arange(3, dtype=np.uint8)
    tensors = {
        "u8": odd,
        "bf16": np.array([1.5, -0.0], ml_dtypes.bfloat16),
        "e4m3": ("F8_E4M3", np.array([[0x7E, 0x80]], np.uint8)),
        "e4m3 values": np.array([448, 1], ml_dtypes.float8_e4m3fn),
        "e5m2": np.array([1, 2, 4], ml_dtypes.float8_e5m2),
        "scales": np.array([1, 2], ml_dtypes.float8_e8m0fnu),
        "f4": ("F4", np.array([[0x21, 0x43]], np.uint8)),
        "big endian": np.array([1.0, 2.0], ">f4"),
        "strided": np.arange(12, dtype=np.float32).reshape(3, 4)[:, ::2],
        "f64": np.array(2.5),
    }
    save_tensors(path, tensors, {"format": "test", "unicode": "né"})
    with open_safetensors(path) as file:
        assert file.metadata["unicode"] == "né"
        assert file.info("f4").shape == (1, 4) and file.read("f4").shape == (1, 2)
        for name, value in tensors.items():
            array = value[1] if isinstance(value, tuple) else value
            little = array.astype("<f4") if array.dtype == ">f4" else array
            assert file.read(name).tobytes() == little.tobytes(), name
            width = max(file.info(name).stored.bits // 8, 1)
            assert file.info(name).offset_bytes % width == 0, f"{name} is not aligned"
    with safe_open(path, "np") as reference:
        assert set(reference.keys()) == set(tensors)


def test_read_survives_close_and_replacement(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    save_tensors(path, {"w": np.arange(4, dtype=np.float32)})
    with open_safetensors(path) as file:
        mapped = file.read("w")
    save_tensors(path, {"w": np.zeros(4, np.float32)}, force=True)
    np.testing.assert_array_equal(mapped, [0, 1, 2, 3])


def test_file_cut_while_reading_is_named(tmp_path: Path) -> None:
    path = tmp_path / "cut.safetensors"
    save_tensors(path, {"w": np.zeros(100_000, np.float32)})
    with open_safetensors(path) as file:
        os.truncate(path, 5000)
        with pytest.raises(CheckpointError, match="tensor 'w', byte 5000"):
            list(file.chunks("w", 1000))


def test_writer_checks_what_it_gets(tmp_path: Path) -> None:
    path = tmp_path / "w.safetensors"
    with (
        pytest.raises(CheckpointError, match="incomplete: 4 of 8"),
        SafeTensorsWriter(path, {"w": ("F32", (2,))}) as out,
    ):
        out.append("w", np.zeros(1, np.float32))
    with (
        pytest.raises(CheckpointError, match="more came"),
        SafeTensorsWriter(path, {"w": ("F32", (2,))}) as out,
    ):
        out.append("w", np.zeros(3, np.float32))
    with (
        pytest.raises(CheckpointError, match="float64"),
        SafeTensorsWriter(path, {"w": ("F32", (2,))}) as out,
    ):
        out.append("w", np.zeros(2))
    with (
        pytest.raises(ShapeError, match="declared with shape"),
        SafeTensorsWriter(path, {"w": ("F32", (2,))}) as out,
    ):
        out.write("w", np.zeros((2, 1), np.float32))
    with pytest.raises(CheckpointError, match="not declared"), SafeTensorsWriter(path, {}) as out:
        out.write("v", np.zeros(1, np.float32))
    with pytest.raises(CheckpointError, match="F4 packs two"):
        SafeTensorsWriter(path, {"w": ("F4", (3,))})
    with pytest.raises(CheckpointError, match="no element type"):
        save_tensors(path, {"w": np.array(["a"])})
    assert os.listdir(tmp_path) == []


def test_existing_output_is_refused_unless_forced(tmp_path: Path) -> None:
    path = tmp_path / "w.safetensors"
    path.write_text("mine")
    with pytest.raises(OutputError, match=r"exists already.*--force"):
        save_tensors(path, {"w": np.zeros(1, np.float32)})
    assert path.read_text() == "mine"
    save_tensors(path, {"w": np.zeros(1, np.float32)}, force=True)
    assert os.listdir(tmp_path) == ["w.safetensors"]


@pytest.mark.parametrize("failure", [KeyboardInterrupt, SystemExit, ValueError, MemoryError])
def test_nothing_is_left_after_a_failure(failure: type[BaseException], tmp_path: Path) -> None:
    kept = tmp_path / "kept.safetensors"
    kept.write_text("old")
    for path in (tmp_path / "new.safetensors", kept):
        with pytest.raises(failure), SafeTensorsWriter(path, {"w": ("F32", (2,))}, force=True) as out:
            out.append("w", np.zeros(1, np.float32))
            raise failure
        with pytest.raises(failure), atomic_output(path, force=True) as stream:
            stream.write(b"half")
            raise failure
    assert os.listdir(tmp_path) == ["kept.safetensors"]
    assert kept.read_text() == "old"


@pytest.mark.parametrize("step", ["write", "fsync", "replace"])
def test_full_disk_leaves_nothing(step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    path = tmp_path / "w.safetensors"
    if step == "write":
        real = AtomicFile.__init__

        def broken(self: AtomicFile, *args: object, **kwargs: object) -> None:
            real(self, *args, **kwargs)  # type: ignore[arg-type]

            class Full(io.BytesIO):
                write = full  # type: ignore[assignment]

            self.file.close()
            self._file = Full()

        monkeypatch.setattr(AtomicFile, "__init__", broken)
    else:
        monkeypatch.setattr(os, step, full)
    with pytest.raises(OutputError, match="disk is full"):
        save_tensors(path, {"w": np.zeros(4, np.float32)})
    with pytest.raises(OutputError, match="disk is full"), atomic_output(path) as out:
        out.write(b"x")
    assert os.listdir(tmp_path) == []


def test_too_small_disk_is_refused_before_any_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Usage:
        free = 10

    monkeypatch.setattr("shutil.disk_usage", lambda _: Usage)
    with pytest.raises(OutputError, match="the disk has 10 left"):
        SafeTensorsWriter(tmp_path / "w.safetensors", {"w": ("F32", (1000,))})
    assert os.listdir(tmp_path) == []


def test_output_names_that_cannot_be(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="is a folder"), atomic_output(tmp_path, force=True):
        pass
    with pytest.raises(OutputError, match="mkdir -p"), atomic_output(tmp_path / "none" / "x"):
        pass
    if Path("/dev/null").exists():
        with pytest.raises(OutputError, match="regular file"), atomic_output("/dev/null", force=True):
            pass


def test_link_survives_and_permissions_are_ordinary(tmp_path: Path) -> None:
    target = tmp_path / "real.bin"
    link = tmp_path / "link.bin"
    link.symlink_to(target)
    with atomic_output(link) as out:
        out.write(b"x")
    assert link.is_symlink() and target.read_bytes() == b"x"
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE(target.stat().st_mode) == 0o666 & ~mask


def test_name_taken_meanwhile_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "late.bin"
    with pytest.raises(OutputError, match="exists already"), atomic_output(path) as out:
        out.write(b"ours")
        path.write_bytes(b"theirs")
    assert path.read_bytes() == b"theirs"
    assert os.listdir(tmp_path) == ["late.bin"]


def test_failed_read_inside_an_output_is_not_blamed_on_it(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), atomic_output(tmp_path / "x") as out:
        out.write(Path(tmp_path / "missing input").read_bytes())
