"""What it takes to get the same answer again."""

from __future__ import annotations

import platform
from importlib.metadata import version

from regimix.report.words import clean, ended, number
from regimix.result.mixture import Mixture
from regimix.search.settings import Settings

__all__ = ["facts", "snippet", "visible"]

# Settings that the estimator knows by the same name. The seed has another name; n_jobs changes
# nothing.
SAME_NAME = ("n_components", "outliers", "noise", "search", "max_starts", "time_limit")
# Those that only Algorithm 2 as a function knows; the shares have another name, too.
OF_THE_NET = ("subspace", "solver", "max_iter", "tol", "granularity", "tolerance")
MOST_NAMES, MOST_CHARACTERS = 12, 400


def snippet(mixture: Mixture) -> str:
    """Write the Python that fits the same model to the same rows."""
    given, usual = mixture.settings, Settings()
    options = [
        f"{name}={getattr(given, name)!r}"
        for name in (*SAME_NAME, *OF_THE_NET)
        if getattr(given, name) != getattr(usual, name)
    ]
    if given.taus is not None:
        options.append(f"shares={list(given.taus)!r}")
    by_function = any(option.partition("=")[0] not in SAME_NAME for option in options)
    if by_function:
        options = ["X", "y", *options]
    if by_function == mixture.fit_intercept:  # the function and the estimator have other defaults
        options.append(f"fit_intercept={mixture.fit_intercept}")
    options.append(f"random_state={mixture.seed}")
    inside = ", ".join(options)
    if len(inside) > 60:
        inside = "\n    " + ",\n    ".join(options) + ",\n"
    name = "global_ilts" if by_function else "MixedLinearRegression"
    lines = [f"from regimix import {name}", "", *_columns(mixture)]
    if by_function:
        return "\n".join([*lines, f"print(global_ilts({inside}))"])
    lines += [f"fit = MixedLinearRegression({inside}).fit(X, y)", "print(fit.mixture_)"]
    return "\n".join(lines)


def visible(command: str) -> str:
    """Spell out what is invisible in a command, or could turn the direction of its text."""
    return "".join(
        sign if sign.isprintable() or sign == "\n" else repr(sign)[1:-1] for sign in command
    )


def _columns(mixture: Mixture) -> list[str]:
    """Name the columns, if the table had names."""
    names = mixture.feature_names
    unnamed = names == tuple(f"x{i}" for i in range(len(names)))
    # repr() spells out what is invisible or could turn the direction of the text, and only that.
    listed = repr(list(names))
    if unnamed or len(names) > MOST_NAMES or len(listed) > MOST_CHARACTERS:
        return []
    return [f"X, y = table[{listed}], table[{mixture.target_name!r}]"]


def facts(mixture: Mixture, date: str) -> list[tuple[str, str]]:
    """List what else belongs to the record."""
    seconds = [f"{stage} {number(took, 2)}" for stage, took in mixture.timings.items()]
    listed = [
        ("Written", date),
        ("With", f"regimix {version('regimix')}, Python {platform.python_version()}"),
        ("Rows", f"{mixture.n_rows:,}"),
        ("Features", f"{mixture.coef.shape[1]:,}"),
        ("Seed", str(mixture.seed)),
        ("Search ended", f"because {ended(mixture.stopped)}"),
        ("Components from", ", ".join(dict.fromkeys(map(clean, mixture.origin)))),
        ("Seconds", ", ".join(map(clean, seconds))),
    ]
    return [(name, value) for name, value in listed if value]
