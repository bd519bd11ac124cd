"""
Movements: dynamic time warping to vectors to bits
==================================================

|needs-data|

Hands that draw a gun or point (GunPoint): 50 training and 150 test series. Dynamic time warping is no metric and no
kernel; D2KE makes vectors of it by short random series, at a cost linear in the number and length of series.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.pipeline import make_pipeline

import similia as sm

data = sm.datasets.fetch("gunpoint")
train, test = np.flatnonzero(data.split == 0), np.flatnonzero(data.split == 1)
X_train, X_test, y_train, y_test = data.data.take(train), data.data.take(test), data.target[train], data.target[test]

distance = sm.distances.DTW()
model = sm.recipes.d2ke(distance, n_components=512, gamma="tune", C="tune", random_state=0).fit(X_train, y_train)
print(f"accuracy of D2KE: {model.score(X_test, y_test):.3f}")
nearest = distance(X_test, X_train).argmin(axis=1)
print(f"accuracy of the nearest neighbour: {np.mean(y_train[nearest] == y_test):.3f}")

# %%
# The same distance, searched by bits.
encoder = make_pipeline(
    sm.D2KE(distance, 128, sm.embeddings.Representatives(), random_state=0),
    sm.SignRandomProjection(512, random_state=0),
)
search = sm.SimilaritySearch(encoder, rerank=distance, n_candidates=20).fit(X_train)
_, ids = search.kneighbors(X_test.take(np.array([3])), 3)
fig, ax = plt.subplots()
ax.plot(X_test[3].ravel(), lw=2.5, label="query")
for i in ids[0]:
    ax.plot(X_train[int(i)].ravel(), lw=1, color="0.5")
ax.set(title="A movement and the three most like it", xlabel="time", ylabel="position of the hand")
ax.legend(loc="upper left")
plt.show()
