"""Accuracy pitfalls: the eight of seed 5.4 and those that users report, with the fix of each."""

from dataclasses import dataclass

from narrowcast.catalog import Catalog


@dataclass(frozen=True, kw_only=True)
class PitfallRow:
    """One pitfall.

    Attributes:
        id: ``PIT-`` for the seed's, ``USR-`` for those users report.
        name: noun.
        symptom: what is seen.
        cause: why.
        fix: what to do, in the words of a scale: real = code * scale.
        multiplier_fix: the same for code = round(x * multiplier), where it differs.
        tier: 0 broken data or parameters, 1 a wrong range, 2 a format that does not suit, 3 a matter of care. Findings
            are listed by tier, since a wrong layout also saturates and an overflow also loses accuracy.
        original: the seed's own line.
    """

    id: str
    name: str
    symptom: str
    cause: str
    fix: str
    tier: int
    source: str
    multiplier_fix: str = ""
    original: str = ""


_USERS = "issue trackers of quantization tools"

ROWS: tuple[PitfallRow, ...] = (
    PitfallRow(
        id="PIT-01",
        name="overflow clipping",
        symptom="codes pile up at the largest value",
        cause="the scale is too small: values lie beyond max * scale",
        fix="Raise the scale to absmax / max (or saturate on purpose). The seed's limit 127/scale is that of a "
        "multiplier; with a scale the limit is 127 * scale.",
        multiplier_fix="Lower the multiplier to max / absmax: beyond 127/multiplier everything clips (the seed's "
        "127/scale, whose scale is this multiplier, so its advice to raise the scale turns around).",
        tier=1,
        original="溢出截断 | INT8 量化后最大值全是 127 | scale 太小, FP32 值远超 127/scale | "
        "调大 scale 或用 saturation",
        source="seed:5.4#1",
    ),
    PitfallRow(
        id="PIT-02",
        name="all-zero output",
        symptom="nearly every code is 0",
        cause="the scale is too large: values below half a step round to 0",
        fix="Lower the scale to absmax / max; where a few outliers set it, use one scale per row or group.",
        multiplier_fix="Raise the multiplier to max / absmax; where a few outliers set it, use one per row or group.",
        tier=1,
        original="全零输出 | 量化后输出全为 0 | scale 太大, 所有值量化后 < 0.5 被截断 | 调小 scale",
        source="seed:5.4#2",
    ),
    PitfallRow(
        id="PIT-03",
        name="asymmetric data in a signed format",
        symptom="one half of the signed codes is unused",
        cause="the data lies on one side of zero and no zero point is used",
        fix="Use U8 with an offset.",
        tier=2,
        original="非对称量化偏移 | 有符号量化不对称 | 未正确处理 zero-point | 用 U8 + offset 做对称化预处理",
        source="seed:5.4#3",
    ),
    PitfallRow(
        id="PIT-04",
        name="BF16 stagnation",
        symptom="updates vanish: x + update == x",
        cause="BF16 has 7 fraction bits, and an update below half a step of x is rounded away",
        fix="Accumulate in FP32 and convert to BF16 once, at the end.",
        tier=3,
        original="BF16 精度低 | 梯度更新不收敛 | BF16 只有 7-bit 尾数 | 用 FP32 累加 + 最后一步转 BF16",
        source="seed:5.4#4",
    ),
    PitfallRow(
        id="PIT-05",
        name="FP4 error above 50%",
        symptom="more than half of the magnitude is lost",
        cause="FP4 E2M1 has one fraction bit, and one scale cannot serve values far apart",
        fix="Add MX scales: one E8M0 scale per group of 32.",
        tier=2,
        original="FP4 精度不足 | 量化误差 > 50% | FP4 E2M1 只有 1-bit 尾数 | 配合 MX scale (E8M0) 分组补偿",
        source="seed:5.4#5",
    ),
    PitfallRow(
        id="PIT-06",
        name="subnormal input",
        symptom="results that nobody can predict",
        cause="subnormals of the format in which the operation works are not handled",
        fix="Flush subnormals to zero first: narrowcast.flush_subnormals.",
        tier=3,
        original="denormal 输入 | 量化结果不可预测 | denormal 在 FP32 域处理异常 | 输入数据先 flush-to-zero",
        source="seed:5.4#6",
    ),
    PitfallRow(
        id="PIT-07",
        name="error growth along a chain",
        symptom="a chain of casts loses more than its last cast",
        cause="every quantization adds its own rounding error",
        fix="Quantize less often: merge the steps into one.",
        tier=2,
        original="混合精度链 | 串联量化精度衰减 | 每次量化引入舍入误差 | 减少量化次数, 合并为一步",
        source="seed:5.4#7",
    ),
    PitfallRow(
        id="PIT-08",
        name="NZ2ND tail garbage",
        symptom="columns beyond N hold numbers",
        cause="the Fixpipe drops padding in M, not in N",
        fix="Round N up to C0 and read the first N columns only, or store with NZ2DN.",
        tier=0,
        original="NZ2ND 尾部垃圾 | N 不对齐时输出含无效数据 | FIXP 不删 N 方向 dummy | N 按 C0 向上对齐, 或用 NZ2DN",
        source="seed:5.4#8",
    ),
    PitfallRow(
        id="USR-01",
        name="zero scale",
        symptom="a scale is zero, negative or not finite",
        cause="an all-zero row or block gives absmax 0, and 0 / 0 is NaN",
        fix="Give all-zero blocks a small positive scale (quantize uses 2**-23) and the others absmax / max.",
        tier=0,
        source=_USERS,
    ),
    PitfallRow(
        id="USR-02",
        name="scale underflow in fp16",
        symptom="small blocks come back wrong or as zero",
        cause="the scale is below 2**-14, where fp16 loses its bits",
        fix="Store scales in fp32 (or bf16).",
        tier=0,
        source=_USERS,
    ),
    PitfallRow(
        id="USR-03",
        name="swapped nibbles",
        symptom="neighbours have changed places",
        cause="the writer put the even element in the high nibble",
        fix="Swap the nibbles of every byte: the even element is the low one.",
        tier=0,
        source=_USERS,
    ),
    PitfallRow(
        id="USR-04",
        name="scales on the wrong axis",
        symptom="rows are scaled by the columns' factors",
        cause="a vector of scales was broadcast along the other axis",
        fix="Shape the scales [M, 1] for rows or [1, N] for columns.",
        tier=0,
        source=_USERS,
    ),
    PitfallRow(
        id="USR-05",
        name="NaN or infinity",
        symptom="whole blocks are NaN or infinite",
        cause="a NaN or infinity in the input, or a NaN scale code (E8M0 0xFF), spreads over its block",
        fix='Repair the input, or quantize with nonfinite="saturate".',
        tier=0,
        source=_USERS,
    ),
    PitfallRow(
        id="USR-06",
        name="uint8 read as int8",
        symptom="values jump by 256 steps",
        cause="codes of one signedness are read as the other",
        fix="Read the codes in the format they were written in.",
        tier=0,
        source=_USERS,
    ),
    PitfallRow(
        id="USR-07",
        name="double rounding",
        symptom="a few codes are off by one",
        cause="a value near a tie is rounded onto it by the first cast and past it by the second",
        fix="Cast once; where no scale stands between the casts, the first may round to odd (ro) and gives the same.",
        tier=3,
        source=_USERS,
    ),
    PitfallRow(
        id="USR-08",
        name="scale taken for a multiplier",
        symptom="every value is off by the same factor",
        cause="real = code * scale and code = x * multiplier use reciprocal factors",
        fix="Pass it under its own name: scale= or multiplier=.",
        tier=0,
        source=_USERS,
    ),
)

pitfalls: Catalog[PitfallRow] = Catalog("pitfall", {row.id: row for row in ROWS}, {})
