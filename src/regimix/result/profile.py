"""Profile: who is in each regime, by columns that the fit did not use.

Rows count by their labels, and outliers are a group of their own. A column is independent of the
labels if any order of its values were as likely beside them, since it had no part in the fit: that
is tested, exactly (random tables with the same margins) where counts are small. Labels that are
uncertain blur the differences between regimes; they do not create any.
"""

from __future__ import annotations

import datetime as dt
import itertools
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from numbers import Real
from textwrap import wrap
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc, ndtri

from regimix.data.recipe import check_column
from regimix.data.validation import read_weights
from regimix.errors import DataError, MissingExtraError
from regimix.model.numbers import MODEL
from regimix.result.answer import WIDTH
from regimix.result.inference import holm
from regimix.result.summary import as_frame
from regimix.search.settings import read_seed
from regimix.words import (
    aligned,
    clean,
    count,
    fixed,
    listing,
    number,
    p_value,
    percent,
    powered,
    short,
)

if TYPE_CHECKING:
    from regimix.result.mixture import Mixture

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]
Flags = NDArray[np.bool_]
Kind = Literal["category", "number", "date"]

# Levels that are shown: of more, the rarest are called "other". A column of numbers with no more
# different values than these has levels.
MOST_LEVELS = 12
# A text with more different values than this part of the rows identifies rows.
IDENTIFIES = 0.5
# Numbers are cut into so many classes of equal size, with at least so many rows each.
CLASSES, CLASS_ROWS = 8, 10
# The chi-square law is used where every expected count is at least this, and a shift of numbers is
# looked for among groups of so many rows.
FEWEST_EXPECTED = 5.0
# Random tables that are drawn where it is not: fewer of large ones, which are drawn one by one.
DRAWS, FEWEST_DRAWS, MOST_CELLS, SMALL_TABLE = 9999, 199, 10_000_000, 500
# Levels that are tested; rarer ones count as one.
MOST_TESTED = 10_000
# What is called a difference in sentences, after the correction for the number of columns.
ALPHA = 0.05
# A level is named in a sentence if a group has it so many times as often as all rows do.
NOTEWORTHY = 1.1
MOST_NAMED = 3  # levels that a sentence names where none has more than half of the rows
# Columns that are printed with their levels, and the width of names.
MOST_COLUMNS, NAME_WIDTH = 12, 26
MISSING = "(missing)"
MICROSECONDS = 86_400e6  # of a day
# Of the response, as a fit may have explained them.
POWERS = (0.0, 0.5, -1.0, -0.5, 2.0)
QUARTILES = ("lower quartile", "median", "upper quartile")


