"""Finding the model: sources of proposals, the loop that judges them, repeats and stages.

Also Algorithm 2 of the paper as stated, the budget and the checkpoint of a search, and the search
for one component. What a model is and what it is worth is ``model``.
"""
