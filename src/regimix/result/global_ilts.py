"""Global-ILTS as a function: every component of a table."""

from __future__ import annotations

from typing import Any

from regimix.data.problem import Problem
from regimix.engines.memory import MemoryEngine
from regimix.result.fit import fit_mixture
from regimix.result.mixture import Mixture
from regimix.search.settings import GRANULARITY, Settings, given_starts
from regimix.trimmed.ilts import MAX_ITER, check_limits


def global_ilts(
    X: Any,
    y: Any,
    *,
    n_components: Any = "auto",
    outliers: Any = "auto",
    noise: str = "auto",
    search: str = "auto",
    subspace: str | None = "bounded",
    solver: str = "exact",
    fit_intercept: bool = False,
    sample_weight: Any = None,
    init: Any = None,
    shares: Any = None,
    granularity: float = GRANULARITY,
    tolerance: float | None = None,
    max_starts: int | None = None,
    time_limit: float | None = None,
    callback: Any = None,
    max_iter: int = MAX_ITER,
    tol: float = 0.0,
    random_state: Any = None,
    n_jobs: int | None = None,
    chunk_rows: int | None = None,
) -> Mixture:
    """Find every linear component of a table by Global-ILTS (Algorithm 2), or a stronger search.

    Parameters
    ----------
    X : array or data frame of shape (n, d)
    y : array of shape (n,)
    n_components : "auto" or int
        The paper's m; "auto" finds it.
    search : {"auto", "joint", "net"}
        ``"net"`` is Algorithm 2 as the paper states it: try the points of an epsilon-net in a
        subspace, accept, remove, repeat. ``"auto"`` judges whole models by one score and moves
        from one to a better one; ``"joint"`` does so with the joint search as its only source.
    shares : float or sequence of float, optional
        For ``search="net"``, the paper's tau_j: the share of all rows that each component must
        explain. Default: the geometric search of the paper's footnote.
    granularity, tolerance : float
        For ``search="net"``, the paper's epsilon (as a share of the radius of the net) and delta
        (in units of y).
    subspace : {"bounded", "svd", "filter"} or None
        For ``search="net"``, how the subspace is found: by bounded functions of the response, by
        the singular vectors of clean data, or by a spectral filter. None: all directions.
    solver : {"exact", "gradient", "cg"}
        For ``search="net"``, how trimmed fits are solved: normal equations, gradient steps, or
        conjugate gradients.
    max_iter, tol : int, float
        For ``search="net"``, the most rounds of a trimmed fit, and the relative fall of its
        objective below which it stops.
    fit_intercept : bool
        Whether each component has an intercept. The paper's model has none.
    outliers, noise, sample_weight, init, max_starts, time_limit, callback, random_state, n_jobs
        As for :class:`regimix.MixedLinearRegression`.
    chunk_rows : int, optional
        Rows to read at a time.

    Returns
    -------
    Mixture
        In user units; ``print`` shows it as a table.
    """
    settings = Settings.read(
        n_components=n_components,
        outliers=outliers,
        noise=noise,
        search=search,
        subspace=subspace,
        solver=solver,
        max_iter=max_iter,
        tol=tol,
        random_state=random_state,
        n_jobs=n_jobs,
        max_starts=max_starts,
        time_limit=time_limit,
        callback=callback,
        granularity=granularity,
        tolerance=tolerance,
        shares=shares,
    )
    check_limits(max_iter, tol, chunk_rows)
    problem = Problem.from_arrays(X, y, sample_weight, fit_intercept=fit_intercept)
    engine = MemoryEngine(problem, chunk_rows)
    starts = None if init is None else given_starts(engine, init, settings.seed)
    return fit_mixture(engine, settings, starts)