@dataclass(frozen=True, eq=False)
class ProfileColumn:
    """One column against the regimes.

    Attributes
    ----------
    name : str
    kind : {"category", "number", "date"}
    effect : float
        How much it tells, from 0 (the regimes are alike) to 1. Of categories, Cramér's V without
        its bias (Bergsma 2013). Of numbers, the larger of two: of Cramér's V between the regimes
        and eight classes of equal size, and of what the mean ranks differ, beside how much they
        would if the regimes did not overlap (of two regimes: Cliff's delta).
    p_value, p_holm : float
        Of so large a difference if the column had nothing to do with the labels; and corrected for
        the number of columns (Holm). NaN if the column was used in the fit, or nothing can be said.
    test : str
        What the p-value is of.
    levels : tuple of str
        Of a category, the commonest first; of numbers, the three quartiles.
    values : ndarray of shape (levels, groups)
        Share of each level in each group; of numbers, the quartiles (of dates, as days since 1970).
    overall : ndarray of shape (levels,)
        The same of all rows.
    missing : ndarray of shape (groups + 1,)
        Share of the rows of each group, and last of all, that have no value.
    """

    name: str
    kind: Kind
    effect: float
    p_value: float
    test: str
    levels: tuple[str, ...]
    values: Floats
    overall: Floats
    missing: Floats
    far: Floats  # deviations of each value (of numbers: of each mean rank) from independence
    p_holm: float = np.nan

    @property
    def is_category(self) -> bool:
        """Whether it is compared by its levels, and not by quartiles."""
        return self.kind == "category"

    def said(self) -> str:
        """Say how much it tells, and how sure that is."""
        if np.isnan(self.p_value):
            return f"tells {fixed(self.effect, 2)}, {self.test}"
        return f"tells {fixed(self.effect, 2)}, {p_value(self.p_holm)}, {self.test}"

    def lines(self) -> list[tuple[str, list[str]]]:
        """Write its levels, or quartiles: a name, then all rows, then each group."""
        table = np.column_stack([self.overall, self.values])
        if self.is_category:
            return [*zip(self.levels, map(_percents, table), strict=True)]
        rows = _dates(table) if self.kind == "date" else _numbers(table)
        lost = [(MISSING, _percents(np.roll(self.missing, 1)))] if self.missing[-1] else []
        return [*zip(self.levels, rows, strict=True), *lost]

    def sets_apart(self, group: int, whose: str = "its") -> str:
        """Say in which way a group differs from all rows, or nothing if it hardly does."""
        far = self.far[:, group]
        # What chance alone reaches in one of the cells of one table in twenty.
        limit = float(ndtri(1 - ALPHA / (2 * self.far.size)))
        if not self.is_category:
            more, less = ("larger", "smaller") if self.kind == "number" else ("later", "earlier")
            middle = self.lines()[1][1]
            medians = f"(median {middle[group + 1]}, {middle[0]} in all rows)"
            how = f"{more if far[0] > 0 else less} {clean(self.name)} {medians}"
            return how if abs(far[0]) > limit else ""
        much = (far > limit) & (self.values[:, group] > NOTEWORTHY * self.overall)
        rest = [name == MISSING or name.startswith("other (") for name in self.levels]
        apart = np.flatnonzero(much & ~np.array(rest)).tolist()
        if not apart:
            return ""
        apart.sort(key=lambda i: -self.values[i, group])
        mostly = self.values[apart[0], group] > 0.5
        named = apart[:1] if mostly else apart[:MOST_NAMED]
        what = listing([clean(self.levels[i]) for i in named])
        shares = listing([percent(float(self.values[i, group])) for i in named])
        of_all = listing([percent(float(self.overall[i])) for i in named])
        where = f"{clean(self.name)}: {shares} of {whose} rows, {of_all} of all"
        return f"{'mostly' if mostly else 'more often'} {what} ({where})"


def _percents(shares: Floats) -> list[str]:
    return [percent(float(share)) for share in shares]


def _numbers(table: Floats) -> list[list[str]]:
    written = iter(aligned(table.ravel().tolist()))
    return [[next(written) for _ in row] for row in table]


def _dates(table: Floats) -> list[list[str]]:
    # Times of day matter where the dates span few days.
    unit = "D" if np.nanmax(table) - np.nanmin(table) >= CLASSES else "m"
    moments = np.round(table * 86_400).astype("M8[s]").astype(f"M8[{unit}]")
    return [[str(one).replace("T", " ") for one in row] for row in moments]


