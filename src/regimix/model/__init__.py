"""The model: a mixture of linear regressions with a background, and its one score.

Parameters, responsibilities (E-step), posteriors (M-step), the evidence bound that every decision
compares, noise laws, the background and the resolution of y. How a model is found is ``search``;
what follows from one is ``result``; where the rows live is ``engines``.
"""
