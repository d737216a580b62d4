"""Where each operation lives, so that one read from JSON finds its class without importing the rest."""

OPERATIONS: dict[str, str] = {
    "Mmad": "narrowcast.cube.operation",
    "MmadMx": "narrowcast.cube.operation",
    "Fixpipe": "narrowcast.fixpipe.operation",
    "CastOp": "narrowcast.operation.cast",
    "MxQuant": "narrowcast.mx.operation",
    "TCvt": "narrowcast.tile.convert",
    "TDequant": "narrowcast.tile.dequantize",
    "TDequantScalar": "narrowcast.tile.scalar",
    "TMov": "narrowcast.tile.move",
    "TQuant": "narrowcast.tile.quantize",
    "TQuantMx": "narrowcast.tile.quantize_mx",
    "TQuantScalar": "narrowcast.tile.scalar",
    "VectorCast": "narrowcast.vector.operation",
    "VectorRound": "narrowcast.vector.operation",
    "RegCast": "narrowcast.vector.register",
}
