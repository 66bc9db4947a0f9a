"""Who finds every component, how often, and at what cost: ``python -m benchmarks.recovery``.

``cells.py`` says what is tried and ``sample.py`` draws it, ``contestants/`` has one short file per
kind of contestant, ``judge.py`` compares with the truth, ``run.py`` runs what is not yet on file,
``summary.py``, ``targets.py``, ``table.py`` and ``plots.py`` tell what came out.
"""
