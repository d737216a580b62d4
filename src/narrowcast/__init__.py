"""A bit-true model of the Ascend 950 quantization system.

Every number format, rounding mode and cast of the chip, in NumPy at memory speed, with the source of each
behaviour on record. Names load on first use, so importing the package costs no more than NumPy.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from narrowcast.version import VERSION as __version__

if TYPE_CHECKING:
    from narrowcast import advise, cube, fixpipe, isa, layout, mx, tile, vector
    from narrowcast.advise import plan
    from narrowcast.catalog.formats import formats
    from narrowcast.catalog.rounding import roundings
    from narrowcast.catalog.switches import switches
    from narrowcast.checks import check
    from narrowcast.errors import (
        CheckpointError,
        ConstraintError,
        EncodingError,
        FormatError,
        NarrowcastError,
        OutputError,
        ShapeError,
        UnknownNameError,
        UnsupportedCastError,
        UnverifiedWarning,
    )
    from narrowcast.insight.diagnosis import diagnose
    from narrowcast.insight.percentiles import percentiles
    from narrowcast.operation import Audit, CastOp, Control, Finding, Semantics, execute, from_json, to_json
    from narrowcast.operation.audit import audit
    from narrowcast.quant import (
        Blocks,
        Cast,
        QTensor,
        decode,
        dequantize,
        encode,
        flush_subnormals,
        pack,
        round_to,
        unpack,
    )
    from narrowcast.quant.quantize import quantize

_ERRORS = (
    "CheckpointError ConstraintError EncodingError FormatError NarrowcastError OutputError ShapeError "
    "UnknownNameError UnsupportedCastError UnverifiedWarning"
)
_HOMES = {
    "narrowcast.advise": "plan",
    "narrowcast.checks": "check",
    "narrowcast.catalog.formats": "formats",
    "narrowcast.catalog.rounding": "roundings",
    "narrowcast.catalog.switches": "switches",
    "narrowcast.errors": _ERRORS,
    "narrowcast.insight.diagnosis": "diagnose",
    "narrowcast.insight.percentiles": "percentiles",
    "narrowcast.operation": "Audit CastOp Control Finding Semantics audit execute from_json to_json",
    "narrowcast.quant": "Blocks Cast QTensor decode dequantize encode flush_subnormals pack quantize round_to unpack",
}
_NAMES = {name: module for module, names in _HOMES.items() for name in names.split()}
_PACKAGES = ("advise", "cube", "fixpipe", "isa", "layout", "mx", "tile", "vector")

__all__ = [
    "Audit",
    "Blocks",
    "Cast",
    "CastOp",
    "CheckpointError",
    "ConstraintError",
    "Control",
    "EncodingError",
    "Finding",
    "FormatError",
    "NarrowcastError",
    "OutputError",
    "QTensor",
    "Semantics",
    "ShapeError",
    "UnknownNameError",
    "UnsupportedCastError",
    "UnverifiedWarning",
    "__version__",
    "advise",
    "audit",
    "check",
    "cube",
    "decode",
    "dequantize",
    "diagnose",
    "encode",
    "execute",
    "fixpipe",
    "flush_subnormals",
    "formats",
    "from_json",
    "isa",
    "layout",
    "mx",
    "pack",
    "percentiles",
    "plan",
    "quantize",
    "round_to",
    "roundings",
    "switches",
    "tile",
    "to_json",
    "unpack",
    "vector",
]


def __getattr__(name: str) -> Any:
    if name in _NAMES:
        value = getattr(import_module(_NAMES[name]), name)
    elif name in _PACKAGES:
        value = import_module(f"narrowcast.{name}")
    else:
        raise AttributeError(f"module 'narrowcast' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
