"""
Displays: one line each
=======================

Pictures in the manner of scikit-learn's displays: how many landmarks and bits a model needs, what damage does to it,
how the objects lie.
"""

import matplotlib.pyplot as plt

import similia as sm
from similia.report import ApproximationErrorDisplay, EmbeddingDisplay, RobustnessDisplay, SpectrumDisplay

X, y = sm.datasets.load_splice(return_X_y=True)
X, y = X[::4], y[::4]
model = sm.recipes.nyshd(sm.kernels.WeightedDegree(degree=5), n_landmarks=200, n_bits=4096, random_state=0)
model.fit(X[::2], y[::2])

fig, (left, right) = plt.subplots(1, 2, figsize=(8.5, 3.4))
SpectrumDisplay.from_estimator(model, ax=left)
ApproximationErrorDisplay.from_estimator(model, X[1::2], ax=right)
plt.show()

# %%
fig, ax = plt.subplots(figsize=(6.4, 4.2))
EmbeddingDisplay.from_estimator(model, X[1::2], y[1::2], ax=ax)
plt.show()  # sphinx_gallery_thumbnail_number = 2

# %%
fig, axes = plt.subplots(1, 2, figsize=(8.5, 3.4))
RobustnessDisplay.from_estimator(model, X[1::2], y[1::2], ax=axes)
plt.show()
