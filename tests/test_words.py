"""Numbers, names and lists are written in one way, everywhere."""

import doctest

import numpy as np
import pytest

from regimix import words


def test_the_examples_are_true():
    assert doctest.testmod(words).failed == 0


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (1.25, "1.25"),
        (-0.0012345, "-0.001234"),
        (9999.6, "10,000"),
        (1987.0, "1987"),
        (99999.4, "99,999"),
        (-1234567.0, "-1,234,567"),
        (1.5e12, "1.5e12"),
        (2.5e-7, "2.5e-7"),
        (float("nan"), "–"),
        (float("-inf"), "-inf"),
        (-0.0, "0"),
    ],
)
def test_numbers_have_four_digits(value, text):
    assert words.number(value) == text


def test_intervals_have_the_decimals_they_deserve():
    assert words.interval(1.88063, 1.97, 0.0221) == "1.881 to 1.970"
    assert words.interval(-0.00461, 0.01149, 0.0041) == "-0.0046 to 0.0115"
    assert words.interval(1234.5, 99876.5, 25000.0) == "1234 to 99,876"
    assert words.interval(1.0, 1.0, 0.0) == "1 to 1"
    assert words.interval(-0.001, 5.0, 1.3) == "0.0 to 5.0"
    assert words.interval(-np.inf, np.inf, np.nan) == "-inf to inf"


def test_columns_are_aligned():
    assert words.aligned([31.86, 15.0, 3.5], 3) == ["31.9", "15.0", "3.5"]
    assert words.aligned([1e12, 1.0]) == ["1e12", "1"]
    assert words.aligned([np.inf, 2.04, 3.3], 2) == ["inf", "2.0", "3.3"]


def test_whole_numbers_stay_whole():
    assert words.aligned([3.0, 12.0, 0.0]) == ["3", "12", "0"]
    assert words.aligned([np.inf, 2.0], 2) == ["inf", "2"]
    assert words.aligned([2.5, 3.0, -1.0]) == ["2.5", "3.0", "-1.0"]
    assert words.aligned([2.0004, 3.0], 3) == ["2.00", "3.00"]


def test_shares_are_never_rounded_to_all_or_nothing():
    assert words.percent(0.0) == "0%"
    assert words.percent(0.0001) == "<0.1%"
    assert words.percent(0.125) == "12.5%"
    assert words.percent(0.9999) == ">99.9%"
    assert words.percent(1.0) == "100%"


def test_probabilities_are_never_rounded_to_zero_or_one():
    assert words.probability(0.0) == "<0.001"
    assert words.probability(0.0312) == "0.031"
    assert words.probability(0.9998) == ">0.999"
    assert words.probability(1.0) == "1.000"
    assert words.probability(-0.25) == "-0.250"
    assert words.probability(-0.0003) == "0.000"
    assert words.probability(np.nan) == "–"


def test_lists_read_as_sentences():
    assert words.listing([]) == ""
    assert words.listing(["a"]) == "a"
    assert words.listing(["a", "b"]) == "a and b"
    assert words.listing(list("abcde"), 3) == "a, b, c and 2 more"
    assert words.listing(list("abcd"), 3) == "a, b, c and d"


def test_names_fit_on_the_page():
    assert words.clean("  two\nlines ") == "two lines"
    assert words.clean("\u202eabc\x00") == "\ufffdabc\ufffd"
    assert words.clean("\ud800").encode("utf-8") == b"\xef\xbf\xbd"
    assert words.clean("") == "(no name)"
    assert len(words.clean("x" * 10_000_000)) <= words.LONGEST_NAME


@pytest.mark.parametrize(
    ("value", "error", "written"),
    [
        (1.92512, 0.0221, ("1.925", "0.022")),
        (-0.001, 0.13, ("0.00", "0.13")),
        (12345.6, 99.6, ("12,346", "100")),
        (5.0, 0.0, ("5", "0")),
        (1e-12, 2e-13, ("1e-12", "2e-13")),
        (3e9, 2e8, ("3e9", "2e8")),
        (2.5, np.nan, ("2.5", "–")),
    ],
)
def test_a_value_is_as_exact_as_its_error(value, error, written):
    assert words.measured(value, error) == written


@pytest.mark.parametrize("write", [words.short, words.clean])
def test_names_hold_no_commands_for_a_terminal(write):
    written = write("a\x1b[31m\x07b\u202e" + 60 * "c")
    assert written.isprintable()
    assert written.startswith("a")
    assert len(written) <= words.LONGEST_NAME
