"""What each rounding mode does to an array."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from narrowcast.catalog.formats import formats
from narrowcast.errors import FormatError
from narrowcast.quant import Cast
from narrowcast.quant.scales import denominator_of, scale_of

MEASURED_MODES = ("rn", "rna", "rz", "rd", "ru", "ro", "rh")
LARGEST_SAMPLE = 1 << 22


@dataclass(frozen=True)
class ModeMeasure:
    """One mode on the data.

    Attributes:
        bias: mean of real - x.
        shrinkage: sum of (abs(real) - abs(x)) / sum of abs(x): below 0 toward zero.
        sqnr_db: signal over quantization noise.
        worst_error: largest absolute error.
        worst_index: where.
        worst_value: the value there.
        rms_error: root mean square error.
        relative_error: rms error over rms value.
    """

    mode: str
    bias: float
    shrinkage: float
    sqnr_db: float
    worst_error: float
    worst_index: tuple[int, ...]
    worst_value: float
    rms_error: float
    relative_error: float
    scale: float


def measure_modes(values: npt.NDArray[Any], target: str, scale: float | None = None) -> tuple[ModeMeasure, ...]:
    """Measure every mode a format has, best SQNR first.

    Args:
        values: float array; beyond 4 Mi elements an even sample is taken.
        target: format.
        scale: divisor, None for absmax / the format's target (1 for 16-bit floats).

    Raises:
        FormatError: nothing finite, or a scale that is not positive and finite.
    """
    row = formats[target]
    array = np.asarray(values)
    step = -(-array.size // LARGEST_SAMPLE)
    flat = array.reshape(-1)[:: max(step, 1)]
    kept = np.flatnonzero(np.isfinite(flat.astype(np.float32)))
    if not kept.size:
        raise FormatError("the data has no finite value to measure.")
    x = flat[kept] if flat.dtype == np.float64 else flat[kept].astype(np.float32)
    wide = x.astype(np.float64)
    if scale is None:
        scale = 1.0
        if row.bits <= 8 or row.is_integer:
            scale = float(scale_of(np.asarray(np.abs(x).max(), np.float32), denominator_of(row, "qmax")))
    if not (math.isfinite(scale) and scale > 0):
        raise FormatError(f"scale {scale}: a scale is positive and finite.")
    with np.errstate(over="ignore", under="ignore"):
        scaled = x / x.dtype.type(scale)
    found = []
    for mode in MEASURED_MODES:
        if mode == "rh" and row.name != "hif8":
            continue
        cast = Cast(None, row.name, mode, True, "zero")
        real = np.asarray(cast.round_to(scaled.astype(np.float32)), np.float64) * scale
        found.append(_measure(mode, wide, real, kept, step, array.shape, scale))
    return tuple(sorted(found, key=lambda m: -m.sqnr_db))


def _measure(
    mode: str,
    x: npt.NDArray[np.float64],
    real: npt.NDArray[np.float64],
    kept: npt.NDArray[np.intp],
    step: int,
    shape: tuple[int, ...],
    scale: float,
) -> ModeMeasure:
    error = real - x
    at = int(np.argmax(np.abs(error)))
    signal, noise = float(np.square(x).sum()), float(np.square(error).sum())
    magnitude = float(np.abs(x).sum())
    sqnr = math.inf if noise == 0 else 10 * math.log10(signal / noise) if signal else -math.inf
    return ModeMeasure(
        mode=mode,
        bias=float(error.mean()),
        shrinkage=float((np.abs(real) - np.abs(x)).sum()) / magnitude if magnitude else 0.0,
        sqnr_db=sqnr,
        worst_error=float(abs(error[at])),
        worst_index=tuple(int(i) for i in np.unravel_index(int(kept[at]) * max(step, 1), shape)),
        worst_value=float(x[at]),
        rms_error=math.sqrt(noise / x.size),
        relative_error=math.sqrt(noise / signal) if signal else 0.0,
        scale=scale,
    )
