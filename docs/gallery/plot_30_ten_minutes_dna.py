"""
Ten minutes with DNA
====================

From strings to a classifier, its reasons, its doubts, a search and a model for a small device. The data are stretches
of 60 letters: a gene is cut in their middle in one way (ei), in the other (ie), or not (n).
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline

import similia as sm

X, y = sm.datasets.load_splice(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.3, stratify=y, random_state=0)

# %%
# **Learn.** The kernel counts equal words at equal places. NysHD turns strings to bits and learns on the bits.
kernel = sm.kernels.WeightedDegree(degree=5)
model = sm.recipes.nyshd(kernel, random_state=0).fit(X_train, y_train)
print(f"accuracy {model.score(X_test, y_test):.3f}; always the most frequent class {np.mean(y_test == 'n'):.3f}")

# %%
# **Why?** Letters up speak for the predicted class, letters down against it. The signal of a splice site is in the
# middle, which is shown here.
found = sm.explain(model, X_test[int(np.flatnonzero(y_test == "ei")[0])])
fig, ax = plt.subplots(figsize=(6.4, 4.4))
found.logo(ax)
ax.set_xlim(21.5, 41.5)
plt.show()

# %%
# **How sure?** Sets of classes that hold the true one with probability 0.99.
sure = sm.ConformalClassifier(sm.recipes.nyshd(kernel, n_bits=2048, random_state=0), random_state=0)
sets = sure.fit(X_train, y_train).predict_set(X_test, coverage=0.99)
truth = np.searchsorted(sure.classes_, y_test)
print(f"{sets[np.arange(len(sets)), truth].mean():.1%} of the sets hold the true class")
print(f"{(sets.sum(axis=1) == 1).mean():.1%} of the sets hold one class only")

# %%
# **Search.** Damaged copies find their origin by edit distance, without comparing with all.
rng = np.random.default_rng(0)
damaged = ["".join(rng.choice([*"ACGT"]) if rng.random() < 0.15 else letter for letter in x) for x in X_train[:200]]
encoder = make_pipeline(
    sm.Nystroem(sm.kernels.Spectrum(k=4), 256, random_state=0), sm.SignRandomProjection(256, random_state=0)
)
search = sm.SimilaritySearch(encoder, rerank=sm.distances.Levenshtein()).fit(X_train)
distances, ids = search.kneighbors(damaged, 1)
same = np.array([X_train[i] == X_train[j] for i, j in zip(ids[:, 0], range(200), strict=True)])
print(f"{same.mean():.1%} of 200 copies with 15 % of their letters drawn anew find their origin")

# %%
# **Shrink.** A smaller model in whole numbers for a microcontroller: shorter words, fewer landmarks, directions that
# need no table, prototypes of 8 bits. `sm.export_c` writes it as C.
small = make_pipeline(
    sm.Nystroem(sm.kernels.WeightedDegree(degree=3), 100, "rpcholesky", random_state=0),
    sm.SignRandomProjection(4096, method="hadamard", random_state=0),
    sm.HDClassifier("auto", prototype_bits=8),
).fit(X_train, y_train)
whole = sm.quantise(small, X_train)
print(f"{whole.n_bytes / 1024:.0f} KiB, accuracy {np.mean(whole.predict(X_test) == y_test):.3f}")
