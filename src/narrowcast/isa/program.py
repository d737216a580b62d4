"""A tile program as data: statements with operands and types, in any of the three written forms."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType

from narrowcast.errors import EncodingError
from narrowcast.tile.spelling import read_dtype, write_dtype
from narrowcast.tile.types import TileType


class Form(Enum):
    """How a statement is written."""

    SSA = "ssa"
    DPS = "dps"
    PLAIN = "plain"


@dataclass(frozen=True)
class MemoryType:
    """Type of an array in global memory: ``!pto.partition_tensor_view<1x1x1x63x63xf32>``; None is ``?``."""

    dtype: str
    dims: tuple[int | None, ...]

    @classmethod
    def parse(cls, text: str) -> "MemoryType":
        """Read the type.

        Raises:
            EncodingError: not such a type.
        """
        found = re.fullmatch(r"!?\s*pto\.(?:partition_tensor_view|memref)\s*<\s*([^<>]*?)\s*>", text.strip())
        if found is None:
            raise EncodingError(
                f"{text.strip()!r} is no memory type.", hint="Write !pto.partition_tensor_view<128x128xf32>."
            )
        if "," in found[1]:  # memref<f32, 16, 64>
            dtype, *sizes = (part.strip() for part in found[1].split(","))
        else:
            *sizes, dtype = (part.strip() for part in found[1].split("x"))
        if not 1 <= len(sizes) <= 5:
            raise EncodingError(f"a memory type has 1 to 5 sizes; got {len(sizes)}.")
        return cls(read_dtype(dtype), tuple(_size(part) for part in sizes))

    def __str__(self) -> str:
        sizes = "x".join("?" if n is None else str(n) for n in self.dims)
        return f"!pto.partition_tensor_view<{sizes}x{write_dtype(self.dtype)}>"


def _size(text: str) -> int | None:
    if not (text.isdigit() or text == "?"):
        raise EncodingError(f"{text!r} is no size; a memory type is sizes and an element type.")
    return None if text == "?" else int(text)


Type = TileType | MemoryType


@dataclass(frozen=True)
class Operand:
    """A named value, with the offsets of a memory operand."""

    name: str
    offsets: tuple[int, ...] = ()
    column: int = field(default=1, compare=False)

    def __str__(self) -> str:
        return f"%{self.name}[{', '.join(map(str, self.offsets))}]" if self.offsets else f"%{self.name}"


@dataclass(frozen=True)
class Statement:
    """One operation.

    Args:
        op: name in lower case, without ``pto.``.
        sources: operands it reads.
        results: operands it writes, with their types last in ``types``.
        source_types: types of the sources, empty where the text leaves them out.
        result_types: types of the results.
        attributes: e.g. ``rmode`` or ``atomic``.
        form: how it was written.
        label: optional label.
        line: line in the text.
    """

    op: str
    sources: tuple[Operand, ...]
    results: tuple[Operand, ...]
    source_types: tuple[Type, ...]
    result_types: tuple[Type, ...]
    attributes: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    form: Form = field(default=Form.SSA, compare=False)
    label: str = ""
    line: int = field(default=1, compare=False)
    column: int = field(default=1, compare=False)

    @property
    def stores(self) -> bool:
        """Whether the last operand is memory that the operation writes."""
        return self.op == "tstore"


@dataclass(frozen=True)
class TileProgram:
    """Statements in order."""

    statements: tuple[Statement, ...]

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of the memories it loads, in order of use."""
        names = (s.sources[0].name for s in self.statements if s.op == "tload")
        return tuple(dict.fromkeys(names))

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the memories it stores to, in order of use."""
        names = (s.results[0].name for s in self.statements if s.stores)
        return tuple(dict.fromkeys(names))
