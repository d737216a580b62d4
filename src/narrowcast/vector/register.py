"""The register form of the vector cast: 256-byte registers, parts, masks, zeroing and merging."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from narrowcast.catalog.casts import CastRow
from narrowcast.catalog.formats import formats
from narrowcast.errors import ShapeError, unknown_name
from narrowcast.operation import Choices, Control, Finding, Semantics, execute
from narrowcast.operation.protocol import Inputs
from narrowcast.quant import decode
from narrowcast.schema import Format, Rounding
from narrowcast.vector import legality
from narrowcast.vector.arrays import Array, dtype_of, source_format, source_values
from narrowcast.vector.conversion import conversion_switches, convert
from narrowcast.vector.masks import REGISTER_BYTES, Mask, byte_mask
from narrowcast.vector.saturation import policy

LAYOUTS = ("ZERO", "ONE", "TWO", "THREE")
_ALIASES = {
    **{name: i for i, name in enumerate(LAYOUTS)},
    **{f"PART_P{i}": i for i in range(4)},
    **{f"V{i + 1}": i for i in range(4)},
    "PART_EVEN": 0,
    "PART_ODD": 1,
    "UNKNOWN": 0,
}
MERGES = ("zeroing", "merging")

_BF16_INFINITY = np.uint16(0x7F80)
_BF16_NAN = np.uint16(0x7FC0)
_BF16_TINY = np.uint16(0x0040)  # 2^-127


@dataclass(frozen=True, kw_only=True)
class RegCast:
    """A cast between registers of the vector core.

    Args:
        source: source format.
        target: target format.
        mode: rounding mode, ``none`` where the pair does not round; None is the default.
        layout: which part of the wider side: ``ZERO`` to ``THREE``, or ``PART_EVEN``, ``PART_ODD``, ``PART_P0``...
        saturate: the trait's saturation (SAT); it counts only where CTRL[60] is 0.
        merge: ``zeroing``, or ``merging`` as the vendor's software emulates it.
    """

    source: str
    target: str
    mode: str | None = None
    layout: str = "ZERO"
    saturate: bool = False
    merge: str = "zeroing"

    inputs: ClassVar[tuple[str, ...]] = ("register", "mask", "dst")
    optional: ClassVar[tuple[str, ...]] = ("mask", "dst")

    def __post_init__(self) -> None:
        object.__setattr__(self, "source", formats[self.source].name)
        object.__setattr__(self, "target", formats[self.target].name)
        mode = legality.mode_name(self.mode) or legality.default_mode("reg", self.source, self.target)
        object.__setattr__(self, "mode", mode)
        part = _ALIASES.get(str(self.layout).upper())
        if part is None:
            raise unknown_name("register layout", self.layout, _ALIASES)
        object.__setattr__(self, "layout", LAYOUTS[part])
        merge = str(self.merge).lower().removeprefix("mode_")
        if merge not in MERGES:
            raise unknown_name("merge mode", self.merge, MERGES)
        object.__setattr__(self, "merge", merge)

    @property
    def switches(self) -> tuple[str, ...]:
        """The disputed points of this cast."""
        if self.target == "e8m0":
            return ("e8m0_infinity",)
        if self.source == "e8m0":
            return ("e8m0_zero",)
        return conversion_switches("reg", self.source, self.target, str(self.mode))

    def violations(self, semantics: Semantics) -> Iterable[Finding]:
        """The conversion matrix and what the pair's traits allow."""
        for refusal in self.refusals(semantics.chip):
            yield refusal.finding("RegCast")

    def refusals(self, chip: str) -> Iterator[legality.Refusal]:
        """Why the chip has no such cast, nothing if it has."""
        row = legality.legal("reg", chip, self.source, self.target, str(self.mode), _no_choice)
        if isinstance(row, legality.Refusal):
            yield row
            return
        pair = f"{self.source} -> {self.target}"
        if LAYOUTS.index(self.layout) >= row.parts:
            legal = ", ".join(LAYOUTS[: row.parts])
            yield legality.Refusal(
                f"{pair} has no layout {self.layout} (allowed: {legal}).", f"Use {legal}.", row.reference
            )
        if self.saturate and not row.sat_trait:
            yield legality.Refusal(
                f"{pair} takes no saturation mode ({row.saturation.value} decides).", "Omit saturate.", row.reference
            )
        if self.merge == "merging" and (not row.merges or self.layout != "ZERO"):
            yield legality.Refusal(
                f"{pair}, layout {self.layout}, has no merging (software emulates it for layout ZERO and types wider "
                "than 4 bits).",
                "Use zeroing, then combine the registers.",
                "asc-devkit:Reg Cast implementation",
            )

    def run(self, inputs: Inputs, choices: Choices, control: Control, out: Array | None = None) -> Array:
        """Convert ``register``; see :func:`reg_cast`."""
        for refusal in self.refusals(choices.chip):
            raise refusal.error()
        row = legality.require("reg", choices.chip, self.source, self.target, str(self.mode), _no_choice)
        source, target = formats[self.source], formats[self.target]
        register = register_bytes(inputs["register"], "register")
        mask = byte_mask(inputs["mask"], _lane_bytes(source))
        result = _place(self, row, register, mask, choices, control)
        if self.merge == "merging":
            if inputs["dst"] is None:
                raise ShapeError("merging needs dst, the register to merge with.")
            # The copy that merges reads the same mask at the destination's own lanes.
            lanes = np.repeat(mask[:: _lane_bytes(target)], _lane_bytes(target))
            result = np.where(lanes, result, register_bytes(inputs["dst"], "dst"))
        if out is not None:
            register_bytes(out, "out")[...] = result
            return out
        return result if target.packs else result.view(dtype_of(target))


