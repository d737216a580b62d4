"""The vector core: casts that a chip has, as it makes them.

``narrowcast.encode`` knows any format and rounding; the functions here know only what an instruction can do, and
obey masks and control bits as it does.
"""

from narrowcast.vector import capi
from narrowcast.vector.casting import cast
from narrowcast.vector.operation import VectorCast, VectorRound
from narrowcast.vector.register import RegCast, reg_cast
from narrowcast.vector.rounding import ceil, floor, rint, round, round_half_even, trunc

__all__ = [
    "RegCast",
    "VectorCast",
    "VectorRound",
    "capi",
    "cast",
    "ceil",
    "floor",
    "reg_cast",
    "rint",
    "round",
    "round_half_even",
    "trunc",
]
