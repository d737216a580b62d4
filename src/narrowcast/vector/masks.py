"""Which lanes a vector instruction writes.

A mask is an array of booleans, one per source element, or 64-bit words. The words mean different things:

- Basic memory form: bit i is element i of one repeat. A repeat reads or writes 256 bytes of the wider of the two
  types, so it has 128 lanes (two words) with a 16-bit type, 64 (one word) with a 32-bit one, 32 (the low half of
  one word) with a 64-bit one. The words apply to every repeat.
- Register form (and the C-API functions): one bit per byte of the 256-byte source register, up to four words. A
  lane heeds its lowest bit: b8 lane i bit i, b16 lane i bit 2i, b32 lane i bit 4i, b64 lane i bit 8i. 4-bit types
  have one bit per byte, that is per pair.

Source: asc-devkit:MaskReg; asc-devkit:Memory Cast.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from narrowcast.errors import ConstraintError, ShapeError
from narrowcast.operation import Finding
from narrowcast.schema import Format

REGISTER_BYTES = 256
REGISTER_WORDS = REGISTER_BYTES // 64
WORD_BITS = 64

Mask = npt.NDArray[np.bool_]


def byte_mask(mask: npt.ArrayLike | None, lane_bytes: int) -> Mask:
    """Return a register mask as 256 booleans, one per byte.

    Args:
        mask: None for all lanes, one boolean per lane, or up to four 64-bit words (missing ones are 0).
        lane_bytes: bytes of one source lane.
    """
    if mask is None:
        return np.ones(REGISTER_BYTES, dtype=np.bool_)
    array = np.asarray(mask)
    lanes = REGISTER_BYTES // lane_bytes
    if array.dtype == np.bool_:
        if array.shape != (lanes,):
            raise ShapeError(
                f"mask has {array.size} lanes; a register of {8 * lane_bytes}-bit elements has {lanes}.",
                source="asc-devkit:MaskReg",
            )
        return np.repeat(array, lane_bytes)
    words = _words(array)
    if words.size > REGISTER_WORDS:
        raise ShapeError(
            f"mask has {words.size} words; a mask register has {REGISTER_WORDS} (256 bits).",
            source="asc-devkit:MaskReg",
        )
    padded = np.zeros(REGISTER_WORDS, dtype=np.uint64)
    padded[: words.size] = words
    return _bits(padded)


def element_mask(mask: npt.ArrayLike, shape: tuple[int, ...], source: Format) -> Mask:
    """Return a register-form mask for an array of any shape, whose flat order fills registers one after another.

    Args:
        mask: booleans of the array's shape, or up to four 64-bit words applied to every register.
        shape: the array's shape, in elements.
        source: the source format.
    """
    array = np.asarray(mask)
    if array.dtype == np.bool_:
        return _same_shape(array, shape)
    lane_bytes = max(source.bits // 8, 1)
    lanes = byte_mask(array, lane_bytes)[::lane_bytes]
    return _repeat(np.repeat(lanes, 2) if source.packs else lanes, shape)


def repeat_mask(mask: npt.ArrayLike, shape: tuple[int, ...], source: Format, target: Format) -> Mask:
    """Return a memory-form mask for an array of any shape.

    Args:
        mask: booleans of the array's shape, or the words of one repeat.
        shape: the array's shape, in elements.
        source: the source format.
        target: the target format.
    """
    array = np.asarray(mask)
    wide = max(source.bits, target.bits)
    lanes = 8 * REGISTER_BYTES // wide
    if array.dtype == np.bool_:
        selected = _same_shape(array, shape)
    else:
        words = _words(array)
        count = max(lanes // WORD_BITS, 1)
        if words.size != count:
            raise ShapeError(
                f"mask has {words.size} words; {source.name} -> {target.name} takes {count} "
                f"({lanes} lanes in a repeat of {wide}-bit elements), or booleans of shape {shape}.",
                source="asc-devkit:Memory Cast",
            )
        if lanes < WORD_BITS and int(words[0]) >> lanes:
            raise ShapeError(
                f"mask word {int(words[0]):#x} has more than {lanes} bits; a repeat of {wide}-bit elements has "
                f"{lanes} lanes.",
                source="asc-devkit:Memory Cast",
            )
        selected = _repeat(_bits(words)[:lanes], shape)
    if 4 in (source.bits, target.bits):
        _check_pairs(selected.reshape(-1))
    return selected


def _check_pairs(flat: Mask) -> None:
    even = flat[: flat.size // 2 * 2].reshape(-1, 2)
    unequal = even[:, 0] != even[:, 1]
    if unequal.any():
        first = 2 * int(np.argmax(unequal))
        finding = Finding(
            rule="VEC-05",
            place="mask",
            message=f"lanes {first} and {first + 1} share a byte and differ",
            fix="Select both 4-bit elements of a byte, or neither.",
            source="asc-devkit:Memory Cast",
        )
        raise ConstraintError(f"the mask violates a rule: {finding}", findings=(finding,))


def _same_shape(array: npt.NDArray[Any], shape: tuple[int, ...]) -> Mask:
    if array.shape != shape:
        raise ShapeError(
            f"mask has {array.size} elements, shape {array.shape}; "
            f"the source has {int(np.prod(shape))}, shape {shape}.",
            hint="Pass a boolean per source element, or 64-bit words.",
        )
    return array


def _words(array: npt.NDArray[Any]) -> npt.NDArray[np.uint64]:
    if array.dtype.kind not in "iu" or array.ndim > 1 or (array.dtype.kind == "i" and array.size and array.min() < 0):
        raise ShapeError(
            f"a mask is booleans or a list of 64-bit words; got dtype {array.dtype}, shape {array.shape}.",
            hint="Write words as non-negative integers below 2**64.",
        )
    return array.reshape(-1).astype(np.uint64)


def _bits(words: npt.NDArray[np.uint64]) -> Mask:
    return np.unpackbits(words.astype("<u8").view(np.uint8), bitorder="little").astype(np.bool_)


def _repeat(lanes: Mask, shape: tuple[int, ...]) -> Mask:
    return np.resize(lanes, int(np.prod(shape))).reshape(shape)
