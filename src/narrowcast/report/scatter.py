"""A small scatter plot as inline SVG: what a value is, against what it became."""

from html import escape

import numpy as np
import numpy.typing as npt

MOST_POINTS = 700
SIDE = 230
MARGIN = 34


def scatter(x: npt.NDArray[np.float64], y: npt.NDArray[np.float64], limits: tuple[float, float], label: str) -> str:
    """Draw results against values; points on the diagonal are right.

    Args:
        x: values.
        y: results, NaN and infinities left out.
        limits: lowest and highest value of both axes.
        label: for a reader who does not see it.
    """
    good = np.isfinite(x) & np.isfinite(y)
    x, y = x[good], y[good]
    if x.size > MOST_POINTS:
        step = x.size / MOST_POINTS
        index = (np.arange(MOST_POINTS) * step).astype(np.intp)
        x, y = x[index], y[index]
    low, high = limits
    span = (high - low) or 1.0

    def place(v: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        return np.clip((v - low) / span, -0.03, 1.03) * SIDE

    px, py = MARGIN + place(x), 8 + SIDE - place(y)
    dots = "".join(f'<circle cx="{a:.1f}" cy="{b:.1f}" r="1.8"/>' for a, b in zip(px, py, strict=True))
    left, bottom = MARGIN, 8 + SIDE
    ticks = "".join(
        f'<text x="{left + s * SIDE:.0f}" y="{bottom + 14}" text-anchor="{a}">{low + s * span:.3g}</text>'
        for s, a in ((0, "start"), (1, "end"))
    ) + "".join(
        f'<text x="{left - 4}" y="{bottom - s * SIDE + 4:.0f}" text-anchor="end">{low + s * span:.2g}</text>'
        for s in (0, 1)
    )
    return (
        f'<svg class="scatter" role="img" aria-label="{escape(label)}" viewBox="0 0 {MARGIN + SIDE + 10} {SIDE + 30}">'
        f'<rect x="{left}" y="8" width="{SIDE}" height="{SIDE}"/>'
        f'<line x1="{left}" y1="{bottom}" x2="{left + SIDE}" y2="8"/>{dots}{ticks}</svg>'
    )
