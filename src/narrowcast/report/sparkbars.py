"""Inline SVG bars, small enough for one in every row of a table."""

from collections.abc import Sequence
from html import escape


def sparkbars(shares: Sequence[float], label: str, *, width: int = 120, height: int = 22) -> str:
    """Draw shares as bars on one baseline.

    Args:
        shares: non-negative numbers, drawn relative to the largest.
        label: what the bars say, for the tooltip and for screen readers.
        width, height: size in CSS pixels.

    Returns:
        An ``<svg>`` element.

    Example:
        >>> sparkbars([1, 2], "two bars").count("<rect")
        2
    """
    top = max(shares, default=0.0) or 1.0
    step = width / max(len(shares), 1)
    bars = "".join(
        # A bar that stands for something is never thinner than a visible line.
        f'<rect x="{i * step:.2f}" y="{height - h:.2f}" width="{max(step - 0.7, 0.5):.2f}" height="{h:.2f}"/>'
        for i, share in enumerate(shares)
        if (h := max(share / top * height, 1.0 if share else 0.0)) > 0
    )
    text = escape(label)
    return (
        f'<svg class="spark" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" '
        f'aria-label="{text}"><title>{text}</title>{bars}</svg>'
    )
