"""What was assumed is said in words that need no paper, with a sign beside the colour."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import ndtri

from regimix.report.charts import panels
from regimix.report.page import NAMES, SIGNS, assumptions, render, selection
from regimix.report.rows import Terms, read_rows
from regimix.search.subspace import Subspace
from regimix.theory.audit import audit
from tests.report.conftest import made


def test_every_finding_of_an_audit_has_a_plain_name(tone, tone_rows):
    rows = read_rows(tone, *tone_rows, None)
    names = [finding.name for finding in audit(tone, rows.X, rows.y).findings]
    assert set(names) <= set(NAMES)
    found = assumptions(tone, rows)
    assert [finding.name for finding in found] == [NAMES[name] for name in names]
    assert all(finding.verdict in SIGNS for finding in found)


def test_a_mixture_alone_can_still_be_asked(tone):
    found = {finding.name: finding for finding in assumptions(tone, None)}
    assert len(found) == 3
    assert found["Regimes are distinct"].verdict == "holds"
    assert found[NAMES["subspace gap"]].verdict == "holds"
    alike = replace(tone, coef=tone.coef[[0, 0]], intercept=tone.intercept[[0, 0]])
    found = {finding.name: finding for finding in assumptions(alike, None)}
    assert found["Regimes are distinct"].verdict == "not proven"


@pytest.mark.parametrize(
    ("gap", "certain", "verdict"),
    [(True, 2, "holds"), (False, 2, "unclear"), (False, 0, "not proven")],
)
def test_a_cut_of_the_directions_needs_a_gap(tone, gap, certain, verdict):
    spectrum = SimpleNamespace(
        basis=np.zeros((5, 2)), has_gap=gap, gap=3.25, certain=certain, noise_level=1.0
    )
    found = assumptions(replace(tone, spectrum=spectrum), None)[-1]
    assert (found.name, found.verdict) == (NAMES["subspace gap"], verdict)
    assert found.words.startswith("Eigenvalue 2 is 3.25 times eigenvalue 3")
    assert "that the search looked at" in found.words


def test_a_page_shows_one_spectrum():
    mixture, X, y = made(200, 4, 2)
    # Another cut than at the number of regimes, and other numbers than these rows have.
    spectrum = Subspace(np.eye(4, 1), np.array([7.0, 3.0, 2.0, 1.0]), 4.0, 1, "bounded")
    mixture = replace(mixture, spectrum=spectrum)
    page = render(mixture, X, y)
    assert page.count("igenvalue 1 is 2.33 times eigenvalue 2") == 2
    assert page.count(" times eigenvalue ") == 2
    (alone,) = (f for f in assumptions(mixture, None) if f.name == NAMES["subspace gap"])
    assert alone in assumptions(mixture, read_rows(mixture, X, y, None))


def test_what_was_not_permuted_is_not_compared(tone):
    spectrum = Subspace(np.eye(3, 2), np.array([3.0, 2.0, 1.0]), None, 0, "bounded")
    found = assumptions(replace(tone, spectrum=spectrum), None)[-1]
    assert (found.verdict, found.value) == ("holds", 2.0)
    assert "permuted" not in found.words


def test_where_numbers_of_regimes_were_not_compared_the_page_says_why(tone):
    alone = replace(tone, selection=None)
    assert selection(alone)["words"].startswith("What other numbers of regimes would be worth")
    asked = replace(alone, settings=replace(tone.settings, n_components=2))
    assert selection(asked)["words"] == "Two regimes were asked for; no others were compared."
    path = replace(
        tone.selection,
        **{
            name: getattr(tone.selection, name)[:1]
            for name in ("n_components", "evidence", "bic", "icl")
        },
    )
    one = replace(asked, selection=path)
    assert selection(one)["words"].endswith("No other numbers were compared.")


@pytest.mark.parametrize(
    ("share", "verdict"), [(0.1, "holds"), (0.3, "unclear"), (0.5, "not proven")]
)
def test_outliers_are_weighed_against_the_smallest_regime(share, verdict):
    mixture, _, _ = made(100, 2, 2, outliers=share)
    assert assumptions(mixture, None)[0].verdict == verdict


@pytest.mark.parametrize(
    ("power", "words"), [(1.0, "chance may explain the difference"), (3.0, "heavier tails")]
)
def test_tails_are_compared_with_the_normal_law(power, words):
    mixture, X, _ = made(4000, 1, 1, outliers=0.0)
    noise = ndtri((np.arange(4000) + 0.5) / 4000)
    y = mixture.predict(X) + 0.1 * np.sign(noise) * np.abs(noise) ** power
    rows = read_rows(replace(mixture, outlier_share=0.0), X, y, None)
    (panel,) = panels(rows, Terms.of(mixture, X, 0.95))
    assert words in panel["words"]