def reg_cast(
    register: npt.ArrayLike,
    target: str,
    mode: str | Rounding | None = None,
    *,
    source: str | None = None,
    layout: str = "ZERO",
    saturate: bool = False,
    mask: npt.ArrayLike | None = None,
    merge: str = "zeroing",
    dst: npt.ArrayLike | None = None,
    control: Control | None = None,
    semantics: Semantics | None = None,
    out: Array | None = None,
) -> Array:
    """Convert one 256-byte register into another, as the Reg ``Cast`` does.

    Placement, with ``ratio`` the quotient of the element widths and ``L`` the layout: narrowing clears the
    destination and writes lane i to slot ``ratio * i + L``; widening reads slot ``ratio * i + L``. 16-bit to 4-bit
    puts the pair (2i, 2i + 1) into byte ``4i + L``, even element in the low nibble; 4-bit to 16-bit is the inverse.

    bf16 -> e8m0 and e8m0 -> bf16 are software sequences that overwrite the source register on the device. Here
    the input stays as it was. The first keeps the exponent field: 1.99 becomes 1, -2 becomes 2, subnormals 0x00.

    Args:
        register: 256 bytes, as an array of any dtype; its dtype names the source format.
        target: target format name or alias.
        mode: as for :func:`narrowcast.vector.cast`.
        source: source format where the dtype does not tell; the bytes are then read as its codes.
        layout: ``ZERO`` to ``THREE``; ``PART_EVEN``, ``PART_ODD`` and ``PART_P0`` to ``PART_P3`` are the same.
        saturate: the trait's saturation, heeded where CTRL[60] = 0. At reset the control bits decide.
        mask: a boolean per source lane (per byte for 4-bit types), or up to four 64-bit words, one bit per byte.
            16-bit to 4-bit heeds the even lane of a pair.
        merge: ``zeroing``: lanes not in ``mask`` become zero. ``merging``: the result is copied over ``dst`` under
            the same mask, read at the destination's lanes.
        dst: register that ``merging`` merges with; not modified.
        control: control bits, by default at reset.
        semantics: whom to believe and the chip.
        out: 256-byte contiguous array for the result.

    Returns:
        256 bytes as an array of the target's type, uint8 for hif8 and for packed 4-bit types.

    Raises:
        UnsupportedCastError: no such pair, mode, layout, saturation or merging on the chip.
        ShapeError: a register that is not 256 bytes, a mask of another length.

    Source: asc-devkit:Reg Cast, RegLayout, MaskReg.

    Example:
        >>> import numpy as np
        >>> reg_cast(np.arange(64, dtype=np.float32), "fp16", layout="PART_ODD")[:6]
        array([0., 0., 0., 1., 0., 2.], dtype=float16)
    """
    array = np.asarray(register)
    if source is None:
        name = source_format(array, None)
    else:
        name = formats[source].name
        array = register_bytes(array, "register")
    op = RegCast(
        source=name,
        target=target,
        mode=mode.value if isinstance(mode, Rounding) else mode,
        layout=layout,
        saturate=saturate,
        merge=merge,
    )
    semantics = semantics or Semantics()
    for refusal in op.refusals(semantics.chip):
        raise refusal.error()
    result: Array = execute(op, {"register": array, "mask": mask, "dst": dst}, semantics, control, out)
    return result


