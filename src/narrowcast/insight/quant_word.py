"""A Fixpipe parameter word, field by field, in every reading there is."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from narrowcast.errors import EncodingError, NarrowcastError
from narrowcast.fixpipe import SpecQuantParam
from narrowcast.fixpipe.words import FP19_MASK, MCB_BIT, OFFSET_FIELD, SHIFT_FIELD, SIGNED_BIT, SMALLEST_NORMAL

_SOURCE = "asc-devkit:on-the-fly quantization, table 2"


@dataclass(frozen=True)
class WordField:
    """One field of the word.

    Args:
        bits: first and last bit, as documents write them.
        name: what it is.
        raw: its bits.
        means: its meaning; empty for a field that is ignored.
    """

    bits: str
    name: str
    raw: str
    means: str


@dataclass(frozen=True)
class WordReading:
    """A parameter word explained.

    Args:
        word: the 64-bit word.
        fields: on chip 3510, from the highest bit.
        summary: what the pipe does with it.
        warnings: what is wrong with it, or lost.
        others: reading by other chips and models: name, meaning.
        source: who states the layout.
    """

    word: int
    fields: tuple[WordField, ...]
    summary: str
    warnings: tuple[str, ...]
    others: tuple[tuple[str, str], ...]
    source: str = _SOURCE

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "word": f"0x{self.word:016X}",
            "fields": [{"bits": f.bits, "name": f.name, "raw": f.raw, "means": f.means} for f in self.fields],
            "summary": self.summary,
            "warnings": list(self.warnings),
            "others": dict(self.others),
            "source": self.source,
        }


def explain_word(word: int) -> WordReading:
    """Read a 64-bit parameter word.

    Args:
        word: the word, as in the QUANT_PRE register or a column of the Quantization-pre buffer.

    Returns:
        A :class:`WordReading`.

    Raises:
        EncodingError: a number that does not fit 64 bits.

    Source: asc-devkit:on-the-fly quantization, tables 1 and 2; pto-spec:matrix-postprocess.

    Example:
        >>> explain_word(0x00004C803FC00000).summary
        'x * 1.5, rounded to -256..255, then + 100; S8 results'
    """
    if not 0 <= word < 1 << 64:
        raise EncodingError(f"a parameter word has 64 bits; {word:#x} does not fit.")
    scale_bits = word & FP19_MASK
    scale = _fp32(scale_bits)
    offset = word >> OFFSET_FIELD & 0x1FF
    signed_offset = offset - 512 if offset > 255 else offset
    signed = bool(word >> SIGNED_BIT & 1)
    fields = (
        WordField("63:47", "-", f"0x{word >> 47:X}", ""),
        WordField("46", "sign", str(int(signed)), f"results are {'S8' if signed else 'U8'} (8-bit modes)"),
        WordField("45:37", "offset", f"{offset:09b}", f"{signed_offset}, two's complement (8-bit and 4-bit modes)"),
        WordField("36:32", "-", f"{word >> 32 & 0x1F:05b}", ""),
        WordField("31:13", "scale", _fp19(scale_bits), f"{scale!r}: sign, 8 exponent bits, 10 fraction bits"),
        WordField("12:0", "-", f"0x{word & 0x1FFF:X}", ""),
    )
    kind = "S8" if signed else "U8"
    summary = f"x * {scale!r}, rounded to -256..255, then {signed_offset:+d}; {kind} results".replace("+", "+ ", 1)
    return WordReading(word, fields, summary, _warnings(word, scale), _others(word))


def _fp32(bits: int) -> float:
    return float(np.array([bits], dtype=np.uint32).view(np.float32)[0])


def _fp19(bits: int) -> str:
    return f"{bits >> 31}.{bits >> 23 & 0xFF:08b}.{bits >> 13 & 0x3FF:010b}"


def _warnings(word: int, scale: float) -> tuple[str, ...]:
    found = []
    if not np.isfinite(scale):
        found.append("the scale is infinite or NaN, which the pipe does not take [seed:5.1#2]")
    elif 0 < abs(scale) < SMALLEST_NORMAL:
        found.append("the scale is subnormal, which the pipe does not take [seed:5.1#2]")
    whole = _fp32(word & 0xFFFFFFFF)
    if whole != scale and np.isfinite(whole):
        found.append(f"the low 13 bits are ignored: the full 32 bits would be {whole!r}")
    if word >> 47 or word >> 32 & 0x1F:
        found.append("bits 63:47 and 36:32 are ignored on chip 3510; on 2201, 36:32 shift the accumulator")
    return tuple(found)


def _others(word: int) -> tuple[tuple[str, str], ...]:
    shift = (word >> SHIFT_FIELD & 0xF) + 1
    enabled = bool(word >> MCB_BIT & 1)
    found = [
        ("chip 2201", f"shift right by {shift} first (REQ8)" if enabled else "the same; its shift is not enabled"),
        ("offset as unsigned", f"{word >> OFFSET_FIELD & 0x1FF} (vendor example scripts, pto-isa:cpu-sim)"),
    ]
    for target in ("s8", "s4", "s16"):
        try:
            param = SpecQuantParam.from_word(word, target)
            found.append((f"pto-spec, {target}", f"scale {param.scale!r}, offset {param.offset}"))
        except NarrowcastError as error:
            found.append((f"pto-spec, {target}", f"refused: {str(error).split(' Build')[0].split(' Use')[0]}"))
    return tuple(found)
