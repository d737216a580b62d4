"""What a rule of the Fixpipe judges."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

if TYPE_CHECKING:
    from narrowcast.fixpipe.operation import Fixpipe

STORE_GRAIN = 32
"""Bytes that L1 and UB are written in."""


@dataclass(frozen=True)
class Call:
    """An instruction with what is known of its data: accumulators and parameter arrays may be absent."""

    op: "Fixpipe"
    acc: npt.NDArray[Any] | None = None
    parameters: tuple[tuple[str, npt.NDArray[Any]], ...] = ()
    shape: tuple[int, ...] = (0, 0)

    @property
    def rows(self) -> int:
        """M, 0 when unknown."""
        return self.op.m or self.shape[0]

    @property
    def columns(self) -> int:
        """N, 0 when unknown."""
        return self.op.n or self.shape[1]
