"""Who is in each regime: effects and tests beside slow twins, and what is said of columns."""

import datetime as dt
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import stats

from regimix import MixedLinearRegression
from regimix.datasets import load_penguins
from regimix.errors import DataError, UnknownColumnError
from regimix.result.inference import holm

pytestmark = pytest.mark.usefixtures("searched_once")


@pytest.fixture(scope="module")
def model():
    """Two regimes that a hidden label makes, and outliers; labels come from the fit."""
    rng = np.random.default_rng(0)
    x, kind = rng.uniform(-3, 3, 240), rng.random(240) < 0.4
    y = np.where(kind, 3 + 2 * x, -4 - x) + 0.3 * rng.standard_normal(240)
    y[:12] = 40 * rng.standard_t(2, 12)
    fitted = MixedLinearRegression(random_state=0).fit(x[:, None], y)
    assert set(fitted.labels_.tolist()) == {-1, 0, 1}
    return fitted


def compared(model, values, **options):
    return model.profile({"c": values}, **options)["c"]


def crossed(values, labels):
    """A table of counts, made one row at a time."""
    levels, groups = sorted(set(values)), [0, 1, -1]
    table = np.zeros((len(levels), len(groups)))
    for value, label in zip(values, labels, strict=True):
        table[levels.index(value), groups.index(label)] += 1
    return table


def unbiased(table):
    """Bergsma's correction of Cramér's V, as his paper writes it."""
    n, (r, c) = table.sum(), table.shape
    phi = stats.chi2_contingency(table, correction=False).statistic / n
    phi = max(0, phi - (r - 1) * (c - 1) / (n - 1))
    r, c = r - (r - 1) ** 2 / (n - 1), c - (c - 1) ** 2 / (n - 1)
    return np.sqrt(phi / min(r - 1, c - 1))


@pytest.mark.parametrize("tied", [0.0, 0.7, 1.0])
def test_categories_have_cramers_v_and_a_chi_square_test(model, tied):
    rng = np.random.default_rng(1)
    values = np.where(rng.random(240) < tied, model.labels_ + 1, rng.integers(0, 3, 240))
    column = compared(model, values.astype(str))
    table = crossed(values.astype(str), model.labels_)
    expected = stats.contingency.expected_freq(table)
    assert column.effect == pytest.approx(unbiased(table))
    if expected.min() >= 5:
        assert column.test == "chi-square"
        p = stats.chi2_contingency(table, correction=False).pvalue
        assert column.p_value == pytest.approx(p)
    shares = {level: column.values[i] for i, level in enumerate(column.levels)}
    for i, level in enumerate("012"):
        assert shares[level] == pytest.approx(table[i] / table.sum(axis=0))
    assert column.overall.sum() == pytest.approx(1)
    assert tied < 1 or column.effect > 0.99


def test_small_counts_are_tested_by_permutations(model):
    """The share of permuted columns as far from even, counted one by one."""
    rng = np.random.default_rng(2)
    values = np.where(rng.random(240) < 0.06, "rare", "common")
    values[np.flatnonzero(model.labels_ == 1)[:4]] = "rare"
    column = compared(model, values)
    assert column.test == "permutation"
    statistic = [
        stats.chi2_contingency(crossed(v, model.labels_), correction=False).statistic
        for v in (values, *(rng.permutation(values) for _ in range(2000)))
    ]
    share = np.mean(np.array(statistic[1:]) >= statistic[0] - 1e-9)
    assert abs(column.p_value - share) < 5 * np.sqrt(share * (1 - share) / 2000) + 1e-3


@pytest.mark.parametrize("decimals", [0, 1, 8])
def test_numbers_are_compared_by_ranks(model, decimals):
    rng = np.random.default_rng(3)
    values = np.round(6 * rng.standard_normal(240) + 5 * model.labels_, decimals)
    column = compared(model, values)
    groups = [values[model.labels_ == j] for j in (0, 1, -1)]
    assert column.test == "Kruskal-Wallis"
    assert column.p_value == pytest.approx(2 * stats.kruskal(*groups).pvalue)
    for g, group in enumerate(groups):
        low, middle, high = np.quantile(group, [0.25, 0.5, 0.75], method="inverted_cdf")
        assert column.values[:, g] == pytest.approx([low, middle, high])


def test_of_two_regimes_the_effect_is_cliffs_delta(model):
    rng = np.random.default_rng(4)
    labels = np.abs(model.labels_)
    values = rng.standard_normal(240) + 3 * labels
    column = compared(model, values, labels=labels)
    first, second = values[labels == 0], values[labels == 1]
    delta = np.mean(np.sign(second[:, None] - first[None, :]))
    # The bias that chance alone gives is taken away, which is little here.
    assert column.effect == pytest.approx(delta, abs=0.01)
    apart = compared(model, np.arange(240.0) + 1000 * labels, labels=labels)
    assert apart.effect == pytest.approx(1, abs=0.01)


