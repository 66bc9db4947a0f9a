"""
Three regimes that no plot of the columns shows
===============================================

With five features, regimes cannot be seen: whichever column y is plotted against, there is a cloud.
Here 1,500 rows are made of three linear regimes, with noise, and a tenth of the rows are outliers.
:class:`~regimix.MixedLinearRegression` sees only X and y; the truth is used afterwards, to compare.
"""

import matplotlib.pyplot as plt

from regimix import MixedLinearRegression
from regimix.metrics import label_accuracy, match_components, outlier_scores, with_intercept
from regimix.plots import CoefficientsDisplay, RegimesDisplay
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
# Left, what a plot of one column shows: the right lines, and a cloud, because the other columns
# move y too. Right, the same rows once that is taken away, for each row by the coefficients of its
# own regime: order appears.

fig, (given, sorted_out) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
RegimesDisplay.from_estimator(model, X, y, adjust=False, bands=False, legend=False, ax=given)
RegimesDisplay.from_estimator(model, X, y, bands=False, ax=sorted_out)
plt.show()

# %%
# Coefficients with their 95 % intervals, the most separating column first; black rings are the
# truth.

display = CoefficientsDisplay.from_estimator(model)
order = display.order_
for j, k in enumerate(matching.true_of):
    height = display.points_[j].get_offsets()[:, 1]
    display.ax_.scatter(truth.coef[k, order], height, s=90, facecolors="none", edgecolors="black")
plt.show()
