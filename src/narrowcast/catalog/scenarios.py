"""The eleven scenarios of seed 4: where the data is, which API takes it where, and what emulates it here.

The snippets are skeletons of our own; names in capitals are the kernel's to fill in.
"""

from dataclasses import dataclass

from narrowcast.catalog import Catalog


@dataclass(frozen=True, kw_only=True)
class ScenarioRow:
    """One way from a source format to a destination format.

    Attributes:
        number: as in seed 4.
        original: the seed's own line.
        side: ``cube`` (on the way out of L0C) or ``vector``.
        sources, targets: formats.
        place: where the data is when the scenario starts.
        api: chip -> call; a chip that is missing does not have it.
        modes: rounding modes of the call, empty where it does not round.
        parameters: what the call is given.
        constraints: rule ids that bind it.
        cost: what it takes.
        emulation: runnable Python, given ``nc`` and ``np``; leaves its result in ``result``.
        snippet: C++ skeleton.
    """

    name: str
    number: int
    title: str
    original: str
    side: str
    sources: tuple[str, ...]
    targets: tuple[str, ...]
    place: str
    api: dict[str, str]
    modes: tuple[str, ...]
    parameters: tuple[str, ...]
    constraints: tuple[str, ...]
    cost: str
    emulation: str
    snippet: str
    source: str = "seed:4"


_MOVES = "VEC-11"  # 32-byte grains of DataCopy
_ARCH = "VEC-12"  # types of chip 3510 only
_COSTS = "VEC-17"
_MODE = "VEC-18"
_EXACT_COST = "no rounding; rates are in narrowcast plan's recipes"
_CAST_COST = "vector cycles: 64 elements a cycle and port from fp32 to 16 bits, 32 to 8 bits"

