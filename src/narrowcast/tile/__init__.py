"""PTO tiles: memory with a layout and a valid region, and the instructions that quantize on it."""

from narrowcast.tile.convert import TCvt, tcvt
from narrowcast.tile.dequantize import TDequant, tdequant
from narrowcast.tile.events import Program, RecordEvent
from narrowcast.tile.memory import GlobalTensor, tload, tstore
from narrowcast.tile.move import TMov, tmov
from narrowcast.tile.quantize import TQuant, tquant
from narrowcast.tile.quantize_hif4 import HiF4, tquant_hif4
from narrowcast.tile.quantize_mx import TQuantMx, tquant_mx
from narrowcast.tile.scalar import TDequantScalar, TQuantScalar
from narrowcast.tile.spelling import Order, Pad, Role
from narrowcast.tile.tile import Tile
from narrowcast.tile.tracing import Trace, trace
from narrowcast.tile.types import TileType

__all__ = [
    "GlobalTensor",
    "HiF4",
    "Order",
    "Pad",
    "Program",
    "RecordEvent",
    "Role",
    "TCvt",
    "TDequant",
    "TDequantScalar",
    "TMov",
    "TQuant",
    "TQuantMx",
    "TQuantScalar",
    "Tile",
    "TileType",
    "Trace",
    "tcvt",
    "tdequant",
    "tload",
    "tmov",
    "tquant",
    "tquant_hif4",
    "tquant_mx",
    "trace",
    "tstore",
]
