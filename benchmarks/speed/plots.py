"""Three pictures: time as rows grow, what the stages cost, and how much faster than whom."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from regimix.atomic import open_atomically

Raw = Mapping[str, Any]

OURS, SLOWER = "tab:blue", "tab:red"
HATCH = "////"
TITLE = {"loc": "left", "fontsize": "medium"}
PAPER = {"facecolor": "white", "edgecolor": "none", "pad": 0.5}  # behind figures, over lines
TARGET = {"color": "0.25", "linestyle": "--", "linewidth": 1}
# Stages in the order of a fit; what is new takes the next colour.
STAGE_COLOURS = ("tab:orange", "tab:blue", "tab:green", "tab:purple", "tab:brown", "tab:olive")
REST_COLOUR = "0.75"
REST = "rest"


def draw(raw: Mapping[str, Raw], folder: Path) -> dict[str, str]:
    """Write the pictures of what has been measured; return the title of each file."""
    wanted = {
        name: picture for name, picture in PICTURES.items() if any(s in raw for s in picture[1])
    }
    if not wanted:
        return {}
    try:
        import matplotlib as mpl
    except ImportError:
        print("No plots: matplotlib is not installed (pip install 'regimix[plot]').")
        return {}
    mpl.use("svg")
    import matplotlib.pyplot as plt

    titles = {}
    # The same figure gives the same bytes, so that the file changes only when the picture does.
    with mpl.rc_context({"svg.hashsalt": "regimix", "font.size": 9, "lines.markersize": 5}):
        for name, (title, sources, paint) in wanted.items():
            figure = plt.figure(layout="constrained")
            if paint(figure, [raw[source] for source in sources if source in raw]):
                with open_atomically(folder / name) as file:
                    figure.savefig(file, format="svg", metadata={"Date": None})
                titles[name] = title
            plt.close(figure)
    return titles


def growth(figure: Any, sources: list[Raw]) -> bool:
    """Time against rows, and the power of n that fits it."""
    raw = sources[0]
    sizes, seconds = np.array(raw["sizes"], dtype=float), np.array(raw["medians"])
    exponent, factor = raw["fit"]["exponent"], raw["fit"]["factor"]
    figure.set_size_inches(6, 3.6)
    ax = figure.subplots()
    for rounds in zip(*raw["seconds"].values(), strict=False):
        ax.plot(sizes[: len(rounds)], rounds, ".", color=OURS, alpha=0.35, markersize=4)
    ax.plot(sizes, factor * sizes**exponent, color=OURS, linewidth=1.5)
    ax.plot(sizes, seconds, "o", color=OURS, label=f"medians, and time ∝ n^{exponent:.2f}")
    # Through the largest, where the fixed costs matter least.
    ax.plot(sizes, seconds[-1] * sizes / sizes[-1], label="time ∝ n", **TARGET)
    ax.set(xscale="log", yscale="log", xlabel="rows", ylabel="seconds")
    ax.yaxis.set_major_formatter("{x:g}")
    ax.set_title(
        f"A whole fit in memory, d = {raw['columns']}, m = 3", loc="left", fontsize="medium"
    )
    ax.legend(frameon=False, loc="upper left")
    _plain(ax)
    return True


def stages(figure: Any, sources: list[Raw]) -> bool:
    """Least squares fits that the stages of a whole fit cost."""
    raw = sources[0]
    bars, targets = raw["stages_in_fits"], raw["targets"]
    figure.set_size_inches(7, 2.4)
    ax = figure.subplots()
    names = list(dict.fromkeys(stage for found in bars.values() for stage in found))
    # What is in no stage comes last and in grey.
    names.sort(key=lambda name: name == REST)
    colours = dict(zip(names, (*STAGE_COLOURS, *STAGE_COLOURS), strict=False)) | {REST: REST_COLOUR}
    places = range(len(bars))
    start = np.zeros(len(bars))
    narrow = 0.04 * max(sum(found.values()) for found in bars.values())
    for name in names:
        width = np.array([found.get(name, 0.0) for found in bars.values()])
        drawn = ax.barh(places, width, left=start, height=0.5, color=colours[name], label=name)
        labels = [f"{fits:.1f}" if fits > narrow else "" for fits in width]
        ax.bar_label(drawn, labels, label_type="center", color="0.2" if name == REST else "white")
        start += width
    for place, (total, bar) in enumerate(zip(start, bars, strict=True)):
        ax.plot([targets[bar]] * 2, [place - 0.36, place + 0.36], **TARGET)
        _write(ax, total, place, f"{total:.1f}", fontweight="bold")
    ax.plot([], [], label="target", **TARGET)
    ax.set_yticks(places, list(bars))
    ax.invert_yaxis()
    ax.set(xlabel="least squares fits", xlim=(0, 1.12 * max(start.max(), *targets.values())))
    ax.set_title(
        f"A whole fit of {raw['size']}, m = 3, stage by stage", loc="left", fontsize="medium"
    )
    figure.legend(loc="outside lower center", ncols=8, frameon=False)
    _plain(ax, axis="x")
    ax.tick_params(axis="y", length=0)
    return True


def peers(figure: Any, sources: list[Raw]) -> bool:
    """Times faster than each peer, on a logarithmic scale; hollow where the peer found nothing."""
    bars = [bar for raw in sources for bar in raw.get("bars", []) if bar["ratio"] is not None]
    if not bars:
        return False
    names = list(dict.fromkeys(bar["peer"] for bar in bars))
    bars.sort(key=lambda bar: names.index(bar["peer"]))
    figure.set_size_inches(8, 1.1 + 0.3 * len(bars))
    ax = figure.subplots()
    for place, bar in enumerate(bars):
        faster, found = bar["ratio"] >= 1, bar["found"]
        colour = OURS if faster else SLOWER
        ax.barh(
            place,
            bar["ratio"] - 1,
            left=1,
            height=0.62,
            facecolor=colour if found else "none",
            edgecolor=colour,
            hatch=None if found else HATCH,
        )
        ax.plot([bar["target"]] * 2, [place - 0.42, place + 0.42], **TARGET)
        text = f"{bar['ratio']:.3g}×" if bar["ratio"] < 1000 else f"{bar['ratio']:,.0f}×"
        _write(ax, max(bar["ratio"], 1.0), place, text)
    ax.axvline(1, color="0.3", linewidth=0.8)
    ax.set_yticks(range(len(bars)), [f"{bar['peer']}: {bar['case']}" for bar in bars])
    ax.invert_yaxis()
    top = max(max(bar["ratio"], bar["target"]) for bar in bars)
    low = min(0.8, *(bar["ratio"] / 1.3 for bar in bars))
    ax.set(xscale="log", xlim=(low, 3 * top), xlabel="times faster than the peer")
    ax.xaxis.set_major_formatter("{x:g}")
    figure.legend(handles=_key(), loc="outside lower center", ncols=4, frameon=False)
    _plain(ax, axis="x")
    ax.tick_params(axis="y", length=0)
    return True


def _key() -> list[Any]:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    return [
        Patch(color=OURS, label="regimix is faster"),
        Patch(color=SLOWER, label="regimix is slower"),
        Patch(facecolor="none", edgecolor=OURS, hatch=HATCH, label="peer never finds the truth"),
        Line2D([], [], label="target", **TARGET),
    ]


def _write(ax: Any, x: float, y: float, text: str, **style: Any) -> None:
    """Write a figure to the right of a bar, over the lines."""
    beside = {"xytext": (5, 0), "textcoords": "offset points", "va": "center"}
    ax.annotate(text, (x, y), bbox=PAPER, **beside, **style)


def _plain(ax: Any, axis: str = "both") -> None:
    ax.grid(alpha=0.3, axis=axis)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)


Painter = Callable[[Any, list[Raw]], bool]
# By file: its title, the comparisons it is drawn from, and what draws it (and says if it did).
PICTURES: dict[str, tuple[str, tuple[str, ...], Painter]] = {
    "speed-stages.svg": ("What each stage of a fit costs", ("million",), stages),
    "speed-linear.svg": ("Time as the number of rows grows", ("linear",), growth),
    "speed-peers.svg": ("Speed against peers", ("whole-fit", "peers"), peers),
}
