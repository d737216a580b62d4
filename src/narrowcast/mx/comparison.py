"""What each scale rule costs on given tensors: error, and the blocks it hurts."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from narrowcast.catalog.formats import formats
from narrowcast.errors import FormatError, NarrowcastError
from narrowcast.mx.blocking import PIECE, blocked
from narrowcast.mx.operation import MxQuant, scheme_of
from narrowcast.mx.rules import NAN_BYTE
from narrowcast.mx.scheme import Scheme, fold
from narrowcast.numerics import source_name
from narrowcast.numerics.unpacking import Array
from narrowcast.operation import Choices, Control, Semantics
from narrowcast.quant import Cast, decode
from narrowcast.quant.qtensor import block_scales
from narrowcast.schema import Magnitudes
from narrowcast.storage import open_safetensors

_SOURCES = ("fp32", "fp16", "bf16")


@dataclass(frozen=True)
class BlockError:
    """One block and what a rule did to it."""

    tensor: str
    row: tuple[int, ...]  # index over the leading axes
    block: int  # along the last axis
    absmax: float
    byte: int
    sqnr_db: float
    why: str


@dataclass
class RuleError:
    """Counts and sums of one rule over some elements; sums add up over tensors."""

    rule: str
    rounding: str
    elements: int = 0
    blocks: int = 0
    signal: float = 0.0
    noise: float = 0.0
    max_error: float = 0.0
    clipped: int = 0  # elements beyond the largest value after scaling
    clipped_blocks: int = 0
    flushed: int = 0  # elements that are not zero and became zero
    flushed_blocks: int = 0  # blocks that are not zero and became zero
    ties: int = 0  # elements halfway between two codes after scaling
    nan_blocks: int = 0
    worst: list[BlockError] = field(default_factory=list)
    refused: str = ""

    @property
    def sqnr_db(self) -> float:
        """Signal over noise in dB; infinite without noise, NaN without signal."""
        if self.noise == 0:
            return math.inf if self.signal else math.nan
        return 10 * math.log10(self.signal / self.noise) if self.signal else -math.inf

    def add(self, other: "RuleError", keep: int) -> None:
        """Add the counts of another tensor."""
        if other.refused:
            self.refused = self.refused or other.refused
            return
        for name in ("elements", "blocks", "signal", "noise", "clipped", "clipped_blocks", "flushed"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for name in ("flushed_blocks", "ties", "nan_blocks"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.max_error = max(self.max_error, other.max_error)
        self.worst = sorted([*self.worst, *other.worst], key=lambda b: b.sqnr_db)[:keep]


@dataclass(frozen=True)
class TensorComparison:
    """Every rule on one tensor."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    padded: int  # zeros added to the last block of each row
    rules: tuple[RuleError, ...]

    @property
    def best(self) -> str:
        """The rule with the least noise; the first of equals."""
        usable = [r for r in self.rules if not r.refused]
        return min(usable, key=lambda r: r.noise).rule if usable else ""


@dataclass(frozen=True)
class Comparison:
    """Every rule on every tensor, and in total."""

    source: str
    format: str
    block: int
    tensors: tuple[TensorComparison, ...]
    skipped: tuple[tuple[str, str], ...]  # name, why
    total: tuple[RuleError, ...]


