"""Path A: the Cube's output pipe, from accumulator to stored bytes."""

from narrowcast.fixpipe.operation import Fixpipe
from narrowcast.fixpipe.run import run
from narrowcast.fixpipe.store import Store
from narrowcast.fixpipe.words import QuantParam, QuantParam2201, SpecQuantParam, quant_words, truncate_scale

__all__ = ["Fixpipe", "QuantParam", "QuantParam2201", "SpecQuantParam", "Store", "quant_words", "run", "truncate_scale"]
