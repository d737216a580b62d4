"""MX TQUANT on tiles: groups of 32 along columns or rows, over the scale rules of ``narrowcast.mx``."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from narrowcast.catalog.formats import formats
from narrowcast.errors import UnsupportedCastError, unknown_name
from narrowcast.mx import MxQuant
from narrowcast.mx.bits import INFINITY, truncate_to_bf16
from narrowcast.mx.blocking import blocked
from narrowcast.mx.operation import scheme_of
from narrowcast.mx.rules import NAN_BYTE
from narrowcast.mx.scheme import Scheme
from narrowcast.operation import Choices, Control, Effect, Finding, Semantics, rule
from narrowcast.operation.protocol import Inputs, execute
from narrowcast.tile.events import RecordEvent, record
from narrowcast.tile.move import TMov
from narrowcast.tile.spelling import Order
from narrowcast.tile.tile import Tile
from narrowcast.tile.types import Array, TileType, canonical, spell, tile_type

GROUP = 32
ALGORITHMS = {"ocp": "pto-ocp", "nv": "pto-nv"}
_SOURCE = "pto-isa:TQUANT, constraints"
_FORMATS = ("e4m3", "e2m1")


@dataclass(frozen=True, kw_only=True)
class TQuantMx:
    """An MX TQUANT call as data.

    Formula: ``dst = cast(src * 2**(127 - exponent))``, one E8M0 exponent for 32 elements.

    Args:
        dst: type of the e4m3 or e2m1 tile, as PTO-AS text.
        src: type of the fp32, fp16 or bf16 tile.
        exponents: type of the exponent tile, u8 or e8m0. A ZZ tile with boxes of 32 bytes gets them in the order
            the Cube reads, transposed where groups run along rows.
        algorithm: ``ocp`` or ``nv``.
        axis: 1 for groups of 32 columns (ND), 0 for groups of 32 rows (DN).

    Source: pto-isa:TQUANT.
    """

    dst: str
    src: str
    exponents: str
    algorithm: str = "ocp"
    axis: int = 1

    inputs: ClassVar[tuple[str, ...]] = ("src",)

    def __post_init__(self) -> None:
        if self.algorithm not in ALGORITHMS:
            raise unknown_name("scale algorithm of TQUANT", self.algorithm, ALGORITHMS)
        if self.axis not in (0, 1):
            raise unknown_name("group axis", self.axis, ("0", "1"))
        for name in ("dst", "src", "exponents"):
            object.__setattr__(self, name, canonical(getattr(self, name)))

    def type(self, operand: str) -> TileType:
        """Return the type of an operand by name."""
        return tile_type(getattr(self, operand))

    @property
    def quantizer(self) -> MxQuant:
        """The block quantization without tiles."""
        return MxQuant(format=self.type("dst").dtype, rule=ALGORITHMS[self.algorithm], axis=self.axis - 2)

    @property
    def groups(self) -> tuple[int, int]:
        """Shape of the exponents before any reordering."""
        rows, cols = self.type("src").valid
        return (rows, -(-cols // GROUP)) if self.axis == 1 else (-(-rows // GROUP), cols)

    @property
    def mover(self) -> TMov | None:
        """The move that puts exponents into a ZZ tile, None for a plain one."""
        if not self.type("exponents").boxed:
            return None
        rows, cols = self.groups
        plain = TileType.of("u8", (rows, -(-cols // GROUP) * GROUP), (rows, cols))
        return TMov(dst=self.exponents, src=str(plain), axis=self.axis)

    @property
    def switches(self) -> tuple[str, ...]:
        """The disputed points of the scale rule and of the exponents' order."""
        inner = self.quantizer.switches if self.type("dst").dtype in _FORMATS else ()
        return (*inner, *(self.mover.switches if self.mover else ()))

    def violations(self, semantics: Semantics) -> Iterable[Finding]:
        """Rules the tiles break."""
        if semantics.authority == "pto-spec" or semantics.chip == "2201":
            raise UnsupportedCastError(
                f"MX TQUANT is not part of {'pto-spec' if semantics.authority == 'pto-spec' else 'chip 2201'}.",
                hint="Choose chip 3510, or Semantics('pto-isa', chip='cpu-sim').",
                source="pto-isa:TQUANT",
            )
        for name in ("dst", "src", "exponents"):
            for finding in self.type(name).rules():
                yield Finding(finding.rule, f"TQUANT {name}", finding.message, {}, finding.fix, finding.source)
        for check in RULES:
            yield from check.findings(self, "TQUANT")
        if semantics.chip != "cpu-sim":
            yield from no_fp4_from_fp32.findings(self, "TQUANT")

    def run(self, inputs: Inputs, choices: Choices, control: Control, out: Any = None) -> Any:
        """Quantize the valid region.

        Returns:
            ``dst`` codes; ``exponents`` of shape ``groups``; ``storage``, the exponents in the linear order of
            their tile; ``max`` and ``scaling``, fp32 scratch of shape ``groups``.
        """
        values = np.asarray(inputs["src"])
        inner = self.quantizer
        scheme = scheme_of(inner, _narrowed(choices, inner.switches), control)
        moved = np.ascontiguousarray(values if self.axis == 1 else values.T)
        blocks = blocked(moved, GROUP)
        largest = scheme.largest(blocks)
        exponents, scaling = scheme.scales(largest, self.type("src").dtype)
        codes = _codes(scheme, blocks, scaling).reshape(moved.shape[0], -1)[:, : moved.shape[1]]
        if scheme.choices.get("mx_nan_maximum") == "simulator" and (scheme.format, self.algorithm) == ("e2m1", "ocp"):
            # The simulator takes this maximum over bf16 bits; widening an fp16 NaN makes it quiet first.
            quiet = (largest > INFINITY) & (values.dtype == np.float16)
            largest = np.where(quiet, largest, truncate_to_bf16(largest))
        maximum = largest.view(np.float32)
        parts = {"dst": codes, "exponents": exponents, "max": maximum, "scaling": _scratch(scaling, exponents, maximum)}
        if self.axis == 0:
            parts = {name: np.ascontiguousarray(part.T) for name, part in parts.items()}
        move = self.mover
        if move is None:
            parts["storage"] = parts["exponents"].reshape(-1)
        else:
            narrowed = _narrowed(choices, move.switches)
            parts["storage"] = move.run({"src": parts["exponents"]}, narrowed, control)
        return parts