def test_the_middle_against_both_ends_is_seen(model):
    """As of night shifts by the hour of the day: the ranks have the same mean."""
    rng = np.random.default_rng(5)
    values = np.where(model.labels_ == 0, 1, 4) * rng.standard_normal(240)
    column = compared(model, values)
    groups = [values[model.labels_ == j] for j in (0, 1, -1)]
    assert stats.kruskal(*groups).pvalue > 1e-3
    assert column.p_value == pytest.approx(2e-4)  # the least that 9,999 drawn tables can say, twice
    assert column.test == "permutation of classes"
    assert column.effect > 0.3


def test_repeated_rows_equal_whole_weights(model):
    rng = np.random.default_rng(6)
    weights = rng.integers(0, 4, 240)
    frame = {
        "text": rng.choice(["a", "b", "c"], 240),
        "number": rng.standard_normal(240) + model.labels_,
        "lacks": np.where(rng.random(240) < 0.2, np.nan, rng.standard_normal(240)),
    }
    again = np.repeat(np.arange(240), weights)
    one = model.profile(frame, sample_weight=weights)
    two = model.profile({k: v[again] for k, v in frame.items()}, labels=model.labels_[again])
    assert one.sizes == pytest.approx(two.sizes)
    for name in frame:
        a, b = one[name], two[name]
        assert (a.effect, a.p_value) == pytest.approx((b.effect, b.p_value))
        assert a.overall == pytest.approx(b.overall)
        assert a.missing == pytest.approx(b.missing)
        if a.is_category:
            assert a.values == pytest.approx(b.values)


def test_relative_weights_count_as_fewer_rows(model):
    """Their unit does not matter, and uneven ones make a difference less certain."""
    rng = np.random.default_rng(7)
    values = np.where(rng.random(240) < 0.6, model.labels_ + 1, rng.integers(0, 3, 240))
    uneven = rng.choice([0.1, 3.7], 240)
    one, two = (
        compared(model, values.astype(str), sample_weight=unit * uneven) for unit in (1, 13.3)
    )
    assert one.p_value == pytest.approx(two.p_value)
    assert one.values == pytest.approx(two.values)
    table = np.array(
        [[uneven[(values == v) & (model.labels_ == j)].sum() for j in (0, 1, -1)] for v in range(3)]
    )
    shares = {level: one.values[i] for i, level in enumerate(one.levels)}
    for v in range(3):
        assert shares[str(v)] == pytest.approx(table[v] / table.sum(axis=0))


def test_columns_of_chance_are_called_telling_as_rarely_as_promised(model):
    """Of 400 columns of chance about 20 have a p-value below 0.05, and none stands the correction.

    Counts, numbers with ties and numbers that lack values, few rows in one level.
    """
    rng = np.random.default_rng(8)
    frame = {}
    for i in range(100):
        frame[f"text {i}"] = rng.choice(["a", "b", "c"], 240, p=[0.5, 0.48, 0.02])
        frame[f"even {i}"] = rng.choice(["a", "b"], 240)
        frame[f"ties {i}"] = rng.poisson(8, 240)
        frame[f"lacks {i}"] = np.where(rng.random(240) < 0.1, np.nan, rng.exponential(1, 240))
    found = model.profile(frame)
    p = np.array([column.p_value for column in found.columns])
    assert len(p) == 400
    assert np.mean(p < 0.05) < 0.05 + 5 * np.sqrt(0.05 * 0.95 / 400)
    assert np.mean(p < 0.5) > 0.25
    assert min(column.p_holm for column in found.columns) > 0.001
    assert np.median([column.effect for column in found.columns]) < 0.05


def test_holm_beside_its_definition():
    rng = np.random.default_rng(9)
    for _ in range(50):
        p = rng.random(rng.integers(1, 8)) ** 3
        slow = [
            max(min(1, (p >= p[j]).sum() * p[j]) for j in range(p.size) if p[j] <= own) for own in p
        ]
        assert holm(p) == pytest.approx(np.array(slow))
    assert holm(np.array([np.nan, 0.01, 0.04])) == pytest.approx([np.nan, 0.02, 0.04], nan_ok=True)


# --- what is said of columns ----------------------------------------------------------------------


def test_a_column_that_says_nothing_is_left_out_with_a_reason(model):
    found = model.profile(
        {
            "id": [f"row {i}" for i in range(240)],
            "same": np.ones(240),
            "empty": [None] * 240,
            "blank": ["", " "] * 120,
            "fine": ["a", "b"] * 120,
        }
    )
    assert [column.name for column in found.columns] == ["fine"]
    assert found.left_out == {
        "id": "identifies rows: 240 different values in 240 rows",
        "same": "is the same in all rows",
        "empty": "has no values",
        "blank": "has no values",
    }
    assert "Left out: id (identifies rows" in str(found).replace("\n", " ")
    with pytest.raises(KeyError, match="is the same in all rows"):
        found["same"]


