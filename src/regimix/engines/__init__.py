"""Where the rows live: in memory, in files that are read in parts, or on a Dask cluster.

``base`` lists the few questions that solvers may ask of rows: sums over blocks, the rows of
smallest value, samples. The other modules answer them. What is computed of the answers (fits,
models, searches) is in ``trimmed``, ``model`` and ``search``.
"""
