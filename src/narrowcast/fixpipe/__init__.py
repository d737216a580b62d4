"""Path A: the Cube's output pipe, from accumulator to stored bytes."""

from narrowcast.fixpipe.addressing import Addressing, accumulator_index, from_fractal, to_fractal
from narrowcast.fixpipe.journey import Journey, journey
from narrowcast.fixpipe.operation import Fixpipe
from narrowcast.fixpipe.operator import trans_quant_param
from narrowcast.fixpipe.registers import ClipRelu, ReluAlpha, TableAddress
from narrowcast.fixpipe.run import run
from narrowcast.fixpipe.store import Store
from narrowcast.fixpipe.words import QuantParam, QuantParam2201, SpecQuantParam, quant_words, truncate_scale

__all__ = [
    "Addressing",
    "ClipRelu",
    "Fixpipe",
    "Journey",
    "QuantParam",
    "QuantParam2201",
    "ReluAlpha",
    "SpecQuantParam",
    "Store",
    "TableAddress",
    "accumulator_index",
    "from_fractal",
    "journey",
    "quant_words",
    "run",
    "to_fractal",
    "trans_quant_param",
    "truncate_scale",
]
