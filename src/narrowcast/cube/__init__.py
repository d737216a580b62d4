"""The Cube: matrix products into S32 or FP32 accumulators."""

from narrowcast.cube.accumulate import ORDERS
from narrowcast.cube.mmad import mmad, mmad_mx
from narrowcast.cube.operation import Mmad, MmadMx

__all__ = ["ORDERS", "Mmad", "MmadMx", "mmad", "mmad_mx"]
