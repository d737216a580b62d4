"""A quantized tensor under examination: values, codes, parameters, and how good the result is."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any, Self

import numpy as np

from narrowcast.catalog.formats import formats
from narrowcast.insight.case_facts import CaseFacts, Quality, facts_of
from narrowcast.insight.slabs import Array, Slab, Spread, Where, sample_places, slabs
from narrowcast.quant import Cast, decode
from narrowcast.quant.scales import denominator_of, scale_of
from narrowcast.schema import Format, Magnitudes

SAMPLE = 1 << 15


@dataclass(frozen=True, eq=False, kw_only=True)
class QuantizedCase:
    """What is known of one quantization; absent parts are None. Nothing here copies a whole tensor.

    Attributes:
        values: the original, as given.
        codes: unpacked bit patterns.
        format: of the codes.
        scale: real = (code - offset) * scale, as stored (its dtype counts).
        offset: integers.
        multiplier: whether the caller gave multipliers; then ``scale`` is their reciprocal.
        blocks: elements per scale on each axis, None to take it from the shapes.
        scale_codes: E8M0 bytes of MX scales.
        columns: columns that hold results.
        arithmetic: format in which the operation works.
        given_scale: whether the scale was given rather than computed.
    """

    values: Array | None
    codes: Array
    format: str
    scale: Array
    offset: Array | None = None
    multiplier: bool = False
    blocks: tuple[int, ...] | None = None
    scale_codes: Array | None = None
    columns: int | None = None
    arithmetic: str = "fp32"
    packed: bool = False
    given_scale: bool = False
    given_codes: bool = False

    @property
    def row(self) -> Format:
        """The format's row."""
        return formats[self.format]

    @cached_property
    def target(self) -> float:
        """What a block's absolute maximum maps to."""
        return denominator_of(self.row, "qmax")

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the elements that hold results."""
        return self.codes.shape if self.columns is None else (*self.codes.shape[:-1], self.columns)

    @property
    def whole(self) -> bool:
        """Whether every code holds a result."""
        return self.shape == self.codes.shape

    @cached_property
    def steps(self) -> Spread:
        """The scale of every element."""
        return Spread.of(self.scale.astype(np.float64), self.codes.shape, self.blocks)

    @cached_property
    def offsets(self) -> Spread:
        """The offset of every element."""
        offset = np.zeros(()) if self.offset is None else self.offset.astype(np.float64)
        return Spread.of(offset, self.codes.shape, self.blocks)

    def parts(self) -> Iterator["Part"]:
        """The elements that hold results, slab by slab."""
        for slab in slabs(self.shape):
            yield Part(self, slab, slab.where)

    def tail(self) -> Iterator["Part"]:
        """The elements beyond ``columns``, slab by slab, as an array of their own."""
        first = self.shape[-1]
        for slab in slabs((*self.codes.shape[:-1], self.codes.shape[-1] - first)):
            last = slab.where[-1]
            yield Part(self, slab, (*slab.where[:-1], slice(last.start + first, last.stop + first)))

    @cached_property
    def facts(self) -> CaseFacts:
        """Everything that detectors count, from one pass."""
        return facts_of(self)

    @property
    def quality(self) -> Quality:
        """How good the result is; only with values."""
        found = self.facts.quality
        assert found is not None
        return found

    def points(self, places: Array) -> tuple[Array, Array, Array]:
        """Values, what their codes stand for, and scales of single elements, by place in the flattened array."""
        index = tuple(np.unravel_index(places, self.shape))
        step = self.steps.at(index)
        with np.errstate(invalid="ignore", over="ignore"):
            code_values = np.asarray(decode(self.codes[index], self.format), np.float64)
            real = np.asarray((code_values - self.offsets.at(index)) * step)
        x = np.full(real.shape, np.nan) if self.values is None else self.values[index].astype(np.float64)
        return x, real, step

    def point(self, place: int | None) -> tuple[float, float, float]:
        """Value, what its code stands for, and scale of one element."""
        x, real, step = self.points(np.asarray([place or 0]))
        return float(x[0]), float(real[0]), float(step[0])

    def sample(self, count: int = SAMPLE) -> tuple[Array, Array]:
        """Values and what their codes stand for, of elements spread evenly over the tensor."""
        return self.points(sample_places(int(np.prod(self.shape, dtype=np.int64)), count))[:2]

    def with_codes(self, codes: Array, **changes: Any) -> Self:
        """Return a copy with other codes or parameters."""
        return replace(self, codes=codes, **changes)


class Part:
    """One slab of a case, in float64."""

    def __init__(self, case: QuantizedCase, slab: Slab, where: Where) -> None:
        self.case = case
        self.slab = slab
        self.where = where

    @cached_property
    def codes(self) -> Array:
        """Bit patterns."""
        return np.asarray(self.case.codes[self.where])

    @cached_property
    def code_values(self) -> Array:
        """Values of the codes."""
        return np.asarray(decode(self.codes, self.case.format), np.float64)

    @cached_property
    def step(self) -> Array:
        """Scales, which broadcast against the slab."""
        return self.case.steps.part(self.where)

    @cached_property
    def real(self) -> Array:
        """What the codes stand for."""
        values = self.code_values
        with np.errstate(invalid="ignore", over="ignore"):
            if self.case.offset is not None:
                values = values - self.case.offsets.part(self.where)
            return np.asarray(values * self.step)

    @cached_property
    def x(self) -> Array:
        """The values; only with values."""
        assert self.case.values is not None
        return np.asarray(self.case.values[self.where], np.float64)

    @cached_property
    def finite(self) -> Array:
        """Values that are neither NaN nor infinite."""
        return np.isfinite(self.x)

    @cached_property
    def nonzero(self) -> Array:
        """Finite values that are not zero."""
        return np.asarray(self.finite & (self.x != 0))

    @cached_property
    def clamped(self) -> Array:
        """Elements beyond the largest code, clamped to it; without values, elements that have such a code."""
        row = self.case.row
        top, bottom = float(row.max), float(row.min)
        extreme = np.asarray(self.code_values >= top)
        if bottom < 0:
            extreme |= self.code_values <= bottom
        if self.case.values is None or not extreme.any():
            return extreme
        with np.errstate(invalid="ignore", over="ignore"):
            beyond = np.abs(self.real - self.x) > last_gap(row) / 2 * self.step * (1 + 1e-6)
        return np.asarray(extreme & beyond & self.finite)


@cache
def last_gap(row: Format) -> float:
    """Distance between the two largest values."""
    if row.is_integer:
        return 1.0
    if row.bits > 16:
        assert isinstance(row, Magnitudes)
        top = row.binades[-1]
        return float(2.0 ** (top.exponent - top.fraction_bits))
    codes = np.arange(row.code_mask + 1, dtype=row.code_dtype)
    values = decode(codes, row.name)
    two = np.unique(values[np.isfinite(values)])[-2:]
    return float(two[1] - two[0])


def requantize(
    values: Array,
    row: Format,
    scale: Array,
    offset: Array | None = None,
    *,
    blocks: tuple[int, ...] | None = None,
    repair: bool = False,
    flush_below: float = 0.0,
) -> Array:
    """Divide, round and clamp with parameters taken as they are, zero and NaN included.

    Args:
        values: float or integer array.
        row: format of the codes.
        scale, offset: as stored.
        blocks: elements per parameter on each axis.
        repair: replace NaN and infinities by 0 first.
        flush_below: replace smaller magnitudes by zero first.
    """
    cast = Cast(None, row.name, None, True, "keep" if row.nan_code is not None else "zero")
    steps = Spread.of(scale, values.shape, blocks)
    offsets = None if offset is None else Spread.of(np.asarray(offset), values.shape, blocks)
    codes = np.empty(values.shape, row.code_dtype)
    work = work_type(values)
    for slab in slabs(values.shape):
        part = np.asarray(values[slab.where], work)
        with np.errstate(all="ignore"):
            if repair:
                part = np.where(np.isfinite(part), part, part.dtype.type(0))
            if flush_below:
                part = np.where(np.abs(part) < flush_below, part * 0, part)
            quotient = np.asarray(part / steps.part(slab.where).astype(work))
            if offsets is not None:
                quotient = np.asarray(np.rint(quotient) + offsets.part(slab.where).astype(work))
        codes[slab.where] = cast(quotient)
    return codes


def work_type(values: Array) -> type[np.floating[Any]]:
    """fp32 holds fp32, fp16, bf16 and integers up to 16 bits; wider ones divide in fp64."""
    wide = values.dtype.itemsize > (2 if values.dtype.kind in "iu" else 4)
    return np.float64 if wide else np.float32


def ideal_scale(case: QuantizedCase) -> Array:
    """absmax / target of every block."""
    steps = case.steps
    if steps.array.size == 1:
        largest = np.full(steps.array.shape, case.facts.absmax)
    else:
        largest = np.zeros(steps.array.shape)
        for part in case.parts():
            if part.codes.size:
                found, where = steps.largest(np.where(part.finite, np.abs(part.x), 0), part.slab)
                largest[where] = np.maximum(largest[where], found)
    return np.asarray(scale_of(largest.reshape(case.scale.shape).astype(np.float32), case.target))
