"""Memory layouts as axis patterns: which axis an array's axes are cut into, and the order the parts are stored in.

``m (g1 g0:2) -> m g1 g0`` reads: the last axis is cut into parts of 2, short parts padded with zeros, and stored in
the order named on the right, the last one fastest. Axes left of the pattern are kept in front.
"""

from dataclasses import dataclass

from narrowcast.catalog import Catalog


@dataclass(frozen=True, kw_only=True)
class LayoutRow:
    """One layout."""

    name: str
    title: str
    pattern: str
    source: str
    example: tuple[tuple[int, ...], tuple[int, ...]]  # shape of an array, shape of its storage
    aliases: tuple[str, ...] = ()
    note: str = ""


_ASC = "asc-devkit:LoadData2DMx, MmadMx; pto-isa:TQUANT"
_PAIR = "The two scales of one 64-element step of K are adjacent bytes; an odd count is padded with byte 0."

ROWS: tuple[LayoutRow, ...] = (
    LayoutRow(
        name="nd",
        title="rows as they are",
        pattern="m k -> m k",
        source=_ASC,
        example=((3, 5), (3, 5)),
        note="MX scales [M, K/32] as msmodelslim, compressed-tensors and gpt-oss store them.",
    ),
    LayoutRow(
        name="scale-device",
        title="scales of a last-axis operand in device memory",
        pattern="m (g1 g0:2) -> m g1 g0",
        source="ops-nn:DynamicMxQuant, mxscale; asc-devkit:MmadMx scaleA ND",
        example=((3, 5), (3, 3, 2)),
        aliases=("scale-a-nd", "scale-b-dn"),
        note=_PAIR,
    ),
    LayoutRow(
        name="scale-interleaved",
        title="scales of a non-last axis in device memory: two scale rows interleaved",
        pattern="(g1 g0:2) n -> g1 n g0",
        source="ops-nn:DynamicMxQuant, mxscale; asc-devkit:MmadMx scaleB ND; pto-isa:TQUANT DN",
        example=((5, 3), (3, 3, 2)),
        aliases=("scale-b-nd",),
        note=_PAIR,
    ),
    LayoutRow(
        name="scale-dn",
        title="scales of a last-axis operand, transposed",
        pattern="m (g1 g0:2) -> g1 m g0",
        source="asc-devkit:MmadMx scaleA, transposed",
        example=((3, 5), (3, 3, 2)),
        aliases=("scale-a-dn",),
        note=_PAIR,
    ),
    LayoutRow(
        name="scale-transposed",
        title="scales of a first-axis operand, transposed",
        pattern="(g1 g0:2) n -> n g1 g0",
        source="asc-devkit:MmadMx scaleB, transposed",
        example=((5, 3), (3, 3, 2)),
        note=_PAIR,
    ),
    LayoutRow(
        name="scale-zz",
        title="scales of the left operand in the Cube's buffer: 16 x 2 boxes",
        pattern="(m1 m0:16) (g1 g0:2) -> m1 g1 m0 g0",
        source=_ASC,
        example=((16, 8), (1, 4, 16, 2)),
        aliases=("zz", "scale-a"),
    ),
    LayoutRow(
        name="scale-nn",
        title="scales of the right operand in the Cube's buffer: 2 x 16 boxes",
        pattern="(g1 g0:2) (n1 n0:16) -> n1 g1 n0 g0",
        source=_ASC,
        example=((8, 32), (2, 4, 16, 2)),
        aliases=("nn", "scale-b"),
    ),
    LayoutRow(
        name="l0c",
        title="accumulators in L0C: 16 x 16 fractals, one column of fractals after another",
        pattern="(m1 m0:16) (n1 n0:16) -> n1 m1 m0 n0",
        source="asc-devkit:NZ2NZ; pto-isa:NZ fractal layout",
        example=((17, 20), (2, 2, 16, 16)),
        aliases=("acc-nz",),
    ),
    LayoutRow(
        name="scale-nn-k-outer",
        title="scales of the right operand, boxes in the order of K",
        pattern="(g1 g0:2) (n1 n0:16) -> g1 n1 n0 g0",
        source="the other reading of asc-devkit:MmadMx scaleB",
        example=((8, 32), (4, 2, 16, 2)),
    ),
)

layouts: Catalog[LayoutRow] = Catalog(
    "layout", {row.name: row for row in ROWS}, {alias: row.name for row in ROWS for alias in row.aliases}
)
