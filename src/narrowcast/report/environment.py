"""The one way pages are rendered: escaped, strict, from the package's templates."""

from typing import Any


def render(template: str, **values: Any) -> str:
    """Render a page that loads nothing from elsewhere.

    Args:
        template: file name in ``templates``.
        **values: what the template uses; a missing one is an error.
    """
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("narrowcast.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.policies["json.dumps_kwargs"] = {"sort_keys": False, "separators": (",", ":")}
    return environment.get_template(template).render(**values)


def plotly_script() -> str:
    """Plotly's own script, embedded once a page."""
    import plotly.offline

    return str(plotly.offline.get_plotlyjs())
