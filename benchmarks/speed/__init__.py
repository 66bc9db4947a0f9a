"""The speed of regimix as ratios measured in one run: ``python -m benchmarks.speed``.

One short file per comparison; ``race.py`` times, ``table.py`` writes, ``machine.py`` says where.
"""
