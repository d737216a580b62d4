"""PTO tiles: memory with a layout and a valid region, and the instructions that quantize on it."""

from narrowcast.tile.dequantize import TDequant, tdequant
from narrowcast.tile.events import Program, RecordEvent
from narrowcast.tile.memory import GlobalTensor, tload, tstore
from narrowcast.tile.move import TMov, tmov
from narrowcast.tile.scalar import TDequantScalar, TQuantScalar
from narrowcast.tile.tile import Tile
from narrowcast.tile.types import Order, Pad, Role, TileType

__all__ = [
    "GlobalTensor",
    "Order",
    "Pad",
    "Program",
    "RecordEvent",
    "Role",
    "TDequant",
    "TDequantScalar",
    "TMov",
    "TQuantScalar",
    "Tile",
    "TileType",
    "tdequant",
    "tload",
    "tmov",
    "tstore",
]
