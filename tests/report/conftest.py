"""Pages to look at, and a browser to look at them with."""

import os
import shutil
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
import pytest
from playwright.sync_api import sync_playwright

from regimix import MixedLinearRegression, report
from regimix.datasets import load_tone
from regimix.result.mixture import Mixture
from regimix.search.settings import Settings
from tests.patience import ENOUGH

DATE = "2026-01-01"
PAYLOAD = "<script>window.hacked=1</script>"
HOSTILE = (
    PAYLOAD,
    "\"'><img src=x onerror=window.hacked=1>",
    "</script>" + PAYLOAD,
    "{{7*7}}{% raw %}\u2028\u202e" + "very long " * 30,
)
HOSTILE_KEYS = [
    "=cmd()|' /C calc'!A0",
    PAYLOAD,
    "+1+1",
    "@SUM(A1)",
    "-5",
    '"\n,',
    "</td>" + PAYLOAD,
]

ARGUMENTS = [
    "--no-sandbox",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]


def made(n, d, m, *, outliers=0.1, names=None, target="y", seed=0):
    """Make rows and the mixture that they follow, without a search."""
    rng = np.random.default_rng(seed)
    X, coef, intercept = rng.normal(size=(n, d)), rng.normal(size=(m, d)), 6 * rng.normal(size=m)
    labels = rng.integers(0, m, n)
    y = (X * coef[labels]).sum(axis=1) + intercept[labels] + 0.1 * rng.normal(size=n)
    wrong = rng.random(n) < outliers
    y[wrong] += 40 * rng.normal(size=np.count_nonzero(wrong))
    mixture = Mixture(
        coef=coef,
        intercept=intercept,
        weights=np.full(m, (1 - outliers) / m),
        scale=np.full(m, 0.1),
        labels=np.where(wrong, -1, labels),
        outlier_share=outliers,
        background=1 / 200,
        cutoff=np.inf,
        evidence=100.0,
        stopped="nothing improves",
        n_rows=n,
        mass=float(n),
        fit_intercept=True,
        feature_names=tuple(names or (f"x{i}" for i in range(d))),
        target_name=target,
        settings=Settings(),
        seed=0,
    )
    return mixture, X, y


@pytest.fixture(scope="session")
def tone_rows():
    data = load_tone()
    return pd.DataFrame(data.X, columns=list(data.feature_names)), pd.Series(data.y, name="tuned")


@pytest.fixture(scope="session")
def tone(tone_rows):
    return MixedLinearRegression(random_state=0).fit(*tone_rows).mixture_


@pytest.fixture(scope="session")
def tone_page(tone, tone_rows):
    return report.render(tone, *tone_rows, keys=load_tone().row_names, date=DATE)


@pytest.fixture(scope="session")
def plain_page():
    """Three features, two regimes, row numbers."""
    mixture, X, y = made(300, 3, 2, names=("width", "height", "age"), target="price")
    return report.render(mixture, X, y, date=DATE)


@pytest.fixture(scope="session")
def hostile_page():
    mixture, X, y = made(200, 4, 2, outliers=0.2, names=HOSTILE, target=HOSTILE[2] + "=1+1")
    keys = [f"{HOSTILE_KEYS[i % len(HOSTILE_KEYS)]}" for i in range(200)]
    return report.render(mixture, X, y, keys=keys, title=HOSTILE[0], date=HOSTILE[2])


@pytest.fixture(scope="session")
def browser():
    path = shutil.which("chromium")
    if path is None:
        reason = "the report is tested in Chromium, which is not installed (Debian: chromium)"
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(reason)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=path, args=ARGUMENTS, timeout=1000 * ENOUGH
        )
        yield browser
        browser.close()


@dataclass
class Visit:
    """An open page, and what it asked for and complained about."""

    page: object
    requests: list = field(default_factory=list)
    complaints: list = field(default_factory=list)


@pytest.fixture
def visit(browser, tmp_path):
    """Open pages offline; whatever a test does, nothing is asked for and nothing complains."""
    contexts, visits = [], []

    def open_page(text, *, width=1200, complains=False, **options):
        path = tmp_path / f"page{len(contexts)}.html"
        path.write_text(text, encoding="utf-8")
        viewport = {"width": width, "height": 900}
        context = browser.new_context(offline=True, viewport=viewport, **options)
        context.set_default_timeout(1000 * ENOUGH)
        contexts.append(context)
        seen = Visit(context.new_page())
        if not complains:
            visits.append(seen)
        seen.page.on("request", lambda request: seen.requests.append(request.url))
        seen.page.on("console", lambda message: seen.complaints.append(message.text))
        seen.page.on("pageerror", lambda error: seen.complaints.append(str(error)))
        seen.page.goto(path.as_uri())
        # What can be loaded besides is data of the page itself.
        seen.requests[:] = [url for url in seen.requests if url != path.as_uri()]
        return seen.page

    yield open_page
    for context in contexts:
        context.close()
    loaded = [url for seen in visits for url in seen.requests]
    assert [url for url in loaded if not url.startswith(("data:", "blob:"))] == []
    assert [text for seen in visits for text in seen.complaints] == []