def register_bytes(array: Any, name: str) -> Array:
    """View a register as 256 bytes."""
    found = np.asarray(array)
    if found.nbytes != REGISTER_BYTES or not (found.flags.c_contiguous or name != "out"):
        layout = "" if found.flags.c_contiguous else ", not contiguous"
        raise ShapeError(f"{name} has {found.nbytes} bytes{layout}; a register has {REGISTER_BYTES}.")
    if name == "out" and not found.flags.writeable:
        raise ShapeError("out is read-only.", hint="Pass a writable array, or omit out.")
    return np.ascontiguousarray(found).reshape(-1).view(np.uint8)


def _no_choice(switch: str) -> str:
    raise AssertionError(f"a register cast does not read {switch}")


def _lane_bytes(fmt: Format) -> int:
    return max(fmt.bits // 8, 1)


def _place(op: RegCast, row: CastRow, register: Array, mask: Mask, choices: Choices, control: Control) -> Array:
    """Return the 256 bytes of a zeroing cast."""
    source, target = formats[op.source], formats[op.target]
    part = LAYOUTS.index(op.layout)
    ratio = row.parts
    narrows = target.bits < source.bits
    if source.packs:
        taken = slice(part, None, ratio)
        codes = np.stack([register[taken] & 15, register[taken] >> 4], axis=-1).reshape(-1)
        selected = np.repeat(mask[taken], 2)
    else:
        lanes = register.view(source.code_dtype)
        taken = slice(None) if narrows else slice(part, None, ratio)
        codes, selected = lanes[taken], mask[:: _lane_bytes(source)][taken]
    if target.packs:
        selected = np.repeat(selected[0::2], 2)  # the even lane's bit decides for its byte
    result = _converted(op, row, codes, choices, control)
    result[~selected] = 0
    slots = np.zeros(REGISTER_BYTES // _lane_bytes(target), dtype=target.code_dtype)
    if target.packs:
        slots[part::ratio] = result[0::2] | (result[1::2] << np.uint8(4))
    elif narrows:
        slots[part::ratio] = result
    else:
        slots[:] = result
    return slots.view(np.uint8)


def _converted(op: RegCast, row: CastRow, codes: Array, choices: Choices, control: Control) -> Array:
    if op.target == "e8m0":
        return _to_e8m0(codes, choices)
    if op.source == "e8m0":
        return _from_e8m0(codes, choices)
    source = formats[op.source]
    own = dtype_of(source)
    values = codes.view(own) if own != codes.dtype or source.is_integer else decode(codes, op.source)
    values = source_values(values, source) if values.dtype == own else values
    rule = policy(row, op.saturate, choices, control)
    return np.array(convert(str(op.mode), row, values, rule, choices))


def _to_e8m0(raw: Array, choices: Choices) -> Array:
    """The exponent field: shift left 1, shift right 8."""
    field = ((raw << np.uint16(1)) >> np.uint16(8)).astype(np.uint8)
    if choices.choose("e8m0_infinity") == "max":
        field[(raw & np.uint16(0x7FFF)) == _BF16_INFINITY] = 0xFE
    return field


def _from_e8m0(codes: Array, choices: Choices) -> Array:
    """Shift left 7; the code of NaN would be infinity, and is replaced."""
    raw = codes.astype(np.uint16) << np.uint16(7)
    raw[raw == _BF16_INFINITY] = _BF16_NAN
    if choices.choose("e8m0_zero") == "power":
        raw[codes == 0] = _BF16_TINY
    return raw
