"""A sweep of plans as one self-contained page: the time of each path against the size that varies."""

from typing import Any

from narrowcast.advise import Sweep
from narrowcast.report import figures
from narrowcast.report.environment import plotly_script, render
from narrowcast.version import VERSION


def plan_page(swept: Sweep) -> str:
    """Render a sweep as one HTML page that loads nothing from elsewhere.

    Args:
        swept: the result of :func:`narrowcast.advise.sweep`.

    Returns:
        The page's text.
    """
    first = swept.plans[0]
    return render(
        "plan.html.j2",
        version=VERSION,
        swept=swept,
        first=first,
        figures=figures,
        crossings=_crossings(swept),
        data=_data(swept),
        plotly=plotly_script(),
    )


def _data(swept: Sweep) -> dict[str, Any]:
    names = [p.name for p in swept.plans[0].paths]
    return {
        "axis": swept.axis.name,
        "x": list(swept.axis.values),
        "cube": [round(p.cube_microseconds, 4) for p in swept.plans],
        "paths": {
            name: [None if (t := p.path(name).total_microseconds) is None else round(t, 4) for p in swept.plans]
            for name in names
        },
        "alone": {
            name: [None if (t := p.path(name).microseconds) is None else round(t, 4) for p in swept.plans]
            for name in names
        },
    }


def _crossings(swept: Sweep) -> list[tuple[str, str]]:
    """Where each path starts to hide behind the product."""
    found = []
    for path in swept.plans[0].paths:
        hidden = [v for v, p in zip(swept.axis.values, swept.plans, strict=True) if p.path(path.name).hidden]
        if not path.available:
            text = path.why_not
        elif path.cycles is None:
            text = f"no figure: {'; '.join(path.missing)}"
        elif not hidden:
            text = "does not hide in this range"
        else:
            text = f"hides behind the product from {swept.axis.name} = {hidden[0]} of the values swept"
            if swept.axis.name == "K":
                text += f" (computed: K = {path.hide_from_k:.0f})"
        found.append((path.name, text))
    return found