@dataclass(frozen=True, eq=False, repr=False)
class Profile:
    """Who is in each regime: columns that the fit did not use, the most telling first.

    ``print`` it, or compute with ``records()``, ``frame()`` and the columns.

    Attributes
    ----------
    columns : tuple of ProfileColumn
    groups : tuple of int
        The regimes that have rows and, last, -1 if there are outliers.
    sizes : ndarray of shape (groups,)
        Their rows: repetitions counted, but each once where weights are relative.
    left_out : dict of str to str
        Columns that nothing can be said of, and why.
    n_doubtful : int or None
        Rows whose label is in doubt.
    drawn : (int, int) or None
        Rows that were compared and rows of the table, where the former were drawn at random.
    """

    columns: tuple[ProfileColumn, ...]
    groups: tuple[int, ...]
    sizes: Floats
    left_out: dict[str, str]
    n_doubtful: int | None = None
    drawn: tuple[int, int] | None = None

    def __getitem__(self, name: str) -> ProfileColumn:
        for column in self.columns:
            if column.name == name:
                return column
        why = self.left_out.get(name)
        raise KeyError(f"{name!r} {why}" if why else name)

    @property
    def names(self) -> tuple[str, ...]:
        """What the groups are called."""
        return tuple("outliers" if group < 0 else f"regime {group}" for group in self.groups)

    @property
    def sentences(self) -> tuple[str, ...]:
        """What sets each group apart, by the most telling columns; one sentence a group."""
        telling = [column for column in self.columns if column.p_holm < ALPHA]
        said = []
        for g, name in enumerate(self.names):
            subject, verb, has, whose = name.capitalize(), "is", "has", "its"
            if name == "outliers":
                subject, verb, has, whose = "The outliers", "are", "have", "their"
            apart = [(c.is_category, c.sets_apart(g, whose)) for c in telling]
            first = next((how for category, how in apart if category and how), "")
            second = next((how for category, how in apart if not category and how), "")
            if first:
                said.append(f"{subject} {verb} {first}{f', with {second}' if second else ''}.")
            elif second:
                said.append(f"{subject} {has} {second}.")
        if said or not self.columns:
            return tuple(said)
        if len(self.groups) < 2:
            return ("All rows have the same label: there is nothing to compare.",)
        # A column may tell, though none of its levels stands out.
        return () if telling else ("No column tells the regimes apart.",)

    @property
    def notes(self) -> tuple[str, ...]:
        """How rows were counted, what was left out, and what was corrected for."""
        said = []
        if self.drawn is not None:
            some, of = (fixed(rows, 0) for rows in self.drawn)
            said.append(f"Compared are {some} rows, drawn at random from the {of} of the table.")
        tested = sum(not np.isnan(column.p_value) for column in self.columns)
        if tested > 1:
            said.append(f"p-values are corrected for {count(tested, 'column')} (Holm).")
        if self.n_doubtful and self.columns and len(self.groups) > 1:
            share = percent(self.n_doubtful / max(float(self.sizes.sum()), 1.0))
            verb = "is" if self.n_doubtful == 1 else "are"
            said.append(
                f"Rows count by their labels; {count(self.n_doubtful, 'row')} ({share}) {verb} in "
                "doubt, which makes the regimes look more alike."
            )
        if self.left_out:
            parts = [f"{clean(name)} ({why})" for name, why in self.left_out.items()]
            said.append(f"Left out: {listing(parts)}.")
        return tuple(said)

    def records(self) -> list[dict[str, Any]]:
        """Return a dictionary for each column, level (or quartile) and group."""
        return [
            {
                "column": column.name,
                "kind": column.kind,
                "effect": column.effect,
                "p_value": column.p_value,
                "p_holm": column.p_holm,
                "test": column.test,
                "regime": group,
                "level": level,
                "value": float(column.values[i, g]),
                "overall": float(column.overall[i]),
            }
            for column in self.columns
            for i, level in enumerate(column.levels)
            for g, group in enumerate(self.groups)
        ]

    def frame(self) -> Any:
        """Return the records as a pandas data frame (polars if pandas is missing)."""
        return as_frame(self.records())

    def describe(self, width: int = WIDTH) -> str:
        """Write everything as a text: what sets each group apart last."""
        if not self.columns:
            return "\n".join(["No column can be compared between the regimes.", *self.notes])
        if len(self.groups) < 2:
            return "\n".join(self.sentences)
        heads = ("all rows", *self.names)
        sizes = [fixed(float(size), 0) for size in (self.sizes.sum(), *self.sizes)]
        lines = [
            f"Who is in each regime: {count(len(self.columns), 'column')}, the most telling first"
        ]
        shown = self.columns[:MOST_COLUMNS]
        tables = [column.lines() for column in shown]
        cells = [cell for table in tables for _, row in table for cell in row]
        each = max(map(len, (*heads, *sizes, *cells))) + 2
        fits = max(2, (width - NAME_WIDTH) // each)
        # All rows come first in every block of groups, so that each can be compared with them.
        for begin in range(1, max(len(heads), 2), fits - 1):
            places = [0, *range(begin, min(begin + fits - 1, len(heads)))]
            lines += ["", _row("", [heads[i] for i in places], each)]
            lines.append(_row("rows", [sizes[i] for i in places], each))
            for column, table in zip(shown, tables, strict=True):
                lines.append(f"{short(clean(column.name), NAME_WIDTH)}: {column.said()}")
                lines += [_row(name, [row[i] for i in places], each, "  ") for name, row in table]
        lines += [f"{clean(c.name)}: {c.said()}" for c in self.columns[MOST_COLUMNS:]]
        for said in (self.sentences, self.notes):
            lines += ["", *(line for text in said for line in wrap(text, width))] if said else []
        return "\n".join(lines)

    def __repr__(self) -> str:
        return self.describe()

    def _repr_html_(self) -> str | None:
        try:
            return str(import_module("regimix.report.notebook").profile_html(self))
        except (MissingExtraError, ModuleNotFoundError):
            return None

    def plot(self, ax: Any = None, **options: Any) -> Any:
        """Draw it; see ``regimix.plots.ProfileDisplay``."""
        return import_module("regimix.plots").ProfileDisplay.from_profile(self, ax=ax, **options)


def _row(name: str, cells: list[str], each: int, indent: str = "") -> str:
    first = f"{indent}{clean(name, NAME_WIDTH - len(indent) - 1)}" if name else ""
    return f"{first:<{NAME_WIDTH}}" + "".join(f"{cell:>{each}}" for cell in cells)


# --- making one -----------------------------------------------------------------------------------


def profile(
    mixture: Mixture,
    frame: Any,
    columns: Iterable[str] | str | None,
    labels: Any,
    sample_weight: Any,
    random_state: Any,
) -> Profile:
    """Compare columns between the regimes; see ``Mixture.profile``."""
    table = _columns_of(frame)
    rows = _Rows(mixture, table, labels, sample_weight, read_seed(random_state))
    used = {mixture.target_name, *mixture.feature_names}
    used |= {name.partition("=")[0] for name in mixture.feature_names}
    # The response may be a power of a column.
    powers = {powered(name, power): name for name in table for power in POWERS}
    used |= {powers.get(mixture.target_name, mixture.target_name)}
    chosen = [name for name in table if name not in used]
    if columns is not None:
        chosen = list(dict.fromkeys([columns] if isinstance(columns, str) else map(str, columns)))
        for name in chosen:
            check_column(table, name, "the frame", "to profile")
    found, left_out = list[ProfileColumn](), dict[str, str]()
    for name in chosen:
        column = rows.compare(name, table[name])
        if isinstance(column, str):
            left_out[name] = column
        elif name in used:
            found.append(replace(column, p_value=np.nan, test="not tested: used in the fit"))
        else:
            found.append(column)
    corrected = holm(np.array([column.p_value for column in found]))
    found = [replace(c, p_holm=float(p)) for c, p in zip(found, corrected, strict=True)]
    found.sort(key=lambda column: (-column.effect, np.nan_to_num(column.p_value, nan=2.0)))
    same = labels is None and mixture.doubtful_rows is not None
    doubtful = mixture.doubtful_rows if same else None
    return Profile(tuple(found), rows.groups, rows.counted, left_out, doubtful)


def _columns_of(frame: Any) -> dict[str, Any]:
    """Return the columns of a frame by name."""
    if isinstance(frame, Mapping):
        return {str(name): frame[name] for name in frame}
    names = getattr(frame, "column_names", None)  # pyarrow
    names = getattr(frame, "columns", None) if names is None else names
    if names is None:
        raise DataError(
            "profile needs columns with names: a data frame, or a dictionary of arrays; got "
            f"{type(frame).__name__}."
        )
    return {str(name): frame[name] for name in names}


class _Rows:
    """The rows of a profile: which group each is in, and how much it counts."""

    def __init__(
        self, mixture: Mixture, table: dict[str, Any], labels: Any, sample_weight: Any, seed: int
    ) -> None:
        given = np.asarray(mixture.labels if labels is None else labels)
        n = len(next(iter(table.values()))) if table else 0
        if given.shape != (n,):
            whose = "labels" if labels is not None else "the labels of the fit"
            raise DataError(
                f"the frame has {count(n, 'row')}, and {whose} {count(given.size, 'row')}. Pass "
                "the rows of the fit, in their order, or labels=model.assign(X, y) of the rows."
            )
        wrong = given[~np.isin(given, np.arange(-1, mixture.n_components))]
        if wrong.size:
            last = mixture.n_components - 1
            raise DataError(f"labels must be whole numbers from -1 to {last}; got {wrong[0]!r}.")
        # Whether weights are repetitions.
        weights, self.counts = read_weights(sample_weight, n)
        weights = np.ones(n) if weights is None else weights
        self.seed, self.n_frame, self.present = seed, n, np.flatnonzero(weights)
        self.weights, given = weights[self.present], given[self.present].astype(np.int64)
        sums: Floats = np.bincount(given + 1, self.weights, mixture.n_components + 1).astype(float)
        self.groups = tuple(j for j in (*range(mixture.n_components), -1) if sums[j + 1])
        there = np.array(self.groups, dtype=np.int64) + 1
        self.sizes, place = sums[there], np.zeros(sums.size, dtype=np.int64)
        place[there] = np.arange(there.size)
        once = np.bincount(given + 1, minlength=sums.size)[there].astype(np.float64)
        self.counted = self.sizes if self.counts else once
        self.group = place[given + 1]
        # How many rows there are, or as how many they count.
        total = float(self.weights.sum())
        self.effective = total if self.counts else total**2 / float(self.weights @ self.weights)

    def compare(self, name: str, series: Any) -> ProfileColumn | str:
        """Compare a column between the groups, or say why not."""
        column = _Values.read(name, series, self.n_frame)
        held = column.values[self.present], column.absent[self.present]
        column = replace(column, values=held[0], absent=held[1])
        if column.absent.all():
            return "has no values"
        there = ~column.absent
        n_present, ordered = int(np.count_nonzero(there)), column.kind != "category"
        codes, levels = column.values, list(column.levels)
        if ordered:
            distinct, place = np.unique(column.values[there], return_inverse=True)
            if distinct.size > MOST_LEVELS:
                return self._of_numbers(name, column)
            levels = [number(value, 6) for value in distinct]
            if column.kind == "date":
                (levels,) = _dates(distinct[None])
            codes = np.zeros(column.absent.size, dtype=np.int64)
            codes[there] = place
        if len(levels) == 1 and not column.absent.any():
            return "is the same in all rows"
        if not ordered and len(levels) > max(MOST_LEVELS, IDENTIFIES * n_present):
            differ = f"{fixed(len(levels), 0)} different values in {fixed(n_present, 0)} rows"
            return f"identifies rows: {differ}"
        return self._of_levels(name, codes, levels, ordered=ordered, absent=column.absent)

    def _sums(self, codes: Whole, n_levels: int, weights: Floats | None) -> Floats:
        """Sum weights over the cells of a table, (levels, groups)."""
        k = len(self.groups)
        sums = np.bincount(codes * k + self.group, weights, n_levels * k)
        return sums.reshape(n_levels, k).astype(np.float64)

    def _missing(self, absent: Flags) -> Floats:
        lost = np.bincount(self.group, self.weights * absent, len(self.groups))
        return np.append(lost / self.sizes, lost.sum() / self.sizes.sum())

    def _of_levels(
        self, name: str, codes: Whole, levels: list[str], *, ordered: bool, absent: Flags
    ) -> ProfileColumn:
        size = np.bincount(codes, self.weights * ~absent, len(levels))
        order = np.arange(len(levels)) if ordered else np.lexsort((np.array(levels), -size))
        place = np.empty(len(levels), dtype=np.int64)
        place[order] = np.arange(len(levels))
        levels = [levels[i] for i in order]
        # Each level is tested, of very many the commonest; a table for readers is short.
        codes = np.where(absent, -1, np.minimum(place[codes], MOST_TESTED))
        tested = codes.max() + 1
        whole = np.where(absent, tested, codes)
        effect, p, test = self._association(whole, int(tested) + bool(absent.any()))
        rest = max(0, len(levels) - MOST_LEVELS)
        if rest:
            rest += 1
            levels = [*levels[: MOST_LEVELS - 1], f"other ({fixed(rest, 0)} values)"]
            codes = np.minimum(codes, MOST_LEVELS - 1)
        if absent.any():
            codes, levels = np.where(absent, len(levels), codes), [*levels, MISSING]
        table = self._sums(codes, len(levels), self.weights)
        return ProfileColumn(
            name=name,
            kind="category",
            effect=effect,
            p_value=p,
            test=test,
            levels=tuple(levels),
            values=table / self.sizes,
            overall=table.sum(axis=1) / self.sizes.sum(),
            missing=self._missing(absent),
            far=_deviations(table * (self.effective / table.sum())),
        )

    def _association(self, codes: Whole, q: int) -> tuple[float, float, str]:
        """Return Cramér's V without its bias, a p-value, and what it is of; of q levels."""
        k, n = len(self.groups), self.effective
        if q < 2 or k < 2 or n <= 2:
            return 0.0, np.nan, "one group alone"
        table = self._sums(codes, q, self.weights)
        scaled = table * (n / table.sum())
        expected = np.outer(scaled.sum(axis=1), scaled.sum(axis=0)) / n
        square = float(((scaled - expected) ** 2 / expected).sum())
        free = (q - 1) * (k - 1)
        levels, groups = (size - (size - 1) ** 2 / (n - 1) for size in (q, k))
        above = max(0.0, square / n - free / (n - 1))
        effect = min(1.0, float(np.sqrt(above / max(min(levels, groups) - 1, 1e-9))))
        if expected.min() >= FEWEST_EXPECTED:
            return effect, float(chdtrc(free, square)), "chi-square"
        # Importances are no counts: rows are then counted.
        rows = table if self.counts else self._sums(codes, q, None)
        return effect, self._permuted(np.round(rows)), "permutation"

    def _permuted(self, table: Floats) -> float:
        """Return the share of random tables with the same margins that are as far from even."""
        from scipy.stats import random_table

        rows, columns = (table.sum(axis=axis).astype(np.int64) for axis in (1, 0))
        expected = np.outer(rows, columns) / columns.sum()

        def square(tables: Any) -> Any:
            return ((tables - expected) ** 2 / expected).sum(axis=(-2, -1))

        law, rng = random_table(rows, columns), np.random.default_rng(self.seed)
        draws, least = int(np.clip(MOST_CELLS // table.size, FEWEST_DRAWS, DRAWS)), square(table)
        drawn: Iterable[Any] = (
            law.rvs(1, method="patefield", random_state=rng) for _ in range(draws)
        )
        if table.size <= SMALL_TABLE:
            drawn = [law.rvs(draws, method="patefield", random_state=rng)]
        above = sum(int(np.count_nonzero(square(part) >= least * (1 - 1e-9))) for part in drawn)
        return (1 + above) / (1 + draws)

    def _of_numbers(self, name: str, column: _Values) -> ProfileColumn:
        there = np.flatnonzero(~column.absent)
        there = there[np.argsort(column.values[there], kind="stable")]
        values, group, weights = column.values[there], self.group[there], self.weights[there]
        k = len(self.groups)
        quartiles = np.full((3, k + 1), np.nan)
        for g in range(k + 1):
            mine = slice(None) if g == k else group == g
            quartiles[:, g] = _quantiles(values[mine], weights[mine], np.array([0.25, 0.5, 0.75]))
        shift, p_shift, far = _shift(values, group, weights, k, self.counts)
        # Eighths of the rows see what a shift does not: the middle against both ends.
        classes = int(max(2, min(CLASSES, weights.sum() // CLASS_ROWS)))
        edges = np.unique(_quantiles(values, weights, np.arange(1, classes) / classes))
        codes = np.searchsorted(edges, column.values, side="left")
        codes = np.where(column.absent, edges.size + 1, codes)
        _, filled = np.unique(codes, return_inverse=True)
        spread, p_spread, test = self._association(filled, int(filled.max()) + 1)
        # Two tests were made: the better one counts twice.
        p = float(np.minimum(1.0, 2 * np.fmin(p_shift, p_spread)))
        if not np.isnan(p):
            by_shift = bool(p_shift <= p_spread) or np.isnan(p_spread)
            test = "Kruskal-Wallis" if by_shift else f"{test} of classes"
        return ProfileColumn(
            name=name,
            kind=column.kind,
            effect=max(shift, spread),
            p_value=p,
            test=test,
            levels=QUARTILES,
            values=quartiles[:, :-1],
            overall=quartiles[:, -1],
            missing=self._missing(column.absent),
            far=far[None],
        )


def _quantiles(values: Floats, weights: Floats, levels: Floats) -> Floats:
    """Find the values, which are sorted, below and at which so much of the weight lies."""
    if not values.size:
        return np.full(levels.size, np.nan)
    filled = np.cumsum(weights)
    # The sums carry rounding; half of four equal weights ends at the second of them.
    places = np.searchsorted(filled, levels * filled[-1] * (1 - MODEL.rounding))
    return np.asarray(values[np.minimum(places, values.size - 1)])


def _deviations(table: Floats) -> Floats:
    """Return how far each cell is from independence, in standard errors."""
    n, rows, columns = table.sum(), table.sum(axis=1), table.sum(axis=0)
    expected = np.outer(rows, columns) / n
    spread = np.sqrt(expected * np.outer(1 - rows / n, 1 - columns / n))
    return np.asarray((table - expected) / np.where(spread > 0, spread, np.inf))


def _shift(
    values: Floats, group: Whole, weights: Floats, k: int, counts: bool
) -> tuple[float, float, Floats]:
    """Compare mean ranks of sorted values between groups (Kruskal and Wallis).

    Returns the effect, the p-value, and how far each group is from all rows in standard errors.
    Groups of very few rows are left out.
    """
    size = np.bincount(group, weights, k)
    counted = size if counts else size**2 / np.maximum(np.bincount(group, weights**2, k), 1e-300)
    large = counted >= FEWEST_EXPECTED
    far = np.zeros(k)
    if np.count_nonzero(large) < 2:
        return 0.0, np.nan, far
    mine = large[group]
    values, group, weights = values[mine], group[mine], weights[mine]
    place = np.cumsum(np.diff(values, prepend=values[:1]) > 0)
    tied = np.bincount(place, weights)
    rank = (np.cumsum(tied) - tied / 2)[place]
    total, size = float(weights.sum()), np.where(large, size, 0.0)
    n = float(counted[large].sum()) if counts else total**2 / float(weights @ weights)
    rank -= total / 2
    mean = np.bincount(group, weights * rank, k) / np.where(large, size, 1.0)
    between, all_ranks = float(size @ mean**2), float(weights @ rank**2)
    if all_ranks <= 0 or n <= np.count_nonzero(large):
        return 0.0, np.nan, far
    free = np.count_nonzero(large) - 1
    ratio, chance = between / all_ranks, free / (n - 1)
    # As much as the ranks could differ between groups that do not overlap.
    most = min(1.0, (total**3 - float((size**3).sum())) / 12 / all_ranks)
    effect = np.sqrt(max(0.0, (ratio - chance) / (1 - chance)) / most)
    inverse = 1 / np.where(large, counted, np.inf) - 1 / n
    error = np.sqrt(all_ranks / total * np.maximum(inverse, 0.0))
    far = np.where(large & (error > 0), mean / np.where(error > 0, error, 1.0), 0.0)
    return min(float(effect), 1.0), float(chdtrc(free, (n - 1) * ratio)), far


# --- reading columns ------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Values:
    """A column: numbers (of dates, days since 1970), or the numbers of its levels."""

    kind: Kind
    values: NDArray[Any]
    absent: Flags
    levels: tuple[str, ...] = ()

    @classmethod
    def read(cls, name: str, series: Any, n: int) -> _Values:
        """Read a column of any library; blank text and infinities count as missing."""
        if getattr(getattr(series, "dtype", None), "tz", None) is not None:
            series = series.dt.tz_convert(None)  # pandas would make objects of them
        values = series.to_numpy() if hasattr(series, "to_numpy") else np.asarray(series)
        if values.shape != (n,):
            raise DataError(
                f"column {name!r} must hold {n} values; got an array of shape {values.shape}."
            )
        if values.dtype.kind in "mM":
            absent = np.isnat(values)
            days = np.where(absent, 0, values.astype(f"{values.dtype.kind}8[us]").astype(np.int64))
            kind: Kind = "date" if values.dtype.kind == "M" else "number"
            return cls(kind, days / MICROSECONDS, absent)
        if values.dtype.kind in "iuf":
            absent = ~np.isfinite(values)
            return cls("number", np.where(absent, 0, values).astype(np.float64), absent)
        return cls._of_objects(values)

    @classmethod
    def _of_objects(cls, values: NDArray[Any]) -> _Values:
        """Look at every different value once."""
        places: dict[Any, int] = defaultdict(itertools.count().__next__)
        try:
            codes = np.fromiter(map(places.__getitem__, values.tolist()), np.int64, values.size)
        except TypeError:  # lists and the like have no hash
            return cls._of_objects(np.array([str(value) for value in values], dtype=object))
        if len(places) > IDENTIFIES * values.size > MOST_LEVELS and set(map(type, places)) == {str}:
            return cls("category", codes, np.zeros(values.size, dtype=bool), tuple(places))
        known = {value: text for value in places if (text := _text(value))}
        absent = ~np.array([value in known for value in places], dtype=bool)
        kinds = {type(value) for value in known}
        if kinds and all(issubclass(kind, Real) and not issubclass(kind, bool) for kind in kinds):
            numbers = np.array([float(v) if v in known else 0.0 for v in places])
            return cls("number", numbers[codes], absent[codes])
        if kinds and all(issubclass(kind, dt.date) for kind in kinds):
            dates = np.array([v if v in known else None for v in places], dtype="M8[us]")
            days = np.where(absent, 0, dates.astype(np.int64)) / MICROSECONDS
            return cls("date", days[codes], absent[codes])
        levels = {text: i for i, text in enumerate(dict.fromkeys(known.values()))}
        numbers = np.array([levels[known[v]] if v in known else 0 for v in places], dtype=np.int64)
        return cls("category", numbers[codes], absent[codes], tuple(levels))


def _text(value: Any) -> str:
    """Write a value; nothing if it is missing."""
    if value is None or (isinstance(value, float | np.floating) and not np.isfinite(value)):
        return ""
    # pandas and polars write their own missing values so.
    return "" if str(value) in ("<NA>", "NaT") else str(value).strip()
