"""
How many regimes are there?
===========================

Every regime more fits closer, so the sum of squares cannot decide. The evidence can: it averages
over all parameters, so that a regime has to earn its place. Here four tables with one to four true
regimes are fitted without giving the number.
"""

import matplotlib.pyplot as plt
import numpy as np

from regimix import MixedLinearRegression
from regimix.synth import make_mlrc

figure, axes = plt.subplots(2, 2, figsize=(7.5, 5.6), layout="constrained")
for true, ax in zip(range(1, 5), axes.flat, strict=True):
    X, y, _ = make_mlrc(400, 3, true, noise=0.1, corruption=0.03, random_state=true)
    model = MixedLinearRegression(random_state=0).fit(X, y)
    counts, evidence = model.selection_["n_components"], model.selection_["evidence"]
    ax.plot(counts, evidence - evidence.max(), "o-", color="#0072b2")
    ax.plot(model.n_components_, 0, "o", color="#d55e00", markersize=11, fillstyle="none", mew=2)
    ax.set(title=f"{true} true, {model.n_components_} found")
    ax.set_xticks(counts)
    print(true, dict(zip(counts.tolist(), np.round(evidence, 1).tolist(), strict=True)))
figure.supxlabel("number of regimes")
figure.supylabel("evidence, nats from the best")
plt.show()

# %%
# Numbers that the search never looked at are not shown. A lead of less than 3 nats would mean that
# the number is open.
