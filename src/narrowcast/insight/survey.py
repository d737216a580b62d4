"""Survey of a checkpoint: what each number format would do to each tensor, and which one to pick."""

import math
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from narrowcast.errors import UnsupportedCastError
from narrowcast.insight.picking import PickRule
from narrowcast.insight.statistics import (
    BINADES,
    LOWEST_EXPONENT,
    Array,
    FormatTally,
    Grid,
    Piece,
    TensorTally,
    decibels,
    piece,
)
from narrowcast.insight.weights import caster, grid_of, scale_for, surveyed_format, target_of, why_not_a_weight
from narrowcast.schema import Format
from narrowcast.version import VERSION

if TYPE_CHECKING:
    from narrowcast.storage import SafeTensorsFile, TensorEntry

DEFAULT_FORMATS = ("hif8", "e4m3", "e5m2", "s8", "e2m1", "s4")
CHUNK_ELEMENTS = 1 << 17  # a piece and its temporaries stay in the cache
Progress = Callable[[int, int, str], None]


@dataclass(frozen=True)
class Binade:
    """Elements with 2**exponent <= abs(x) < 2**(exponent + 1), and the error made there."""

    exponent: int
    count: int
    signal: float
    noise: float


@dataclass(frozen=True)
class FormatStats:
    """One tensor under one format.

    Attributes:
        format: the format's name.
        bits: bits per code.
        scale: real = code value * scale; 1.0 for an unscaled cast.
        signal, noise: sums of squares of the values and of the errors, over the finite elements.
        max_error: largest absolute error.
        saturated: share of the finite elements clamped to the largest code.
        flushed: share of the non-zero elements that became zero.
        subnormal: share of the finite elements in subnormal codes; None where the format has none.
        code_counts: how often each code occurs, in ascending order of value; empty above 8 bits.
        binades: the error by magnitude of the original.
    """

    format: str
    bits: int
    scale: float
    signal: float
    noise: float
    max_error: float
    saturated: float
    flushed: float
    subnormal: float | None
    code_counts: tuple[int, ...]
    binades: tuple[Binade, ...]

    @property
    def sqnr_db(self) -> float:
        """Give 10 log10(signal / noise): infinite when exact, NaN for a tensor of zeros."""
        return decibels(self.signal, self.noise)


