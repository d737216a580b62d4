"""Bad input to encode, decode and their kin: a clear error of the right class, before anything is written."""

import ml_dtypes
import numpy as np
import pytest

import narrowcast as nc
from narrowcast import errors

NAN = np.float32([1.0, np.nan, 2.0])


@pytest.mark.parametrize(("name", "close"), [("e4m4", "e4m3"), ("hif9", "hif8"), ("bf61", "bf16"), ("int7", "int8")])
def test_unknown_format_offers_close_names(name: str, close: str) -> None:
    with pytest.raises(errors.UnknownNameError) as caught:
        nc.encode([1.0], name)
    assert close in caught.value.suggestions or close in str(caught.value)
    assert name in str(caught.value)
    with pytest.raises(errors.UnknownNameError):
        nc.decode([1], name)
    with pytest.raises(KeyError):
        nc.formats[name]


def test_unknown_rounding_and_policy() -> None:
    with pytest.raises(errors.UnknownNameError, match="rm"):
        nc.encode([1.0], "e4m3", rounding="rm")
    with pytest.raises(errors.UnknownNameError, match="zeros"):
        nc.encode([1.0], "e4m3", nan="zeros")


@pytest.mark.parametrize("name", ["s4", "u4", "s8", "u8", "s16", "u16", "s32", "s64", "e2m1", "e1m2", "e3m2", "e2m3"])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_nan_needs_a_policy_where_the_format_has_none(name: str, dtype: type) -> None:
    values = NAN.astype(dtype)
    with pytest.raises(errors.FormatError) as caught:
        nc.encode(values, name)
    assert name in str(caught.value)
    assert "nan" in str(caught.value).lower()
    assert "zero" in str(caught.value)  # names what to do
    assert nc.encode(values, name, nan="zero")[1] == 0
    assert nc.encode(values[[0, 2]], name).size == 2


@pytest.mark.parametrize("name", ["e4m3", "hif8", "fp16", "e8m0"])
def test_nan_can_be_refused_anywhere(name: str) -> None:
    with pytest.raises(errors.FormatError):
        nc.encode(NAN, name, nan="error")
    assert nc.encode(NAN[[0, 2]], name, nan="error").size == 2


def test_nan_is_found_anywhere_in_the_array() -> None:
    """The check must not stop at a chunk or a vector tail."""
    for size in (1, 9, 65537, 200_001):
        for at in {0, size // 2, size - 1}:
            values = np.ones(size, np.float32)
            values[at] = np.nan
            with pytest.raises(errors.FormatError):
                nc.encode(values, "s8")
            with pytest.raises(errors.FormatError):
                nc.round_to(values, "e2m1")


@pytest.mark.parametrize(
    "out",
    [
        np.zeros(4, np.uint8),
        np.zeros((3, 1), np.uint8),
        np.zeros(3, np.int16),
        np.zeros(3, np.float32),
        [0, 0, 0],
    ],
    ids=["size", "shape", "width", "float", "list"],
)
def test_wrong_out_of_encode(out: object) -> None:
    with pytest.raises(errors.ShapeError) as caught:
        nc.encode(np.ones(3, np.float32), "e4m3", out=out)  # type: ignore[arg-type]
    assert "uint8" in str(caught.value)
    assert "(3,)" in str(caught.value)


def test_read_only_out() -> None:
    out = np.zeros(3, np.uint8)
    out.setflags(write=False)
    with pytest.raises(errors.ShapeError, match="read-only"):
        nc.encode(np.ones(3, np.float32), "e4m3", out=out)


def test_wrong_out_of_decode_and_round_to() -> None:
    with pytest.raises(errors.ShapeError, match="float32"):
        nc.decode(np.zeros(3, np.uint8), "e4m3", out=np.zeros(3, np.float64))
    with pytest.raises(errors.ShapeError):
        nc.decode(np.zeros(3, np.uint8), "e4m3", out=np.zeros(2, np.float32))
    with pytest.raises(errors.ShapeError):
        nc.round_to(np.zeros(3, np.float32), "e4m3", out=np.zeros(3, np.uint8))


@pytest.mark.parametrize("name", ["fp16", "bf16", "e4m3", "s8"])
def test_hybrid_is_for_hif8_only(name: str) -> None:
    with pytest.raises(errors.UnsupportedCastError, match="hif8"):
        nc.encode([1.0], name, rounding="rh")


def test_hybrid_takes_single_and_half_only() -> None:
    for values in (np.ones(2, ml_dtypes.bfloat16), np.ones(2, np.int32), np.array([0.1])):
        with pytest.raises(errors.UnsupportedCastError, match="fp32"):
            nc.encode(values, "hif8", rounding="rh")
    assert nc.encode([16.0], "hif8", rounding="rh").tolist() == [0x41]  # a float64 that is a float32


@pytest.mark.parametrize(
    "values",
    [np.array(["a"]), np.array([1j]), np.array([None]), np.array([True]), np.zeros(2, np.longdouble)],
    ids=["text", "complex", "object", "bool", "longdouble"],
)
def test_values_of_no_source_type(values: np.ndarray) -> None:
    with pytest.raises(errors.FormatError) as caught:
        nc.encode(values, "e4m3")
    assert "float32" in str(caught.value) or "fp32" in str(caught.value)


@pytest.mark.parametrize(("name", "code"), [("e2m1", 16), ("s4", -1), ("e4m3", 256), ("e4m3", -1), ("fp19", 2**19)])
def test_codes_the_format_does_not_have(name: str, code: int) -> None:
    with pytest.raises(errors.FormatError, match=str(code)):
        nc.decode(np.array([0, code]), name)
    with pytest.raises(errors.FormatError):
        nc.decode(np.array([0.5]), name)
    assert nc.decode([], name).shape == (0,)


def test_pack_and_unpack() -> None:
    with pytest.raises(errors.FormatError, match="e4m3"):
        nc.pack([1, 2], "e4m3")
    with pytest.raises(errors.FormatError, match="16"):
        nc.pack([1, 16], "s4")
    with pytest.raises(errors.ShapeError):
        nc.unpack([1, 2], "s4", 5)
    with pytest.raises(errors.ShapeError):
        nc.unpack([1, 2], "s4", 1)
    with pytest.raises(errors.UnknownNameError):
        nc.pack([1], "s3")


def test_round_to_refuses_what_float32_cannot_hold() -> None:
    for name in ("s32", "u32", "s64"):
        with pytest.raises(errors.FormatError, match=name):
            nc.round_to([1.0], name)


def test_every_error_is_a_narrowcast_error() -> None:
    for action in (
        lambda: nc.encode([1.0], "nope"),
        lambda: nc.encode(NAN, "s8"),
        lambda: nc.encode([1.0], "e4m3", out=np.zeros(2, np.uint8)),
        lambda: nc.encode([1.0], "e4m3", rounding="rh"),
    ):
        with pytest.raises(errors.NarrowcastError):
            action()
