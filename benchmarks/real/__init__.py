"""How regimix does on real tables of R packages: known answers, stability, held-out density, time.

``tables.py`` lists the tables, ``sources.py`` fetches them, and each file in ``parts/`` asks one
question of each of them. ``python -m benchmarks.real --help`` runs the parts.
"""
