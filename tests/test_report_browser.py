"""The survey page in a real browser: no script error, sorting, plots, nothing loaded from elsewhere."""

import os
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from narrowcast.insight.survey import survey_file
from narrowcast.report.survey_page import survey_page
from narrowcast.storage import save_tensors

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
LOAD_SECONDS = 120


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("page with spaces")
    rng = np.random.default_rng(3)
    model = folder / "model.safetensors"
    wild = rng.standard_t(2, (32, 32)).astype(np.float32)
    wild[0, 0] = np.nan
    save_tensors(
        model,
        {
            "layer.10.weight": rng.standard_normal((64, 64)).astype(np.float32),
            "layer.2.weight": (rng.standard_t(3, (64, 48)) * 4).astype(np.float16),
            "layer.2.bias": np.zeros(48, np.float32),
            "<script>alert(1)</script>": np.eye(4, dtype=np.float32),
            'quote"and&amp;': rng.uniform(-1, 1, (8, 8)).astype(np.float32),
            "wild": wild,
            "ids": np.arange(3),
            "empty": np.zeros((0, 2), np.float32),
        },
    )
    target = folder / "report.html"
    target.write_text(survey_page(survey_file(model)), encoding="utf-8")
    return target


@pytest.fixture(scope="module")
def browser() -> str:
    found = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if found is None:
        message = f"no Chromium installed (looked for {', '.join(BROWSERS)})"
        if os.environ.get("CI"):
            pytest.fail(f"{message}; in CI the page must be tried in one")
        pytest.skip(message)
    return found


class Page(HTMLParser):
    """What the tests ask about a page after its scripts ran."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.root: dict[str, str | None] = {}
        self.rows: list[dict[str, str | None]] = []
        self.hidden_details = 0
        self.plot_svgs: dict[str, int] = {}
        self.sorted_heads = 0
        self.sparks = 0
        self.links: list[str] = []
        self._plot = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        classes = (given.get("class") or "").split()
        if tag == "html":
            self.root = given
        if tag == "tr" and "tensor" in classes:
            self.rows.append(given)
        if tag == "tr" and "detail" in classes and "hidden" in given:
            self.hidden_details += 1
        if given.get("id") in ("error-plot", "code-plot"):
            self._plot = given["id"] or ""
        if tag == "section" and given.get("aria-labelledby") == "tensors-title":
            self._plot = ""
        if tag == "svg":
            if self._plot and "main-svg" in classes:
                self.plot_svgs[self._plot] = self.plot_svgs.get(self._plot, 0) + 1
            self.sparks += "spark" in classes
        if given.get("aria-sort"):
            self.sorted_heads += 1
        self.links += [value for name in ("src", "href", "action", "data") if (value := given.get(name))]

    @property
    def names(self) -> list[str | None]:
        return [row["data-name"] for row in self.rows]


def opened(browser: str, page: Path, fragment: str, tmp_path: Path, *flags: str) -> str:
    command = [
        browser,
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--disable-background-networking",
        "--host-resolver-rules=MAP * ~NOTFOUND",
        f"--user-data-dir={tmp_path / 'profile'}",
        "--virtual-time-budget=20000",
        *flags,
        "--dump-dom",
        page.as_uri() + fragment,
    ]
    done = subprocess.run(command, capture_output=True, timeout=LOAD_SECONDS, check=True)
    return done.stdout.decode()


@pytest.mark.browser
def test_page_runs_without_errors_and_draws(browser: str, page: Path, tmp_path: Path) -> None:
    dom = Page(opened(browser, page, "", tmp_path))
    assert "data-errors" not in dom.root, dom.root.get("data-errors")
    assert dom.root.get("data-ready") == "true"
    assert dom.plot_svgs.get("error-plot") and dom.plot_svgs.get("code-plot"), dom.plot_svgs
    assert len(dom.rows) == 8 and dom.sparks == 5  # not the zeros, the integers and the empty one
    assert dom.hidden_details == 8
    assert "<script>alert(1)</script>" in dom.names and 'quote"and&amp;' in dom.names


@pytest.mark.browser
def test_table_sorts_by_text_and_by_number(browser: str, page: Path, tmp_path: Path) -> None:
    by_name = Page(opened(browser, page, "#tensors=0,ascending", tmp_path))
    names = [name for name in by_name.names if name and name.startswith("layer")]
    assert names == ["layer.2.bias", "layer.2.weight", "layer.10.weight"]
    assert by_name.sorted_heads == 1
    # Column 8 is the number of elements, after tensor, pick and six formats.
    by_size = Page(opened(browser, page, "#tensors=8,descending", tmp_path))
    assert by_size.names[:3] == ["layer.10.weight", "layer.2.weight", "wild"]
    assert by_size.names[-1] == "empty"
    # Column 2 is the SQNR under hif8: exact first, no figure last.
    by_level = Page(opened(browser, page, "#tensors=2,descending&formats=3,ascending", tmp_path))
    assert by_level.names[0] == "<script>alert(1)</script>"
    assert by_level.sorted_heads == 2
    assert "data-errors" not in by_level.root


@pytest.mark.browser
def test_link_opens_a_tensor_and_finds(browser: str, page: Path, tmp_path: Path) -> None:
    fragment = "#tensor=layer.10.weight&codes=s4&find=LAYER"
    dom = Page(opened(browser, page, fragment, tmp_path, "--force-dark-mode", "--window-size=600,900"))
    assert "data-errors" not in dom.root, dom.root.get("data-errors")
    opened_rows = [row["data-name"] for row in dom.rows if row.get("aria-expanded") == "true"]
    assert opened_rows == ["layer.10.weight"]
    assert dom.hidden_details == 7
    shown = {row["data-name"] for row in dom.rows if "hidden" not in row}
    assert shown == {"layer.10.weight", "layer.2.weight", "layer.2.bias"}


@pytest.mark.browser
def test_clicks_sort_and_expand(browser: str, page: Path, tmp_path: Path) -> None:
    # The page is driven by the clicks of a user, from a copy with one more script at its end.
    script = """<script>
    addEventListener("load", () => {
      document.querySelector('#tensors thead th:nth-child(9) button').click();
      document.querySelector('tr.tensor[data-name="wild"]').click();
      [...document.querySelectorAll('#code-formats button')].find((b) => b.textContent === "e2m1").click();
      document.documentElement.dataset.hash = location.hash;
    });
    </script></body>"""
    driven = tmp_path / "driven.html"
    driven.write_text(page.read_text(encoding="utf-8").replace("</body>", script), encoding="utf-8")
    dom = Page(opened(browser, driven, "", tmp_path))
    assert "data-errors" not in dom.root, dom.root.get("data-errors")
    assert dom.names[0] == "layer.10.weight"
    assert [row["data-name"] for row in dom.rows if row.get("aria-expanded") == "true"] == ["wild"]
    assert dom.root["data-hash"] == "#tensor=wild&codes=e2m1&tensors=8%2Cdescending"


def test_page_loads_nothing_from_elsewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    start = text.index('<script id="plotly">')
    own = text[:start] + text[text.index("</script>", start) :]
    outside = [u for u in re.findall(r"(?:https?:)?//[a-z0-9.-]+\.[a-z]{2,}", own) if "www.w3.org" not in u]
    assert outside == []
    assert "@import" not in own and "url(" not in own
    links = [link for link in Page(own).links if not link.startswith("data:")]
    assert links == []
    assert text.count('<script id="plotly">') == 1


def test_names_cannot_break_out_of_the_page(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert "<script>alert(1)" not in text
    assert 'data-name="quote"and' not in text
