"""Rows only: the single source of truth for names, numbers and who says so."""

from collections.abc import Iterator, Mapping
from typing import Generic, TypeVar

from narrowcast.errors import unknown_name

Row = TypeVar("Row")


class Catalog(Mapping[str, Row], Generic[Row]):
    """An ordered, read-only set of rows, found by name or alias, ignoring case."""

    def __init__(self, kind: str, rows: Mapping[str, Row], aliases: Mapping[str, str]) -> None:
        self._kind = kind
        self._rows = dict(rows)
        self._aliases = tuple(aliases)
        lookup: dict[str, str] = {}
        for alias, name in [*((n, n) for n in rows), *aliases.items()]:
            if lookup.setdefault(alias.lower(), name) != name:
                raise ValueError(f"{kind} alias {alias!r} names both {lookup[alias.lower()]} and {name}")
        self._lookup = lookup

    def __getitem__(self, name: str) -> Row:
        found = self._lookup.get(_spelled(name))
        if found is None:
            raise unknown_name(self._kind, name, self._rows, aliases=self._aliases)
        return self._rows[found]

    def __contains__(self, name: object) -> bool:
        return _spelled(name) in self._lookup

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def __repr__(self) -> str:
        return f"<{self._kind} catalog: {', '.join(self._rows)}>"


def _spelled(name: object) -> str:
    """Spell a key; the scalar types of NumPy and ml_dtypes (``np.float16``) go by their name, as their dtypes do."""
    return (name.__name__ if isinstance(name, type) and hasattr(name, "dtype") else str(name)).lower()
