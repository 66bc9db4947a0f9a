"""Draw the README's picture: the figure of the gallery example on the Belgian calls."""

import runpy
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt

HERE = Path(__file__).parent

mpl.use("svg")
# The same figure gives the same bytes, so that the file changes only when the picture does.
mpl.rcParams["svg.hashsalt"] = "regimix"
runpy.run_path(str(HERE.parent / "examples" / "plot_calls.py"))
plt.gcf().savefig(HERE / "_static" / "calls.svg", metadata={"Date": None})
