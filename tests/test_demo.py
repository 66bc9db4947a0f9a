"""The demo shows the two regimes of the tone data and names the years in other units."""

import pytest

from examples import demo


@pytest.fixture(scope="module")
def told() -> str:
    with pytest.MonkeyPatch.context() as patch:
        lines: list[str] = []
        patch.setattr("builtins.print", lambda text: lines.append(text))
        demo.main()
    return "\n".join(lines)


def test_it_tells_both_regimes_of_the_tone_data(told):
    assert "finds 2 linear regimes" in told
    assert "tuned = 1.927 + 0.03789 stretchratio" in told
    assert "tuned = 0.003419 + 0.9988 stretchratio" in told


def test_the_picture_shows_both_regimes_and_the_outliers(told):
    drawn = "".join(line.partition("|")[2] for line in told.splitlines() if "|" in line)
    assert all(drawn.count(mark) >= 5 for mark in "o+x")
    assert set(drawn) == set("o+x ")


def test_it_tells_which_years_are_wrong(told):
    follows, others = told.split("These do not:")
    assert "Calls = " in follows
    listed = others.splitlines()[1].split()
    assert {str(year) for year in range(1964, 1970)} <= set(listed)
    assert not {str(year) for year in range(1950, 1962)} & set(listed)


def test_it_fits_a_terminal(told):
    lines = told.splitlines()
    assert len(lines) <= 45
    assert max(map(len, lines)) <= 80
