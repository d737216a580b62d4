"""Quantization modes of the Fixpipe, the Cube's output pipe.

``name`` is the seed's (table 2.1) where it has the mode. The three public numberings disagree, so a mode is found
by name only and its numbers are columns.
"""

from dataclasses import dataclass
from enum import Enum

from narrowcast.catalog import Catalog
from narrowcast.schema import Provenance, Rounding


class FloatSaturation(Enum):
    """Which control bits decide overflow of a floating-point result."""

    NONE = "never"
    CTRL48 = "CTRL[48]"
    CTRL48_50 = "CTRL[48], NaN by CTRL[50]"


@dataclass(frozen=True, kw_only=True)
class FixpipeMode:
    """One conversion of the accumulator on its way out."""

    name: str
    accumulator: str  # s32 or fp32
    targets: tuple[str, ...]  # two for the modes whose sign bit chooses
    purpose: str
    scaled: bool = True
    vector: bool = True  # per-column parameters exist
    seed_vector: bool = True  # ... in the seed's table
    offset: bool = False
    rounding: Rounding = Rounding.RN
    float_saturation: FloatSaturation = FloatSaturation.CTRL48
    in_seed: bool = True
    vendor: str | None = None
    aliases: tuple[str, ...] = ()
    compiler_code: tuple[int | None, int | None] = (None, None)  # scalar, vector; C310 compiler header
    pto_code: tuple[int | None, int | None] = (None, None)
    chips: tuple[str, ...] = ("3510",)
    routes: tuple[str, ...] = ("GM", "L1", "UB")
    authorities: tuple[str, ...] = ("device", "seed", "pto-isa", "pto-spec")
    provenance: Provenance = Provenance.DOCUMENTED
    source: str = "asc-devkit:on-the-fly quantization; seed:2.1"
    shifts: bool = False  # the word's shift field acts, nothing is multiplied
    no_inf_mode: bool = False  # an older vendor page says the result always saturates
    note: str = ""

    @property
    def bypass(self) -> bool:
        """Whether accumulators leave as they are."""
        return self.vendor == "NoQuant"

    @property
    def takes_word(self) -> bool:
        """Whether the mode reads a parameter word."""
        return self.scaled or self.shifts

    @property
    def integer(self) -> bool:
        """Whether the result is an integer that always saturates."""
        return self.targets[0] in ("s8", "u8", "s4", "s16")


BOTH = ("3510", "2201")
SIMULATED = (*BOTH, "cpu-sim")

