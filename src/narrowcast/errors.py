"""Every exception and warning of the package.

A message says what is wrong, where, what would be legal and what to do. The command line maps
:class:`NarrowcastError` to one line and exit code 2.
"""

import difflib
from collections.abc import Iterable, Sequence
from typing import Any


class NarrowcastError(Exception):
    """Base of every error the package raises on purpose.

    Args:
        message: what is wrong, where, and what is legal.
        code: short stable identifier for scripts, by default the class name.
        hint: what to do about it.
        source: the document or catalog row that states the rule.
    """

    def __init__(
        self, message: str, *, code: str | None = None, hint: str | None = None, source: str | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code or type(self).__name__
        self.hint = hint
        self.source = source

    def __str__(self) -> str:
        parts = [self.message.rstrip()]
        if self.hint:
            parts.append(self.hint.rstrip())
        if self.source:
            parts.append(f"[{self.source}]")
        return " ".join(parts)


class UnknownNameError(NarrowcastError, KeyError):
    """A name that is not in its catalog; ``suggestions`` holds the close matches."""

    def __init__(self, message: str, *, suggestions: Sequence[str] = (), **kwargs: Any) -> None:
        super().__init__(message, **kwargs)
        self.suggestions = tuple(suggestions)


class FormatError(NarrowcastError, ValueError):
    """A code or value that the format cannot hold."""


class UnsupportedCastError(NarrowcastError, ValueError):
    """A source, target, rounding or chip that the conversion matrix does not have."""


class EncodingError(NarrowcastError, ValueError):
    """A field that is too wide, a reserved selector, a word that does not decode."""


class ShapeError(NarrowcastError, ValueError):
    """A shape other than the expected one; the message names the axis and both numbers."""


class ConstraintError(NarrowcastError, ValueError):
    """A violated rule of the machine; ``findings`` lists every violation, not just the first."""

    def __init__(self, message: str, *, findings: Sequence[Any] = (), **kwargs: Any) -> None:
        super().__init__(message, **kwargs)
        self.findings = tuple(findings)


class CheckpointError(NarrowcastError, ValueError):
    """A file that is not a well-formed checkpoint; names file, tensor and byte offset."""


class OutputError(NarrowcastError, OSError):
    """An output that cannot be written: it exists already, the disk is full, the folder is missing."""


class UnverifiedWarning(UserWarning):
    """A result may rest on a rule that no public source settles; ``narrowcast.audit`` says whether it does."""


def unknown_name(
    kind: str, name: object, legal: Iterable[str], *, aliases: Iterable[str] = (), source: str | None = None
) -> UnknownNameError:
    """Build the error for an unknown name, with close matches (aliases too) and the legal names."""
    names = list(legal)
    lowered = {n.lower(): n for n in (*aliases, *names)}
    close = [lowered[m] for m in difflib.get_close_matches(str(name).lower(), list(lowered), n=3, cutoff=0.5)]
    hint = f"Did you mean {' or '.join(close)}?" if close else f"Known: {', '.join(names)}."
    return UnknownNameError(f"unknown {kind} {name!r}.", suggestions=close, hint=hint, source=source)
