"""What is wrong with a quantized tensor: every detector, the most telling finding first, each with its fix tried."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from narrowcast.errors import FormatError, ShapeError
from narrowcast.insight import detectors_data, detectors_range
from narrowcast.insight.case_input import build_case
from narrowcast.insight.detection import Detection
from narrowcast.insight.detectors_chain import ChainStep, chain_of, stagnation
from narrowcast.insight.detectors_chain import chain as examine_chain
from narrowcast.insight.percentiles import SHOWN, percentiles
from narrowcast.insight.quantized_case import QuantizedCase
from narrowcast.kernels import Summary, summarize
from narrowcast.operation import Finding

Detector = Callable[[QuantizedCase], Detection | None]

DETECTORS: tuple[Detector, ...] = (
    detectors_data.tail_garbage,
    detectors_data.zero_scale,
    detectors_data.scale_underflow,
    detectors_data.not_finite,
    detectors_data.swapped_nibbles,
    detectors_data.wrong_axis,
    detectors_data.sign_mixed_up,
    detectors_data.reciprocal_scale,
    detectors_range.overflow,
    detectors_range.all_zero,
    detectors_range.one_sided,
    detectors_range.fp4_alone,
    detectors_range.subnormal_input,
)


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """Everything an examination found.

    Attributes:
        case: what was examined, None for a chain or updates alone.
        detections: in order of rank.
        chain: the chain that was examined.
        values: the original values.
        summary: what one pass over them tells.
    """

    case: QuantizedCase | None
    detections: tuple[Detection, ...]
    chain: tuple[ChainStep, ...] = ()
    values: npt.NDArray[Any] | None = None
    summary: Summary | None = None

    @property
    def findings(self) -> list[Finding]:
        """The report form."""
        return [d.finding() for d in self.detections]

    @cached_property
    def percentiles(self) -> dict[float, float]:
        """Exact percentiles of the magnitudes, from passes of their own; empty without a finite value."""
        if self.values is None:
            return {}
        found = percentiles(self.values, SHOWN, magnitude=True)
        return {q: float(value) for q, value in zip(SHOWN, found, strict=True) if np.isfinite(value)}

    def statistics(self) -> dict[str, Any]:
        """The values in numbers, as JSON."""
        found: dict[str, Any] = {"percentiles_of_magnitude": {f"{q:g}": v for q, v in self.percentiles.items()}}
        if self.summary is not None:
            s = self.summary
            numbers = {"minimum": s.minimum, "maximum": s.maximum, "mean": s.mean, "rms": s.rms}
            counts = {"elements": s.elements, "zeros": s.zeros, "nans": s.nans, "infinities": s.infinities}
            found |= counts | {"subnormals_in_fp32": s.subnormals} | (numbers if s.finite else {})
        return found


def diagnose(
    x: npt.ArrayLike | None = None,
    q: Any = None,
    *,
    codes: npt.ArrayLike | None = None,
    scale: npt.ArrayLike | None = None,
    multiplier: npt.ArrayLike | None = None,
    offset: npt.ArrayLike | None = None,
    to: str | None = None,
    columns: int | None = None,
    packed: bool = False,
    arithmetic: str = "fp32",
    scale_format: str | None = None,
    chain: Sequence[str | ChainStep] = (),
    updates: npt.ArrayLike | None = None,
) -> list[Finding]:
    """Find what is wrong with a quantization, and try the fix of each finding.

    Conventions: ``real = (code - offset) * scale``; with ``multiplier``, ``code = round(x * multiplier)``. Fixes are
    worded for the one you pass.

    Args:
        x: original values.
        q: a :class:`narrowcast.QTensor`, or codes; None: ``x`` is quantized here, by its absolute maximum or with
            the scale given.
        codes: bit patterns (or signed integers), of the shape of ``x`` or with more columns.
        scale: as stored (a float16 array is examined as such): one, [M, 1], [1, N] or one per block.
        multiplier: instead of a scale.
        offset: zero points.
        to: format of the codes, or to quantize to.
        columns: columns that hold results, where rows of codes are padded.
        packed: codes are bytes of two 4-bit codes.
        arithmetic: format in which the operation works; subnormal means subnormal in it.
        scale_format: ``fp16`` if the scale is stored so.
        chain: formats the values pass through, in order.
        updates: what is added to ``x`` step by step (gradients).

    Returns:
        Findings, the most telling first. ``evidence`` holds the numbers, the first index, and ``before`` and
        ``after`` of the fix tried.

    Raises:
        FormatError: nothing to examine, or parts that contradict each other.
        ShapeError: parts whose shapes do not fit.
        UnknownNameError: an unknown format.

    Source: seed:5.4; the other pitfalls from public issue trackers.

    Example:
        >>> found = diagnose(np.linspace(-1, 1, 256, dtype=np.float32), to="s8", scale=0.001)
        >>> found[0].rule, found[0].evidence["before"]["saturated"] > 0.8, found[0].evidence["after"]["saturated"]
        ('PIT-01', True, 0.0)
    """
    return examine(
        x,
        q,
        codes=codes,
        scale=scale,
        multiplier=multiplier,
        offset=offset,
        to=to,
        columns=columns,
        packed=packed,
        arithmetic=arithmetic,
        scale_format=scale_format,
        chain=chain,
        updates=updates,
    ).findings


def examine(
    x: npt.ArrayLike | None = None,
    q: Any = None,
    *,
    chain: Sequence[str | ChainStep] = (),
    updates: npt.ArrayLike | None = None,
    to: str | None = None,
    **parts: Any,
) -> Diagnosis:
    """Diagnose, and keep what the report draws; arguments as for :func:`diagnose`."""
    steps = chain_of(chain)
    values = None if x is None else np.asarray(x)
    found: list[Detection | None] = []
    case = None
    alone = (
        (steps or updates is not None)
        and q is None
        and all(parts.get(k) is None for k in ("codes", "scale", "multiplier"))
    )
    if steps and to is None and not alone:
        to = steps[-1].to
    if not alone:
        case = build_case(x, q, to=to, **parts)
        found += [detector(case) for detector in DETECTORS]
    if steps:
        if values is None:
            raise FormatError("a chain needs the values that pass through it.")
        found.append(examine_chain(values, steps))
    if updates is not None:
        if values is None:
            raise FormatError("updates need the values they are added to.")
        step = np.asarray(updates)
        try:
            step = np.broadcast_to(step, values.shape)
        except ValueError:
            raise ShapeError(f"updates have shape {step.shape}, values {values.shape}.") from None
        found.append(stagnation(values, step, to or "bf16"))
    ranked = sorted((d for d in found if d is not None), key=lambda d: (d.row.tier, -d.severity))
    plain = values is not None and values.dtype.name in ("float32", "float16", "bfloat16")
    summary = summarize(values) if values is not None and plain else None
    return Diagnosis(case, tuple(_without_echoes(ranked)), steps, values, summary)


_EXPLAINS = {
    "USR-01": ("PIT-01", "PIT-02", "PIT-05", "USR-05"),
    "USR-02": ("PIT-01", "PIT-02", "USR-01"),
    "USR-03": ("PIT-01", "PIT-05"),
    "USR-04": ("PIT-01", "PIT-02", "PIT-05"),
    "USR-05": ("PIT-01", "PIT-02", "PIT-05"),
    "USR-06": ("PIT-01", "PIT-03"),
    "USR-08": ("PIT-01", "PIT-02", "PIT-05"),
}
"""What follows from a wrong reading is not a second finding."""


def _without_echoes(ranked: list[Detection]) -> list[Detection]:
    silent = {other for d in ranked for other in _EXPLAINS.get(d.pitfall, ())}
    return [d for d in ranked if d.pitfall not in silent]
