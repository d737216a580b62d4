"""The result of quantizing a file as plain data."""

from typing import Any

from narrowcast.checkpoint.results import QuantizedFile
from narrowcast.report.survey_json import number

SCHEMA = "narrowcast.quantized/1"


def quantized_document(result: QuantizedFile) -> dict[str, Any]:
    """Turn the result into JSON-ready data; infinite SQNR (exact) and undefined values become null."""
    return {
        "schema": SCHEMA,
        "version": result.version,
        "source": result.source,
        "output": result.output,
        "source_bytes": result.source_bytes,
        "output_bytes": result.output_bytes,
        "format": result.format,
        "rounding": result.rounding,
        "scaling": "per-tensor absmax / target" if result.scaled else "none (unscaled cast)",
        "sqnr_db": number(result.sqnr_db),
        "quantized": [
            {
                "name": t.name,
                "dtype": t.dtype,
                "shape": list(t.shape),
                "stored": t.stored,
                "bytes": t.nbytes,
                "stored_bytes": t.stored_bytes,
                "scale": t.scale,
                "sqnr_db": number(t.sqnr_db),
                "exact": t.noise == 0,
                "max_error": number(t.max_error),
                "saturated_percent": 100 * t.saturated,
                "flushed_percent": 100 * t.flushed,
                "nonfinite": t.nonfinite,
            }
            for t in result.quantized
        ],
        "kept": [
            {"name": t.name, "dtype": t.dtype, "shape": list(t.shape), "bytes": t.nbytes, "why": t.kept}
            for t in result.kept
        ],
    }
