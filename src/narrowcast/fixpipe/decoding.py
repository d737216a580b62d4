"""Parameter words to what the pipe multiplies by and adds, in the reading the semantics choose."""

from dataclasses import dataclass

import numpy as np

from narrowcast.catalog.fixpipe_modes import FixpipeMode
from narrowcast.errors import FormatError
from narrowcast.fixpipe.addressing import Array
from narrowcast.fixpipe.words import MCB_BIT, SHIFT_FIELD, SpecQuantParam, split_words
from narrowcast.operation import Choices

_SIMULATOR_FP19 = ("REQ8", "DEQF16", "QF32_2_B8")
"""Modes whose vector form the simulator reads as fp19; every other vector form it takes for a scalar one."""


@dataclass(frozen=True)
class Decoded:
    """Fields of parameter words, one element a word; ``shift`` is 0 where nothing is shifted."""

    scale: Array
    offset: Array
    signed: Array
    shift: Array


def decode_words(words: Array, mode: FixpipeMode, choices: Choices) -> Decoded:
    """Read words as the chosen source does.

    Args:
        words: uint64, one or one per column.
        mode: the conversion.
        choices: the disputed points.

    Raises:
        EncodingError: bits that the specification reserves, or a scale it forbids.
    """
    reading = choices.choose("fixpipe_word")
    if reading == "pto-spec":
        return _by_specification(words, mode, choices)
    scale, offset, signed = split_words(words)
    shift = np.zeros(words.size, dtype=np.int64)
    field = ((words >> np.uint64(SHIFT_FIELD)) & np.uint64(0xF)).astype(np.int64) + 1
    if mode.shifts:
        shift = field
    elif reading == "2201" and mode.name == "REQ8":
        shift = np.where(words >> np.uint64(MCB_BIT) & np.uint64(1), field, 0)
    if mode.scaled:
        bits = choices.choose("fixpipe_scale_bits")
        whole = (words & np.uint64(0xFFFFFFFF)).astype(np.uint32).view(np.float32)
        if bits == "fp32":
            scale = whole
        elif bits == "cpu-sim":
            scale = _simulated_scale(words) if words.size > 1 and mode.name in _SIMULATOR_FP19 else whole
    if not mode.offset and not (mode.scaled and choices.choose("fixpipe_float_offset") == "added"):
        return Decoded(scale, np.zeros_like(offset), signed, shift)
    if mode.targets == ("s4",) and choices.choose("fixpipe_s4_offset") == "s5":
        offset = ((offset & 0x1F) ^ 0x10) - 0x10
    elif choices.choose("fixpipe_offset_sign") == "unsigned":
        offset = offset & 0x1FF
    return Decoded(scale, offset, signed, shift)


def _simulated_scale(words: Array) -> Array:
    """Bits 31:13; a zero exponent is read as a normal number, unless the fraction is zero too."""
    field = (words >> np.uint64(13)) & np.uint64(0x7FFFF)
    exponent = ((field >> np.uint64(10)) & np.uint64(0xFF)).astype(np.int64)
    fraction = (field & np.uint64(0x3FF)).astype(np.float64)
    sign = np.where(field >> np.uint64(18), -1.0, 1.0)
    with np.errstate(over="ignore", under="ignore"):
        value = (sign * (1.0 + fraction / 1024.0) * np.exp2(exponent - 127.0)).astype(np.float32)
    return np.where((exponent == 0) & (fraction == 0), np.float32(0), value)


def _by_specification(words: Array, mode: FixpipeMode, choices: Choices) -> Decoded:
    if mode.shifts:
        kind = "shift"
    elif not mode.offset:
        kind = "float"
    else:
        kind = mode.targets[0]
        if kind == "s4" and choices.choose("fixpipe_s4_offset") == "s9":
            kind = "s8"
    decoded = [SpecQuantParam.from_word(int(word), kind) for word in words]
    return Decoded(
        scale=np.array([p.scale for p in decoded], dtype=np.float32),
        offset=np.array([p.offset for p in decoded], dtype=np.int64),
        signed=np.ones(words.size, dtype=np.bool_),
        shift=np.array([p.shift if mode.shifts else 0 for p in decoded], dtype=np.int64),
    )


def one_target(mode: FixpipeMode, signed: Array) -> str:
    """Resolve S8 or U8 from bit 46 of the words.

    Raises:
        FormatError: words of both kinds.
    """
    if len(mode.targets) == 1:
        return mode.targets[0]
    if signed.any() != signed.all():
        raise FormatError(
            "parameter words mix S8 and U8 columns (bit 46); one instruction stores one type.",
            source="asc-devkit:on-the-fly quantization, table 2",
        )
    return mode.targets[0] if bool(signed[0]) else mode.targets[1]
