"""Rows of the cycle planner: products, matrix rates, vector recipes and transfer rates, each with who says so.

Elements per cycle that leave the accumulator are rows of ``machine.RATES``.
"""

from dataclasses import dataclass

from narrowcast.catalog import Catalog


@dataclass(frozen=True, kw_only=True)
class SkuRow:
    """One product: its cores, its clock and the memory behind them."""

    name: str
    title: str
    cube_cores: int
    vector_cores: int
    clock_hz: float
    l2_bytes: int
    memory_bytes_per_second: float
    source: str


_INI = "platform configuration files; press for the memory rate"

SKUS: tuple[SkuRow, ...] = (
    SkuRow(
        name="950PR",
        title="950PR 958x, server",
        cube_cores=32,
        vector_cores=64,
        clock_hz=1.65e9,
        l2_bytes=128 << 20,
        memory_bytes_per_second=1.6e12,
        source=f"Ascend950PR_9589 {_INI}",
    ),
    SkuRow(
        name="950PR-28",
        title="950PR 957x",
        cube_cores=28,
        vector_cores=56,
        clock_hz=1.65e9,
        l2_bytes=128 << 20,
        memory_bytes_per_second=1.4e12,
        source=f"Ascend950PR_957x {_INI}",
    ),
    SkuRow(
        name="950PR-957bx",
        title="950PR 957bx",
        cube_cores=28,
        vector_cores=56,
        clock_hz=1.65e9,
        l2_bytes=112 << 20,
        memory_bytes_per_second=1.4e12,
        source=f"Ascend950PR_957bx {_INI} (its memory rate is inferred)",
    ),
    SkuRow(
        name="950DT",
        title="950DT 958x",
        cube_cores=32,
        vector_cores=64,
        clock_hz=1.65e9,
        l2_bytes=128 << 20,
        memory_bytes_per_second=4.0e12,
        source=f"Ascend950DT_958x {_INI}",
    ),
    SkuRow(
        name="950DT-28",
        title="950DT 957x",
        cube_cores=28,
        vector_cores=56,
        clock_hz=1.65e9,
        l2_bytes=128 << 20,
        memory_bytes_per_second=4.0e12,
        source=f"Ascend950DT_957x {_INI}",
    ),
)

