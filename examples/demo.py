"""The main job on bundled data, in plain text: what ``make demo`` runs."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regimix.datasets import Dataset, load_calls, load_tone
from regimix.estimators.mixture import MixedLinearRegression
from regimix.estimators.trimmed import TrimmedRegressor
from regimix.result.answer import Answer
from regimix.words import number

# One sign per regime, largest first, and one for outliers: in the table and in the picture.
MARKS = "o+*#%@"
OUTLIER = "x"
# The picture, in characters: with the text around it, a terminal of 80 columns and 45 lines.
WIDTH, HEIGHT = 62, 14


def main() -> None:
    """Fit the tone data, then the Belgian calls, and print what was found."""
    tone = load_tone()
    mixture = MixedLinearRegression(random_state=0).fit(tone.X, tone.y)
    print(tell_tone(tone, mixture))
    calls = load_calls()
    line = TrimmedRegressor(random_state=0).fit(calls.X, calls.y)
    print(tell_calls(calls, line))


def tell_tone(data: Dataset, model: MixedLinearRegression) -> str:
    """Say which regimes a model found in the tone data, show them, and say what is known."""
    row = "  {:<4}{:<42}{:>8}{:>10}".format
    names: dict[str, Any] = {"feature_names": data.feature_names, "target_name": data.target_name}
    mixture = replace(model.mixture_, **names)
    found = Answer(mixture)
    slope, intercept = np.polyfit(data.X[:, 0], data.y, 1)
    words = [mixture.equation(j) for j in range(mixture.n_components)]
    words.append("outliers, on none of the lines")
    lines = [
        "A TABLE WITH HIDDEN REGIMES",
        "A musician hears tones with stretched overtones and tunes the octave above:",
        f"{data.y.size} trials, two numbers each. Nothing else is given to the fit.",
        "",
        f"regimix finds {found.headline}:",
        "",
        row("", "", "share", "noise"),
        *(
            row(OUTLIER if line.index < 0 else MARKS[line.index], what, line.share, line.noise)
            for line, what in zip(found.lines, words, strict=False)
        ),
        "",
        *picture(data, model.labels_),
        "",
        "What is known: the ear stays with the true octave (tuned = 2) or follows the",
        "overtones (tuned = stretchratio). Least squares on all trials would have said",
        f"{equation(data, intercept, slope, data.feature_names[0])}, which is neither.",
        "",
    ]
    return "\n".join(line.rstrip() for line in lines)


def picture(data: Dataset, labels: NDArray[np.int64]) -> list[str]:
    """Draw rows of one feature in characters, each row as the sign of its regime."""
    columns, left, right = _cells(data.X[:, 0], WIDTH)
    heights, low, high = _cells(data.y, HEIGHT)
    canvas = np.full((HEIGHT, WIDTH), " ")
    # Largest regime first: a sharper line is drawn over it, and outliers over both.
    for label in [*range(int(labels.max()) + 1), -1]:
        mine = labels == label
        canvas[HEIGHT - 1 - heights[mine], columns[mine]] = OUTLIER if label < 0 else MARKS[label]
    margin = [f"{high:>7.2f}", *[" " * 7] * (HEIGHT - 2), f"{low:>7.2f}"]
    body = [f"{at} |{''.join(line)}".rstrip() for at, line in zip(margin, canvas, strict=True)]
    under = f"{left:<9.2f}{data.feature_names[0]:^{WIDTH - 17}}{right:>9.2f}"
    return [f"{data.target_name:>7}", *body, f"{'':>8}+{'-' * WIDTH}", f"{'':>8}{under}"]


def _cells(values: NDArray[np.float64], count: int) -> tuple[NDArray[np.intp], float, float]:
    """Put values into equal cells; return the cell of each, and the smallest and largest value."""
    low, high = float(values.min()), float(values.max())
    cells = np.rint((values - low) / (high - low) * (count - 1)).astype(np.intp)
    return cells, low, high


def tell_calls(data: Dataset, model: TrimmedRegressor) -> str:
    """Say which years of the Belgian calls follow one line, and which do not."""
    follows = np.asarray(model.inlier_mask_, dtype=bool)
    off = np.abs(data.y - np.asarray(model.predict(data.X)))[follows].max()
    others = [name for name, on_line in zip(data.row_names, follows, strict=True) if not on_line]
    feature = f"({data.feature_names[0]} - 1900)"
    lines = [
        "ROBUST REGRESSION: ONE LINE, MANY OUTLIERS",
        "International calls from Belgium, 1950 to 1973, in tens of millions a year.",
        "",
        f"  {equation(data, float(model.intercept_), float(model.coef_[0]), feature)}",
        "",
        f"{follows.sum()} of {follows.size} years follow it within {number(off, 2)}. These do not:",
        f"  {' '.join(others)}",
        "What is known: 1964 to 1969 were recorded as minutes, 1963 and 1970 in part.",
    ]
    return "\n".join(lines)


def equation(data: Dataset, intercept: float, slope: float, feature: str) -> str:
    """Write a line in the units of the data."""
    sign = "-" if slope < 0 else "+"
    return f"{data.target_name} = {number(intercept)} {sign} {number(abs(slope))} {feature}"


if __name__ == "__main__":
    main()
