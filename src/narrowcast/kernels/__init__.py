"""The fast path of every conversion: dispatch over the compiled module and over tables built from ``numerics``.

Compiled kernels where they exist, else NumPy over tables of the specification's answers, else the specification
itself in cache-sized blocks. All give the same bits.
"""

from narrowcast.kernels.conversions import decode, encode, round_to
from narrowcast.kernels.library import info, level
from narrowcast.kernels.nibbles import pack, unpack
from narrowcast.kernels.rows import absmax_rows, dequantize_rows, multiply_rows, quantize_rows
from narrowcast.kernels.summary import Summary, summarize

__all__ = [
    "Summary",
    "absmax_rows",
    "decode",
    "dequantize_rows",
    "encode",
    "info",
    "level",
    "multiply_rows",
    "pack",
    "quantize_rows",
    "round_to",
    "summarize",
    "unpack",
]
