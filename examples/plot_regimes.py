"""
Three regimes that no plot of the columns shows
===============================================

With five features, regimes cannot be seen: whichever column y is plotted against, there is a cloud.
Here 1,500 rows are made of three linear regimes, with noise, and a tenth of the rows is wrong.
:class:`~regimix.MixedLinearRegression` is told nothing of this; the truth is used afterwards only,
to compare.
"""

import matplotlib.pyplot as plt
import numpy as np

from regimix import MixedLinearRegression
from regimix.metrics import label_accuracy, match_components, outlier_scores, with_intercept
from regimix.synth import make_mlrc

X, y, truth = make_mlrc(
    1500,
    n_features=5,
    n_components=3,
    weights=[0.5, 0.3, 0.2],
    intercepts=[1.0, 0.0, -1.0],
    noise=0.1,
    corruption=0.1,
    corruption_scale=5.0,
    random_state=0,
)
model = MixedLinearRegression(random_state=0).fit(X, y)
print(model.mixture_)

# %%
# Beside the truth: every regime is there, its coefficients are right up to what the noise leaves
# open, and 19 rows of 20 have the right label. An outlier that happens to lie on a plane cannot
# be told from the rows that belong there.

found = with_intercept(model.coef_, model.intercept_)
true = with_intercept(truth.coef, truth.intercept)
matching = match_components(found, true)
outliers = outlier_scores(model.labels_, truth.labels)

print(f"{'':9}" + "".join(f"{name:>7}" for name in ("x0", "x1", "x2", "x3", "x4", "const")))
for j, k in enumerate(matching.true_of):
    print(f"{j} found  " + "".join(f"{value:7.2f}" for value in found[j]))
    print("  true   " + "".join(f"{value:7.2f}" for value in true[k]))
print(f"labels right:    {label_accuracy(model.labels_, truth.labels):.1%}")
print(f"outliers found:  {outliers.recall:.1%}")
print(f"wrongly accused: {1 - outliers.precision:.1%} of the rows named outliers")

# %%
# Left, what a plot of one column shows. In the middle, y against what the regime of each row
# predicts (for outliers, the nearest regime): order appears. Right, coefficients found and true.

colors = np.array(["#1f6fb2", "#c75f00", "#2e8b57", "#8a8a8a"])  # the last is for label -1
predictions = model.predict_components(X)
nearest = np.abs(y[:, None] - predictions).argmin(axis=1)
regime = np.where(model.labels_ < 0, nearest, model.labels_)
expected = predictions[np.arange(y.size), regime]

fig, (given, sorted_out, compared) = plt.subplots(1, 3, figsize=(11, 3.8), layout="constrained")
given.scatter(X[:, 0], y, s=6, color="#555555", alpha=0.6)
given.set(title="given", xlabel="x0", ylabel="y")
sorted_out.scatter(expected, y, s=6, color=colors[model.labels_], alpha=0.7)
sorted_out.set(
    title="found: rows by regime, outliers grey", xlabel="regime's prediction", ylabel="y"
)
compared.axline((0, 0), slope=1, color="#cccccc", zorder=0)
for j, k in enumerate(matching.true_of):
    compared.scatter(true[k], found[j], s=36, color=colors[j], label=f"regime {j}")
compared.set(title="coefficients", xlabel="true", ylabel="found")
compared.legend(frameon=False)
for ax in (given, sorted_out, compared):
    ax.spines[["top", "right"]].set_visible(False)
plt.show()
