"""Success as one thing changes at a time, for all contestants."""

from pathlib import Path
from typing import Any

from benchmarks.recovery.cells import SUITES, sweeps
from benchmarks.recovery.summary import Summary

PICTURE = "recovery-sweeps.svg"
LOGARITHMIC = ("rows", "noise", "features")
# Ours stands out, the bound that nobody can beat is a shade behind everybody.
STYLE: dict[str, dict[str, Any]] = {
    "oracle": {"color": "0.75", "linewidth": 6, "solid_capstyle": "round"},
    "Mix-IRLS": {"color": "tab:orange", "marker": "s"},
    "EM": {"color": "tab:green", "marker": "^"},
    "alternating": {"color": "tab:olive", "marker": "v"},
    "sequential LTS": {"color": "tab:purple", "marker": "D"},
    "net": {"color": "tab:brown", "marker": "x", "linestyle": "--"},
    "regimix": {"color": "tab:blue", "marker": "o", "linewidth": 2.5},
}
LABELS = {
    "oracle": "oracle start",
    "net": "Algorithm 2 as written",
    "alternating": "alternating minimisation",
}


def draw(summary: Summary, folder: Path) -> list[str]:
    """Write the picture of the sweeps, if they have run, and return its name."""
    if "sweeps" not in summary:
        return []
    try:
        import matplotlib as mpl
    except ImportError:
        print("No plots: matplotlib is not installed (pip install 'regimix[plot]').")
        return []
    mpl.use("svg")
    import matplotlib.pyplot as plt

    # The same figure gives the same bytes, so that the file changes only when the picture does.
    mpl.rcParams.update({"svg.hashsalt": "regimix", "font.size": 9, "lines.markersize": 4})
    figure, axes = plt.subplots(2, 3, figsize=(10, 6), sharey=True, layout="constrained")
    for ax, (axis, cells) in zip(axes.flat, sweeps().items(), strict=True):
        _panel(ax, axis, {x: summary["sweeps"].get(cell.name, {}) for x, cell in cells.items()})
    for ax in axes[:, 0]:
        ax.set_ylabel("success")
    handles, labels = axes.flat[0].get_legend_handles_labels()
    figure.legend(handles[::-1], labels[::-1], loc="outside lower center", ncols=7, frameon=False)
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / PICTURE, metadata={"Date": None})
    plt.close(figure)
    return [PICTURE]


def _panel(ax: Any, axis: str, points: dict[float, Any]) -> None:
    for name, style in STYLE.items():
        line = {x: figures[name].success for x, figures in points.items() if name in figures}
        if line:
            label = LABELS.get(name, name)
            ax.plot(list(line), list(line.values()), label=label, clip_on=False, **style)
    ax.set(xlabel=axis, ylim=(0, 1))
    if axis in LOGARITHMIC:
        ax.set_xscale("log")
        ax.set_xticks(list(points), [f"{x:g}" for x in points])
        ax.minorticks_off()
    ax.grid(alpha=0.3)
    ax.spines[["top", "right"]].set_visible(False)


assert set(STYLE) == set(SUITES["sweeps"].contestants)