skus: Catalog[SkuRow] = Catalog(
    "SKU",
    {row.name: row for row in SKUS},
    {"950PR_9589": "950PR", "950PR_958x": "950PR", "950PR_957x": "950PR-28", "950PR_957bx": "950PR-957bx",
     "950DT_958x": "950DT", "950DT_9582": "950DT", "950DT_957x": "950DT-28", "950DT_9572": "950DT-28"},
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class MatrixRow:
    """Products of one operand family: the block of a cycle, and with which accumulator."""

    operands: tuple[str, ...]
    accumulator: str
    block: tuple[int, int, int]  # m, n, k consumed a cycle
    source: str = "asc-devkit:Cube performance appendix, table 2"

    @property
    def products(self) -> int:
        """Multiply-accumulates a cycle of one core."""
        m, n, k = self.block
        return m * n * k


MATRIX: tuple[MatrixRow, ...] = (
    MatrixRow(operands=("s8",), accumulator="s32", block=(16, 16, 32)),
    MatrixRow(operands=("e4m3", "e5m2", "hif8"), accumulator="fp32", block=(16, 16, 32)),
    MatrixRow(operands=("fp16", "bf16"), accumulator="fp32", block=(16, 16, 16)),
    MatrixRow(operands=("fp32",), accumulator="fp32", block=(16, 16, 1)),
    MatrixRow(operands=("e2m1", "e1m2"), accumulator="fp32", block=(16, 16, 64)),
)


@dataclass(frozen=True, kw_only=True)
class RecipeRow:
    """What the vector core does for 64 elements: initiation intervals of its steps, loads, stores, chain length."""

    name: str
    source_format: str
    targets: tuple[str, ...]
    steps: tuple[str, ...]
    intervals: float
    loads: float
    stores: float
    exact: bool  # one rounding from the scaled accumulator
    grouped: bool = False  # one scale per group of 32
    source: str = "asc-devkit:register instruction appendix; initiation intervals summed here"
    note: str = ""

    @property
    def chain(self) -> int:
        """Operations that wait for one another."""
        return len(self.steps)


RECIPES: tuple[RecipeRow, ...] = (
    RecipeRow(
        name="s32-requant",
        source_format="s32",
        targets=("s8", "u8"),
        steps=("s32 -> fp32", "x scale", "-> fp16", "-> s8"),
        intervals=6,
        loads=1,
        stores=1,
        exact=False,
        note="rounds through fp16",
    ),
    RecipeRow(
        name="fp32-tquant",
        source_format="fp32",
        targets=("s8", "u8"),
        steps=("x scale", "-> s32", "-> fp32", "-> fp16", "-> s8"),
        intervals=8,
        loads=1,
        stores=1,
        exact=True,
        note="the tile library's chain: the rounding is that of the s32 step",
    ),
    RecipeRow(
        name="fp32-mulscast",
        source_format="fp32",
        targets=("s8", "u8"),
        steps=("x scale -> fp16", "-> s8"),
        intervals=3,
        loads=1,
        stores=1,
        exact=False,
        note="one scale only, and rounds twice",
    ),
    RecipeRow(
        name="fp32-float8",
        source_format="fp32",
        targets=("e4m3", "e5m2", "hif8"),
        steps=("x scale", "-> 8 bits, packed store"),
        intervals=3,
        loads=1,
        stores=1,
        exact=True,
    ),
    RecipeRow(
        name="fp32-mx",
        source_format="fp32",
        targets=("e4m3", "e5m2"),
        steps=("group maximum", "scale exponent", "x scale, -> 8 bits"),
        intervals=5.6,
        loads=1,
        stores=1,
        exact=True,
        grouped=True,
        note="three passes over UB, about 20 elements a cycle",
    ),
    RecipeRow(
        name="fp32-half",
        source_format="fp32",
        targets=("fp16", "bf16"),
        steps=("x scale", "-> 16 bits"),
        intervals=2,
        loads=1,
        stores=1,
        exact=True,
    ),
    RecipeRow(
        name="s32-dequant",
        source_format="s32",
        targets=("fp16", "bf16"),
        steps=("s32 -> fp32", "x scale", "-> 16 bits"),
        intervals=4,
        loads=1,
        stores=1,
        exact=False,
    ),
    RecipeRow(
        name="s8-tdequant",
        source_format="s8",
        targets=("fp32",),
        steps=("load, unpack", "s8 -> fp32", "- offset", "x scale"),
        intervals=6,
        loads=1,
        stores=1,
        exact=True,
    ),
    RecipeRow(
        name="float8-dequant",
        source_format="e4m3",
        targets=("fp32",),
        steps=("-> fp32", "x scale"),
        intervals=3,
        loads=1,
        stores=1,
        exact=True,
    ),
    RecipeRow(
        name="hif8-dequant",
        source_format="hif8",
        targets=("fp32",),
        steps=("-> fp32", "x scale"),
        intervals=3,
        loads=1,
        stores=1,
        exact=True,
    ),
)

recipes: Catalog[RecipeRow] = Catalog("vector recipe", {row.name: row for row in RECIPES}, {})


@dataclass(frozen=True, kw_only=True)
class LimitRow:
    """What all cube cores together can write to GM, as a share of one core."""

    name: str
    bytes_per_cycle: float | None
    means: str
    source: str


LIMITS: tuple[LimitRow, ...] = (
    LimitRow(name="none", bytes_per_cycle=None, means="the engine's own rate", source="seed:2.4"),
    LimitRow(
        name="l2",
        bytes_per_cycle=78.0,
        means="the share of L2 writes with every core storing",
        source="asc-devkit:best practices, measured for 16-bit output; 8-bit and 4-byte inferred",
    ),
    LimitRow(
        name="hbm",
        bytes_per_cycle=31.0,
        means="output far beyond L2 streams to memory",
        source="platform configuration files, ddr_rate per cube core",
    ),
    LimitRow(
        name="starved",
        bytes_per_cycle=18.0,
        means="L2 saturated by the operands' loads",
        source="asc-devkit:matmul_high_performance cases 2-3, measured",
    ),
)

limits: Catalog[LimitRow] = Catalog("GM limit", {row.name: row for row in LIMITS}, {"off": "none", "cap": "l2"})


@dataclass(frozen=True, kw_only=True)
class ConstantRow:
    """One number of the model."""

    name: str
    value: float
    unit: str
    means: str
    source: str


CONSTANTS: tuple[ConstantRow, ...] = (
    ConstantRow(name="ub_store", value=42.0, unit="B/cycle", means="UB to GM, one vector core",
                source="platform configuration files, VectorCoreMemoryRates"),
    ConstantRow(name="ub_load", value=44.0, unit="B/cycle", means="GM (in L2) to UB, all vector cores pulling",
                source="asc-devkit:matmul_gelu, measured"),
    ConstantRow(name="dma", value=39.0, unit="cycles", means="least time of one transfer command",
                source="asc-devkit:data_copy, measured"),
    ConstantRow(name="vector_start", value=48.0, unit="cycles", means="start and drain of one vector function",
                source="VfSim parameters (23 + 12) and first load"),
    ConstantRow(name="vector_chain", value=4.5, unit="cycles", means="per operation of a dependent chain",
                source="VfSim forwarding, mean"),
    ConstantRow(name="issue_share", value=0.9, unit="", means="share of the two compute ports a loop reaches",
                source="inferred from VfSim"),
    ConstantRow(name="buffer_share", value=0.7, unit="", means="share of the UB ports a loop reaches",
                source="inferred from board cases add and nd2nz"),
    ConstantRow(name="l0c", value=256 << 10, unit="B", means="accumulator buffer of one cube core",
                source="asc-devkit:architecture 3510"),
    ConstantRow(name="ub", value=248 << 10, unit="B", means="UB of one vector core, user default",
                source="asc-devkit:architecture 3510"),
)  # fmt: skip

constants: Catalog[ConstantRow] = Catalog("planner constant", {row.name: row for row in CONSTANTS}, {})

SCALES = ("none", "per-tensor", "per-channel", "per-token", "per-group")
"""Granularities of the scale; the Fixpipe takes the first three."""
FIXPIPE_SCALES = SCALES[:3]

RATE_RULE = "min(64, 128 B / size), inferred from the vendor's L1 and UB rows"
