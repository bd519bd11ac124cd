"""
GSA-φ: graphs by their structure alone
======================================

Two kinds of networks whose nodes all have the same expected degree: only how edges are arranged tells them apart.
Small induced subgraphs (graphlets) are drawn by random walks and averaged after a map. The optical map, \\|w · a\\|²,
is quadratic in the bits of a graphlet, so any number of such features is one product with the graphlets' second
moments.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import similia as sm


def network(groups, rng, n=60, degree=8.0, ratio=8.0):
    """Draw a network of `groups` communities: edges within one are `ratio` times as likely as between two."""
    group = np.arange(n) % groups
    share = np.where(group[:, None] == group, ratio, 1.0)
    upper = np.triu(rng.random((n, n)) < share * degree / share.sum(axis=1, keepdims=True), 1)
    return (upper | upper.T).astype(float)


rng = np.random.default_rng(0)
X = [network(groups, rng) for groups in [2] * 100 + [6] * 100]
y = np.repeat([0, 1], 100)

# %%
# Accuracy for three maps of the same graphlets.
maps = {
    "optical, exact moments": {"features": "optical", "n_components": None},
    "optical, 500 features": {"features": "optical", "n_components": 500},
    "isomorphism classes": {"features": "match_iso", "n_components": None},
}
for name, choice in maps.items():
    Z = sm.GraphletSampling(size=6, n_samples=2000, random_state=0, **choice).fit_transform(X)
    learner = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    print(f"{name:24s} {Z.shape[1]:4d} columns, accuracy {cross_val_score(learner, Z, y, cv=10).mean():.3f}")

# %%
fig, axes = plt.subplots(1, 2, figsize=(6.4, 3.2))
for ax, graph, title in zip(axes, (X[0], X[-1]), ("two communities", "six communities"), strict=True):
    groups = 2 if graph is X[0] else 6
    order = np.argsort(np.arange(60) % groups, kind="stable")
    ax.imshow(graph[np.ix_(order, order)], cmap="Blues", interpolation="nearest")
    ax.set(title=title, xticks=[], yticks=[])
plt.show()
