"""`make bench-real` on tables made here: no R, no network."""

import io
import tarfile

import numpy as np
import pandas as pd
import pytest

from benchmarks.real import compare, page, recode, sources
from benchmarks.real.part import BROKEN, at_least, at_most
from benchmarks.real.parts import PARTS, classics, heldout, null, planted, stability
from benchmarks.real.tables import Table, formulas, from_frame, parse


@pytest.fixture
def table() -> Table:
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(5, 2, 40), np.arange(40) % 2, np.arange(40) % 3 == 1])
    return Table("made", X, X @ [1.0, 2.0, 3.0] + rng.normal(size=40), ("x", "a", "b"), ((1,),))


def test_every_line_is_a_table_with_few_features():
    listed = formulas()
    assert len(listed) > 150
    assert all(1 <= len(formula.features) <= 8 for formula in listed.values())
    assert set(classics.TABLES) <= set(listed)


def test_a_line_that_is_no_table_is_refused():
    with pytest.raises(ValueError, match="not a table"):
        parse("MASS whiteside Gas ~ Temp")


def test_formulas_become_numbers_without_missing_cells():
    (formula,) = parse("made things some: log(y) ~ a + log(b) + colour + flag")
    data = pd.DataFrame(
        {
            "y": [1.0, np.e, 1.0, 2.0],
            "a": [1, 2, 3, 4],
            "b": [1.0, 1.0, np.e, np.nan],
            "colour": ["red", "blue", "green", "red"],
            "flag": [0, 1, 0, 1],
            "unused": [np.nan] * 4,
        }
    )
    made = from_frame(formula, data)
    assert (made.name, made.shape) == ("things-some", "3 × 5")
    assert made.features == ("a", "b", "colour=green", "colour=red", "flag")
    assert made.groups == ((2, 3), (4,))
    np.testing.assert_allclose(made.y, [0, 1, 0])
    np.testing.assert_allclose(
        made.X, [[1, 0, 0, 1, 0], [2, 0, 0, 0, 1], [3, 1, 1, 0, 0]], atol=1e-15
    )


def test_csv_files_are_taken_from_the_archive_inside_the_archive(tmp_path):
    inner = _packed({"r/csv/MASS/t.csv": b",x\n1,2\n", "r/csv/MASS/._t.csv": b"?", "r/a.txt": b""})
    sources.unpack(_packed({sources.INNER: inner}), tmp_path / "cache" / "csv")
    files = [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]
    assert [path.relative_to(tmp_path).as_posix() for path in files] == ["cache/csv/MASS/t.csv"]


