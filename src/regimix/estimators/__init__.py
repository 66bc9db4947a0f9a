"""The scikit-learn estimators: they check what is passed, call the solvers, and copy attributes.

``mixture`` has MixedLinearRegression, ``trimmed`` TrimmedRegressor, ``meta`` TrimmedEstimator.
``inputs`` chooses the engine for the rows, ``gating`` learns which regime a row belongs to. What
is fitted is decided in ``result``, ``search`` and ``trimmed``.
"""
