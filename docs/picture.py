"""Draw the pictures of the README: before and after a fit, and the figure of an example."""

import runpy
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np

from regimix import MixedLinearRegression
from regimix.datasets import load_tone
from regimix.plots.palette import OUTLIERS, colour

HERE = Path(__file__).parent


def before_and_after():
    """Draw the tone data twice: with one regression, and with what regimix finds."""
    tone = load_tone()
    x, y = tone.X[:, 0], tone.y
    model = MixedLinearRegression(random_state=0).fit(tone.X, y)
    ends = np.array([1.35, 3.0])
    figure, (before, after) = plt.subplots(
        1, 2, figsize=(10, 4), sharex=True, sharey=True, layout="constrained"
    )
    before.plot(x, y, "o", color="#8a8a8a", markersize=4, alpha=0.6)
    before.plot(ends, np.polyval(np.polyfit(x, y, 1), ends), "--", color="#b2182b", linewidth=2)
    before.set_title("Your table, and one regression through it", loc="left")
    arrow = {"arrowstyle": "->", "color": "#b2182b"}
    words = "describes neither group"
    before.annotate(words, (2.45, 2.18), (1.75, 2.7), color="#b2182b", arrowprops=arrow)
    outliers = model.labels_ == -1
    for j in range(model.n_components_):
        mine = model.labels_ == j
        after.plot(x[mine], y[mine], "os"[j], color=colour(j), markersize=4, alpha=0.7)
        after.plot(
            ends, model.intercept_[j] + model.coef_[j, 0] * ends, color=colour(j), linewidth=2
        )
    after.plot(x[outliers], y[outliers], "x", color=OUTLIERS, markersize=6)
    after.annotate(
        f"regime 0: {model.weights_[0]:.0%} of the rows",
        (2.98, 1.9),
        color=colour(0),
        ha="right",
        va="top",
    )
    after.annotate(f"regime 1: {model.weights_[1]:.0%}", (2.55, 2.78), color=colour(1), ha="right")
    after.annotate(f"{outliers.sum()} outliers (×)", (1.38, 3.3), color=OUTLIERS)
    after.set_title("What regimix finds, from the same columns", loc="left")
    for ax in (before, after):
        ax.set(ylim=(1.2, 3.6), xlabel="x")
        ax.spines[["top", "right"]].set_visible(False)
    before.set_ylabel("y")
    return figure


def save(figure, name):
    """Write a picture; the same figure gives the same bytes."""
    figure.savefig(HERE / "_static" / f"{name}.svg", metadata={"Date": None})
    plt.close("all")


if __name__ == "__main__":
    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "regimix"
    save(before_and_after(), "regimes")
    for name in ("tone", "calls"):
        runpy.run_path(str(HERE.parent / "examples" / f"plot_{name}.py"))
        save(plt.gcf(), name)
