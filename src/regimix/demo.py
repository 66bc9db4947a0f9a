"""The main job on bundled data, told in plain text: ``python -m regimix.demo``."""

import numpy as np
from numpy.typing import NDArray

from regimix.datasets import Dataset, load_calls
from regimix.estimators.trimmed import TrimmedRegressor

__all__ = ["main"]


def main() -> None:
    """Fit the Belgian calls and print what was found."""
    calls = load_calls()
    model = TrimmedRegressor(random_state=0).fit(calls.X, calls.y)
    print(tell(calls, model, least_squares(calls)))


def tell(data: Dataset, model: TrimmedRegressor, naive: NDArray[np.float64]) -> str:
    """Say what a fitted model found, and what least squares would have said.

    Parameters
    ----------
    data : Dataset
        What was fitted; one feature.
    model : TrimmedRegressor
        The fitted model.
    naive : ndarray of shape (2,)
        Intercept and slope of least squares on all rows.

    Returns
    -------
    str
        A few lines and a table.
    """
    follows = np.asarray(model.inlier_mask_, dtype=bool)
    predicted = np.asarray(model.predict(data.X), dtype=np.float64)
    off = np.abs(data.y - predicted)[follows].max()
    others = np.flatnonzero(~follows)
    lines = [
        "International calls from Belgium, 1950 to 1973, in tens of millions a year.",
        "Some years are wrong: another unit was written down. Nobody told the fit which ones.",
        "",
        f"    {equation(data, float(model.intercept_), float(model.coef_[0]))}",
        "",
        f"{follows.sum()} of {follows.size} years follow this line, each within {off:.2f}.",
        f"{others.size} years do not:",
        "",
        f"    {'year':<6}{'recorded':>10}{'the line says':>16}{'difference':>13}",
    ]
    lines += [
        f"    {data.row_names[i]:<6}{data.y[i]:>10.2f}{predicted[i]:>16.2f}"
        f"{data.y[i] - predicted[i]:>+13.2f}"
        for i in others
    ]
    lines += [
        "",
        "What is known: 1964 to 1969 were recorded as minutes of calls, 1963 and 1970 in part.",
        "",
        "Least squares on all 24 years would have said",
        "",
        f"    {equation(data, naive[0], naive[1])}",
    ]
    return "\n".join(lines)


def equation(data: Dataset, intercept: float, slope: float) -> str:
    """Write a line in the units of the data."""
    sign = "-" if slope < 0 else "+"
    feature = f"({data.feature_names[0]} - 1900)"
    return f"{data.target_name} = {intercept:.2f} {sign} {abs(slope):.3f} * {feature}"


def least_squares(data: Dataset) -> NDArray[np.float64]:
    """Return intercept and slope of least squares on all rows."""
    design = np.column_stack([np.ones(len(data.y)), data.X])
    return np.asarray(np.linalg.lstsq(design, data.y, rcond=None)[0], dtype=np.float64)


if __name__ == "__main__":
    main()
