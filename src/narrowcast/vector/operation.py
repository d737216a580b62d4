"""Vector casts and integral rounding as operations: the call as data, its open points, and how it is computed."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from narrowcast.catalog.casts import UNEMULATED, CastRow, integrals
from narrowcast.catalog.formats import formats
from narrowcast.errors import ConstraintError, FormatError, ShapeError, UnsupportedCastError, unknown_name
from narrowcast.operation import Choices, Control, Finding, Semantics
from narrowcast.operation.protocol import Inputs
from narrowcast.quant import decode, pack
from narrowcast.schema import Format
from narrowcast.vector import legality
from narrowcast.vector.arrays import Array, check_destination, dtype_of, source_values
from narrowcast.vector.conversion import conversion_switches, convert
from narrowcast.vector.integral import round_to_integral
from narrowcast.vector.masks import Mask, element_mask, repeat_mask
from narrowcast.vector.rules import CAST_RULES, count_even, is_packed
from narrowcast.vector.saturation import policy

INTERFACES = ("basic", "c-api")


@dataclass(frozen=True, kw_only=True)
class VectorCast:
    """A cast of the vector core.

    Args:
        source: source format.
        target: target format.
        mode: rounding mode or ``none`` (CAST_NONE); None is the conversion's default.
        interface: ``basic`` (memory form: unselected elements of ``out`` stay) or ``c-api`` (register form:
            unselected elements become zero).
        saturate: the instruction's own choice; it counts only where CTRL[60] is 0. Basic casts say True.
        count: convert only the first ``count`` elements.
        deq_scale: fp16 scale of s32 -> fp16.
        packed: give 4-bit results two per byte.
    """

    source: str
    target: str
    mode: str | None = None
    interface: str = "basic"
    saturate: bool = True
    count: int | None = None
    deq_scale: float | None = None
    packed: bool = False

    inputs: ClassVar[tuple[str, ...]] = ("src", "mask")
    optional: ClassVar[tuple[str, ...]] = ("mask",)

    def __post_init__(self) -> None:
        if self.interface not in INTERFACES:
            raise unknown_name("interface", self.interface, INTERFACES)
        for side in ("source", "target"):
            name = getattr(self, side)
            object.__setattr__(self, side, name if name in UNEMULATED else formats[name].name)
        mode = legality.mode_name(self.mode) or legality.default_mode(self.interface, self.source, self.target)
        object.__setattr__(self, "mode", mode)

    @property
    def switches(self) -> tuple[str, ...]:
        """The disputed points of this cast, on whichever chip it runs."""
        return conversion_switches(self.interface, self.source, self.target, str(self.mode))

    def violations(self, semantics: Semantics) -> Iterable[Finding]:
        """The conversion matrix of the chip, and the parameters' rules."""
        found = legality.legal(
            self.interface, semantics.chip, self.source, self.target, str(self.mode), semantics.choose
        )
        if isinstance(found, legality.Refusal):
            yield found.finding("VectorCast")
        yield from self.parameter_violations()

    def parameter_violations(self) -> Iterator[Finding]:
        """Violations that no chip allows."""
        for each in CAST_RULES:
            yield from each.findings(self)

    def run(self, inputs: Inputs, choices: Choices, control: Control, out: Array | None = None) -> Array:
        """Convert ``src``; see :func:`narrowcast.vector.cast` for what comes back."""
        row = legality.require(self.interface, choices.chip, self.source, self.target, str(self.mode), choices.choose)
        source, target = formats[self.source], formats[self.target]
        array, mask = inputs["src"], inputs["mask"]
        if self.count is not None:
            if mask is not None:
                raise ShapeError("a cast takes a count or a mask, not both.", source="asc-devkit:Memory Cast")
            if self.count > array.size:
                raise ShapeError(f"count is {self.count}; the source has {array.size} elements.")
            array = array.reshape(-1)[: self.count]
        if self.interface == "basic" and (is_packed(self.source) or is_packed(self.target)) and array.size % 2:
            raise _odd(self, int(array.size))
        values = source_values(array, source)
        selected = None if mask is None else self._selected(mask, values.shape, source, target)
        scale = self._scale(row)
        # The last step of s32 -> fp16 is a conversion whose trait does not saturate.
        rule = policy(row, self.saturate and not row.scaled, choices, control)
        if self.packed:
            return self._packed(convert(str(self.mode), row, values, rule, choices, scale), selected, out)
        dtype = dtype_of(target)
        check_destination(out, values.shape, dtype, at_least=self.count is not None)
        if out is not None and self.count is not None:
            part = convert(str(self.mode), row, values, rule, choices, scale)
            _store_first(out, part.view(dtype))
            return out
        direct = out.view(target.code_dtype) if out is not None and selected is None else None
        codes = convert(str(self.mode), row, values, rule, choices, scale, direct)
        if selected is None:
            return codes.view(dtype) if out is None else out
        return self._place(codes.view(dtype), selected, out)

    def _selected(self, mask: Any, shape: tuple[int, ...], source: Format, target: Format) -> Mask:
        if self.interface == "basic":
            return repeat_mask(mask, shape, source, target)
        return element_mask(mask, shape, source)

    def _place(self, result: Array, selected: Mask, out: Array | None) -> Array:
        """Write selected lanes; the others stay as they were in ``out`` (basic), or are zero."""
        zero = np.zeros(1, dtype=np.uint64).view(result.dtype)[0]
        if out is None:
            return np.where(selected, result, zero)
        if self.interface == "basic":
            np.copyto(out, result, where=selected)
        else:
            out[...] = np.where(selected, result, zero)
        return out

    def _packed(self, codes: Array, selected: Mask | None, out: Array | None) -> Array:
        if codes.ndim == 0 or codes.shape[-1] % 2:
            last = codes.shape[-1] if codes.ndim else 1
            raise ShapeError(f"packing needs an even last axis; got {last}.")
        packed = pack(codes, self.target)
        check_destination(out, packed.shape, packed.dtype, at_least=self.count is not None)
        if selected is not None:
            return self._place(packed, selected[..., ::2], out)
        if out is None:
            return packed
        _store_first(out, packed)
        return out

    def _scale(self, row: CastRow) -> np.float32 | None:
        if not row.scaled:
            return None
        if self.deq_scale is None:
            finding = next(f for f in self.parameter_violations() if f.rule == "VEC-02")
            raise ConstraintError(f"VectorCast violates a rule: {finding}", findings=(finding,))
        with np.errstate(over="ignore"):
            half = np.float16(self.deq_scale)
        if float(half) != self.deq_scale:
            raise FormatError(
                f"deq_scale {self.deq_scale} is no fp16 number, and SetDeqScale takes one.",
                hint=f"The nearest is {float(half)!r}.",
                source="asc-devkit:SetDeqScale",
            )
        return np.float32(half)

    def show(self, value: Any) -> str:
        """Write a result element as code and value."""
        target = formats[self.target]
        if target.bits > 16 or self.packed:
            return str(value)
        code = np.asarray(value).reshape(1).view(target.code_dtype) & np.asarray(target.code_mask, target.code_dtype)
        return f"{int(code[0]):#0{2 + (target.bits + 3) // 4}x} ({float(decode(code, self.target)[0]):g})"


