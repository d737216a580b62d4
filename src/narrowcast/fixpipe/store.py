"""What a store left behind: bytes in their layout, and what it cost."""

from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from narrowcast.catalog.formats import formats
from narrowcast.fixpipe.addressing import Addressing, Array
from narrowcast.fixpipe.cost import Chunk, Rate
from narrowcast.operation.findings import Finding
from narrowcast.quant import decode, pack


@dataclass(frozen=True, eq=False)
class Store:
    """The destination after a Fixpipe instruction.

    Args:
        format: format of the stored codes.
        shape: [M, N], or [batches, M, N].
        storage: codes in destination order, one array per unit buffer (two with a dual destination).
        addressing: where each (row, column) went: per unit buffer, per matrix of the batch.
        route: GM, L1 or UB.
        elements: results written.
        bytes: bytes written, dummy columns included.
        cycles: by the table in use, parameter loads included; None where it has no figure.
        rates: both tables.
        chunks: row and column ranges, one per instruction.
        dual: ``M``, ``N`` or None.
        findings: consequences that were emulated.
    """

    format: str
    shape: tuple[int, ...]
    storage: tuple[Array, ...]
    addressing: tuple[tuple[Addressing, ...], ...]
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
        """Results in plain row-major order, ``shape``."""
        if not self.storage:
            return np.zeros(self.shape, dtype=formats[self.format].code_dtype)
        units = [
            np.stack([where.take(storage) for where in batch])
            for storage, batch in zip(self.storage, self.addressing, strict=True)
        ]
        return np.concatenate(units, axis=2 if self.dual == "N" else 1).reshape(self.shape)

    @property
    def values(self) -> Array:
        """Results as values, ``shape``."""
        return decode(self.codes, self.format)

    @property
    def written(self) -> tuple[Array, ...]:
        """Elements the store touched, one mask per unit buffer."""
        return tuple(self._marks(unit, 0) for unit in range(len(self.storage)))

    @property
    def dummy(self) -> tuple[Array, ...]:
        """Elements written that hold no result: columns beyond N."""
        return tuple(self._marks(unit, 1) for unit in range(len(self.storage)))

    def _marks(self, unit: int, which: int) -> Array:
        size = self.storage[unit].size
        total = np.zeros(size, dtype=np.bool_)
        for where in self.addressing[unit]:
            total |= where.marks(size)[which]
        return total

    def memory(self, part: int = 0) -> Array:
        """Destination bytes of a unit buffer: 4-bit codes packed two to a byte, even element low."""
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
            "dummy_elements": sum(int(d.sum()) for d in self.dummy),
            "findings": [f.to_json() for f in self.findings],
        }
