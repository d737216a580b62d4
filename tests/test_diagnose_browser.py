"""The pages of a diagnosis and of a plan in a real browser: no script error, plots drawn, nothing loaded."""

import re
from pathlib import Path

import numpy as np
import pytest

from narrowcast.advise import sweep
from narrowcast.insight.diagnosis import examine
from narrowcast.report.diagnosis_page import diagnosis_page
from narrowcast.report.plan_page import plan_page
from tests.test_report_browser import browser, opened

__all__ = ["browser"]  # the fixture

CLICK = """<script>
addEventListener("load", () => { document.querySelector('[data-which="after"]').click(); });
</script></body>"""


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    x = np.random.default_rng(3).standard_normal((32, 32)).astype(np.float32)
    texts = {
        "clipped": diagnosis_page(examine(x, to="s8", scale=0.01), "</script><script>alert(1)</script>"),
        "healthy": diagnosis_page(examine(x, to="hif8"), "x.npy"),
        "chain": diagnosis_page(examine(x, chain=["s4", "e4m3"]), "chain.yaml"),
        "plan": plan_page(sweep("K=64..8192", 4096, 4096, 0)),
    }
    for name, text in texts.items():
        (folder / f"{name}.html").write_text(text, encoding="utf-8")
    return {name: folder / f"{name}.html" for name in texts}


@pytest.mark.browser
@pytest.mark.parametrize(
    ("name", "plots"), [("clipped", ("values", "errors")), ("chain", ()), ("plan", ("total", "alone"))]
)
def test_page_draws(browser: str, pages: dict[str, Path], name: str, plots: tuple[str, ...], tmp_path: Path) -> None:
    page = pages[name]
    if name == "clipped":
        page = tmp_path / "driven.html"
        page.write_text(pages[name].read_text(encoding="utf-8").replace("</body>", CLICK), encoding="utf-8")
    dom = opened(browser, page, "", tmp_path)
    root = re.search(r"<html[^>]*>", dom)
    assert root is not None and "data-errors" not in root[0], root and root[0]
    assert 'data-ready="true"' in root[0]
    for plot in plots:
        part = dom[dom.index(f'id="{plot}"') :]
        assert "main-svg" in part[:5000], plot


@pytest.mark.parametrize("name", ["clipped", "healthy", "chain", "plan"])
def test_page_loads_nothing_from_elsewhere(pages: dict[str, Path], name: str) -> None:
    text = pages[name].read_text(encoding="utf-8")
    start = text.index('<script id="plotly">')
    own = text[:start] + text[text.index("</script>", start) :]
    assert not [u for u in re.findall(r"(?:https?:)?//[a-z0-9.-]+\.[a-z]{2,}", own) if "www.w3.org" not in u]
    assert "@import" not in own and "url(" not in own
    assert "<script>alert" not in text
