"""Functions of the C API that convert, under the names the seed gives them, and their dequantizing partners."""

from dataclasses import dataclass

from narrowcast.schema import Provenance

_ALL = ("3510", "2201")
_3510 = ("3510",)
_FIVE = ("rn", "rd", "ru", "rz", "rna")
_VENDOR = "asc-devkit:C-API data type conversion"


@dataclass(frozen=True, kw_only=True)
class CApiRow:
    """One function: ``modes`` are its name's suffixes (empty: exact), the first one the default here.

    ``positions`` counts the parts of the register form (v1, v2, ...); ``has_sat`` whether a ``_sat`` form exists;
    ``vendor_name`` is the function's base name in the vendor's headers.
    """

    name: str
    source: str
    target: str
    modes: tuple[str, ...]
    chips: tuple[str, ...]
    vendor_name: str
    positions: int
    has_sat: bool
    in_seed: bool = False
    provenance: Provenance = Provenance.DOCUMENTED

    @property
    def reference(self) -> str:
        """Where the function is stated."""
        return f"seed 3.3; {_VENDOR}" if self.in_seed else _VENDOR


def _function(
    name: str,
    pair: str,
    modes: tuple[str, ...],
    chips: tuple[str, ...],
    vendor_name: str,
    positions: int,
    *,
    sat: bool = False,
    seed: bool = False,
) -> CApiRow:
    source, target = pair.split()
    return CApiRow(
        name=name,
        source=source,
        target=target,
        modes=modes,
        chips=chips,
        vendor_name=vendor_name,
        positions=positions,
        has_sat=sat,
        in_seed=seed,
    )


ROWS: tuple[CApiRow, ...] = (
    _function(
        "Float2Half", "fp32 fp16", ("rn", "rd", "ru", "rz", "rna", "ro"), _ALL, "asc_float2half", 2, sat=True, seed=True
    ),
    _function("Float2Bfloat16", "fp32 bf16", _FIVE, _ALL, "asc_float2bfloat16", 2, sat=True, seed=True),
    _function("Float2Int32", "fp32 s32", _FIVE, _ALL, "asc_float2int32", 1, sat=True, seed=True),
    _function("Float2E4m3", "fp32 e4m3", ("rn",), _3510, "asc_float2e4m3", 4, sat=True, seed=True),
    _function("Float2E5m2", "fp32 e5m2", ("rn",), _3510, "asc_float2e5m2", 4, sat=True, seed=True),
    _function("Float2Hif8", "fp32 hif8", ("rna", "rh"), _3510, "asc_float2hif8", 4, sat=True, seed=True),
    _function("Half2Int8", "fp16 s8", _FIVE, _ALL, "asc_half2int8", 2, sat=True, seed=True),
    _function("Half2Int4x2", "fp16 s4", _FIVE, _3510, "asc_half2int4x2", 4, sat=True, seed=True),
    _function("Half2Hif8", "fp16 hif8", ("rna", "rh"), _3510, "asc_half2hif8", 2, sat=True, seed=True),
    _function("Bfloat162E2m1x2", "bf16 e2m1", _FIVE, _3510, "asc_bfloat162e2m1x2", 4, seed=True),
    _function("Bfloat162E1m2x2", "bf16 e1m2", _FIVE, _3510, "asc_bfloat162e1m2x2", 4, seed=True),
    _function("Half2Float", "fp16 fp32", (), _ALL, "asc_half2float", 2, seed=True),
    _function("E4m32Float", "e4m3 fp32", (), _3510, "asc_e4m32float", 4, seed=True),
    _function("E5m22Float", "e5m2 fp32", (), _3510, "asc_e5m22float", 4, seed=True),
    _function("Hif82Float", "hif8 fp32", (), _3510, "asc_hif82float", 4, seed=True),
    _function("Bfloat162Float", "bf16 fp32", (), _ALL, "asc_bfloat162float", 2),
    _function("Int322Float", "s32 fp32", _FIVE, _ALL, "asc_int322float", 1),
    _function("Int82Half", "s8 fp16", (), _ALL, "asc_int82half", 2),
    _function("Int4x22Half", "s4 fp16", (), _3510, "asc_int4x22half", 4),
    _function("Hif82Half", "hif8 fp16", (), _3510, "asc_hif82half", 2),
    _function("E2m1x22Bfloat16", "e2m1 bf16", (), _3510, "asc_e2m1x22bfloat16", 4),
    _function("E1m2x22Bfloat16", "e1m2 bf16", (), _3510, "asc_e1m2x22bfloat16", 4),
    _function("Half2Bfloat16", "fp16 bf16", _FIVE, _3510, "asc_half2bfloat16", 1),
    _function("Bfloat162Half", "bf16 fp16", _FIVE, _3510, "asc_bfloat162half", 1, sat=True),
)

functions: dict[str, CApiRow] = {row.name: row for row in ROWS}


def seed_section(source: str, target: str) -> str | None:
    """The seed section whose table names this pair, None where it does not."""
    listed = any(row.in_seed and (row.source, row.target) == (source, target) for row in ROWS)
    return "3.3" if listed else None
