"""What is known once a model is found: the Mixture, and what follows from it.

Fitting (``fit``), the law of rows in user units, standard errors, the bootstrap, intervals and
summaries. How the model was found is ``search``; what a user calls is ``estimators``.
"""
