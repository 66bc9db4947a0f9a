"""The paper's claims as experiments: a table, a figure and a statement that can fail.

Run from the repository's root: ``python -m lab list``, ``python -m lab run NAME --quick``, or
``make lab`` for all of them. From Python, ``EXPERIMENTS`` maps names to experiments, in the order
of the paper, and ``run`` measures one, several or all of them::

    outcomes = lab.run("convergence", size="quick", out="results", seed=0)

In the directory ``out`` each experiment leaves ``NAME.csv`` (a tidy table), ``NAME.svg`` (a figure;
needs matplotlib), ``NAME.json`` (the verdict with its numbers) and ``NAME.jsonl`` (finished cells:
an interrupted run goes on from there). Without ``out`` nothing is written.

``claims/`` has the experiments, one module for each claim. ``affine_curve``, ``contraction``,
``gradient_flow`` and ``constants`` compute what only experiments need; the paper's definitions and
bounds are in ``regimix.theory``. The lab is not part of the installed package, and the library
never imports it.
"""

from lab.claims import EXPERIMENTS
from lab.experiment import Experiment, Verdict
from lab.runner import Outcome, run
from lab.table import Table

__all__ = ["EXPERIMENTS", "Experiment", "Outcome", "Table", "Verdict", "run"]