def compare_rules(
    arrays: Iterable[tuple[str, Array]],
    format: str,
    rules: Sequence[str],
    *,
    block: int = 32,
    worst: int = 3,
    flatten: bool = False,
    source: str = "",
    progress: Callable[[int], None] | None = None,
) -> Comparison:
    """Quantize tensors under several scale rules and compare the errors.

    Formula: ``SQNR = 10 log10(sum x**2 / sum (x - real)**2)`` over the finite elements, in fp64.

    Args:
        arrays: (name, array) pairs; blocks run along the last axis. Arrays with fewer than two axes, or of other
            types than fp32, fp16 and bf16, are skipped and listed.
        format: element format.
        rules: scale rules, parameters after a colon.
        block: elements per scale.
        worst: how many of the worst blocks to keep per rule.
        flatten: join all axes but the first before blocking, as convolution weights are.
        source: what the tensors are, for the report.
        progress: called with the number of elements done.

    Returns:
        A :class:`Comparison`.

    Raises:
        UnknownNameError: an unknown format or rule.
        UnsupportedCastError: a rule that does not write the format.
        FormatError: no tensor to compare on, or no rule.

    Source: the rules' rows.

    Example:
        >>> x = np.float32([[7.5] + [1.0] * 31, [4.0] + [1.0] * 31])
        >>> c = compare_rules([("w", x)], "e2m1", ["ocp-floor", "ceil"])
        >>> [(r.rule, r.clipped, round(r.sqnr_db, 1)) for r in c.total]
        [('ocp-floor', 1, 17.8), ('ceil', 0, 27.3)]
    """
    operations = [MxQuant(format=format, rule=rule, block=block) for rule in rules]
    if not operations:
        raise FormatError("no scale rule to compare.", hint="Name at least one, e.g. ocp-floor.")
    tensors: list[TensorComparison] = []
    skipped: list[tuple[str, str]] = []
    total = [RuleError(op.rule, str(op.rounding)) for op in operations]
    for name, array in arrays:
        kind = source_name(array.dtype)
        if kind not in _SOURCES or array.ndim < 2 or array.size == 0:
            skipped.append((name, f"{array.dtype}" if kind not in _SOURCES else f"shape {list(array.shape)}"))
        else:
            matrix = array.reshape(array.shape[0], -1) if flatten else array
            found = tuple(_one_tensor(name, matrix, kind, op, worst) for op in operations)
            tensors.append(TensorComparison(name, kind, array.shape, -matrix.shape[-1] % block, found))
            for sum_, one in zip(total, found, strict=True):
                sum_.add(one, worst)
        if progress is not None:
            progress(array.size)
    if not tensors:
        raise FormatError(
            f"no tensor of at least two axes in fp32, fp16 or bf16{' in ' + source if source else ''}.",
            hint="MX blocks are compared on weight matrices.",
        )
    return Comparison(source, formats[format].name, block, tuple(tensors), tuple(skipped), tuple(total))


def compare_rules_in_file(
    path: str | Path,
    format: str,
    rules: Sequence[str],
    *,
    block: int = 32,
    worst: int = 3,
    flatten: bool = False,
    progress: Callable[[int], None] | None = None,
) -> Comparison:
    """Compare scale rules on the tensors of a safetensors file, one mapped tensor at a time.

    Args:
        path: the file.
        format: element format.
        rules: scale rules.
        block: elements per scale.
        worst: how many of the worst blocks to keep per rule.
        flatten: join all axes but the first before blocking, as convolution weights are.
        progress: called with the number of elements done.

    Returns:
        A :class:`Comparison`.

    Raises:
        CheckpointError: not a safetensors file.
        NarrowcastError: as :func:`compare_rules`.

    Source: the rules' rows.

    Example:
        >>> compare_rules_in_file("missing.safetensors", "e2m1", ["ceil"])
        Traceback (most recent call last):
        narrowcast.errors.CheckpointError: cannot read missing.safetensors: ...
    """
    with open_safetensors(path) as file:
        arrays = ((name, file.read(name)) for name in file.names)
        return compare_rules(
            arrays,
            format,
            rules,
            block=block,
            worst=worst,
            flatten=flatten,
            source=Path(path).name,
            progress=progress,
        )


def _one_tensor(name: str, array: Array, kind: str, op: MxQuant, worst: int) -> RuleError:
    found = RuleError(op.rule, str(op.rounding))
    choices = Choices(Semantics(), frozenset(op.switches), "MxQuant")
    scheme = scheme_of(op, choices, Control())
    try:
        op.check(array, choices)
    except NarrowcastError as error:
        found.refused = error.message
        return found
    rows = array.reshape(-1, array.shape[-1])
    for start, part in _parts(rows):
        piece = _measure(part, kind, op.block, scheme)
        _count(found, piece)
        found.worst += _worst(name, array.shape[:-1], start, piece, worst)
        found.worst = sorted(found.worst, key=lambda b: b.sqnr_db)[:worst]
    return found


