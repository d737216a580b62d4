"""The one-pass kernels of the usual conversions, and when they apply."""

from narrowcast.catalog.fixpipe_modes import FixpipeMode
from narrowcast.fixpipe.addressing import Array
from narrowcast.fixpipe.pipeline import Parameters
from narrowcast.operation import Choices, Control


def convert_fast(acc: Array, mode: FixpipeMode, p: Parameters, choices: Choices, control: Control) -> Array | None:
    return None