def _packed(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


@pytest.mark.parametrize("kind", recode.RECODINGS)
def test_recoded_features_span_the_same_space(table, kind):
    X = recode.RECODINGS[kind](table, np.random.default_rng(1))
    assert not np.array_equal(X, table.X)
    both = np.column_stack([compare.with_ones(table.X), X / np.abs(X).max(axis=0)])
    assert np.linalg.matrix_rank(both) == 4


def test_a_category_changes_its_reference():
    X = np.eye(4)[:, 1:]  # four levels, the first is the reference
    levels = Table("levels", X, np.zeros(4), ("b", "c", "d"), ((0, 1, 2),))
    other = recode.other_reference(levels, np.random.default_rng(0))
    assert np.sum(other.sum(axis=0) == 1) == 3
    assert other[0].sum() == 1


def test_densities_are_those_of_normal_laws(table):
    model = compare.least_squares(table.X, table.y)
    assert model.noise[0] == pytest.approx(1, rel=0.3)
    single = compare.Normals(np.ones(1), np.array([2.0]), np.zeros((1, 2)))
    density = single.log_density(np.zeros((1, 1)), np.array([2.0]))
    assert density[0] == pytest.approx(-0.5 - np.log(2) - 0.5 * np.log(2 * np.pi))


def test_the_told_partition_wins_where_regimes_are_far_apart(table):
    y, labels = planted.plant(table.X, 12.0, np.random.default_rng(2))
    two = compare.told_partition(table.X, y, labels)
    one = compare.least_squares(table.X, y, corrected=False)
    assert compare.bic(two, table.X, y) < compare.bic(one, table.X, y)
    assert compare.agreement(np.argmax(two.joint(table.X, y), axis=1), labels) > 0.8


def test_agreement_needs_one_number_and_the_same_parts():
    a, b = np.array([0, 0, 1, 1, -1]), np.array([1, 1, 0, 0, -1])
    assert compare.all_agree([a, b], [2, 2], 0.95)
    assert not compare.all_agree([a, b], [2, 3], 0.95)
    assert not compare.all_agree([a, np.array([0, 1, 1, 1, -1])], [2, 2], 0.95)


def test_every_row_is_held_out_once():
    masks = compare.folds(10, 3, seed=0)
    np.testing.assert_array_equal(np.sum(masks, axis=0), np.ones(10))


def test_rows_are_counted_from_one_and_outliers_are_wrong():
    assert compare.flagged(np.array([False, True, False])) == (1, 3)
    assert classics.mislabelled(np.array([1, 1, 0, -1]), [False, False, True, True]) == 1


def test_residuals_with_two_peaks_are_known():
    rng = np.random.default_rng(3)
    assert not null.two_peaks(rng.normal(size=200))
    assert not null.two_peaks(rng.standard_t(2, size=200))
    assert not null.two_peaks(rng.normal(size=200) + 8 * (np.arange(200) < 10))
    assert null.two_peaks(rng.normal(size=200) + 8 * (np.arange(200) % 2))


def test_shares_beside_targets():
    assert at_most("w", 0.02, 0.01).met is False
    assert at_least("w", 0.99, 0.95).met is True
    assert at_least("w", float("nan"), 0.95).met is None


def test_summaries_count_runs_and_tables():
    row = {"table": "t", "best": 5.0, "recoded_best": 7.0, "scores": [5.0, 3.0], "agree": False}
    row |= {"within": [True, False], "recoded_within": [True], "unsure": [True, False]}
    row["warnings"] = {"UnrepeatedWarning": 1}
    row |= {"recoded_agree": dict.fromkeys(recode.RECODINGS, True)}
    figures = {line.what: line.figure for line in stability.sum_up([row])}
    assert figures["runs within 1 nat of the best search"] == "50 %"
    assert figures["runs that warn where seeds disagree"] == "50 %"
    assert figures["runs with UnrepeatedWarning"] == "50 %"
    assert figures["tables where recoding finds over 1 nat more"] == "1 of 1"


def test_a_page_without_r_says_what_is_not_known(tmp_path):
    rows = [{"table": "t", "shape": "20 × 1", "counts": [1, 1, 0], "regimix": -1.0, "ols": -1.2}]
    rows[0] |= {"flexmix": None, "worst_row": -3.0}
    page.Archive(tmp_path).add("heldout", rows, {"tables": 1, "left out": ""})
    again = page.Archive(tmp_path)
    assert again.text() == (tmp_path / "real.md").read_text(encoding="utf-8")
    assert "not known" in again.text()
    assert "| t | 20 × 1 | 1, 1, 0 | -1 | -1.2 | – |" in again.text()
    assert heldout.sum_up(rows)[0].met is True


def test_a_fit_that_breaks_is_told(tmp_path):
    archive = page.Archive(tmp_path)
    archive.add("planted", [{"table": "t", BROKEN: "LinAlgError()"}], {"tables": 1})
    assert "| planted | tables on which a fit broke | t | none | **no** |" in archive.text()


def test_draws_of_a_table_share_a_row_of_the_page():
    draw = {"table": "t", "shape": "20 × 1", "possible": True}
    rows = [{**draw, "gap": gap, "two": gap > 3} for gap in planted.GAPS for _ in range(2)]
    (line,) = planted.shown(rows)
    assert page.cell(line["possible"]) == "8 of 8"
    assert [page.cell(line[f"two_{gap:g}"]) for gap in (3, 6)] == ["0 of 2", "2 of 2"]


def test_every_part_shows_its_tables():
    assert all("table" in part.columns for part in PARTS.values())
