"""``regimix fit --profile``: columns beside the fit, in the terminal, as JSON, in the report."""

import re
from pathlib import Path

import numpy as np
import pytest

from regimix.tables import write_table

pytestmark = pytest.mark.usefixtures("searched_once")


@pytest.fixture
def machines(tmp_path):
    """Two modes of a machine, hidden in the column mode; a row lacks its response."""
    rng = np.random.default_rng(0)
    n = 160
    mode = rng.random(n) < 0.4
    load = rng.uniform(0, 10, n)
    power = np.where(mode, 5 + 3 * load, 20 - load) + 0.3 * rng.standard_normal(n)
    columns = {
        "id": [f"m{i}" for i in range(n)],
        "load": load,
        "mode": np.where(mode, "turbo", "eco").tolist(),
        "shift": rng.choice(["day", "night"], n).tolist(),
        "power": power.tolist(),
    }
    columns["power"][3] = None
    write_table(tmp_path / "machines.csv", columns)
    return "machines.csv"


def test_a_hidden_column_names_the_regimes(regimix, machines):
    ran = regimix("fit", machines, "-y", "power", "--profile", "mode,shift", "--report", "r.html")
    assert ran.code == 0, ran.err
    assert "Who is in each regime: 2 columns" in ran.out
    assert re.search(r"mostly turbo \(mode: (9\d\.\d|100)% of its rows", " ".join(ran.out.split()))
    # What is profiled is no feature.
    assert "mode=" not in ran.out
    page = Path("r.html").read_text(encoding="utf-8")
    assert "Who is in each regime" in page
    assert "mostly turbo" in page


def test_all_takes_every_column_that_is_not_used(regimix, machines):
    ran = regimix("fit", machines, "-y", "power", "-x", "load", "--profile", "all", "--json", "-q")
    found = ran.summary["profile"]
    assert {record["column"] for record in found["values"]} == {"mode", "shift"}
    assert found["left_out"] == {"id": "identifies rows: 159 different values in 159 rows"}
    assert any("mostly turbo" in said for said in found["sentences"])
    plain = regimix("fit", machines, "-y", "power", "-x", "load", "--json", "-q").summary
    assert plain["profile"] is None


def test_a_feature_is_shown_and_not_tested(regimix, machines):
    ran = regimix("fit", machines, "-y", "power", "-x", "load", "--profile", "load,mode")
    assert "not tested: used in the fit" in ran.out


def test_an_unknown_column_is_named_with_its_like(regimix, machines):
    for more in ([], ["-x", "load"]):
        ran = regimix("fit", machines, "-y", "power", "--profile", "mod", *more)
        assert ran.code == 2
        assert "no column 'mod' (--profile). Did you mean 'mode'" in ran.err
        assert not ran.out
