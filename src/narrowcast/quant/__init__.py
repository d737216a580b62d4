"""Encode, decode, quantize: values to codes and back, with scales over blocks."""

from narrowcast.quant.blocks import Blocks
from narrowcast.quant.cast import Cast, decode, encode, flush_subnormals, round_to
from narrowcast.quant.packing import pack, unpack
from narrowcast.quant.qtensor import QTensor, Record, dequantize
from narrowcast.quant.quantize import quantize

__all__ = [
    "Blocks",
    "Cast",
    "QTensor",
    "Record",
    "decode",
    "dequantize",
    "encode",
    "flush_subnormals",
    "pack",
    "quantize",
    "round_to",
    "unpack",
]
