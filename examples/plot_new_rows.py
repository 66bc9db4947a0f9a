"""
Watching new rows: which mode, and is it still normal?
======================================================

A pump runs in two modes that nobody records. A model of last month's readings labels the new ones
and scores how unlikely each is. On the last days a bearing wears out: readings leave both regimes.
"""

import matplotlib.pyplot as plt
import numpy as np

from regimix import MixedLinearRegression
from regimix.plots.palette import OUTLIERS, colour

rng = np.random.default_rng(1)


def readings(n, wear):
    flow = rng.uniform(10, 60, n)
    mode = rng.random(n) < 0.4
    power = np.where(mode, 4 + 0.30 * flow, 8 + 0.08 * flow) + rng.normal(0, 0.4, n)
    return flow[:, None], power + wear


last_month = readings(500, 0.0)
model = MixedLinearRegression(random_state=0).fit(*last_month)
print(model.mixture_)

# %%
# ``outlier_score`` is minus the decimal logarithm of a probability: 3 means that one ordinary
# reading in a thousand is as unlikely. ``flag(rate=0.001)`` marks those.

hours = np.arange(240)
flow, power = readings(240, np.where(hours > 180, 0.08 * (hours - 180), 0.0))
labels = model.assign(flow, power)
scores = model.outlier_score(flow, power)
flagged = model.flag(flow, power, rate=0.001)
print(f"flagged before the wear begins: {flagged[:181].sum()}, after: {flagged[181:].sum()}")

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
for label, name in ((0, "mode 0"), (1, "mode 1"), (-1, "outlier")):
    mine = labels == label
    tint, mark = (OUTLIERS, "x") if label < 0 else (colour(label), "o")
    left.plot(flow[mine, 0], power[mine], mark, color=tint, markersize=4, label=name)
ends = np.array([[10.0], [60.0]])
left.plot(ends, model.predict_components(ends), color="black", linewidth=1)
left.set(xlabel="flow", ylabel="power", title="New readings, labelled by the model")
left.legend()
right.plot(hours[~flagged], scores[~flagged], ".", color="#8a8a8a")
right.plot(hours[flagged], scores[flagged], "X", color="#b2182b", label="flagged")
right.axhline(3, color="black", linewidth=0.8, linestyle="--")
right.set(xlabel="hour", ylabel="outlier score", title="How unlikely each reading is")
right.legend()
plt.show()