def _narrowed(choices: Choices, declared: tuple[str, ...]) -> Choices:
    return Choices(choices.semantics, frozenset(declared) & choices.declared, choices.operation)


def _codes(scheme: Scheme, blocks: Array, scaling: Array) -> Array:
    return scheme.codes(scheme.scaled(blocks, scaling))


def _scratch(scaling: Array, exponents: Array, maximum: Array) -> Array:
    """What the scaling tile holds: the multiplier, and the NaN maximum itself where there is none."""
    return np.where((exponents == NAN_BYTE) & (maximum.view(np.uint32) > INFINITY), maximum, scaling)


@rule(
    "TQM-01",
    states="dst and src are row-major and have the same valid and static shape.",
    cause="the instruction walks both with one index",
    effect=Effect.UNAVAILABLE,
    fix="Give both tiles one shape.",
    source=_SOURCE,
)
def one_shape(op: TQuantMx) -> Iterator[str]:
    dst, src = op.type("dst"), op.type("src")
    for name, kind in (("dst", dst), ("src", src)):
        if kind.blocks is not Order.ROW or kind.boxed:
            yield f"{name} is {kind.layout}, not row-major"
    if dst.valid != src.valid or dst.shape != src.shape:
        yield f"dst is {dst.short}, src {src.short}"


@rule(
    "TQM-02",
    states="dst is e4m3 (from fp32, fp16, bf16) or e2m1 (from fp16, bf16).",
    cause="these are the MX conversions the instruction has",
    effect=Effect.UNAVAILABLE,
    fix="Use one of those types, or narrowcast.mx.quantize off the chip.",
    source=_SOURCE,
)
def element_types(op: TQuantMx) -> Iterator[str]:
    if op.type("dst").dtype not in _FORMATS:
        yield f"dst is {op.type('dst').dtype}"
    if op.type("src").dtype not in ("fp32", "fp16", "bf16"):
        yield f"src is {op.type('src').dtype}"


@rule(
    "TQM-06",
    states="MXFP4 takes fp16 and bf16, not fp32.",
    cause="only the simulator accepts fp32 there",
    effect=Effect.UNAVAILABLE,
    fix="Convert the values to bf16 with tcvt first.",
    source=_SOURCE,
)
def no_fp4_from_fp32(op: TQuantMx) -> Iterator[str]:
    if op.type("dst").dtype == "e2m1" and op.type("src").dtype == "fp32":
        yield "dst is e2m1, src fp32"


@rule(
    "TQM-03",
    states="Groups are whole: 32 divides the static size along the group axis, and the valid rows on axis 0.",
    cause="group size 32",
    effect=Effect.UNAVAILABLE,
    fix="Round the static shape up to 32; valid columns may be short, they count as zeros.",
    source=_SOURCE,
)
def whole_groups(op: TQuantMx) -> Iterator[str]:
    src = op.type("src")
    if src.shape[op.axis] % GROUP:
        yield f"src has {src.shape[op.axis]} static {'columns' if op.axis else 'rows'}"
    if op.axis == 0 and src.valid[0] % GROUP:
        yield f"src has {src.valid[0]} valid rows"


