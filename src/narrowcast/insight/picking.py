"""Which format to pick for a tensor: one documented rule and a sentence that says how it came out."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


class Measured(Protocol):
    """What the rule reads of a tensor under one format."""

    @property
    def format(self) -> str: ...
    @property
    def bits(self) -> int: ...
    @property
    def sqnr_db(self) -> float: ...
    @property
    def saturated(self) -> float: ...
    @property
    def flushed(self) -> float: ...


@dataclass(frozen=True)
class PickRule:
    """Fewest bits, then highest SQNR, among the formats that do no damage.

    Attributes:
        min_sqnr_db: least signal-to-quantization-noise ratio, in dB.
        max_saturated: largest share of elements that may be clamped.
        max_flushed: largest share of non-zero elements that may become zero.
        level_db: two formats closer than this count as level, and the one named first is taken.
    """

    min_sqnr_db: float = 25.0
    max_saturated: float = 0.0001
    max_flushed: float = 0.10
    level_db: float = 0.1

    @property
    def sentence(self) -> str:
        """State the rule in one sentence."""
        return (
            "Among the formats narrower than the stored type that reach "
            f"{self.min_sqnr_db:g} dB SQNR, clamp at most {percent(self.max_saturated)} of the elements and flush at "
            f"most {percent(self.max_flushed)} of the non-zero ones to zero: the fewest bits, then the highest SQNR "
            f"(within {self.level_db:g} dB: the one named first). 1-D tensors (biases, norms), tensors with NaN or "
            "infinity and tensors with no such format are kept as stored."
        )

    def complaint(self, m: Measured) -> str | None:
        """Say why a format is not acceptable, None if it is."""
        if m.saturated > self.max_saturated:
            return f"clamps {percent(m.saturated)} of the elements"
        if not m.sqnr_db >= self.min_sqnr_db:
            return f"reaches only {m.sqnr_db:.1f} dB"
        if m.flushed > self.max_flushed:
            return f"flushes {percent(m.flushed)} of the non-zero elements to zero"
        return None

    def pick(self, measured: Sequence[Measured], *, stored: str, stored_bits: int) -> tuple[str | None, str]:
        """Apply the rule.

        Args:
            measured: the tensor under each format.
            stored: dtype string of the tensor in the file.
            stored_bits: bits per element there.

        Returns:
            The format's name (None: keep as stored) and the reason.
        """
        narrower = [m for m in measured if m.bits < stored_bits]
        if not narrower:
            return None, f"no surveyed format is narrower than {stored}."
        good = [m for m in narrower if self.complaint(m) is None]
        if not good:
            best = max(narrower, key=_order)
            return None, f"no format qualifies; the nearest, {best.format}, {self.complaint(best)}."
        fewest = min(m.bits for m in good)
        peers = [m for m in good if m.bits == fewest]
        highest = max(m.sqnr_db for m in peers)
        winner = next(m for m in peers if m.sqnr_db == highest or m.sqnr_db > highest - self.level_db)
        return winner.format, self._why(winner, peers, narrower)

    def _why(self, winner: Measured, peers: Sequence[Measured], measured: Sequence[Measured]) -> str:
        parts = ["exact" if math.isinf(winner.sqnr_db) else f"{winner.sqnr_db:.1f} dB"]
        others = [m for m in peers if m is not winner]
        if others:
            second = max(others, key=lambda m: m.sqnr_db)
            margin = 0.0 if second.sqnr_db == winner.sqnr_db else winner.sqnr_db - second.sqnr_db
            if margin < self.level_db:
                parts[0] += f", level with {second.format}"
            else:
                parts[0] += f", {margin:.1f} dB ahead of {second.format}" if margin < math.inf else ""
        else:
            parts[0] += f", the only {winner.bits}-bit format that qualifies"
        rejected = [m for m in measured if m.bits == winner.bits and m not in peers]
        if rejected:
            best = max(rejected, key=_order)
            if best.sqnr_db > winner.sqnr_db:
                parts.append(f"{best.format} has more ({best.sqnr_db:.1f} dB) but {self.complaint(best)}")
            elif not others:
                parts.append(f"{best.format} {self.complaint(best)}")
        smaller = [m for m in measured if m.bits < winner.bits]
        if smaller:
            best = max(smaller, key=_order)
            parts.append(f"with fewer bits, {best.format} {self.complaint(best)}")
        return "; ".join(parts) + "."


def _order(m: Measured) -> float:
    return m.sqnr_db if not math.isnan(m.sqnr_db) else -math.inf


def percent(share: float) -> str:
    """Write a share as a percentage; only none at all reads 0 %, and only all of it 100 %.

    Example:
        >>> percent(0.0), percent(0.05), percent(1e-7), percent(0.99999)
        ('0%', '5%', '<0.001%', '>99.9%')
    """
    if share == 0:
        return "0%"
    if share < 1e-5:
        return "<0.001%"
    if 0.9995 <= share < 1:
        return ">99.9%"
    return f"{100 * share:.3g}%"
