"""Vector micro-operations on 256-byte registers and tile memory, executed byte by byte as the chip lays them out."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from narrowcast.errors import ConstraintError
from narrowcast.quant import Cast
from narrowcast.tile.types import Array

REGISTER_BYTES = 256
LANES = REGISTER_BYTES // 4
Bytes = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class Micro:
    """One micro-operation.

    Args:
        name: the instruction.
        detail: distribution, part and rounding, as the instruction spells them.
        writes: register or tile written.
        reads: registers, tiles and scalars read.
        row: tile row.
        column: first tile column of lane 0.
        lanes: active lanes.
        offset_bytes: where a load, store or memory operation begins in its tile, or in ``writes`` and ``reads[0]``.
    """

    name: str
    detail: str
    writes: str
    reads: tuple[str, ...]
    row: int
    column: int
    lanes: int
    offset_bytes: tuple[int, ...] = ()

    def __str__(self) -> str:
        places = iter(self.offset_bytes)
        named = [self._place(name, places) for name in (self.writes, *self.reads)]
        text = f"{self.name} {', '.join(named)}"
        return f"{text}, {self.detail}" if self.detail else text

    def _place(self, name: str, places: Iterator[int]) -> str:
        return f"{name}[{next(places, 0)}]" if name in TILES else name


TILES = ("dst", "src", "scale", "multiplier", "offset", "scratch")
"""Names of memories; every other name is a register or a scalar."""


def _float(register: Bytes) -> npt.NDArray[np.float32]:
    return register.view(np.float32)


def _binary(function: Callable[[Any, Any], Any]) -> Callable[[Bytes, Bytes, int], Bytes]:
    """An fp32 operation in MODE_ZEROING: inactive lanes become 0."""

    def apply(a: Bytes, b: Bytes, lanes: int) -> Bytes:
        result = np.zeros(LANES, dtype=np.float32)
        with np.errstate(all="ignore"):
            result[:lanes] = function(_float(a)[:lanes], _float(b)[:lanes])
        return result.view(np.uint8)

    return apply


_ARITHMETIC = {"vsub": _binary(np.subtract), "vmul": _binary(np.multiply), "vadd": _binary(np.add)}


def _s8_to_s32(register: Bytes, part: int) -> Bytes:
    return register[part::4].view(np.int8).astype(np.int32).view(np.uint8)


def _f32_to_s32(register: Bytes, part: int) -> Bytes:
    return _cast("s32", _float(register)).view(np.uint8)


def _s32_to_f32(register: Bytes, part: int) -> Bytes:
    return register.view(np.int32).astype(np.float32).view(np.uint8)


def _s16_to_f32(register: Bytes, part: int) -> Bytes:
    return register.view(np.int16)[part::2].astype(np.float32).view(np.uint8)


def _f32_to_f16(register: Bytes, part: int) -> Bytes:
    result = np.zeros(2 * LANES, dtype=np.uint16)
    result[part::2] = _cast("fp16", _float(register))
    return result.view(np.uint8)


def _f16_to_8(target: str) -> Callable[[Bytes, int], Bytes]:
    def convert(register: Bytes, part: int) -> Bytes:
        result = np.zeros(REGISTER_BYTES, dtype=np.uint8)
        result[part::2] = _cast(target, register.view(np.float16))
        return result

    return convert


def _cast(target: str, values: Array) -> Array:
    return Cast(None, target, "rn", saturate=True, nan="zero" if target != "fp16" else "keep")(values)


_CONVERT: dict[str, Callable[[Bytes, int], Bytes]] = {
    "s8>s32": _s8_to_s32,
    "s16>f32": _s16_to_f32,
    "s32>f32": _s32_to_f32,
    "f32>s32": _f32_to_s32,
    "f32>f16": _f32_to_f16,
    "f16>s8": _f16_to_8("s8"),
    "f16>u8": _f16_to_8("u8"),
}
_PARTS = {"PART_P0": 0, "PART_P2": 2, "PART_EVEN": 0}


def _load(memory: Bytes, at: int, how: str) -> Bytes:
    taken = {"NORM": 256, "BRC_B32": 4, "UNPK4_B8": 64, "UNPK_B16": 128, "US_B8": 128}[how]
    piece = np.zeros(taken, dtype=np.uint8)
    found = memory[at : at + taken]  # behind the tile lies memory the model does not have: zeros
    piece[: found.size] = found
    register = np.zeros(REGISTER_BYTES, dtype=np.uint8)
    match how:
        case "NORM":
            register[:] = piece
        case "BRC_B32":
            register.reshape(-1, 4)[:] = piece
        case "UNPK4_B8":
            register[::4] = piece
        case "UNPK_B16":
            register.view(np.uint16)[::2] = piece.view(np.uint16)
        case "US_B8":
            register[:] = np.repeat(piece, 2)
    return register


def _store(memory: Bytes, at: int, register: Bytes, how: str, lanes: int) -> None:
    match how:
        case "NORM_B32":
            piece = register[: 4 * lanes]
        case "PK4_B32":
            piece = register[::4][:lanes]
        case _:
            piece = register[:lanes]
    room = memory[at : at + piece.size]
    room[:] = piece[: room.size]


@dataclass
class Core:
    """Registers, scalars and tile memories.

    Args:
        memory: bytes of each tile, by name; written in place.
        registers: 256 bytes each, by name.
        scalars: fp32 numbers by name.
    """

    memory: Mapping[str, Bytes]
    registers: dict[str, Bytes] = field(default_factory=dict)
    scalars: dict[str, np.float32] = field(default_factory=dict)

    def execute(self, op: Micro) -> None:
        """Execute one micro-operation."""
        family = getattr(self, f"_{op.name}", None)
        if family is not None:
            family(op)
        elif op.name in _ARITHMETIC:
            a, b = (self.registers[name] for name in op.reads)
            self.registers[op.writes] = _ARITHMETIC[op.name](a, b, op.lanes)
        elif op.name.startswith("vconv_"):
            self._convert_memory(op)
        else:
            raise ConstraintError(f"micro-operation {op.name} is not known.")

    def _vlds(self, op: Micro) -> None:
        self.registers[op.writes] = _load(self.memory[op.reads[0]], op.offset_bytes[0], op.detail)

    def _vsts(self, op: Micro) -> None:
        _store(self.memory[op.writes], op.offset_bytes[0], self.registers[op.reads[0]], op.detail, op.lanes)

    def _vcvt(self, op: Micro) -> None:
        words = op.detail.split()
        part = next((_PARTS[word] for word in words if word in _PARTS), 0)
        self.registers[op.writes] = _CONVERT[words[0]](self.registers[op.reads[0]], part)

    def _vintlv(self, op: Micro) -> None:
        """Interleave 32-bit lanes; the first result is the low half."""
        a, b = (self.registers[name].view(np.uint32) for name in op.reads)
        both = np.stack([a, b], axis=1).reshape(-1)
        self.registers[op.writes] = both[:LANES].view(np.uint8).copy()

    def _vdintlv(self, op: Micro) -> None:
        """Keep the even bytes; the other register's even bytes follow."""
        a, b = (self.registers.get(name, np.zeros(REGISTER_BYTES, np.uint8)) for name in op.reads)
        self.registers[op.writes] = np.concatenate([a[::2], b[::2]])

    def _ld(self, op: Micro) -> None:
        at = op.offset_bytes[0]
        self.scalars[op.writes] = self.memory[op.reads[0]][at : at + 4].view(np.float32)[0]

    def _rows(self, op: Micro, dtype: Any) -> tuple[Array, Array]:
        """Destination and source elements of an operation on memory."""
        size = np.dtype(dtype).itemsize * op.lanes
        to, at = op.offset_bytes[0], op.offset_bytes[-1]
        return self.memory[op.writes][to : to + size].view(dtype), self.memory[op.reads[0]][at : at + size].view(dtype)

    def _vadds(self, op: Micro) -> None:
        to, at = self._rows(op, np.float32)
        name = op.reads[1]
        scalar = -self.scalars[name[1:]] if name.startswith("-") else self.scalars[name]
        with np.errstate(all="ignore"):
            to[:] = at + scalar

    def _vmuls(self, op: Micro) -> None:
        to, at = self._rows(op, np.float32)
        with np.errstate(all="ignore"):
            to[:] = at * self.scalars[op.reads[1]]

    def _convert_memory(self, op: Micro) -> None:
        to, at = op.offset_bytes
        target, source = self.memory[op.writes], self.memory[op.reads[0]]
        count = op.lanes
        match op.name:
            case "vconv_s82f16":
                codes = source[at : at + count].view(np.int8).astype(np.float16)
                _spread(target, to, codes)
            case "vconv_f162f32":
                values = _gathered(source, at, count).astype(np.float32)
                target[to : to + 4 * count] = values.view(np.uint8)
            case "vconv_s162f32":
                values = source[at : at + 2 * count].view(np.int16).astype(np.float32)
                target[to : to + 4 * count] = values.view(np.uint8)
            case "vconv_f322s32r":
                real = source[at : at + 4 * count].view(np.float32)
                target[to : to + 4 * count] = _cast("s32", real).view(np.uint8)
            case "vconv_deqs322f16":
                wide = source[at : at + 4 * count].view(np.int32).astype(np.float32)
                target[to : to + 2 * count] = _cast("fp16", wide).view(np.uint8)
            case _:
                halves = source[at : at + 2 * count].view(np.float16)
                target[to : to + count] = _cast("s8" if op.name == "vconv_f162s8r" else "u8", halves)


def _spread(memory: Bytes, at: int, halves: Array) -> None:
    """Write 16 halves to every other block of 32 bytes: each block has room to become 16 floats in place."""
    index = np.arange(halves.size)
    memory[at:].view(np.uint16)[32 * (index // 16) + index % 16] = halves.view(np.uint16)


def _gathered(memory: Bytes, at: int, count: int) -> Array:
    index = np.arange(count)
    halves: Array = memory[at:].view(np.float16)[32 * (index // 16) + index % 16].copy()
    return halves
