"""
A distance of your own, the whole road
======================================

Anything that compares two objects will do. Here the objects are recipes for colours: sets of names, of any size, and
the distance is a plain Python function that nobody wrote for similia. Vectors, bits, a classifier and a search
follow.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import similia as sm


def jaccard(a, b):
    """Return the share of words that only one of two texts has."""
    a, b = set(a.split()), set(b.split())
    return 1 - len(a & b) / len(a | b)


warm, cold = ["red", "orange", "amber", "rust", "gold", "coral"], ["blue", "teal", "navy", "mint", "grey", "ice"]
rng = np.random.default_rng(0)
X, y = [], []
for label, own, other in [("warm", warm, cold), ("cold", cold, warm)] * 150:
    words = [*rng.choice(own, rng.integers(2, 5), replace=False), *rng.choice(other, 1)]
    X.append(" ".join(words))
    y.append(label)
train, test = slice(0, 240), slice(240, 300)
distance = sm.distances.FromFunction(jaccard)
sm.checks.check_distance(distance, X[:20])

# %%
# Random texts mean nothing to such a distance, so objects of the training part are compared with instead.
embedding = sm.D2KE(distance, 100, objects=sm.embeddings.Representatives(), random_state=0)
model = make_pipeline(embedding, LogisticRegression()).fit(X[train], y[train])
print("accuracy from vectors:", model.score(X[test], y[test]))

vectors = PCA(2).fit_transform(embedding.fit(X[train]).transform(X))
for label, colour in (("warm", "#d55e00"), ("cold", "#0072b2")):
    plt.plot(*vectors[np.array(y) == label].T, "o", color=colour, alpha=0.6, label=label)
plt.title("300 recipes for colours, by a distance of one's own")
plt.xticks([])
plt.yticks([])
plt.legend()
plt.show()

# %%
# Bits of the same vectors: a prototype a class, and a search.
encoder = make_pipeline(embedding, sm.SignRandomProjection(1024, random_state=0))
bits = make_pipeline(encoder, sm.HDClassifier(random_state=0)).fit(X[train], y[train])
print("accuracy from bits:", bits.score(X[test], y[test]))
search = sm.SimilaritySearch(encoder, rerank=distance, n_candidates=40).fit(X[train])
distances, ids = search.kneighbors(["amber red rust teal"], 3)
for i, d in zip(ids[0], distances[0], strict=True):
    print(f"{d:.2f}  {X[i]}")