def _store_first(out: Array, result: Array) -> None:
    """Write the first elements of ``out`` in its own order, whatever its strides."""
    if result.size == out.size:
        out[...] = result.reshape(out.shape)
    else:
        out.flat[: result.size] = result.reshape(-1)


def _odd(op: VectorCast, count: int) -> ConstraintError:
    finding = Finding(
        rule=count_even.id,
        place="VectorCast",
        message=f"{op.source} -> {op.target} of {count} elements ({count_even.cause})",
        fix=count_even.fix,
        source=count_even.source,
    )
    return ConstraintError(f"VectorCast violates a rule: {finding}", findings=(finding,))


@dataclass(frozen=True, kw_only=True)
class VectorRound:
    """Round to an integer and keep the floating-point type.

    Args:
        function: ``ceil``, ``floor``, ``round`` (ties away), ``rint``, ``trunc`` or ``round_half_even``.
        format: ``fp16``, ``bf16`` or ``fp32``.
    """

    function: str
    format: str

    inputs: ClassVar[tuple[str, ...]] = ("src",)

    def __post_init__(self) -> None:
        if self.function not in integrals:
            raise unknown_name("rounding function", self.function, integrals)
        object.__setattr__(self, "format", self.format if self.format in UNEMULATED else formats[self.format].name)

    @property
    def switches(self) -> tuple[str, ...]:
        """The sign of zero, and in 16-bit types what becomes of infinity and NaN."""
        return ("integral_zero_sign",) if self.format == "fp32" else ("integral_special", "integral_zero_sign")

    def violations(self, semantics: Semantics) -> Iterable[Finding]:
        """A type the function does not take on the chip."""
        refusal = self.refusal(semantics.chip)
        return () if refusal is None else (refusal.finding("VectorRound"),)

    def refusal(self, chip: str) -> legality.Refusal | None:
        """Why the chip does not have the function for this type, None if it has."""
        row = integrals[self.function]
        types = row.types.get(chip, ())
        if self.format in types:
            return None
        others = [c for c, held in row.types.items() if self.format in held]
        known = ", ".join(types) or "nothing on record"
        hint = (
            f"On record for chip {' and '.join(others)}: choose Semantics(chip=...)."
            if others
            else "Convert the values first."
        )
        return legality.Refusal(
            f"{self.function} does not take {self.format} on chip {chip} (takes: {known}).", hint, row.reference
        )

    def run(self, inputs: Inputs, choices: Choices, control: Control, out: Array | None = None) -> Array:
        """Round ``src``."""
        refusal = self.refusal(choices.chip)
        if refusal is not None:
            raise refusal.error()
        fmt = formats[self.format]
        values = source_values(inputs["src"], fmt)
        wide = self.format == "fp32"
        result = round_to_integral(
            values,
            integrals[self.function].rounding,
            saturate=not wide and choices.choose("integral_special") == "saturate" and control.ctrl48 == 0,
            positive_zero=choices.choose("integral_zero_sign") == "positive",
        )
        check_destination(out, result.shape, result.dtype, at_least=False)
        if out is None:
            return result
        out[...] = result
        return out


def refuse_now(op: VectorCast, semantics: Semantics) -> None:
    """Raise what makes a cast illegal on its chip.

    Raises:
        UnsupportedCastError: the pair, mode or chip is not in the matrix.
    """
    found = legality.legal(op.interface, semantics.chip, op.source, op.target, str(op.mode), semantics.choose)
    if isinstance(found, legality.Refusal):
        error: UnsupportedCastError = found.error()
        raise error
