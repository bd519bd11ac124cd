"""
Movements: dynamic time warping to vectors to bits
==================================================

Movements of a hand in sign language, as positions in a video. Dynamic time warping is no metric and no kernel; D2KE
makes vectors of it by short random series, at a cost linear in the number and length of series.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.pipeline import make_pipeline

import similia as sm

X, y = sm.datasets.load_movements(return_X_y=True)  # 180 movements of 15 kinds
order = np.random.default_rng(0).permutation(len(X))
train, test = order[:120], order[120:]
X_train, X_test, y_train, y_test = X.take(train), X.take(test), y[train], y[test]

distance = sm.distances.DTW(window=0.2)
series = sm.embeddings.Mosaics()  # pieces of four training series, joined
model = sm.recipes.d2ke(distance, n_components=512, objects=series, gamma="tune", C="tune", random_state=0)
model.fit(X_train, y_train)
print(f"accuracy of D2KE: {model.score(X_test, y_test):.2f}")
nearest = sm.KNeighborsClassifier(distance).fit(X_train, y_train)
print(f"accuracy of the nearest neighbour: {nearest.score(X_test, y_test):.2f}")
print(f"accuracy of a guess: {1 / 15:.2f}")

# %%
# The same distance, searched by bits.
encoder = make_pipeline(
    sm.D2KE(distance, 120, sm.embeddings.Representatives(), random_state=0),
    sm.SignRandomProjection(512, random_state=0),
)
search = sm.SimilaritySearch(encoder, rerank=distance, n_candidates=20).fit(X_train)
queries = [5, 9, 12, 21]
_, ids = search.kneighbors(X_test.take(np.array(queries)), 3)
fig, axes = plt.subplots(2, 2, figsize=(6.4, 4.5))
for ax, query, found in zip(axes.flat, queries, ids, strict=True):
    for i in found:
        ax.plot(*X_train[int(i)].T, lw=1.5, color="0.6")
    ax.plot(*X_test[query].T, lw=4)
    ax.plot(*X_test[query][0], "o", ms=9)
    ax.set(xticks=[], yticks=[], aspect="equal")
fig.suptitle("four movements of a hand, and in grey the three most like each")
plt.show()
