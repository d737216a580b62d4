"""An independent oracle for every number format and cast.

It shares no code with the package. Formats are decoded with fractions (`grids`), every decision threshold of a
(format, rounding) pair is computed once from those fractions and turned into a bit pattern of the source type
(`encode`), and inputs are then placed by bisection on integers, so no floating-point operation takes part.
`reference` states the same rules a second time, one scalar at a time, and the oracle is checked against it.
"""

from tests.oracle.decode import decode_all, decode_special
from tests.oracle.encode import MODES, expected
from tests.oracle.grids import FLOATS, INTEGERS, grid, integer_range
from tests.oracle.reference import reference

__all__ = [
    "FLOATS",
    "INTEGERS",
    "MODES",
    "decode_all",
    "decode_special",
    "expected",
    "grid",
    "integer_range",
    "reference",
]