@rule(
    "TQM-04",
    states="The exponent tile is u8 or e8m0 and holds one exponent a group.",
    cause="one shared exponent for 32 elements",
    effect=Effect.UNAVAILABLE,
    fix="Give it the valid shape named here; ZZ tiles of groups along rows are transposed.",
    source=_SOURCE,
)
def exponent_tile(op: TQuantMx) -> Iterator[str]:
    kind = op.type("exponents")
    if kind.dtype not in ("u8", "e8m0"):
        yield f"exponents are {kind.dtype}"
    wanted = op.groups[::-1] if kind.boxed and op.axis == 0 else op.groups
    if kind.valid != wanted:
        yield f"exponents are {kind.valid[0]}x{kind.valid[1]}, the groups {wanted[0]}x{wanted[1]}"


@rule(
    "TQM-05",
    states="Exponents in ZZ order: 16 rows and 2 groups a box (ND: M % 16, N % 64; DN: M % 64, N % 16).",
    cause="16-row ZZ blocks; an even number of exponent groups",
    effect=Effect.UNAVAILABLE,
    fix="Use a plain exponent tile, or whole boxes.",
    source=_SOURCE,
)
def whole_boxes(op: TQuantMx) -> Iterator[str]:
    rows, cols = op.groups if op.axis == 1 else op.groups[::-1]
    if op.type("exponents").boxed and (rows % 16 or cols % 2):
        yield f"the exponents are {rows}x{cols}"


RULES = (one_shape, element_types, whole_groups, exponent_tile, whole_boxes)


def tquant_mx(
    dst: Tile,
    src: Tile,
    exponents: Tile,
    *events: RecordEvent,
    algorithm: str = "ocp",
    axis: int = 1,
    maximum: Tile | None = None,
    scaling: Tile | None = None,
    semantics: Semantics | None = None,
    control: Control | None = None,
) -> RecordEvent:
    """Quantize values to MX: narrow floats with one shared power of two for 32 elements.

    Formula: ``dst = cast(src * 2**(127 - e))``; ``e`` by the OCP or NV rule from the group's largest magnitude.

    Args:
        dst: e4m3 or e2m1 tile.
        src: fp32, fp16 or bf16 tile of the same shape.
        exponents: u8 or e8m0 tile, M x N/32 (groups along columns) or M/32 x N (along rows); a ZZ tile takes them
            in the Cube's order.
        events: events to wait for.
        algorithm: ``ocp`` or ``nv``.
        axis: 1 for groups along columns, 0 along rows.
        maximum: fp32 tile for the group maxima, optional.
        scaling: fp32 tile for the multipliers, optional.
        semantics: whom to believe, for which chip.
        control: control bits; CTRL[50] decides the code of a NaN element under ``device``.

    Returns:
        The event of the operation, on pipe V.

    Raises:
        ConstraintError: tiles that break a rule; all of them are listed.

    Source: pto-isa:TQUANT; the scale rules ``pto-ocp`` and ``pto-nv``.

    Example:
        >>> values = Tile(np.full((1, 32), 500.0, np.float32))
        >>> codes, shared = Tile(dtype="e4m3", shape=(1, 32)), Tile(dtype="u8", shape=(1, 32), valid=(1, 1))
        >>> event = tquant_mx(codes, values, shared)
        >>> int(shared.numpy()[0, 0]), float(codes.numpy()[0, 0])
        (127, 448.0)
    """
    op = TQuantMx(
        dst=spell(dst.type), src=spell(src.type), exponents=spell(exponents.type), algorithm=algorithm, axis=axis
    )
    for tile in (dst, exponents, maximum, scaling):
        if tile is not None:
            tile.require_writable()
    parts = execute(op, {"src": src.numpy()}, semantics, control)
    fmt = formats[dst.dtype]
    dst.store(parts["dst"] if fmt.bits == 4 else parts["dst"].view(dst.storage.dtype))
    own = exponents.storage.dtype
    if exponents.type.boxed:
        exponents.storage[...] = parts["storage"].view(own)
    else:
        exponents.store(parts["exponents"].view(own))
    writes = [dst, exponents]
    for tile, name in ((maximum, "max"), (scaling, "scaling")):
        if tile is not None:
            tile.store(parts[name])
            writes.append(tile)
    return record("TQUANT", "V", (src,), writes, events)
