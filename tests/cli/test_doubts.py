"""Rivals, the logarithm and powers of the target, and stability, from the command line."""

import html
import re
import signal
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

from regimix import MixedLinearRegression, load, store, tables
from regimix.cli.console import Bar, Voice
from regimix.cli.show import refit
from regimix.result import fit, stability
from regimix.result.mixture import Mixture
from regimix.result.rivals import Rival, constants_gain
from regimix.search import loop
from regimix.search.numbers import SEARCH
from tests.cli.terminal import Terminal

pytestmark = pytest.mark.usefixtures("searched_once")

N = 200


@pytest.fixture
def prices(tmp_path):
    """One relation of the logarithm in 200 rows; ``id`` names them."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=N)
    y = np.exp(1 + x + 0.4 * rng.normal(size=N))
    ids = [f"id{i}" for i in range(N)]
    tables.write_table(tmp_path / "prices.csv", {"id": ids, "carat": x, "price": y})
    tables.write_table(tmp_path / "prices.parquet", {"carat": x, "price": y})
    return pl.read_csv(tmp_path / "prices.csv")


FIT = ("fit", "prices.csv", "-y", "price", "--key", "id")


# --- rivals ---------------------------------------------------------------------------------------


@pytest.mark.usefixtures("prices")
def test_a_rival_comes_with_what_to_type(regimix):
    ran = regimix(*FIT, "--json")
    assert ran.code == 0
    (warning,) = [text for text in ran.summary["warnings"] if "log price" in text]
    assert warning.endswith("Try: regimix fit ... --log")
    assert "One relation between log price and carat explains these rows better" in ran.err
    best, *others = ran.summary["rivals"]
    assert best.pop("lead") > 3
    assert best == {
        "describe": "one relation between log price and carat",
        "power": 0.0,
        "terms": "linear",
        "spread": "nothing",
        "noise": "normal",
        "skewed": False,
    }
    assert others
    assert ran.summary["stability"] is None


@pytest.mark.usefixtures("prices")
def test_one_regime_with_a_rival_says_what_to_type_below(regimix):
    ran = regimix(*FIT, "-m", "1")
    said = " ".join(ran.out.split())
    assert re.search(r"straight line does: it is [\d.]+ nats likelier than the line\. Try: ", said)
    assert "Try: regimix fit ... --log" in said


@pytest.mark.parametrize(
    ("before", "rival", "said"),
    [
        (1.0, Rival(power=0.0), "--log"),
        (1.0, Rival(power=-0.5), "--power -0.5"),
        (2.0, Rival(power=0.5), "--power 1"),
        (-1.0, Rival(power=0.0), "--log"),
        (0.0, Rival(power=0.5), ""),
        (1.0, Rival(terms="spline"), ""),
        (1.0, Rival(power=0.0, noise="counts"), ""),
        (1.0, None, ""),
    ],
)
def test_the_option_gives_the_power_of_the_target(before, rival, said):
    table = SimpleNamespace(recipe=SimpleNamespace(power=before))
    words = refit(SimpleNamespace(rival=rival, rivals=(rival,)), table)
    assert words == (f"Try: regimix fit ... {said}" if said else "")


@pytest.mark.parametrize(("behind", "said"), [(2.9, "Try: regimix fit ... --log"), (3.1, "")])
def test_a_logarithm_nearly_as_likely_as_counts_is_what_to_type(behind, said):
    table = SimpleNamespace(recipe=SimpleNamespace(power=1.0))
    both = Rival(noise="counts", lead=9.0), Rival(power=0.0, lead=9.0 - behind)
    assert refit(SimpleNamespace(rival=both[0], rivals=both), table) == said


POLYPS = {
    "number": [63, 2, 28, 17, 61, 1, 7, 15, 44, 25, 3, 28, 10, 40, 33, 46, 50, 3, 1, 4],
    "drug": [0, 1, 0, 1, 0, 1, 0, 0, 0, 1, 1, 0, 0, 0, 1, 0, 0, 1, 1, 1],
    "age": [20, 16, 18, 22, 13, 23, 34, 50, 19, 17, 23, 22, 30, 27, 23, 22, 34, 23, 22, 42],
}


@pytest.mark.parametrize("power", [0.5, 0.0])
def test_a_power_that_would_find_nothing_either_is_not_what_to_type(regimix, power, monkeypatch):
    """Polyps after treatment (Piantadosi 1997): constants gain from the power as the line does.

    Given their values there is a relation, which is not asked for here.
    """
    monkeypatch.setattr(fit, "relation_given_values", lambda rows, counts: (0.0, 0.0, counts))
    pl.DataFrame(POLYPS).write_csv("polyps.csv")
    ran = regimix("fit", "polyps.csv", "-y", "number", "--json")
    assert (ran.code, ran.summary["found"]) == (3, False)
    said = " ".join(ran.err.split())
    assert "better than constants do, and as well as a straight line does: it is " in said
    assert "use a model of counts" in said
    assert "Try: " not in said
    assert "Fit the power" not in said
    typed = regimix("fit", "polyps.csv", "-y", "number", "--power", str(power), "--json")
    assert not typed.summary["found"]
    y = np.array(POLYPS["number"], dtype=np.float64)
    gained = constants_gain(y, np.ones(20), power)
    (rival,) = [
        one
        for one in ran.summary["rivals"]
        if one["describe"].startswith(("one relation between √", "one relation between log "))
        and one["power"] == power
        and one["describe"].endswith("both drug and age")
    ]
    estimate = ran.summary["evidence"] + rival["lead"] + 3 - gained
    assert estimate == pytest.approx(typed.summary["evidence"], abs=0.7)


# --- the logarithm and powers ---------------------------------------------------------------------


def test_the_logarithm_has_one_regime(regimix, prices):
    files = ("--model", "m.regimix", "--labels", "l.csv", "--report", "r.html")
    ran = regimix(*FIT, "--log", *files, "--json")
    assert ran.code == 0, ran.err
    summary = ran.summary
    (regime,) = summary["regimes"]
    (slope,) = regime["terms"]
    assert slope["value"] == pytest.approx(1.0, abs=4 * slope["std_err"])
    assert (summary["target"], summary["power"], summary["warnings"]) == ("price", 0.0, [])
    assert "log price =" in ran.err
    note = "the value whose logarithm is expected, not the mean of 'price'"
    assert note in summary["notes"][-1]
    assert note in ran.err
    mixture = load("m.regimix")
    assert mixture.target_name == "log price"
    assert store.open_model("m.regimix").recipe["power"] == 0.0
    labels = pl.read_csv("l.csv")
    assert labels["price"].to_list() == prices["price"].to_list()
    expected = np.exp(mixture.predict(prices["carat"].to_numpy()[:, None]))
    np.testing.assert_allclose(labels["prediction"], expected)
    page = html.unescape(Path("r.html").read_text(encoding="utf-8"))
    assert "log price = " in page
    assert "regimix fit prices.csv -y price --key id --log" in page


@pytest.mark.usefixtures("prices")
def test_power_zero_is_the_logarithm_and_others_are_named(regimix):
    log, zero = (regimix(*FIT, *how, "--json") for how in (("--log",), ("--power", "0")))
    assert log.summary["regimes"] == zero.summary["regimes"]
    inverse = regimix(*FIT, "--power", "-1", "-m", "1")
    assert "price^-1 =" in inverse.out
    # Labels are not written, and so there are no predictions to speak of.
    assert "Predictions" not in inverse.err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--log", "--power", "2"), "--log is --power 0; leave one of --log and --power out."),
        (("--power", "nan"), "--power must be a number (0: the logarithm); got nan."),
        (("-y", "carat", "--log"), "column 'carat' has no logarithm in id id1 (-0.132105)"),
        (("--stability", "0"), "'--stability': it must be at least 1; got 0."),
    ],
)
@pytest.mark.usefixtures("prices")
def test_what_cannot_be_done_is_refused(regimix, options, said):
    ran = regimix(*FIT, *options)
    assert ran.code == 2
    assert said in ran.err


def test_predictions_of_new_rows_are_in_units_of_the_target(regimix, prices):
    regimix(*FIT, "--log", "--model", "m.regimix")
    mixture = load("m.regimix")
    tables.write_table("new.csv", {"carat": [0.0, 1.0, 2.0]})
    ran = regimix("predict", "m.regimix", "new.csv", "--out", "p.csv")
    assert ran.code == 0
    assert "Predictions are in units of 'price': the value whose logarithm is expected" in ran.err
    said = pl.read_csv("p.csv")
    expected = np.exp(mixture.predict([[0.0], [1.0], [2.0]]))
    np.testing.assert_allclose(said["prediction"], expected)
    np.testing.assert_allclose(said["prediction_0"], expected)
    # A price far below the relation is an outlier by its logarithm alone.
    tables.write_table("new.csv", {"carat": [0.0, 0.0], "price": [np.exp(1.0), 1e-4]})
    regimix("predict", "m.regimix", "new.csv", "--out", "p.csv")
    said = pl.read_csv("p.csv")
    assert said["regime"].to_list() == [0, -1]
    assert said["price"].to_list() == [np.exp(1.0), 1e-4]
    tables.write_table("new.csv", {"carat": [0.0, 0.0], "price": [1.0, 0.0]})
    ran = regimix("predict", "m.regimix", "new.csv", "--out", "p.csv")
    assert ran.code == 2
    assert "column 'price' has no logarithm in row 2 (0)" in ran.err


@pytest.mark.usefixtures("prices")
def test_parts_give_the_same_logarithm(regimix):
    fit = ("fit", "prices.parquet", "-y", "price", "--log", "--json")
    memory = regimix(*fit, "--model", "m.regimix").summary
    parts = regimix(*fit, "--engine", "parts", "--labels", "out/", "--model", "p.regimix").summary
    for one, other in zip(memory["regimes"], parts["regimes"], strict=True):
        assert one["terms"][0]["value"] == pytest.approx(other["terms"][0]["value"], rel=1e-6)
    assert parts["power"] == 0.0
    assert "Predictions are in units of 'price'" in parts["notes"][-1]
    assert load("p.regimix").target_name == "log price"
    regimix("predict", "m.regimix", "prices.parquet", "--out", "l.parquet")
    for written in (pl.read_parquet("out"), pl.read_parquet("l.parquet")):
        read = pl.read_parquet("prices.parquet")
        assert written["price"].to_list() == read["price"].to_list()
        ratio = np.log(written["price"] / written["prediction"]).to_numpy()
        assert 0.3 < ratio.std() < 0.5


@pytest.mark.parametrize(
    ("power", "code"), [("0", "np.log(table['price'])"), ("0.5", "table['price'] ** 0.5")]
)
@pytest.mark.usefixtures("prices")
def test_a_report_on_a_model_shows_code_that_finds_the_column(regimix, power, code):
    regimix(*FIT, "--power", power, "-m", "1", "--model", "m.regimix")
    assert regimix("report", "m.regimix", "prices.csv", "--out", "r.html").code == 0
    page = html.unescape(Path("r.html").read_text(encoding="utf-8"))
    assert f"X, y = table[['carat']], {code}" in page
    assert ("import numpy as np" in page) == ("np." in code)


def test_a_terminal_without_the_sign_of_the_root_spells_it(monkeypatch):
    voice = Voice()
    monkeypatch.setattr(type(voice.out), "encoding", "ascii")
    assert voice.clean("√price") == "sqrt price"


# --- stability ------------------------------------------------------------------------------------


def test_stability_is_printed_and_kept_in_every_output(regimix, table, monkeypatch):
    asked = []
    searched = Mixture.stability

    def spy(self, *given):
        asked.append(given[-2])
        return searched(self, *given)

    monkeypatch.setattr(Mixture, "stability", spy)
    fit = ("fit", table, "-y", "y", "--drop", "id", "--stability", "3", "--seed", "7")
    ran = regimix(*fit, "--jobs", "2", "--json", "--model", "m.regimix", "--report", "r.html")
    assert ran.code == 0, ran.err
    assert asked == [2]
    found = ran.summary["stability"]
    assert (found["resamples"], found["numbers"]) == (3, {"2": 1.0})
    assert [regime["label"] for regime in found["regimes"]] == [0, 1]
    assert all(regime["came_back"] == 1 and not regime["doubtful"] for regime in found["regimes"])
    lines = [line.split() for line in ran.err.splitlines()]
    assert ["regime", "came", "back", "mean", "Jaccard"] in lines
    assert ["0", "100%", f"{found['regimes'][0]['mean_jaccard']:.2f}"] in lines
    assert "Regimes found: two in 100% of the resamples." in ran.err
    assert "oubtful" not in ran.err
    kept = load("m.regimix")
    data = tables.read(table, target="y", drop=["id"])
    again = searched(kept, data.X, data.y, 3, random_state=7)
    np.testing.assert_array_equal(kept.resampled.jaccard, again.jaccard)
    page = html.unescape(Path("r.html").read_text(encoding="utf-8"))
    assert "3 resamples of the rows were searched" in page


def test_doubtful_regimes_are_marked(regimix, tmp_path, monkeypatch):
    monkeypatch.setattr(loop, "SEARCH", SEARCH)  # what comes back depends on how it is searched
    rng = np.random.default_rng(1)
    x = rng.normal(size=80)
    tables.write_table(tmp_path / "one.csv", {"x": x, "y": x + 0.5 * rng.normal(size=80)})
    ran = regimix("fit", "one.csv", "-y", "y", "-m", "2", "--stability", "3", "--json")
    regimes = ran.summary["stability"]["regimes"]
    doubtful = [regime for regime in regimes if regime["doubtful"]]
    assert doubtful
    assert ran.err.count("Doubtful: it came back in") == len(doubtful)
    for regime in regimes:
        assert regime["doubtful"] == (regime["came_back"] < 0.6)


@pytest.mark.usefixtures("prices")
def test_stability_needs_rows_in_memory(regimix):
    ran = regimix("fit", "prices.parquet", "-y", "price", "--stability", "3", "--engine", "parts")
    assert ran.code == 2
    assert "--stability searches resamples of rows in memory" in ran.err
    assert "use --engine memory" in ran.err


LATER = []


def raised(result):
    """The interrupt is raised where the search is, at once."""
    signal.raise_signal(signal.SIGINT)
    LATER.append("it was not")
    return result


def answered(result):
    """The search of a resample answers it with what it has."""
    try:
        signal.raise_signal(signal.SIGINT)
    except KeyboardInterrupt:
        return result


def worker_ended(result):
    """A worker ends of the same Ctrl-C, which is an error here."""
    answered(result)
    raise RuntimeError("a worker has ended")


@pytest.mark.parametrize("press", [raised, answered, worker_ended])
def test_ctrl_c_during_stability_leaves_the_fit_whole(regimix, table, monkeypatch, press):
    again, searched = stability._again, []

    def second(*given):
        searched.append(given)
        result = again(*given)
        return press(result) if len(searched) == 2 else result

    monkeypatch.setattr(stability, "_again", second)
    fit = ("fit", table, "-y", "y", "--drop", "id", "--stability", "9", "--model", "m.regimix")
    ran = regimix(*fit)
    assert ran.code == 130
    assert "Warning: stability was not finished, since it was interrupted" in ran.err
    assert "2 linear regimes in 600 rows" in ran.out
    assert "came back" not in ran.out
    assert load("m.regimix").resampled is None
    assert len(searched) == 2
    assert not LATER


def test_ctrl_c_at_the_end_of_stability_leaves_it_out_too(regimix, table, monkeypatch):
    searched = MixedLinearRegression.stability

    def pressed(*given):
        searched(*given)
        raised(None)

    monkeypatch.setattr(MixedLinearRegression, "stability", pressed)
    ran = regimix("fit", table, "-y", "y", "--drop", "id", "--stability", "1", "--json")
    assert ran.code == 130
    assert ran.summary["stability"] is None
    assert "stability was not finished" in ran.summary["warnings"][-1]


def test_other_errors_of_stability_are_not_taken_for_an_interrupt(regimix, table, monkeypatch):
    def fails(*_):
        raise RuntimeError("no such luck")

    monkeypatch.setattr(stability, "_again", fails)
    ran = regimix("fit", table, "-y", "y", "--drop", "id", "--stability", "2")
    assert ran.code == 1
    assert "no such luck" in ran.err


def test_a_search_that_was_interrupted_is_not_repeated(regimix, table, monkeypatch):
    step, steps = Bar.step, []

    def third(self, progress):
        step(self, progress)
        steps.append(progress)
        if len(steps) == 3:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(Bar, "step", third)
    ran = regimix("fit", table, "-y", "y", "--drop", "id", "--stability", "2")
    assert ran.code == 130
    assert "stability was not tried, since the search was interrupted" in ran.err


def test_the_bar_counts_resamples_and_ctrl_c_reaches_workers(table):
    fit = ("fit", str(table), "-y", "y", "--drop", "id", "--stability", "500", "--jobs", "2")
    with Terminal(*fit) as terminal:
        terminal.wait_for(lambda shown: "of 500 resamples" in shown)
        terminal.press("\x03")
        assert terminal.end() == 130
    assert "stability was not finished" in " ".join(terminal.plain.split())
    assert "2 linear regimes in 600 rows" in terminal.plain
    assert "Traceback" not in terminal.plain


def test_of_one_regime_and_counts_the_advice_is_about_both(regimix, tmp_path):
    """What to type is the power, which is not the relation that is named."""
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 3, 150)
    table = tmp_path / "counts.csv"
    y = rng.negative_binomial(4, 4 / (4 + np.exp(1 + x)))
    table.write_text("x,y\n" + "".join(f"{a},{b}\n" for a, b in zip(x, y, strict=True)))
    ran = regimix("fit", table, "-y", "y", "-m", "1")
    said = " ".join(ran.out.split())
    assert "with the noise of counts, explains these rows better than one straight line" in said
    assert "If the response counts something, use a model of counts" in said
