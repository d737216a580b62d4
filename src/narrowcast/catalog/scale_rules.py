"""MX scale rules: how each stack gets one E8M0 byte from a block's largest magnitude, and what it does to elements.

The formulas are in words here and as integer algorithms in ``narrowcast.mx.rules``. In them E is the exponent of
the largest magnitude (floor of its log2), f its significand in [1, 2), and emax the exponent of the element
format's largest value (e4m3 8, e5m2 15, e2m1 2, e1m2 0).
"""

from dataclasses import dataclass

from narrowcast.catalog import Catalog
from narrowcast.errors import ConstraintError, UnsupportedCastError
from narrowcast.schema import Provenance, Rounding

RN, RNA, RD, RU, RZ = Rounding.RN, Rounding.RNA, Rounding.RD, Rounding.RU, Rounding.RZ
ALL_SOURCES = ("fp32", "fp16", "bf16")


@dataclass(frozen=True, kw_only=True)
class ElementRow:
    """An element format a rule writes: its rounding modes, default first, and the sources it takes."""

    format: str
    roundings: tuple[Rounding, ...]
    sources: tuple[str, ...] = ALL_SOURCES
    drops_negative_zero: bool = False  # an input of exactly -0 becomes +0; a negative that rounds to 0 does not


@dataclass(frozen=True, kw_only=True)
class ParameterRow:
    """A number a rule takes: its default and its range."""

    name: str
    default: float
    means: str
    low: float
    high: float
    also: tuple[float, ...] = ()  # legal values outside the range

    def check(self, value: float, rule: str) -> float:
        """Return the value as float, or refuse it."""
        number = float(value)
        if number in self.also or self.low <= number <= self.high:
            return number
        extra = "".join(f" or {a:g}" for a in self.also)
        raise ConstraintError(
            f"{self.name}={value!r} of scale rule {rule}: {self.means}; legal: {self.low:g}..{self.high:g}{extra}.",
            source="ops-nn:DynamicMxQuant",
        )


@dataclass(frozen=True, kw_only=True)
class ScaleRuleRow:
    """One scale rule."""

    name: str
    title: str
    formula: str
    elements: tuple[ElementRow, ...]
    infinite: str  # what a block with an infinity gives
    nan: str
    zero: str
    tiny: str  # blocks whose exponent lies below the scale's range
    source: str
    example: tuple[str, float, int]  # element format, largest magnitude, scale byte
    provenance: Provenance = Provenance.DOCUMENTED
    parameters: tuple[ParameterRow, ...] = ()
    flushes_byte0: bool = False  # the multiplier of byte 0 is 0, so the whole block becomes zero
    block_limit: int | None = None  # largest block; None: any multiple of 32
    fp32_block_limit: int | None = None
    on_chip: bool = False  # elements are written by the chip's cast: control bits and its disputed points apply
    free: bool = False  # the source leaves rounding and saturation of the elements open
    switches: tuple[str, ...] = ()
    note: str = ""

    @property
    def formats(self) -> tuple[str, ...]:
        """Element formats the rule writes."""
        return tuple(e.format for e in self.elements)

    def element(self, format: str) -> ElementRow:
        """Return the row of an element format.

        Raises:
            UnsupportedCastError: the rule does not write that format.
        """
        for row in self.elements:
            if row.format == format:
                return row
        raise UnsupportedCastError(
            f"scale rule {self.name} does not apply to {format} (it writes: {', '.join(self.formats)}).",
            hint=f"Rules for {format}: {', '.join(r.name for r in ROWS if format in r.formats) or 'none'}.",
            source=self.source,
        )


_FLOATS = ("e4m3", "e5m2", "e2m1", "e1m2", "e3m2", "e2m3")


def _free(*extra: str) -> tuple[ElementRow, ...]:
    """OCP leaves the elements' rounding open."""
    return tuple(ElementRow(format=name, roundings=(RN, RNA, RD, RU, RZ)) for name in (*_FLOATS, *extra))


def _cann(*names: str) -> tuple[ElementRow, ...]:
    """FP8 rounds to nearest even only; FP4 takes round_mode rint, round and floor."""
    return tuple(ElementRow(format=n, roundings=(RN,) if n in ("e4m3", "e5m2") else (RN, RNA, RD)) for n in names)


