"""Block scaling: MX formats the way each stack computes them."""

from narrowcast.catalog.scale_rules import scale_rules
from narrowcast.mx.comparison import Comparison, compare_rules, compare_rules_in_file
from narrowcast.mx.operation import MxQuant
from narrowcast.mx.quantize import dequantize, element_formats, findings, quantize, quantize_packed, shared_scales
from narrowcast.mx.spelling import ScaleRule

__all__ = [
    "Comparison",
    "MxQuant",
    "ScaleRule",
    "compare_rules",
    "compare_rules_in_file",
    "dequantize",
    "element_formats",
    "findings",
    "quantize",
    "quantize_packed",
    "scale_rules",
    "shared_scales",
]