def _parts(rows: Array) -> Iterator[tuple[int, Array]]:
    step = max(1, PIECE // rows.shape[1])
    for start in range(0, rows.shape[0], step):
        yield start, np.ascontiguousarray(rows[start : start + step])


@dataclass(frozen=True)
class _Piece:
    """Per-element and per-block facts of some rows, shape [R, G, B] and [R, G]."""

    values: Array
    codes: Array
    scaled: Array
    error: Array
    byte: Array
    scheme: Scheme
    padding: int

    @property
    def target(self) -> Magnitudes:
        row = self.scheme.target
        assert isinstance(row, Magnitudes)
        return row

    @property
    def clipped(self) -> Any:
        return np.abs(self.scaled) > np.float32(self.scheme.target.max)

    @property
    def flushed(self) -> Any:
        magnitude = self.codes & np.uint8(self.scheme.target.code_mask >> 1)
        return (self.values != 0) & (magnitude == 0) & (self.byte != NAN_BYTE)[..., None]


def _measure(rows: Array, kind: str, block: int, scheme: Scheme) -> _Piece:
    blocks = blocked(rows, block)
    codes, byte = scheme.quantize(blocks, kind)
    values = blocks.astype(np.float32, copy=False)
    multiplier = scheme.multipliers(byte, scheme.largest(blocks))
    scaled = scheme.scaled(blocks, multiplier)
    real = decode(codes, scheme.format) * block_scales(byte, scheme.format)[..., None]
    with np.errstate(invalid="ignore"):
        error = values.astype(np.float64) - real.astype(np.float64)
    error[~np.isfinite(error)] = 0
    return _Piece(values, codes, scaled, error, byte, scheme, -rows.shape[1] % block)


def _ties(piece: _Piece) -> int:
    """Elements exactly halfway between two neighbouring values."""
    if not isinstance(piece.scheme.target, Magnitudes):
        return int((np.abs(piece.scaled) % 1 == np.float32(0.5)).sum())
    table = np.array([piece.target.rank_value(r) for r in range(piece.target.overflow_rank)], dtype=np.float32)
    magnitude = np.abs(piece.scaled)
    below = Cast(None, piece.scheme.format, "rz", nan="zero")(magnitude)
    inside = below < piece.target.overflow_rank - 1
    middle = (table + np.append(table[1:], table[-1])) / 2
    return int((inside & (magnitude == middle[below])).sum())


def _count(found: RuleError, piece: _Piece) -> None:
    finite = np.where(np.isfinite(piece.values), piece.values, np.float32(0)).astype(np.float64)
    found.elements += piece.values.size - piece.padding * piece.values.shape[0]
    found.blocks += piece.byte.size
    found.signal += float(np.square(finite).sum())
    found.noise += float(np.square(piece.error).sum())
    found.max_error = max(found.max_error, float(np.abs(piece.error).max()))
    clipped, flushed = piece.clipped, piece.flushed
    found.clipped += int(clipped.sum())
    found.clipped_blocks += int(clipped.any(axis=-1).sum())
    found.flushed += int(flushed.sum())
    gone = flushed.any(axis=-1) & (flushed == (piece.values != 0)).all(axis=-1)
    found.flushed_blocks += int(gone.sum())
    found.ties += _ties(piece)
    found.nan_blocks += int((piece.byte == NAN_BYTE).sum())


def _worst(name: str, lead: tuple[int, ...], start: int, piece: _Piece, keep: int) -> list[BlockError]:
    signal = fold(np.square(np.where(np.isfinite(piece.values), piece.values, 0).astype(np.float64)))
    noise = fold(np.square(piece.error))
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where((signal > 0) & (noise > 0), signal / noise, np.inf)
    flat = ratio.reshape(-1)
    first = np.argpartition(flat, min(keep, flat.size - 1))[:keep] if keep else np.empty(0, dtype=np.intp)
    found = []
    for at in first:
        if not np.isfinite(flat[at]):
            continue
        row, block = np.unravel_index(int(at), ratio.shape)
        clipped, flushed = int(piece.clipped[row, block].sum()), int(piece.flushed[row, block].sum())
        found.append(
            BlockError(
                tensor=name,
                row=tuple(int(i) for i in np.unravel_index(start + int(row), lead)),
                block=int(block),
                absmax=float(np.abs(piece.values[row, block]).max()),
                byte=int(piece.byte[row, block]),
                sqnr_db=10 * math.log10(float(flat[at])),
                why=_why(clipped, flushed),
            )
        )
    return found


def _why(clipped: int, flushed: int) -> str:
    reasons = []
    if clipped:
        reasons.append(f"{clipped} clipped")
    if flushed:
        reasons.append(f"{flushed} flushed to zero")
    return ", ".join(reasons) or "coarse step"
