"""Checkpoints: quantize one, read it back."""

from narrowcast.checkpoint.results import QuantizedFile, TensorResult
from narrowcast.checkpoint.uniform import TARGETS, load_quantized, quantize_file

__all__ = ["TARGETS", "QuantizedFile", "TensorResult", "load_quantized", "quantize_file"]
