"""The paper's claims as experiments: a table, a figure and a statement that can fail.

>>> from regimix import lab
>>> "convergence" in lab.EXPERIMENTS
True

``lab.EXPERIMENTS`` maps names to experiments, in the order of the paper. ``lab.run`` measures one,
several or all of them and returns an ``Outcome`` for each::

    outcomes = lab.run("convergence", size="quick", out="results", seed=0, progress=None)
    outcomes = lab.run("all", size="full", out="results")

In the directory ``out`` each experiment leaves ``NAME.csv`` (a tidy table), ``NAME.svg`` (a figure;
needs matplotlib), ``NAME.json`` (the verdict with its numbers) and ``NAME.jsonl`` (finished cells:
an interrupted run goes on from there). Without ``out`` nothing is written. ``progress`` is called
as ``progress(name, done, total)`` after each cell.

An ``Experiment`` has ``name``, ``title``, ``claim`` (where the paper says so), ``statement`` (what
is checked), ``tolerance`` (how exactly) and ``sabotage`` (what ``run(..., broken=True)`` breaks so
that the check fails). An ``Outcome`` has ``name``, ``verdict``, ``table``, ``paths`` and
``seconds``; a ``Verdict`` has ``verdict`` ("holds" or "refuted"), ``value``, ``threshold``,
``words`` and ``numbers``.
"""

from regimix.lab.experiment import Experiment, Verdict
from regimix.lab.registry import EXPERIMENTS
from regimix.lab.runner import Outcome, run
from regimix.lab.table import Table

__all__ = ["EXPERIMENTS", "Experiment", "Outcome", "Table", "Verdict", "run"]
