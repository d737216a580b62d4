"""Numbers as people read them."""

import math

from narrowcast.insight.picking import percent

__all__ = ["count", "decibel", "percent", "real", "size"]


def size(nbytes: int) -> str:
    """Write a number of bytes.

    Example:
        >>> size(1_239_748)
        '1.24 MB'
    """
    value = float(nbytes)
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if value < 999.5 or unit == "TB":
            return f"{nbytes} B" if unit == "B" else f"{value:.3g} {unit}"
        value /= 1000
    raise AssertionError("unreachable")


def count(number: int) -> str:
    """Write a count with thin groups.

    Example:
        >>> count(309633)
        '309,633'
    """
    return f"{number:,}"


def decibel(value: float) -> str:
    """Write a level in dB: ``exact`` when nothing was lost, a dash when there is no signal."""
    if math.isnan(value):
        return "–"
    if math.isinf(value):
        return "exact" if value > 0 else "-inf"
    return f"{value:.1f}"


def real(value: float) -> str:
    """Write a real number in three digits.

    Example:
        >>> real(0.0123456), real(0.0)
        ('0.0123', '0')
    """
    return f"{value:.3g}"