def test_rare_values_count_as_one_and_missing_text_is_a_level(model):
    rng = np.random.default_rng(10)
    values = np.array([f"firm {i}" for i in rng.zipf(1.6, 240) % 40], dtype=object)
    values[:30] = None
    column = compared(model, values)
    assert len(column.levels) == 13
    assert column.levels[-2].startswith("other (")
    assert column.levels[-1] == "(missing)"
    assert column.overall.sum() == pytest.approx(1)
    assert column.overall[-1] == pytest.approx(30 / 240)


def test_a_column_of_many_levels_is_tested_by_all_of_them(model):
    """Forty firms, each in one regime, of which twelve lines are shown."""
    rng = np.random.default_rng(13)
    firm = rng.integers(0, 13, 240) * 3 + model.labels_ % 3
    column = compared(model, np.array([f"firm {i}" for i in firm]))
    assert len(column.levels) == 12
    assert column.effect > 0.9
    assert column.p_value < 1e-3
    chance = compared(model, np.array([f"firm {i}" for i in rng.permutation(firm)]))
    assert chance.p_value > 1e-3
    assert chance.effect < 0.25


def test_missing_numbers_are_left_out_of_quartiles_and_seen_by_the_test(model):
    rng = np.random.default_rng(11)
    values = np.where(model.labels_ == 1, np.nan, rng.standard_normal(240))
    column = compared(model, values)
    assert column.missing.tolist()[:2] == [0, 1]
    assert np.isnan(column.values[:, 1]).all()
    assert column.p_value == pytest.approx(2e-4)
    assert dict(column.lines())["(missing)"][1:3] == ["0%", "100%"]


KINDS = {
    "text": lambda v: v.astype(str),
    "objects": lambda v: v.astype(str).astype(object),
    "flags": lambda v: v > 0,
    "few numbers": lambda v: v * 2.5,
    "category": lambda v: pd.Series(pd.Categorical(v.astype(str))),
    "nullable": lambda v: pd.Series(v, dtype="Int64"),
    "polars": lambda v: pl.Series(v.astype(str)),
    "polars category": lambda v: pl.Series(v.astype(str)).cast(pl.Categorical),
    "days": lambda v: [dt.date(2024, 1, 1) + dt.timedelta(int(i)) for i in v],
    "mixed": lambda v: np.array([int(i) if i else "none" for i in v], dtype=object),
    "lists": lambda v: pd.Series([[int(i)] for i in v]),
}


@pytest.mark.parametrize("kind", KINDS)
def test_any_kind_of_column_tells_the_same(model, kind):
    rng = np.random.default_rng(12)
    values = np.where(rng.random(240) < 0.8, np.abs(model.labels_), rng.integers(0, 2, 240))
    plain = compared(model, values.astype(str))
    column = compared(model, KINDS[kind](values))
    assert (column.effect, column.p_value) == pytest.approx((plain.effect, plain.p_value))


@pytest.mark.parametrize("zone", [None, "Europe/Paris"])
def test_dates_are_numbers_that_are_written_as_dates(model, zone):
    days = pd.date_range("2024-01-01", periods=240, freq="D", tz=zone)
    order = np.argsort(model.labels_ == 1, kind="stable")
    series = pd.Series(days)
    values = series.copy()
    values.iloc[order] = series
    column = compared(model, values)
    assert column.kind == "date"
    assert dict(column.lines())["median"][2] >= "2024-05"
    assert column.sets_apart(1).startswith("later c (median 2024-")


def test_frames_of_any_library_are_read(model):
    values = ["a", "b", "b"] * 80
    frames = [{"c": values}, pd.DataFrame({"c": values}), pl.DataFrame({"c": values})]
    frames.append(pl.DataFrame({"c": values}).to_arrow())
    effects = [model.profile(frame)["c"].p_value for frame in frames]
    assert effects == [effects[0]] * 4
    with pytest.raises(DataError, match="columns with names"):
        model.profile(np.ones((240, 2)))


def test_columns_of_the_fit_are_left_alone_or_not_tested():
    penguins = load_penguins()
    fitted = MixedLinearRegression(random_state=0).fit(penguins.features, penguins.target)
    found = fitted.profile(penguins.frame)
    assert not {"bill_length_mm", "bill_depth_mm"} & {column.name for column in found.columns}
    named = fitted.profile(penguins.frame, ["bill_depth_mm", "sex"])
    assert np.isnan(named["bill_depth_mm"].p_value)
    assert named["bill_depth_mm"].said().endswith("not tested: used in the fit")
    assert named["sex"].p_holm == named["sex"].p_value
    with pytest.raises(UnknownColumnError, match="Did you mean 'species'"):
        fitted.profile(penguins.frame, "specie")


