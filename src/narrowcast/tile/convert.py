"""TCVT on tiles: the chip's pairs over the vector core's arithmetic, the simulator's, the specification's."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from narrowcast.catalog import casts, tile_casts
from narrowcast.catalog.formats import formats
from narrowcast.errors import ShapeError
from narrowcast.operation import Choices, Control, Finding, Semantics
from narrowcast.operation.protocol import Inputs, execute
from narrowcast.quant import Cast
from narrowcast.schema import IntFormat
from narrowcast.tile import convert_rules, simulator
from narrowcast.tile.events import RecordEvent, record
from narrowcast.tile.exact import rmode, to_exponent
from narrowcast.tile.tile import Tile, element_dtype
from narrowcast.tile.types import Array, TileType, aligned, canonical, spell, tile_type
from narrowcast.vector.arrays import source_values
from narrowcast.vector.conversion import conversion_switches
from narrowcast.vector.conversion import convert as vector_convert
from narrowcast.vector.legality import NONE, mode_name
from narrowcast.vector.saturation import policy

ALIGNMENT = "tcvt_edge_alignment"
DEQ_SCALE = np.float32(1.0)
"""What the library sets before s32 -> fp16."""


@dataclass(frozen=True, kw_only=True)
class TCvt:
    """A TCVT call as data.

    Formula: ``dst[i, j] = cast(src[i, j])``, one rounding.

    Args:
        dst: type of the result tile, as PTO-AS text.
        src: type of the source tile.
        mode: rounding mode, ``none``, or under ``pto-spec`` an RMode name.
        saturate: the instruction's SaturationMode; None lets the pair decide.

    Source: pto-isa:TCVT.
    """

    dst: str
    src: str
    mode: str = "rn"
    saturate: bool | None = None

    inputs: ClassVar[tuple[str, ...]] = ("src",)

    def __post_init__(self) -> None:
        for name in ("dst", "src"):
            object.__setattr__(self, name, canonical(getattr(self, name)))
        if self.mode.upper() not in ("DEFAULT", "RHB"):
            object.__setattr__(self, "mode", mode_name(self.mode))

    @classmethod
    def on(cls, source: str, target: str, rows: int, cols: int, **settings: Any) -> "TCvt":
        """Build the call for the smallest legal tiles of a shape."""
        return cls(
            dst=str(TileType.of(target, aligned(target, rows, cols), (rows, cols))),
            src=str(TileType.of(source, aligned(source, rows, cols), (rows, cols))),
            **settings,
        )

    def type(self, operand: str) -> TileType:
        """Return the type of an operand by name."""
        return tile_type(getattr(self, operand))

    @property
    def pair(self) -> tuple[str, str]:
        """Source and target format."""
        return self.type("src").dtype, self.type("dst").dtype

    @property
    def switches(self) -> tuple[str, ...]:
        """The disputed points of the conversion, on whichever chip it runs."""
        found: list[str] = []
        for name in ("3510", "2201"):
            row = tile_casts.find(name, *self.pair)
            if row is not None:
                found += conversion_switches("basic", *self.pair, self.mode_on(row))
                if row.torch_aligned and self.saturate is not True:
                    found.append(ALIGNMENT)
        return tuple(dict.fromkeys(found))

    def mode_on(self, row: tile_casts.TileCastRow) -> str:
        """Return the mode a chip uses: the pair's own, the named one, or the library's fallback."""
        cast = casts.find("basic", row.chip, row.source, row.target)
        if cast is not None and cast.modes == (NONE,):
            return NONE
        if row.fixed is not None:
            return row.fixed
        odd = self.mode == "ro" and (row.source, row.target) != ("fp32", "fp16")
        if odd or self.mode in (NONE, "rh") or self.mode.upper() in ("DEFAULT", "RHB"):
            to_integer = not formats[row.source].is_integer and formats[row.target].is_integer
            return "rz" if to_integer else "rn"
        return self.mode

    def violations(self, semantics: Semantics) -> Iterable[Finding]:
        """Shapes, and pairs the chip does not have."""
        return _violations(self, semantics)

    def run(self, inputs: Inputs, choices: Choices, control: Control, out: Any = None) -> Any:
        """Convert the valid region of the source.

        Returns:
            Elements of the destination's valid region (codes of 4-bit formats); under ``pto-spec`` a mapping with
            ``dst`` and the sticky ``flags``.
        """
        kind = self.type("src")
        values = np.asarray(inputs["src"])
        if values.shape == kind.shape:
            values = values[: kind.valid[0], : kind.valid[1]]
        if values.shape != kind.valid:
            raise ShapeError(f"src has shape {values.shape}; its valid region is {kind.valid[0]}x{kind.valid[1]}.")
        if choices.authority == "pto-spec":
            return self._specified(values)
        target = self.type("dst").format
        own = element_dtype(target)
        if choices.chip == "cpu-sim":
            codes = simulator.convert(_numbers(values, kind), *self.pair, self.mode, bool(self.saturate))
        else:
            into = None if out is None else out.view(target.code_dtype)
            codes = self._on_chip(values, choices, control, into)
            if into is not None and codes is into:
                return out
        codes = codes if codes.dtype == own else codes.view(own)
        if out is None:
            return codes
        out[...] = codes
        return out

    def _on_chip(self, values: Array, choices: Choices, control: Control, out: Array | None) -> Array:
        row = tile_casts.find(choices.chip, *self.pair)
        cast = casts.find("basic", choices.chip, *self.pair)
        if row is None or cast is None:
            raise convert_rules.no_pair(self.pair, choices.chip)
        saturate = row.saturates if self.saturate is None else self.saturate
        numbers = source_values(values, formats[row.source])
        mode = self.mode_on(row)
        if row.torch_aligned and not saturate and choices.choose(ALIGNMENT) == "torch":
            wide = Cast(None, "s32", mode, saturate=True, nan="zero")(numbers)
            return wide.astype(formats[row.target].code_dtype)
        # The call sets the control bits that decide saturation, for this conversion.
        bits = replace(control, ctrl60=1, ctrl59=int(not saturate), ctrl48=int(not saturate))
        rule = policy(cast, saturate, choices, bits)
        return vector_convert(mode, cast, numbers, rule, choices, DEQ_SCALE if cast.scaled else None, out)

    def _specified(self, values: Array) -> dict[str, Any]:
        target = self.type("dst").format
        if target.name == "e8m0":
            rounded = to_exponent(
                values.astype(np.float32), rmode(_RMODE_OF.get(self.mode, self.mode)), bool(self.saturate)
            )
            return {"dst": rounded.values.view(element_dtype(target)), "flags": np.uint8(rounded.sticky)}
        assert isinstance(target, IntFormat)
        wide = _numbers(values, self.type("src")).astype(np.int64)
        if self.saturate:
            wide = np.clip(wide, target.min, min(target.max, 2**63 - 1))
        codes = wide.astype(np.uint64).astype(target.code_dtype) & np.asarray(target.code_mask, target.code_dtype)
        own = element_dtype(target)
        return {"dst": codes if codes.dtype == own else codes.view(own), "flags": np.uint8(0)}

    @staticmethod
    def show(value: Any) -> str:
        """Write a result element."""
        return str(value)


@lru_cache(maxsize=256)
def _violations(op: TCvt, semantics: Semantics) -> tuple[Finding, ...]:
    return tuple(convert_rules.violations(op, semantics))


_RMODE_OF = {"rn": "RNE", "rz": "RTZ", "rd": "RTM", "ru": "RTP", "rna": "RNA", "ro": "RTO", "none": "RNE"}


def _numbers(values: Array, kind: TileType) -> Array:
    """Numbers of integer elements, 4-bit ones widened; codes of FP4 elements; other values as they are."""
    if kind.dtype == "s4":
        return ((values.astype(np.int8) ^ 8) - 8).astype(np.int8)
    return values


def tcvt(
    dst: Tile,
    src: Tile,
    *events: RecordEvent,
    mode: str = "rn",
    saturate: bool | None = None,
    semantics: Semantics | None = None,
    control: Control | None = None,
) -> RecordEvent:
    """Convert the elements of a tile to another type.

    Formula: ``dst[i, j] = cast(src[i, j])``, one rounding.

    Args:
        dst: the result tile; outside its valid region nothing is written.
        src: the source tile, same valid shape.
        events: events to wait for.
        mode: rounding mode (``rn``, ``CAST_TRUNC``, ...). Pairs with one mode ignore it (hif8: ``rna``, FP8:
            ``rn``); ``CAST_ODD`` and ``CAST_NONE`` fall back to ``rz`` (float to integer) or ``rn`` where the pair
            has no such mode, as the library does.
        saturate: SaturationMode; None is the pair's default: off for fp16 -> u8, s8, s16, fp32 -> s16,
            s64 -> s32 and s32 -> s16, on for the others.
        semantics: whom to believe, for which chip.
        control: CTRL[50] decides NaN in FP8; the saturation bits are set by the call itself.

    Returns:
        The event of the operation, on pipe V.

    Raises:
        UnsupportedCastError: a pair the chip does not have.
        ConstraintError: shapes or layouts that do not go together.

    Source: pto-isa:TCVT; the arithmetic is the vector core's.

    Example:
        >>> halves = Tile(dtype="fp16", shape=(1, 16), valid=(1, 4))
        >>> event = tcvt(halves, Tile(np.float32([[1, 2.0009765625, 1e6, -3] * 2]), valid=(1, 4)))
        >>> halves.numpy().tolist()
        [[1.0, 2.0, 65504.0, -3.0]]
    """
    dst.require_writable()
    op = TCvt(dst=spell(dst.type), src=spell(src.type), mode=mode, saturate=saturate)
    direct = dst.numpy() if dst.valid == src.valid and not dst.type.boxed and dst.type.bits >= 8 else None
    result = execute(op, {"src": src.numpy()}, semantics, control, out=direct)
    flags = 0
    if isinstance(result, dict):
        result, flags = result["dst"], int(result["flags"])
    if result is direct:
        pass
    elif dst.valid == result.shape:
        dst.store(result)
    else:  # the simulator walks the source's valid region
        whole = dst.array().copy()
        whole[: result.shape[0], : result.shape[1]] = result
        dst.write(whole)
    return record("TCVT", "V", (src,), (dst,), events, flags)
