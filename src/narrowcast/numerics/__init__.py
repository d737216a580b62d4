"""The executable specification: vectorised NumPy integer arithmetic, one rounding each.

Every function takes and returns flat, contiguous, native arrays and is exact; speed is the kernels' business.
"""

from narrowcast.numerics.decoding import decode, decode_table
from narrowcast.numerics.encoding import OVERFLOW_RULES, encode
from narrowcast.numerics.hybrid import COMPARES
from narrowcast.numerics.integral import round_to_integral
from narrowcast.numerics.unpacking import SOURCE_DTYPES, source_name

__all__ = [
    "COMPARES",
    "OVERFLOW_RULES",
    "SOURCE_DTYPES",
    "decode",
    "decode_table",
    "encode",
    "round_to_integral",
    "source_name",
]
