"""What a detector hands back: evidence, the fix in the call's own terms, and the fix tried."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from narrowcast.catalog.pitfalls import PitfallRow, pitfalls
from narrowcast.insight.quantized_case import QuantizedCase
from narrowcast.operation import Finding

Array = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class Detection:
    """One pitfall found.

    Attributes:
        pitfall: id of its row.
        message: what is wrong, with numbers.
        evidence: the numbers, ``first_index`` among them.
        before, after: the same measurement without and with the fix.
        fixed: the fixed quantization, None where the fix is none.
        severity: 0..1, among findings of one tier.
        place: what it is about.
        fix_detail: the fix with this tensor's numbers.
        multiplier: whether the caller thinks in multipliers.
        tried: what the tool did to get ``after``.
        shown: wanted values, results before and after, where ``fixed`` does not say.
    """

    pitfall: str
    message: str
    evidence: dict[str, Any]
    before: dict[str, Any]
    after: dict[str, Any]
    fixed: QuantizedCase | None = None
    severity: float = 0.5
    place: str = "tensor"
    fix_detail: str = ""
    multiplier: bool = False
    tried: str = ""
    shown: tuple[Array, Array, Array] | None = None

    @property
    def row(self) -> PitfallRow:
        """The pitfall."""
        return pitfalls[self.pitfall]

    @property
    def fix(self) -> str:
        """The fix in the direction of the caller's convention."""
        text = self.row.multiplier_fix if self.multiplier and self.row.multiplier_fix else self.row.fix
        return f"{text} {self.fix_detail}".rstrip()

    def finding(self) -> Finding:
        """The report form."""
        evidence = {**self.evidence, "before": self.before, "after": self.after}
        if self.tried:
            evidence["tried"] = self.tried
        return Finding(
            rule=self.pitfall,
            place=self.place,
            message=f"{self.row.name}: {self.message} ({self.row.cause})",
            evidence=evidence,
            fix=self.fix,
            source=self.row.source,
        )


def improvement(before: QuantizedCase, after: QuantizedCase) -> float:
    """Gain in dB; large when the result was not finite before."""
    old, new = before.quality, after.quality
    if old.bad and not new.bad:
        return 200.0
    if np.isinf(new.sqnr_db) and new.sqnr_db > 0:
        return 200.0 if not np.isinf(old.sqnr_db) else 0.0
    return float(new.sqnr_db - old.sqnr_db) if np.isfinite(old.sqnr_db) else 200.0
