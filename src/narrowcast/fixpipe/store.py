"""What a store left behind: bytes in their layout, and what it cost."""

from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from narrowcast.catalog.formats import formats
from narrowcast.fixpipe.addressing import Addressing
from narrowcast.operation.findings import Finding
from narrowcast.quant import decode, pack

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Rate:
    """Elements a cycle on this route, by one table; None where the table has no such cell."""

    table: str
    elements_per_cycle: int | None
    cycles: int | None
    used: bool
    source: str

    def __str__(self) -> str:
        if self.elements_per_cycle is None:
            return f"{self.table}: no figure for this route and width [{self.source}]"
        return f"{self.table}: {self.elements_per_cycle} elements/cycle, {self.cycles} cycles [{self.source}]"


@dataclass(frozen=True)
class Chunk:
    """Columns handled by one instruction: the parameter buffer holds 512."""

    first_column: int
    columns: int
    parameter_bytes: int


@dataclass(frozen=True, eq=False)
class Store:
    """The destination after a Fixpipe instruction.

    Args:
        format: format of the stored codes.
        storage: codes in destination order, one array per unit buffer (two with a dual destination).
        written: elements the store touched, same shapes.
        dummy: elements among them that hold no result (columns beyond N).
        addressing: where each (row, column) went, per unit buffer.
        route: GM, L1 or UB.
        elements: results written.
        bytes: bytes written.
        cycles: by the table in use; None where it has no figure.
        rates: both tables.
        chunks: column ranges, one per instruction.
        findings: consequences that were emulated.
    """

    format: str
    shape: tuple[int, int]
    storage: tuple[Array, ...]
    written: tuple[Array, ...]
    dummy: tuple[Array, ...]
    addressing: tuple[Addressing, ...]
    route: str
    elements: int
    bytes: int
    cycles: int | None
    rates: tuple[Rate, ...]
    chunks: tuple[Chunk, ...]
    dual: str | None = None
    findings: tuple[Finding, ...] = field(default=())

    @property
    def codes(self) -> Array:
        """Results in plain row-major order [M, N]."""
        parts = [
            storage[where.indices(where.columns)] for storage, where in zip(self.storage, self.addressing, strict=True)
        ]
        return np.concatenate(parts, axis=1 if self.dual == "N" else 0)

    @property
    def values(self) -> Array:
        """Results as values [M, N]."""
        return decode(self.codes, self.format)

    def memory(self, part: int = 0) -> Array:
        """Destination bytes: 4-bit codes packed two to a byte, even element low."""
        row = formats[self.format]
        storage = self.storage[part]
        return pack(storage, self.format) if row.packs else storage.view(np.uint8)

    def arrays(self) -> dict[str, Array]:
        """The arrays an audit compares."""
        return {f"storage{i or ''}": s for i, s in enumerate(self.storage)}

    def summary(self) -> dict[str, Any]:
        """Plain numbers for a report."""
        return {
            "format": self.format,
            "shape": list(self.shape),
            "route": self.route,
            "elements": self.elements,
            "bytes": self.bytes,
            "cycles": self.cycles,
            "rates": [asdict(r) for r in self.rates],
            "chunks": [asdict(c) for c in self.chunks],
            "dummy_elements": int(sum(int(d.sum()) for d in self.dummy)),
            "findings": [f.to_json() for f in self.findings],
        }