ROWS: tuple[ScenarioRow, ...] = (
    ScenarioRow(
        name="cube-requantize",
        number=1,
        title="Quantize a matrix product on its way out of the Cube",
        original="场景 1: Cube 矩阵乘后直接量化: MMAD(S32/F32) → FIXP DEQ/REQ → GM",
        side="cube",
        sources=("s32", "fp32"),
        targets=("s8", "u8", "s4", "fp16", "bf16", "hif8", "e4m3", "e5m2"),
        place="accumulators in L0C",
        api={
            "3510": "Fixpipe(dst, l0c, FixpipeParamsC310{..., quantPre, deqScalar}) with SetFixPipeConfig for vectors",
            "2201": "Fixpipe(dst, l0c, FixpipeParamsV220{..., quantPre, deqScalar})",
        },
        modes=("rn", "rna", "rh"),
        parameters=("quantPre: REQ8, DEQF16, QF322B8_PRE ...", "deqScalar, or a vector in L1 (Quantization-pre, 4 KB)"),
        constraints=tuple(f"FIXP-{i:02}" for i in range(1, 11)),
        cost="no vector cycles; 64 elements a cycle for 8 bits, 26 cycles a tile (narrowcast plan, path A)",
        emulation="""acc = nc.cube.mmad(np.ones((16, 32), np.int8), np.ones((32, 16), np.int8))
result = nc.fixpipe.run(acc, "REQ8", nc.fixpipe.QuantParam(0.5)).codes""",
        snippet="""// L0C (s32) -> GM (s8): one scale for the tile.
FixpipeParamsC310<CO2Layout::ROW_MAJOR> params;
params.mSize = M_TILE;
params.nSize = N_TILE;
params.srcStride = M_ALIGNED;          // rounded up to 16
params.dstStride = N_TOTAL;
params.quantPre = QuantMode_t::REQ8;
params.deqScalar = SCALE_BITS;         // the parameter word: nc.fixpipe.QuantParam(scale).word
Fixpipe<int8_t, int32_t, CFG_ROW_MAJOR>(gmOut, l0c, params);""",
    ),
    ScenarioRow(
        name="fp32-to-fp16",
        number=2,
        title="FP32 to FP16 on the vector core",
        original="场景 2: 向量端 FP32→FP16 量化: Cast(dst, src, CAST_ROUND, count)",
        side="vector",
        sources=("fp32",),
        targets=("fp16",),
        place="UB",
        api={
            "3510": "Cast(dst, src, RoundMode::CAST_ROUND, count)",
            "2201": "Cast(dst, src, RoundMode::CAST_ROUND, count)",
        },
        modes=("rn", "rna", "rd", "ru", "rz", "ro"),
        parameters=("round mode", "count"),
        constraints=(_MOVES, _COSTS, _MODE),
        cost=_CAST_COST,
        emulation='result = nc.vector.cast(np.float32([1.0004883, 70000.0]), "fp16", mode="CAST_ROUND")',
        snippet="""// UB: fp32 -> fp16, ties away from zero.
DataCopy(srcLocal, gmIn[offset], COUNT);       // COUNT * 4 a multiple of 32 B
Cast(dstLocal, srcLocal, RoundMode::CAST_ROUND, COUNT);
DataCopy(gmOut[offset], dstLocal, COUNT);      // COUNT * 2 a multiple of 32 B""",
    ),
    ScenarioRow(
        name="fp32-to-bf16",
        number=3,
        title="FP32 to BF16 on the vector core",
        original="场景 3: 向量端 FP32→BF16 量化",
        side="vector",
        sources=("fp32",),
        targets=("bf16",),
        place="UB",
        api={
            "3510": "Cast(dst, src, RoundMode::CAST_RINT, count)",
            "2201": "Cast(dst, src, RoundMode::CAST_RINT, count)",
        },
        modes=("rn", "rna", "rd", "ru", "rz"),
        parameters=("round mode", "count"),
        constraints=(_MOVES, _COSTS, _MODE),
        cost=_CAST_COST,
        emulation='result = nc.vector.cast(np.float32([1.00390625, 3.0]), "bf16", mode="CAST_RINT")',
        snippet="""// UB: fp32 -> bf16. Accumulate in fp32 and convert once, at the end.
Cast(dstLocal, accLocal, RoundMode::CAST_RINT, COUNT);""",
    ),
    ScenarioRow(
        name="fp32-to-fp8",
        number=4,
        title="FP32 to FP8 on the vector core",
        original="场景 4: 向量端 FP32→FP8 量化 (3510 ONLY)",
        side="vector",
        sources=("fp32",),
        targets=("e4m3", "e5m2"),
        place="UB",
        api={"3510": "Float2E4m3(dst, src, mask) / Float2E5m2, or Cast(dst, src, RoundMode::CAST_RINT, count)"},
        modes=("rn",),
        parameters=("mask of the source's width",),
        constraints=(_MOVES, _ARCH, _COSTS),
        cost=_CAST_COST,
        emulation='result = nc.vector.cast(np.float32([17.001, 500.0]), "e4m3", mode="CAST_RINT")',
        snippet="""#if (__NPU_ARCH__ == 3510)
// UB: scale, then fp32 -> e4m3; rn is the only mode.
Muls(scaledLocal, srcLocal, MULTIPLIER, COUNT);
Cast(dstLocal, scaledLocal, RoundMode::CAST_RINT, COUNT);   // dst: fp8_e4m3fn_t
#endif""",
    ),
    ScenarioRow(
        name="fp32-to-hif8",
        number=5,
        title="FP32 to HiF8 on the vector core",
        original="场景 5: 向量端 FP32→HiF8 量化 (3510 ONLY)",
        side="vector",
        sources=("fp32",),
        targets=("hif8",),
        place="UB",
        api={"3510": "Float2Hif8(dst, src, mask), or Cast(dst, src, CAST_ROUND | CAST_HYBRID, count)"},
        modes=("rna", "rh"),
        parameters=("round mode: away or hybrid", "mask of the source's width"),
        constraints=(_MOVES, _ARCH, _COSTS, _MODE),
        cost=_CAST_COST,
        emulation='result = nc.vector.cast(np.float32([1.1, 40000.0]), "hif8", mode="CAST_ROUND")',
        snippet="""#if (__NPU_ARCH__ == 3510)
// UB: fp32 -> hif8, hybrid rounding; CAST_ROUND is the other mode.
Cast(dstLocal, srcLocal, RoundMode::CAST_HYBRID, COUNT);    // dst: hifloat8_t
#endif""",
    ),
    ScenarioRow(
        name="fp16-to-int8",
        number=6,
        title="FP16 to INT8 on the vector core",
        original="场景 6: 向量端 FP16→INT8 量化",
        side="vector",
        sources=("fp16",),
        targets=("s8", "u8"),
        place="UB",
        api={
            "3510": "Half2Int8(dst, src, mask), or Cast(dst, src, mode, count)",
            "2201": "Cast(dst, src, mode, count)",
        },
        modes=("rn", "rd", "ru", "rz", "rna"),
        parameters=("round mode", "mask of fp16's width (VEC-16)"),
        constraints=(_MOVES, "VEC-16", _COSTS, _MODE),
        cost="vector cycles: 64 elements a cycle and port",
        emulation='result = nc.vector.cast(np.float16([2.5, -300.0]), "s8", mode="CAST_RINT")',
        snippet="""// UB: scale in fp16, then fp16 -> int8.
Muls(scaledLocal, srcLocal, static_cast<half>(MULTIPLIER), COUNT);
Cast(dstLocal, scaledLocal, RoundMode::CAST_RINT, COUNT);   // COUNT a multiple of 32 for the store""",
    ),
    ScenarioRow(
        name="fp16-to-int4",
        number=7,
        title="FP16 to packed INT4 on the vector core",
        original="场景 7: 向量端 FP16→INT4 量化 (3510 ONLY, packed)",
        side="vector",
        sources=("fp16",),
        targets=("s4",),
        place="UB",
        api={
            "3510": "Half2Int4x2(dst, src, mask), or Cast to int4b_t",
            "2201": "Cast to int4b_t only (the C-API function is 3510 only)",
        },
        modes=("rn", "rd", "ru", "rz", "rna"),
        parameters=("round mode", "mask"),
        constraints=(_MOVES, "VEC-04", _COSTS, _MODE),
        cost="vector cycles: rate not in the tables",
        emulation='result = nc.vector.cast(np.float16([1.5, -9.0]), "s4", mode="CAST_RINT", packed=True)',
        snippet="""// UB: fp16 -> int4, two to a byte, even element in the low nibble; COUNT even.
Cast(dstLocal, scaledLocal, RoundMode::CAST_RINT, COUNT);   // dst: LocalTensor<int4b_t>""",
    ),
    ScenarioRow(
        name="bf16-to-fp4-mx",
        number=8,
        title="BF16 to FP4 with MX scales",
        original="场景 8: BF16→FP4 MX 量化 (3510 ONLY)",
        side="vector",
        sources=("bf16",),
        targets=("e2m1", "e1m2"),
        place="UB",
        api={"3510": "Bfloat162E2m1x2(dst, src, mask) / Bfloat162E1m2x2, after the group scale"},
        modes=("rn", "rd", "rna", "ru", "rz"),
        parameters=("E8M0 scale per 32 elements", "round mode", "mask"),
        constraints=(_ARCH, "VEC-13", "VEC-14", "VEC-04", _COSTS, _MODE),
        cost="three passes: group maximum, scale, cast",
        emulation='result = nc.mx.quantize(np.linspace(-6, 6, 64, dtype=np.float32).reshape(2, 32), "e2m1")',
        snippet="""#if (__NPU_ARCH__ == 3510)
// Per group of 32: absmax -> E8M0 exponent -> x 2^-e -> e2m1, two to a byte.
GROUP_ABS_MAX(maxLocal, srcLocal, COUNT);
GROUP_SCALE(scaleLocal, invLocal, maxLocal, COUNT / 32);    // the rule you chose, see nc.mx
Mul(scaledLocal, srcLocal, invLocal, COUNT);
Cast(dstLocal, scaledLocal, RoundMode::CAST_RINT, COUNT);   // bf16 -> fp4x2_e2m1_t
#endif""",
    ),
    ScenarioRow(
        name="fp8-to-fp32",
        number=9,
        title="Dequantize FP8 to FP32",
        original="场景 9: FP8→FP32 反量化 (3510 ONLY)",
        side="vector",
        sources=("e4m3", "e5m2", "hif8"),
        targets=("fp32",),
        place="UB",
        api={"3510": "E4m32Float(dst, src) / E5m22Float / Hif82Float, or Cast(dst, src, CAST_NONE, count)"},
        modes=(),
        parameters=("count",),
        constraints=(_MOVES, _ARCH, "VEC-15"),
        cost=_EXACT_COST,
        emulation='result = nc.vector.cast(nc.encode(np.float32([1.5, -3.0]), "e4m3"), "fp32", source="e4m3")',
        snippet="""#if (__NPU_ARCH__ == 3510)
// UB: fp8 -> fp32 is exact, so CAST_NONE; then undo the scale.
Cast(dstLocal, srcLocal, RoundMode::CAST_NONE, COUNT);
Muls(dstLocal, dstLocal, SCALE, COUNT);
#endif""",
    ),
    ScenarioRow(
        name="fp16-to-fp32",
        number=10,
        title="Widen FP16 to FP32",
        original="场景 10: FP16→FP32 反量化: Cast(dst, src, CAST_NONE, count)",
        side="vector",
        sources=("fp16", "bf16"),
        targets=("fp32",),
        place="UB",
        api={
            "3510": "Cast(dst, src, RoundMode::CAST_NONE, count)",
            "2201": "Cast(dst, src, RoundMode::CAST_NONE, count)",
        },
        modes=(),
        parameters=("count",),
        constraints=(_MOVES, "VEC-15"),
        cost=_EXACT_COST,
        emulation='result = nc.vector.cast(np.float16([1.5, 6e-8]), "fp32", mode="CAST_NONE")',
        snippet="""// UB: fp16 -> fp32 is exact, so CAST_NONE.
Cast(dstLocal, srcLocal, RoundMode::CAST_NONE, COUNT);""",
    ),
    ScenarioRow(
        name="mx-matmul",
        number=11,
        title="Multiply MX operands on the Cube",
        original="场景 11: MX Matmul 量化 (3510 ONLY, CUBE端): Matmul(l0c, l0a, l0b, mx_params)",
        side="cube",
        sources=("e2m1", "e1m2", "e4m3", "e5m2"),
        targets=("fp32",),
        place="L0A and L0B with E8M0 scales",
        api={"3510": "Matmul(l0c, l0a, l0b, mx_params); the FP32 result may go through the Fixpipe (scenario 1)"},
        modes=(),
        parameters=("FP4 or FP8 operands", "E8M0 scale per 32 along K", "K a multiple of 64"),
        constraints=(_ARCH, "VEC-14"),
        cost="16384 FP4 or 8192 FP8 products a cycle and core, scales loaded in series",
        emulation="""a = nc.mx.quantize(np.ones((16, 64), np.float32), "e2m1")
b = nc.mx.quantize(np.ones((64, 16), np.float32), "e2m1", axis=0)
result = nc.cube.mmad_mx(a, b)""",
        snippet="""#if (__NPU_ARCH__ == 3510)
// FP4 x FP4 -> FP32 with one E8M0 scale per 32 elements of K.
LoadDataMx(l0a, l1A, l1ScaleA, LOAD_PARAMS_A);
LoadDataMx(l0b, l1B, l1ScaleB, LOAD_PARAMS_B);
Mmad(l0c, l0a, l0b, MMAD_PARAMS);                  // FP32 accumulators
Fixpipe<bfloat16_t, float, CFG_ROW_MAJOR>(gmOut, l0c, FIXPIPE_PARAMS);   // may quantize again
#endif""",
    ),
)

scenarios: Catalog[ScenarioRow] = Catalog(
    "scenario", {row.name: row for row in ROWS}, {str(row.number): row.name for row in ROWS}
)