_PTO = (
    ElementRow(format="e4m3", roundings=(RN,)),
    ElementRow(format="e2m1", roundings=(RN,), sources=("fp16", "bf16")),
)
_TO_255 = "byte 255: the block is NaN"
_CLIPPED = "kept: the exponent is limited to -127"
_MODELSLIM = "msmodelslim 26.1.0: AscendV1Saver output, reproduced byte by byte"
_SLIM8 = ElementRow(format="e4m3", roundings=(RNA,), drops_negative_zero=True)
_SLIM4 = ElementRow(format="e2m1", roundings=(RNA,), drops_negative_zero=True)
_BF16_ONLY = ("bf16",)

ROWS: tuple[ScaleRuleRow, ...] = (
    ScaleRuleRow(
        name="ocp-floor",
        title="OCP MX v1.0",
        formula="e = E - emax, limited to -127..127",
        elements=_free("s8"),
        free=True,
        infinite=_TO_255,
        nan=_TO_255,
        zero="byte 0",
        tiny=_CLIPPED,
        source="OCP MX v1.0; equal to gfloat and microxcaling on finite blocks",
        example=("e4m3", 500.0, 127),
        note="Scaled values in (max, 2**(emax + 1)) saturate: (448, 512) for e4m3. An s8 element is code / 64.",
    ),
    ScaleRuleRow(
        name="ceil",
        title="smallest power of two that does not clip (RCEIL)",
        formula="e = ceil(log2(amax / max)), limited to -127..127",
        elements=_free("s8"),
        free=True,
        infinite=_TO_255,
        nan=_TO_255,
        zero="byte 0",
        tiny=_CLIPPED,
        source="arXiv:2506.08027; torchao:RCEIL",
        example=("e4m3", 500.0, 128),
        note="No element saturates; half of the codes of the top binade stay unused on average.",
    ),
    ScaleRuleRow(
        name="ceil-log2",
        title="floor of OCP with the exponent rounded up",
        formula="e = ceil(log2(amax)) - emax, limited to -127..127",
        elements=_free(),
        free=True,
        infinite=_TO_255,
        nan=_TO_255,
        zero="byte 0",
        tiny=_CLIPPED,
        source="torchao:CEIL",
        example=("e4m3", 300.0, 128),
    ),
    ScaleRuleRow(
        name="even",
        title="amax rounded to the element's precision, then floor",
        formula="add half an element ulp to the bits of amax; e = E of the sum - emax",
        elements=_free(),
        free=True,
        infinite=_TO_255,
        nan=_TO_255,
        zero="byte 0",
        tiny=_CLIPPED,
        source="torchao:EVEN",
        example=("e4m3", 500.0, 128),
        note="e4m3 goes up from significand 1.9375, e2m1 from 1.75.",
    ),
    ScaleRuleRow(
        name="mse2",
        title="the better of two neighbouring exponents",
        formula="ocp-floor's e or e + 1, whichever gives the block the smaller squared error; a tie keeps e",
        elements=_free(),
        free=True,
        infinite=_TO_255,
        nan=_TO_255,
        zero="byte 0",
        tiny=_CLIPPED,
        source="msmodelslim:mse_round, the idea; the error sum here is in fp64, in a fixed order",
        provenance=Provenance.IMPLEMENTATION_DEFINED,
        example=("e2m1", 7.5, 128),
    ),
    ScaleRuleRow(
        name="cann-0",
        title="DynamicMxQuant, scaleAlg 0 (its default)",
        formula="e = E - emax on the exponent field of a bf16 view; byte 0 gets multiplier 0",
        elements=_cann("e4m3", "e5m2", "e2m1", "e1m2"),
        infinite=_TO_255,
        nan=_TO_255,
        zero="byte 0, multiplier 0",
        tiny="flushed: every element becomes zero when the exponent field is at most emax",
        source="ops-nn:dynamic_mx_quant_tail_axis",
        example=("e4m3", 500.0, 127),
        flushes_byte0=True,
        block_limit=1024,
        fp32_block_limit=32,
        on_chip=True,
        switches=("mx_tiny_block",),
    ),
    ScaleRuleRow(
        name="cann-1",
        title="DynamicMxQuant, scaleAlg 1",
        formula="d = fp32(max(amax, max_low_bound) * fp32(1 / max)); e = exponent of d, one up if its fraction is "
        "not 0",
        elements=_cann("e4m3", "e5m2"),
        infinite=_TO_255,
        nan=_TO_255,
        zero="byte 0, multiplier 0",
        tiny="kept",
        source="ops-nn:dynamic_mx_quant_tail_axis_fp8",
        example=("e4m3", 500.0, 128),
        parameters=(
            ParameterRow(
                name="max_low_bound", default=0.0, means="a floor under every block's amax", low=0.0, high=3.4e38
            ),
        ),
        block_limit=1024,
        fp32_block_limit=32,
        on_chip=True,
        switches=("mx_zero_low_bound",),
        note="Equal to `ceil` on blocks of normal numbers.",
    ),
    ScaleRuleRow(
        name="cann-2",
        title="DynamicMxQuant, scaleAlg 2",
        formula="dst_type_max 0, 6: e = E - 2, one up if f > 1.5 on a bf16 view; 7: if f > 1.75; else as cann-1 with "
        "fp32(1 / dst_type_max)",
        elements=_cann("e2m1"),
        infinite=_TO_255,
        nan=_TO_255,
        zero="byte 0, multiplier 0",
        tiny="flushed when the byte is 0 (dst_type_max 0, 6, 7), else kept",
        source="ops-nn:dynamic_mx_quant_tail_axis",
        example=("e2m1", 7.0, 128),
        parameters=(
            ParameterRow(
                name="dst_type_max",
                default=0.0,
                means="what a block's largest magnitude may map to",
                low=6.0,
                high=12.0,
                also=(0.0,),
            ),
        ),
        flushes_byte0=True,
        block_limit=32,
        fp32_block_limit=32,
        on_chip=True,
        switches=("mx_tiny_block",),
        note="The bf16 view truncates fp32 and rounds fp16, so an fp32 amax one ulp above 1.5 * 2**k is not bumped.",
    ),
    ScaleRuleRow(
        name="pto-ocp",
        title="TQUANT, OcpMxFp8E4M3 and OcpMxFp4E2M1",
        formula="byte = exponent field of amax - emax, at least 0",
        elements=_PTO,
        infinite="as a number: byte 247 (e4m3) or 253 (e2m1)",
        nan=_TO_255,
        zero="byte 0",
        tiny="kept: byte 0 multiplies by 2**127",
        source="pto-isa:a5/TQuant.hpp",
        example=("e4m3", 500.0, 127),
        block_limit=32,
        on_chip=True,
        switches=("mx_infinite_block", "mx_nan_maximum", "mx_zero_sign"),
    ),
    ScaleRuleRow(
        name="pto-nv",
        title="TQUANT, NvMxFp8E4M3 and NvMxFp4E2M1",
        formula="d = fp32(amax * fp32(1 / max)); byte = exponent field of d, one up if its fraction is not 0",
        elements=_PTO,
        infinite="byte 254",
        nan=_TO_255,
        zero="byte 0",
        tiny="kept: byte 0 multiplies by 2**127",
        source="pto-isa:a5/TQuant.hpp",
        example=("e4m3", 500.0, 128),
        block_limit=32,
        on_chip=True,
        switches=("mx_nan_maximum", "mx_zero_sign"),
    ),
    ScaleRuleRow(
        name="msmodelslim",
        title="msmodelslim W8A8_MXFP8 and W4A4_MXFP4, fp32 weights",
        formula="e4m3: byte = floor(log2(amax)) - 8 + 127, at least 0; "
        "e2m1: byte = floor(log2(amax / 0.875 + 9.6e-7)) - 2 + 127, fp32 operations",
        elements=(_SLIM8, _SLIM4),
        infinite=_TO_255 + " (assumed: the library was not run on infinities)",
        nan=_TO_255 + " (assumed)",
        zero="byte 0 (e4m3), 105 (e2m1)",
        tiny="e2m1: byte 105 below about 1e-6, so the elements vanish; e4m3: kept",
        source=_MODELSLIM,
        provenance=Provenance.SIMULATED,
        example=("e2m1", 7.0, 128),
        block_limit=32,
        note="Elements round ties away from zero.",
    ),
    ScaleRuleRow(
        name="msmodelslim-bf16",
        title="msmodelslim on bf16 weights: what real models give",
        formula="as msmodelslim, each operation rounded to bf16",
        elements=(
            ElementRow(format="e4m3", roundings=(RNA,), sources=_BF16_ONLY, drops_negative_zero=True),
            ElementRow(format="e2m1", roundings=(RNA,), sources=_BF16_ONLY, drops_negative_zero=True),
        ),
        infinite=_TO_255 + " (assumed)",
        nan=_TO_255 + " (assumed)",
        zero="byte 0 (e4m3), 105 (e2m1)",
        tiny="as msmodelslim",
        source=_MODELSLIM,
        provenance=Provenance.SIMULATED,
        example=("e4m3", 0.03112793, 114),
        block_limit=32,
        note="log2 rounded to bf16 reaches the next integer early: amax just below a power of two may get a byte one "
        "higher.",
    ),
    ScaleRuleRow(
        name="ceil-x",
        title="msmodelslim W4A4_MXFP4, method ceil_x, fp32 weights",
        formula="byte = ceil(log2(amax / c + 9.6e-7)) + 127, fp32 operations",
        elements=(_SLIM4,),
        infinite=_TO_255 + " (assumed)",
        nan=_TO_255 + " (assumed)",
        zero="byte 108",
        tiny="byte 108 below about 1e-6, so the elements vanish",
        source=_MODELSLIM,
        provenance=Provenance.SIMULATED,
        example=("e2m1", 7.5, 128),
        parameters=(
            ParameterRow(
                name="c", default=7.25, means="what a block's largest magnitude may map to", low=1.0, high=16.0
            ),
        ),
        block_limit=32,
    ),
    ScaleRuleRow(
        name="ceil-x-bf16",
        title="msmodelslim W4A4_MXFP4, method ceil_x, bf16 weights",
        formula="as ceil-x, each operation rounded to bf16",
        elements=(ElementRow(format="e2m1", roundings=(RNA,), sources=_BF16_ONLY, drops_negative_zero=True),),
        infinite=_TO_255 + " (assumed)",
        nan=_TO_255 + " (assumed)",
        zero="byte 107",
        tiny="as ceil-x",
        source=_MODELSLIM,
        provenance=Provenance.SIMULATED,
        example=("e2m1", 7.5, 128),
        parameters=(
            ParameterRow(
                name="c", default=7.25, means="what a block's largest magnitude may map to", low=1.0, high=16.0
            ),
        ),
        block_limit=32,
    ),
    ScaleRuleRow(
        name="compressed-tensors",
        title="compressed-tensors mxfp4 and mxfp8",
        formula="e = E - emax, one up if f >= 1.75, for both element formats",
        elements=(
            ElementRow(format="e4m3", roundings=(RN,), drops_negative_zero=True),
            ElementRow(format="e2m1", roundings=(RN,), drops_negative_zero=True),
        ),
        infinite=_TO_255 + " (assumed: the library's own code overflows above 2**127)",
        nan=_TO_255 + " (assumed)",
        zero="byte 0",
        tiny=_CLIPPED,
        source="compressed-tensors 0.20.1",
        provenance=Provenance.SIMULATED,
        example=("e4m3", 450.0, 128),
        block_limit=32,
    ),
)

scale_rules: Catalog[ScaleRuleRow] = Catalog(
    "scale rule",
    {row.name: row for row in ROWS},
    {
        "floor": "ocp-floor",
        "ocp": "ocp-floor",
        "rceil": "ceil",
        "scalealg0": "cann-0",
        "scalealg1": "cann-1",
        "scalealg2": "cann-2",
        "OcpMxFp8E4M3": "pto-ocp",
        "OcpMxFp4E2M1": "pto-ocp",
        "NvMxFp8E4M3": "pto-nv",
        "NvMxFp4E2M1": "pto-nv",
    },
)
