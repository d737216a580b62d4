"""Bundle words and PTO-AS text of the tile instructions, both directions from the catalog's fields."""

from narrowcast.isa.assembly import assemble, disassemble
from narrowcast.isa.execution import Execution, run
from narrowcast.isa.fields import Word, decode, encode, problems
from narrowcast.isa.machine import Machine, SpecTile, SpecTileType
from narrowcast.isa.program import Form, MemoryType, Operand, Statement, TileProgram
from narrowcast.isa.stream import from_bytes, parse_words, to_bytes
from narrowcast.isa.text import parse
from narrowcast.isa.writing import write

__all__ = [
    "Execution",
    "Form",
    "Machine",
    "MemoryType",
    "Operand",
    "SpecTile",
    "SpecTileType",
    "Statement",
    "TileProgram",
    "Word",
    "assemble",
    "decode",
    "disassemble",
    "encode",
    "from_bytes",
    "parse",
    "parse_words",
    "problems",
    "run",
    "to_bytes",
    "write",
]
