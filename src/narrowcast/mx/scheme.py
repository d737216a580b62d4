"""A block-scaling call with everything resolved: what to do with a row of blocks, and how."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from narrowcast.catalog.formats import formats
from narrowcast.catalog.scale_rules import ElementRow, ScaleRuleRow
from narrowcast.mx.bits import INFINITY, Element, magnitude_bits, round_to_bf16, truncate_to_bf16
from narrowcast.mx.rules import NAN_BYTE, Context, multipliers, scale_bytes
from narrowcast.mx.spelling import ScaleRule
from narrowcast.numerics.unpacking import Array
from narrowcast.quant import Cast
from narrowcast.schema import Format, IntFormat, Rounding

_TINY = np.float32(2.0**-126)
_DIRECTED = (Rounding.RD, Rounding.RU)
_SIGN8 = np.uint8(0x80)
_HALF_STEP = np.float32(2.0**-10)  # half of e4m3's smallest value


@dataclass(frozen=True)
class Scheme:
    """How blocks become bytes and codes.

    Args:
        rule: the scale rule.
        format: element format name.
        rounding: mode of the element cast.
        saturate: whether elements that overflow give the largest value.
        nan_lanes: code of an element whose scaled value is NaN: ``nan``, ``zero`` or ``max``.
        switches: values of the disputed points the rule reads.
    """

    rule: ScaleRule
    format: str
    rounding: Rounding
    saturate: bool
    nan_lanes: str
    switches: tuple[tuple[str, str], ...] = ()

    @property
    def row(self) -> ScaleRuleRow:
        """The rule's row."""
        return self.rule.row

    @property
    def mode(self) -> str:
        """Short name of the rounding mode."""
        return self.rounding.value

    @property
    def target(self) -> Format:
        """The element format's row."""
        return formats[self.format]

    @property
    def element_row(self) -> ElementRow:
        """What the rule says about this element format."""
        return self.row.element(self.format)

    @property
    def choices(self) -> Mapping[str, str]:
        """Switch values by name."""
        return dict(self.switches)

    def context(self, source: str) -> Context:
        """What a rule function looks at."""
        return Context(Element.of(self.target), source, dict(self.rule.parameters), self.choices)

    @property
    def flushes_byte0(self) -> bool:
        """Whether byte 0 means multiplier 0."""
        if not self.row.flushes_byte0 or self.choices.get("mx_tiny_block") == "keep":
            return False
        return dict(self.rule.parameters).get("dst_type_max", 0.0) in (0.0, 6.0, 7.0)

    @property
    def nan_code(self) -> int:
        """Code of an element whose scaled value is NaN."""
        if self.nan_lanes == "nan" and self.target.nan_code is not None:
            return self.target.nan_code
        return getattr(self.target, "max_code", 0) if self.nan_lanes == "max" else 0

    @property
    def simulates(self) -> bool:
        """Whether a simulator's own reading of NaN or of the sign of zero applies."""
        return self.choices.get("mx_nan_maximum", "propagate") != "propagate" or self._drops_sign

    @property
    def _drops_sign(self) -> bool:
        return self.format == "e4m3" and self.choices.get("mx_zero_sign") == "simulator"

    def largest(self, blocks: Array) -> Array:
        """Return the largest magnitude along the last axis as fp32 bits."""
        bits = magnitude_bits(blocks)
        reading = self.choices.get("mx_nan_maximum", "propagate")
        if reading == "ignore" or (reading == "simulator" and self.format == "e4m3"):
            bits = np.where(bits > INFINITY, np.uint32(0), bits)
        elif reading == "simulator" and self.rule.name == "pto-ocp" and blocks.dtype == np.float32:
            bits = truncate_to_bf16(bits)
        result: Array = bits.max(axis=-1)
        return result

    def scales(self, largest: Array, source: str) -> tuple[Array, Array]:
        """Return the bytes and the float32 multipliers of blocks."""
        codes = scale_bytes(self.rule.name, largest, self.context(source))
        return codes, self.multipliers(codes, largest)

    def multipliers(self, codes: Array, largest: Array) -> Array:
        """Return what the elements of each block are multiplied by."""
        return multipliers(codes, largest, flush_byte0=self.flushes_byte0, flush_zero=self.rule.name.startswith("cann"))

    def scaled(self, blocks: Array, multiplier: Array) -> Array:
        """Multiply blocks by their multipliers.

        A product that fp32 would round is smaller than 2**-126, far below half of any element format's smallest
        value: only a directed mode sees that it is not zero.
        """
        wide = blocks.astype(np.float32, copy=False)
        if self.element_row.drops_negative_zero:
            wide = np.where(wide == 0, np.float32(0.0), wide)
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            product: Array = np.asarray(wide * multiplier[..., None])
            if isinstance(self.target, IntFormat):
                product = np.ldexp(product, self.target.mx_fraction_bits)
        if self.rounding not in _DIRECTED:
            return product
        small = np.abs(product) < _TINY
        if not self.row.on_chip:
            return np.where(small & (wide != 0), np.copysign(_TINY, wide), product)
        if self.choices.get("mx_subnormal_product") == "flush":
            return np.where(small, np.copysign(np.float32(0.0), product), product)
        if blocks.dtype.name == "bfloat16":
            return round_to_bf16(product.view(np.uint32)).view(np.float32)
        return product

    def codes(self, scaled: Array) -> Array:
        """Round scaled values to element codes."""
        found = _in_memory_order(Cast(None, self.format, self.rounding, self.saturate, nan="zero"), scaled)
        if self._drops_sign:
            ocp = self.rule.name == "pto-ocp"
            small = (scaled >= -_HALF_STEP) if ocp else (scaled == -_HALF_STEP)
            found = np.where(small & (found == _SIGN8), np.uint8(0), found)
        if self.nan_code:
            found = np.where(np.isnan(scaled), np.uint8(self.nan_code), found)
        return found

    def quantize(self, blocks: Array, source: str) -> tuple[Array, Array]:
        """Quantize blocks.

        Args:
            blocks: ``[..., G, B]`` float32, float16 or bfloat16.
            source: its format name.

        Returns:
            Codes of the blocks' shape, and scale bytes ``[..., G]``.
        """
        largest = self.largest(blocks)
        if self.rule.name == "mse2":
            return self._better_of_two(blocks, largest, source)
        found, multiplier = self.scales(largest, source)
        return self.codes(self.scaled(blocks, multiplier)), found

    def _better_of_two(self, blocks: Array, largest: Array, source: str) -> tuple[Array, Array]:
        low = scale_bytes("ocp-floor", largest, self.context(source))
        high = np.where(low < NAN_BYTE - 1, low + np.uint8(largest > 0), low).astype(np.uint8)
        best_codes, best = self._candidate(blocks, low, largest)
        other_codes, other = self._candidate(blocks, high, largest)
        better = other < best
        return np.where(better[..., None], other_codes, best_codes), np.where(better, high, low)

    def _candidate(self, blocks: Array, found: Array, largest: Array) -> tuple[Array, Array]:
        scaled = self.scaled(blocks, self.multipliers(found, largest))
        codes = self.codes(scaled)
        error = np.square(decode_elements(codes, self.target) - scaled.astype(np.float64))
        # Errors of the two candidates are compared in units of the input: a step of the byte is a factor of 4.
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            return codes, np.ldexp(fold(error), 2 * (found.astype(np.int32) - 127))


def _in_memory_order(cast: Cast, values: Array) -> Array:
    """Cast a transposed array as it lies in memory, which is what compiled kernels read at full speed."""
    order = np.argsort([-stride for stride in values.strides], kind="stable")
    return cast(values.transpose(order)).transpose(np.argsort(order))


def decode_elements(codes: Array, target: Format) -> Array:
    """Return the values of element codes as float64."""
    from narrowcast.quant import decode

    return decode(codes, target.name).astype(np.float64)


def fold(values: Array) -> Array:
    """Sum the last axis in a fixed order: halves are added until one element is left."""
    while values.shape[-1] > 1:
        size = values.shape[-1]
        half = (size + 1) // 2
        head = values[..., :half].copy()
        head[..., : size - half] += values[..., half:]
        values = head
    return values[..., 0]
