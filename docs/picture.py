"""Draw the README's pictures: the figures of two gallery examples."""

import runpy
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt

HERE = Path(__file__).parent

mpl.use("svg")
# The same figure gives the same bytes, so that a file changes only when its picture does.
mpl.rcParams["svg.hashsalt"] = "regimix"
for name in ("tone", "calls"):
    runpy.run_path(str(HERE.parent / "examples" / f"plot_{name}.py"))
    plt.gcf().savefig(HERE / "_static" / f"{name}.svg", metadata={"Date": None})
    plt.close("all")