def test_the_penguins_are_named():
    penguins = load_penguins()
    fitted = MixedLinearRegression(random_state=0).fit(penguins.features, penguins.target)
    found = fitted.profile(penguins.frame)
    assert found.columns[0].name == "species"
    assert found.sentences[1].startswith("Regime 1 is mostly Gentoo (species: ")
    text = str(found)
    assert text.startswith("Who is in each regime: 6 columns, the most telling first")
    assert all(len(line) <= 80 for line in text.splitlines())
    assert found.sentences[1] in " ".join(text.split())
    records = found.records()
    species = [record for record in records if record["column"] == "species"]
    gentoo = next(r for r in species if r["level"] == "Gentoo" and r["regime"] == 1)
    members = penguins.others["species"][fitted.labels_ == 1]
    assert gentoo["value"] == np.mean(members == "Gentoo")
    assert gentoo["overall"] == np.mean(penguins.others["species"] == "Gentoo")
    assert len(found.frame()) == len(records)


def test_a_power_of_a_column_was_used_too(model):
    explained = replace(model.mixture_, target_name="log price")
    frame = {"price": np.arange(240.0), "x0": np.arange(240.0)}
    assert str(explained.profile(frame)) == "No column can be compared between the regimes."
    assert np.isnan(explained.profile(frame, "price")["price"].p_value)


def test_one_regime_leaves_nothing_to_compare(model):
    frame = {"c": ["a", "b"] * 120, "z": np.arange(240.0)}
    found = model.profile(frame, labels=np.zeros(240, dtype=int))
    assert str(found) == "All rows have the same label: there is nothing to compare."
    # Nothing was tested, whatever the kind of the column.
    assert {column.said() for column in found.columns} == {"tells 0.00, one group alone"}
    assert not found.notes


def test_without_a_telling_column_it_says_so(model):
    found = model.profile({"c": ["a", "b"] * 120})
    assert found.sentences == ("No column tells the regimes apart.",)


def test_a_telling_column_is_not_denied_where_no_level_stands_out(model):
    found = model.profile({"c": ["a", "b"] * 120})
    telling = replace(found.columns[0], p_holm=0.01)
    assert replace(found, columns=(telling,)).sentences == ()


def test_many_regimes_are_written_in_blocks(model):
    labels = np.arange(240) % 10
    many = replace(
        model.mixture_,
        coef=np.zeros((10, 1)),
        intercept=np.arange(10.0),
        weights=np.full(10, 0.1),
        scale=np.ones(10),
        labels=labels,
    )
    text = str(many.profile({"c": (labels % 3).astype(str)}))
    assert all(len(line) <= 80 for line in text.splitlines())
    assert all(f"regime {j}" in text for j in range(10))


def test_rows_that_do_not_match_are_refused(model):
    with pytest.raises(DataError, match="the frame has 3 rows, and the labels of the fit 240"):
        model.profile({"c": ["a", "b", "c"]})
    with pytest.raises(DataError, match="from -1 to 1"):
        model.profile({"c": ["a", "b"] * 120}, labels=np.arange(240))
    with pytest.raises(DataError, match="'d' must hold 240 values"):
        model.profile({"c": ["a", "b"] * 120, "d": [1.0]})


def test_numbers_of_one_group_alone_have_no_test(model):
    """As categories; a p-value of 1 would be that of a test."""
    labels = np.zeros(240, dtype=np.int64)
    alone = replace(model.mixture_, labels=labels, label_counts=None, doubtful_rows=3)
    frame = pd.DataFrame({"number": np.arange(240), "level": "a"})
    frame.loc[0, "level"] = "b"
    found = alone.profile(frame)
    assert [column.test for column in found.columns] == ["one group alone"] * 2
    assert np.isnan([column.p_value for column in found.columns]).all()
    assert not any("alike" in said or "corrected" in said for said in found.notes)


def test_rows_are_counted_as_everywhere_where_weights_are_relative(model):
    """As in the table of the regimes; shares are by weight."""
    weights = np.where(model.labels_ == 0, 0.25, 1.75)
    column = np.where(np.arange(240) % 3 == 0, "a", "b")
    found = model.profile({"c": column}, sample_weight=weights)
    assert found.groups == (0, 1, -1)
    assert found.sizes.tolist() == [np.count_nonzero(model.labels_ == j) for j in (0, 1, -1)]
    assert f"{240:>10}" in str(found).split("rows", 2)[2].splitlines()[0]
    overall = weights[column == "a"].sum() / weights.sum()
    assert found["c"].overall[list(found["c"].levels).index("a")] == pytest.approx(overall)