@dataclass(frozen=True)
class TensorSurvey:
    """One tensor under every format, and the pick.

    Attributes:
        name, dtype, shape, elements, nbytes: the tensor as stored.
        nans, infinities: non-finite elements, which the statistics leave out.
        zeros: elements that are zero.
        absmax: largest magnitude.
        rms: root mean square.
        stats: one entry per format; empty when ``skipped``.
        pick: name of the format to use, None to keep the tensor as stored.
        reason: why, in one sentence.
        skipped: why the tensor was not surveyed, None if it was.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    elements: int
    nbytes: int
    nans: int = 0
    infinities: int = 0
    zeros: int = 0
    absmax: float = 0.0
    rms: float = 0.0
    stats: tuple[FormatStats, ...] = ()
    pick: str | None = None
    reason: str = ""
    skipped: str | None = None

    @property
    def picked_bytes(self) -> int:
        """Give the bytes after the pick, with one float32 scale."""
        bits = next((s.bits for s in self.stats if s.format == self.pick), None)
        return self.nbytes if bits is None else (self.elements * bits + 7) // 8 + 4


@dataclass(frozen=True)
class Survey:
    """The survey of one file.

    Attributes:
        path: the file.
        size: its bytes.
        formats: the names surveyed, in the order asked for.
        scaled: whether each tensor was scaled to the format before the cast.
        targets: format -> what the largest magnitude is scaled to, None for an unscaled cast.
        roundings: format -> rounding used.
        rule: how the pick was made.
        tensors: in file order.
        version: version of the package.
    """

    path: str
    size: int
    formats: tuple[str, ...]
    scaled: bool
    targets: dict[str, float | None]
    roundings: dict[str, str]
    grids: dict[str, tuple[float, ...]]
    rule: PickRule
    tensors: tuple[TensorSurvey, ...]
    version: str

    @property
    def surveyed(self) -> tuple[TensorSurvey, ...]:
        """List the tensors with statistics."""
        return tuple(t for t in self.tensors if t.stats)

    def total(self, name: str) -> FormatStats | None:
        """Sum one format over all surveyed tensors, weighting each element alike."""
        rows = [(t, s) for t in self.surveyed for s in t.stats if s.format == name]
        return _summed(rows) if rows else None


def survey_file(
    path: str | os.PathLike[str],
    formats: Sequence[str] = DEFAULT_FORMATS,
    *,
    scaled: bool = True,
    rule: PickRule | None = None,
    progress: Progress | None = None,
    chunk_elements: int = CHUNK_ELEMENTS,
) -> Survey:
    """Survey every floating-point tensor of a safetensors file, piece by piece.

    Per tensor and format: code = encode(x / scale), real = decode(code) * scale, error = x - real, with
    scale = absmax / target per tensor (1 when ``scaled`` is false and for fp16, bf16), and the format's default
    rounding, saturating. Non-finite elements are counted and left out.

    Args:
        path: the file.
        formats: names of signed formats of at most 16 bits.
        scaled: scale each tensor's largest magnitude to the format's target; otherwise cast as it is.
        rule: how to pick; the default is :class:`PickRule`.
        progress: called with (elements done, elements in all, tensor name).
        chunk_elements: elements in memory at a time.

    Returns:
        The survey.

    Raises:
        UnknownNameError: an unknown format.
        UnsupportedCastError: a format that cannot stand for weights.
        CheckpointError: the file is not well formed.

    Example:
        >>> import tempfile, numpy as np
        >>> from narrowcast.storage import save_tensors
        >>> path = tempfile.mkdtemp() + "/w.safetensors"
        >>> save_tensors(path, {"w": np.linspace(-1, 1, 64, dtype=np.float32).reshape(8, 8)})
        >>> survey_file(path, ["hif8", "s8"]).tensors[0].pick
        's8'
    """
    from narrowcast.storage import open_safetensors

    rows = [surveyed_format(name) for name in dict.fromkeys(formats)]
    if not rows:
        raise UnsupportedCastError("no format to survey.", hint=f"The default is {', '.join(DEFAULT_FORMATS)}.")
    rule = rule or PickRule()
    grids = [grid_of(row) for row in rows]
    with open_safetensors(path) as file:
        entries = [file.info(name) for name in file.names]
        total = sum(e.elements for e in entries if e.stored.is_float)
        done = 0
        tensors: list[TensorSurvey] = []
        for entry in entries:
            if not entry.stored.is_float:
                tensors.append(_skipped(entry))
                continue

            def tick(count: int, name: str = entry.name, before: int = done) -> None:
                if progress is not None:
                    progress(before + count, total, name)

            tick(0)
            tensors.append(_survey_tensor(file, entry, grids, scaled, rule, tick, chunk_elements))
            done += entry.elements
        size = file.size
    return Survey(
        path=str(Path(path)),
        size=size,
        formats=tuple(r.name for r in rows),
        scaled=scaled,
        targets={r.name: target_of(r, scaled) for r in rows},
        roundings={r.name: r.default_rounding.value for r in rows},
        grids={g.format.name: tuple(g.values[g.ascending].tolist()) for g in grids if g.small},
        rule=rule,
        tensors=tuple(tensors),
        version=VERSION,
    )


def _skipped(entry: "TensorEntry") -> TensorSurvey:
    why = f"{entry.dtype} is not a floating-point type of its own"
    return TensorSurvey(
        entry.name,
        entry.dtype,
        entry.shape,
        entry.elements,
        entry.nbytes,
        skipped=why,
        reason=f"{why}.",
    )


def _chunks(file: "SafeTensorsFile", entry: "TensorEntry", chunk: int) -> Iterator[Array]:
    wide = np.float64 if entry.dtype == "F64" else np.float32
    for raw in file.chunks(entry.name, chunk):
        yield raw.astype(wide, copy=False)


def _finite_piece(values: Array) -> Piece:
    good = np.isfinite(values)
    return piece(values if good.all() else values[good])


def _survey_tensor(
    file: "SafeTensorsFile",
    entry: "TensorEntry",
    grids: Sequence[Grid],
    scaled: bool,
    rule: PickRule,
    tick: Callable[[int], None],
    chunk: int,
) -> TensorSurvey:
    tensor = TensorTally()
    kept: list[Array] = []
    for values in _chunks(file, entry, chunk):  # the scale needs the largest magnitude of all
        tensor.read(values)
        kept = [values]  # a tensor of one piece need not be read twice
    wide = entry.dtype == "F64"
    tallies = [
        FormatTally(grid, caster(grid.format), scale_for(grid.format, tensor.absmax, scaled, wide=wide))
        for grid in grids
    ]
    done = 0
    for values in kept if entry.elements <= chunk else _chunks(file, entry, chunk):
        part = _finite_piece(values)
        tensor.add(part)
        for tally in tallies:
            tally.add(part)
        done += part.values.size
        tick(done)
    tick(entry.elements)
    stats = tuple(_stats(tensor, tally) for tally in tallies)
    pick, reason = _pick(entry, tensor, stats, rule)
    finite = tensor.finite
    return TensorSurvey(
        name=entry.name,
        dtype=entry.dtype,
        shape=entry.shape,
        elements=entry.elements,
        nbytes=entry.nbytes,
        nans=tensor.nans,
        infinities=tensor.infinities,
        zeros=tensor.zeros,
        absmax=tensor.absmax,
        rms=math.sqrt(tensor.signal / finite) if finite else 0.0,
        stats=stats,
        pick=pick,
        reason=reason,
    )


def _pick(
    entry: "TensorEntry", tensor: TensorTally, stats: Sequence[FormatStats], rule: PickRule
) -> tuple[str | None, str]:
    if tensor.nans or tensor.infinities:
        return None, f"{tensor.nans} NaN and {tensor.infinities} infinite elements; repair the tensor first."
    unfit = why_not_a_weight(entry.name, entry.shape)
    if unfit is not None:
        return None, f"{unfit}."
    if not tensor.signal:
        return None, "every element is zero." if entry.elements else "empty."
    return rule.pick(stats, stored=entry.dtype, stored_bits=entry.stored.bits)


def _share(count: int, of: int) -> float:
    return count / of if of else 0.0


def _stats(tensor: TensorTally, tally: FormatTally) -> FormatStats:
    finite = tensor.finite
    fmt: Format = tally.grid.format
    used = np.flatnonzero(tensor.binade_count)
    return FormatStats(
        format=fmt.name,
        bits=fmt.bits,
        scale=float(tally.scale),
        signal=tensor.signal,
        noise=tally.noise,
        max_error=tally.max_error,
        saturated=_share(tally.saturated, finite),
        flushed=_share(tally.zeros - tensor.zeros, finite - tensor.zeros),
        subnormal=None if tally.subnormals is None else _share(tally.subnormals, finite),
        code_counts=tuple(tally.code_count[tally.grid.ascending].tolist()) if tally.grid.small else (),
        binades=tuple(
            Binade(
                int(i) + LOWEST_EXPONENT,
                int(tensor.binade_count[i]),
                float(tensor.binade_signal[i]),
                float(tally.binade_noise[i]),
            )
            for i in used
            if i  # bin 0 holds the zeros, which no format gets wrong
        ),
    )


def _summed(rows: Sequence[tuple[TensorSurvey, FormatStats]]) -> FormatStats:
    first = rows[0][1]
    finite = [t.elements - t.nans - t.infinities for t, _ in rows]
    nonzero = [n - t.zeros for n, (t, _) in zip(finite, rows, strict=True)]
    stats = [s for _, s in rows]
    counts: Array = np.sum(np.asarray([s.code_counts for s in stats], np.int64), axis=0)
    signal, noise, number = (np.zeros(BINADES) for _ in range(3))
    for s in stats:
        for b in s.binades:
            i = b.exponent - LOWEST_EXPONENT
            signal[i] += b.signal
            noise[i] += b.noise
            number[i] += b.count

    def mean(shares: list[float], weights: list[int]) -> float:
        whole = sum(weights)
        return sum(s * w for s, w in zip(shares, weights, strict=True)) / whole if whole else 0.0

    return FormatStats(
        format=first.format,
        bits=first.bits,
        scale=math.nan,
        signal=sum(s.signal for s in stats),
        noise=sum(s.noise for s in stats),
        max_error=max(s.max_error for s in stats),
        saturated=mean([s.saturated for s in stats], finite),
        flushed=mean([s.flushed for s in stats], nonzero),
        subnormal=None if first.subnormal is None else mean([s.subnormal or 0.0 for s in stats], finite),
        code_counts=tuple(counts.tolist()) if first.code_counts else (),
        binades=tuple(
            Binade(int(i) + LOWEST_EXPONENT, int(number[i]), float(signal[i]), float(noise[i]))
            for i in np.flatnonzero(number)
        ),
    )
