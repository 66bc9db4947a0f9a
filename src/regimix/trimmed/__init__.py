"""One component: trimmed least squares from given starts.

Algorithm 1 with exact least squares (``ilts``), its gradient variant (``gradient``), and the scale
and the last refit of a trimmed fit (``reweight``). Where starts come from is in ``search``, which
rows are kept in ``engines``.
"""
