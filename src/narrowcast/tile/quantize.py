"""Integer TQUANT on tiles: the documents' formula and the instruction's, and the scratch chain of chip 2201."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from narrowcast import kernels
from narrowcast.catalog.formats import formats
from narrowcast.errors import ShapeError, UnsupportedCastError, unknown_name
from narrowcast.operation import Choices, Control, Finding, Semantics
from narrowcast.operation.protocol import Inputs, execute
from narrowcast.quant import Cast
from narrowcast.schema import IntFormat
from narrowcast.tile import quantize_rules
from narrowcast.tile.events import RecordEvent, record
from narrowcast.tile.scalar import TQuantScalar, issue, multiplier_word, scalar
from narrowcast.tile.tile import Tile, element_dtype
from narrowcast.tile.types import Array, TileType, aligned, canonical, spell, tile_type

FORMULA = "tquant_formula"
GIVEN = ("scale", "multiplier")


@dataclass(frozen=True, kw_only=True)
class TQuant:
    """An integer TQUANT call as data: the types of its tiles and which parameter it was given.

    Formula: ``round(src / scale) + offset`` for a scale, ``round(src * multiplier + offset)`` for a multiplier,
    clamped to the destination; each fp32 operation is rounded to nearest even.

    Args:
        dst: type of the code tile, as PTO-AS text: s8 without an offset, u8 with one.
        src: type of the fp32 tile.
        parameter: type of the scale or multiplier tile, one number per row.
        offset: type of the offset tile, empty for the symmetric form.
        given: ``scale`` or ``multiplier``.
        scratch: type of the scratch tile chip 2201 needs, empty for none.

    Source: seed:000, 001; pto-isa:TQUANT.
    """

    dst: str
    src: str
    parameter: str
    offset: str = ""
    given: str = "scale"
    scratch: str = ""

    inputs: ClassVar[tuple[str, ...]] = ("src", "parameter", "offset")
    optional: ClassVar[tuple[str, ...]] = ("offset",)

    def __post_init__(self) -> None:
        if self.given not in GIVEN:
            raise unknown_name("parameter of TQUANT", self.given, GIVEN)
        for name in ("dst", "src", "parameter", "offset", "scratch"):
            text = str(getattr(self, name))
            object.__setattr__(self, name, canonical(text) if text else "")

    @classmethod
    def on(cls, target: str, rows: int, cols: int, given: str = "scale") -> "TQuant":
        """Build the call for the smallest legal tiles of a shape; a u8 target takes an offset.

        Example:
            >>> TQuant.on("u8", 4, 100).type("dst").short
            'u8 4x128 valid 4x100 ND'
        """
        parameter = str(TileType.of("fp32", aligned("fp32", rows, 1, "DN"), (rows, 1), layout="DN"))
        src = str(TileType.of("fp32", aligned("fp32", rows, cols), (rows, cols)))
        return cls(
            dst=str(TileType.of(target, aligned(target, rows, cols), (rows, cols))),
            src=src,
            parameter=parameter,
            offset="" if formats[target].signed else parameter,
            given=given,
            scratch=src,
        )

    def type(self, operand: str) -> TileType:
        """Return the type of an operand by name."""
        return tile_type(getattr(self, operand))

    @property
    def target(self) -> IntFormat:
        """The code format."""
        row = self.type("dst").format
        if not isinstance(row, IntFormat):
            raise UnsupportedCastError(f"integer TQUANT writes s8 or u8, not {row.name}.", hint="Use TQuantMx.")
        return row

    @property
    def switches(self) -> tuple[str, ...]:
        """Which formula holds is a conflict between the pages and the code."""
        return (FORMULA,)

    def violations(self, semantics: Semantics) -> Iterable[Finding]:
        """Rules the tiles break on the chip."""
        if semantics.authority == "pto-spec":
            raise UnsupportedCastError(
                "pto-spec's TQUANT takes one multiplier and one zero point in registers, not parameter tiles.",
                hint="Pass scalars to tquant, or use TQuantScalar.",
                source="pto-spec:TQUANT",
            )
        return _violations(self, semantics)

    def run(self, inputs: Inputs, choices: Choices, control: Control, out: Any = None) -> Any:
        """Compute the whole static code tile; outside the valid region it keeps what ``out`` holds, or zeros.

        Returns:
            The codes. On chip 2201 a mapping with ``dst``, and what the chain leaves in ``src`` (fp16) and
            ``scratch`` (s32), both of the valid shape.
        """
        dst = self.type("dst")
        rows, cols = dst.valid
        src = np.asarray(inputs["src"])[:rows, :cols]
        parameter = _column(inputs["parameter"], rows)
        offset = None if inputs.get("offset") is None else _column(inputs["offset"], rows)
        target = np.zeros(dst.shape, dtype=element_dtype(dst.format)) if out is None else out
        given, parameter = self._formula(choices, parameter)
        if choices.chip == "2201":
            codes, halves, wide = chain(src, parameter, offset, given, self.target)
            target[:rows, :cols] = codes
            return {"dst": target, "src": halves, "scratch": wide}
        quantize_rows(src, parameter, offset, given, self.target, target[:rows, :cols])
        return target

    def _formula(self, choices: Choices, parameter: Array) -> tuple[str, Array]:
        """Return which formula to use and its parameter, inverted where the other one was given."""
        chosen = {"documents": "scale", "instruction": "multiplier"}.get(choices.choose(FORMULA), self.given)
        if chosen == self.given:
            return chosen, parameter
        with np.errstate(all="ignore"):
            return chosen, (np.float32(1.0) / parameter).astype(np.float32)


@lru_cache(maxsize=256)
def _violations(op: TQuant, semantics: Semantics) -> tuple[Finding, ...]:
    return tuple(quantize_rules.violations(op, semantics))


def _column(values: Any, rows: int) -> Array:
    array = np.asarray(values, dtype=np.float32)
    if array.ndim == 2:
        array = array[:, 0]
    if array.ndim != 1 or array.size < rows:
        raise ShapeError(f"a parameter has one number per row: {rows} rows, got shape {np.shape(values)}.")
    return array[:rows]


def _integers(values: Array) -> bool:
    with np.errstate(invalid="ignore"):
        return bool(np.all((np.abs(values) < 2.0**23) & (np.trunc(values) == values)))


def quantize_rows(
    values: Array, parameter: Array, offset: Array | None, given: str, target: IntFormat, out: Array
) -> None:
    """Write the codes of every row; all but a division with a fractional offset run in compiled kernels."""
    codes = out.view(np.uint8)
    if given == "multiplier":
        kernels.multiply_rows(values, parameter, target, offset, out=codes)
    elif offset is None or _integers(offset):
        kernels.quantize_rows(values, parameter, target, offset, out=codes)
    else:
        real = real_rows(values, parameter, offset, given)
        codes[...] = Cast(None, target.name, "rn", saturate=True, nan="zero")(real)


def real_rows(values: Array, parameter: Array, offset: Array | None, given: str) -> Array:
    """Return the fp32 numbers whose rounding to nearest even is the code."""
    with np.errstate(all="ignore"):
        if given == "multiplier":
            real = values * parameter[:, None]
            if offset is not None:
                real += offset[:, None]
            return real
        real = values / parameter[:, None]
        if offset is not None:
            np.rint(real, out=real)
            real[np.isnan(real)] = 0.0  # as the kernel: no quotient is the integer 0
            real += offset[:, None]
        return real


def chain(
    values: Array, parameter: Array, offset: Array | None, given: str, target: IntFormat
) -> tuple[Array, Array, Array]:
    """Run chip 2201's conversions fp32 -> s32 -> fp32 -> fp16 -> 8 bits.

    Returns:
        The codes, the fp16 numbers that end up in the source tile, the s32 numbers in the scratch tile.
    """
    real = real_rows(values, parameter, offset, given)
    wide = Cast("fp32", "s32", "rn", saturate=True, nan="zero")(real).view(np.int32)
    halves = Cast("fp32", "fp16", "rn", saturate=True)(wide.astype(np.float32)).view(np.float16)
    codes = Cast("fp16", target.name, "rn", saturate=True, nan="zero")(halves)
    return codes.view(np.int8 if target.signed else np.uint8), halves, wide


def tquant(
    dst: Tile,
    src: Tile,
    *events: RecordEvent,
    scale: Tile | None = None,
    multiplier: Tile | float | None = None,
    offset: Tile | float | None = None,
    scratch: Tile | None = None,
    semantics: Semantics | None = None,
    rounding: str = "RNE",
    saturate: bool = True,
) -> RecordEvent:
    """Quantize fp32 values to 8-bit integers, with one parameter and one offset per row.

    Formula: ``clamp(round(src / scale) + offset)`` with ``scale=``, the documents' formula;
    ``clamp(round(src * multiplier + offset))`` with ``multiplier=``, the instruction's. They are different
    functions: at ``src / scale = 0.5`` and offset 1 they give 1 and 2. ``round`` is to nearest even.

    Args:
        dst: s8 tile without an offset, u8 tile with one. Outside its valid region nothing is written.
        src: fp32 tile. Chip 2201 destroys it: it ends up holding fp16 intermediates.
        events: events to wait for.
        scale: steps, one per row; see ``Tile.per_row``. Exactly one of ``scale`` and ``multiplier`` is given.
        multiplier: reciprocals of the steps, one per row.
        offset: zero points, one per row, for the asymmetric form.
        scratch: fp32 tile of ``src``'s size, which chip 2201 needs; it ends up holding s32 intermediates.
        semantics: whom to believe, for which chip. Under ``pto-spec`` ``multiplier`` and ``offset`` are numbers.
        rounding: RMode of the one rounding under ``pto-spec``.
        saturate: whether ``pto-spec`` clamps; else it keeps the low bits.

    Returns:
        The event of the operation, on pipe V.

    Raises:
        ConstraintError: tiles that break a rule; all of them are listed.

    Source: seed:000, 001; pto-isa:TQUANT. CONFLICT between the formulas, switch ``tquant_formula``.

    Example:
        >>> values = Tile(np.float32([[0.5, 1.5, 2.5, 300.0, -300.0, 0.0, 0.0, 0.0]]))
        >>> codes = Tile(dtype="s8", shape=(1, 32), valid=(1, 8))
        >>> event = tquant(codes, values, scale=Tile.per_row([1.0]))
        >>> codes.numpy()[0, :5].tolist()
        [0, 2, 2, 127, -128]
    """
    if (scale is None) == (multiplier is None):
        raise ShapeError(
            f"tquant takes scale= or multiplier=, exactly one; got {'none' if scale is None else 'both'}.",
            hint="scale= divides (the documents' formula), multiplier= multiplies (the instruction's).",
        )
    dst.require_writable()
    if semantics is not None and semantics.authority == "pto-spec":
        return _scalar(dst, src, scale, multiplier, offset, events, rounding, saturate)
    given = "scale" if scale is not None else "multiplier"
    parameter = scale if scale is not None else multiplier
    for name, tile in ((given, parameter), ("offset", offset)):
        if tile is not None and not isinstance(tile, Tile):
            raise ShapeError(
                f"{name} is a parameter tile; got {type(tile).__name__}.", hint="Use Tile.per_row(values)."
            )
    assert isinstance(parameter, Tile)
    op = TQuant(
        dst=spell(dst.type),
        src=spell(src.type),
        parameter=spell(parameter.type),
        offset=spell(offset.type) if isinstance(offset, Tile) else "",
        given=given,
        scratch=spell(scratch.type) if scratch is not None else "",
    )
    if semantics is not None and semantics.chip == "2201":
        for tile in (src, scratch):
            if tile is not None:
                tile.require_writable()
    zero_points = offset.array() if isinstance(offset, Tile) else None
    inputs = {"src": src.array(), "parameter": parameter.array(), "offset": zero_points}
    result = execute(op, inputs, semantics, out=dst.array())
    reads = [tile for tile in (src, parameter, offset) if isinstance(tile, Tile)]
    writes = [dst]
    if isinstance(result, dict):
        writes += [src, scratch] if scratch is not None else [src]
        _leave(src, scratch, result)
    return record("TQUANT", "V", reads, writes, events)


def _leave(src: Tile, scratch: Tile | None, result: dict[str, Array]) -> None:
    """Put the chain's intermediates where chip 2201 leaves them: fp16 rows over ``src``, s32 over the scratch tile."""
    rows, cols = result["src"].shape
    columns = -(-src.type.cols // 16) * 16  # the fp16 tile's row is a multiple of 32 bytes
    halves = src.memory.view(np.float16)
    whole = halves[: src.type.rows * columns].reshape(src.type.rows, columns)
    whole[:rows, :cols] = result["src"]
    if scratch is not None:
        scratch.memory.view(np.int32).reshape(scratch.type.shape)[:rows, :cols] = result["scratch"]


def _scalar(
    dst: Tile,
    src: Tile,
    scale: Any,
    multiplier: Any,
    offset: Any,
    events: tuple[RecordEvent, ...],
    rounding: str,
    saturate: bool,
) -> RecordEvent:
    if scale is not None:
        raise UnsupportedCastError(
            "pto-spec's TQUANT multiplies; it has no scale.", hint="Pass multiplier=.", source="pto-spec:TQUANT"
        )
    op = TQuantScalar(
        dst=spell(dst.type),
        src=spell(src.type),
        multiplier=multiplier_word(float(scalar(multiplier, "multiplier"))),
        zero_point=int(scalar(0 if offset is None else offset, "offset")),
        rounding=rounding,
        saturate=saturate,
    )
    return issue(op, dst, src, events)
