"""
PCA + ITQ: short codes that are learnt
======================================

Random bits need no training and thousands of them are good. Where a code must be short, learn it: principal
components from a sample of rows and columns (generalised Nyström), then a rotation that makes signs lose least (ITQ).
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import similia as sm

X, y = load_digits(return_X_y=True)  # 1797 pictures of 64 grey values
queries, base = X[:300], X[300:]
true = np.argsort(((queries[:, None] - base) ** 2).sum(axis=2), axis=1)[:, :10]  # 10 nearest pictures


def recall(encoder, n_candidates=50):
    """Return which share of the true 10 nearest is among the nearest `n_candidates` codes."""
    index = sm.HammingIndex(encoder.fit(base).transform(base).shape[1] * 8).add(encoder.transform(base))
    found = index.kneighbors(encoder.transform(queries), n_candidates, return_distance=False)
    return np.mean([np.isin(t, f).mean() for t, f in zip(true, found, strict=True)])


sizes = [8, 16, 24, 32, 48]
learnt = [recall(sm.recipes.pca_itq(n, 0.3, 1.0, random_state=0)) for n in sizes]
signs = [
    recall(make_pipeline(StandardScaler(with_std=False), sm.SignRandomProjection(n, random_state=0))) for n in sizes
]

# %%
fig, ax = plt.subplots()
ax.plot(sizes, learnt, "o-", label="generalised Nyström PCA + ITQ")
ax.plot(sizes, signs, "s--", label="signs of random projections")
ax.set(xlabel="bits", xticks=sizes, ylabel="recall of the 10 nearest in 50", title="Digits, found by their codes")
ax.legend(loc="lower right")
plt.show()