ROWS: tuple[FixpipeMode, ...] = (
    FixpipeMode(
        name="S32",
        accumulator="s32",
        targets=("s32",),
        purpose="bypass, S32 passes through",
        scaled=False,
        vector=False,
        float_saturation=FloatSaturation.NONE,
        vendor="NoQuant",
        compiler_code=(0, None),
        pto_code=(0, None),
        chips=SIMULATED,
    ),
    FixpipeMode(
        name="FP32",
        accumulator="fp32",
        targets=("fp32",),
        purpose="bypass, FP32 passes through",
        scaled=False,
        vector=False,
        float_saturation=FloatSaturation.NONE,
        vendor="NoQuant",
        aliases=("F32",),
        compiler_code=(0, None),
        pto_code=(0, None),
        chips=SIMULATED,
    ),
    FixpipeMode(
        name="REQ8",
        accumulator="s32",
        targets=("s8", "u8"),
        purpose="INT8 quantized inference",
        offset=True,
        vendor="REQ8",
        aliases=("VREQ8",),
        compiler_code=(9, 8),
        pto_code=(3, 2),
        chips=SIMULATED,
    ),
    FixpipeMode(
        name="REQ4",
        accumulator="s32",
        targets=("s4",),
        purpose="INT4 quantized inference",
        offset=True,
        vendor="REQ4",
        aliases=("VREQ4",),
        compiler_code=(22, 21),
        pto_code=(17, 18),
        chips=BOTH,
        routes=("GM", "L1"),
        authorities=("device", "seed", "pto-spec"),
        source="seed:2.1; asc-devkit:newer C-API pages",
        note="Absent from the basic Fixpipe API; the newer C-API has it.",
    ),
    FixpipeMode(
        name="DEQF16",
        accumulator="s32",
        targets=("fp16",),
        purpose="INT accumulation to FP16 output",
        seed_vector=False,
        vendor="DEQF16",
        aliases=("VDEQF16",),
        compiler_code=(11, 10),
        pto_code=(5, 4),
        chips=SIMULATED,
        no_inf_mode=True,
        note="The seed lists it as scalar only; the vendor documents VDEQF16.",
    ),
    FixpipeMode(
        name="QS322BF16",
        accumulator="s32",
        targets=("bf16",),
        purpose="INT accumulation to BF16 output",
        vendor="QS322BF16_PRE",
        aliases=("VQS322BF16_PRE", "VQS322BF16"),
        compiler_code=(36, 35),
        pto_code=(35, 39),
        chips=("3510", "cpu-sim"),
    ),
    FixpipeMode(
        name="QF32_2_B8",
        accumulator="fp32",
        targets=("s8", "u8"),
        purpose="FP32 training to INT8 deployment",
        offset=True,
        vendor="QF322B8_PRE",
        aliases=("VQF322B8_PRE", "QF322B8", "VQF322B8"),
        compiler_code=(24, 23),
        pto_code=(24, 23),
        chips=SIMULATED,
    ),
    FixpipeMode(
        name="QF32_2_S4",
        accumulator="fp32",
        targets=("s4",),
        purpose="FP32 to INT4 deployment",
        offset=True,
        vendor="QF322S4_PRE",
        aliases=("VQF322S4_PRE", "QF322S4", "VQF322S4"),
        compiler_code=(26, 25),
        chips=BOTH,
        routes=("GM", "L1"),
        authorities=("device", "seed"),
        source="seed:2.1; asc-devkit:newer C-API pages",
        note="Absent from the basic Fixpipe API; the newer C-API has it.",
    ),
    FixpipeMode(
        name="QF32_2_HiF8",
        accumulator="fp32",
        targets=("hif8",),
        purpose="FP32 to HiFloat8",
        rounding=Rounding.RNA,
        vendor="QF322HIF8_PRE",
        aliases=("VQF322HIF8_PRE",),
        compiler_code=(3, 2),
        pto_code=(25, 28),
    ),
    FixpipeMode(
        name="QF32_2_HiF8_HYBRID",
        accumulator="fp32",
        targets=("hif8",),
        purpose="FP32 to HiFloat8, hybrid rounding",
        rounding=Rounding.RH,
        in_seed=False,
        vendor="QF322HIF8_PRE_HYBRID",
        aliases=("VQF322HIF8_PRE_HYBRID",),
        compiler_code=(5, 4),
        authorities=("device",),
        source="asc-devkit:on-the-fly quantization",
    ),
    FixpipeMode(
        name="QF32_2_E4M3",
        accumulator="fp32",
        targets=("e4m3",),
        purpose="FP32 to FP8 quantization",
        float_saturation=FloatSaturation.CTRL48_50,
        vendor="QF322FP8_PRE",
        aliases=("VQF322FP8_PRE",),
        compiler_code=(13, 12),
        pto_code=(26, 37),
    ),
    FixpipeMode(
        name="QF32_2_E5M2",
        accumulator="fp32",
        targets=("e5m2",),
        purpose="FP32 to FP8 quantization",
        float_saturation=FloatSaturation.CTRL48_50,
        authorities=("device", "seed"),
        provenance=Provenance.ASSUMED,
        source="seed:2.1",
        note="No vendor page has it: rn and the control bits of E4M3 are assumed.",
    ),
    FixpipeMode(
        name="QF32_2_BF16",
        accumulator="fp32",
        targets=("bf16",),
        purpose="FP32 to BF16 precision conversion",
        vendor="QF322BF16_PRE",
        aliases=("VQF322BF16_PRE",),
        compiler_code=(34, 33),
        pto_code=(34, 36),
        chips=("3510", "cpu-sim"),
    ),
    FixpipeMode(
        name="QF322F16",
        accumulator="fp32",
        targets=("fp16",),
        purpose="FP32 to FP16 precision conversion",
        vendor="QF322F16_PRE",
        aliases=("VQF322F16_PRE",),
        compiler_code=(32, 31),
        pto_code=(32, 33),
        chips=("3510", "cpu-sim"),
    ),
    FixpipeMode(
        name="QF322F32",
        accumulator="fp32",
        targets=("fp32",),
        purpose="FP32 scaled",
        float_saturation=FloatSaturation.NONE,
        in_seed=False,
        vendor="QF322F32_PRE",
        aliases=("VQF322F32_PRE",),
        compiler_code=(15, 14),
        pto_code=(27, 38),
        authorities=("device", "pto-isa", "pto-spec"),
        source="asc-devkit:on-the-fly quantization",
        note="The 10-bit fraction of the scale limits it to a relative error near 1e-3.",
    ),
    FixpipeMode(
        name="F322F16",
        accumulator="fp32",
        targets=("fp16",),
        purpose="FP32 to FP16, no scale",
        scaled=False,
        vector=False,
        in_seed=False,
        vendor="F322F16",
        compiler_code=(1, None),
        pto_code=(1, None),
        chips=SIMULATED,
        authorities=("device", "pto-isa", "pto-spec"),
        source="asc-devkit:on-the-fly quantization",
    ),
    FixpipeMode(
        name="F322BF16",
        accumulator="fp32",
        targets=("bf16",),
        purpose="FP32 to BF16, no scale",
        scaled=False,
        vector=False,
        in_seed=False,
        vendor="F322BF16",
        compiler_code=(16, None),
        pto_code=(16, None),
        chips=SIMULATED,
        authorities=("device", "pto-isa", "pto-spec"),
        no_inf_mode=True,
        source="asc-devkit:on-the-fly quantization",
    ),
    FixpipeMode(
        name="DEQS16",
        accumulator="s32",
        targets=("s16",),
        purpose="S32 to S16",
        offset=True,
        in_seed=False,
        aliases=("VDEQS16",),
        compiler_code=(28, 27),
        pto_code=(19, 20),
        authorities=("pto-spec",),
        provenance=Provenance.SIMULATED,
        source="pto-spec:matrix-postprocess",
        note="In no 3510 API table.",
    ),
    FixpipeMode(
        name="SHIFTS322S16",
        accumulator="s32",
        targets=("s16",),
        purpose="S32 shifted right to S16",
        in_seed=False,
        aliases=("VSHIFTS322S16",),
        pto_code=(13, 12),
        authorities=("pto-spec", "pto-isa"),
        scaled=False,
        shifts=True,
        chips=SIMULATED,
        provenance=Provenance.SIMULATED,
        source="pto-spec:matrix-postprocess",
        note="In no 3510 API table; codes 12 and 13 mean FP8 in the 3510 compiler header.",
    ),
)

fixpipe_modes: Catalog[FixpipeMode] = Catalog(
    "Fixpipe mode",
    {row.name: row for row in ROWS},
    {
        alias: row.name
        for row in ROWS
        for alias in dict.fromkeys(
            a.lower() for a in (*row.aliases, *((row.vendor,) if row.vendor not in (None, "NoQuant") else ()))
        )
    },
)
