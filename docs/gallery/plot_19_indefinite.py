"""
When a similarity is no kernel
==============================

``exp(-gamma d²)`` of an edit distance looks like a kernel, but has negative eigenvalues, of which least squares or an
SVM know nothing. Three ways out: clip them, flip their sign, or make features that are positive definite by
construction.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import RidgeClassifier
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

import similia as sm

X, y = sm.datasets.load_promoters(return_X_y=True)
distance = sm.distances.Levenshtein()
rbf = sm.kernels.DistanceRBF(distance, gamma=sm.kernels.suggest_gamma(distance, X))
random = sm.kernels.FromDistance(distance, sm.D2KE(distance, 512, random_state=0).fit(X).random_objects_, gamma=0.05)

fig, ax = plt.subplots()
for name, kernel, style in [("DistanceRBF", rbf, "o"), ("FromDistance (D2KE)", random, ".")]:
    eigenvalues = np.linalg.eigvalsh(kernel(X))
    eigenvalues /= eigenvalues[-1]
    ax.plot(eigenvalues[:-1], style, ms=4, label=f"{name}: smallest {eigenvalues[0]:.0e} of the largest")
ax.axhline(0, color="0.4", lw=1)
ax.set(xlabel="eigenvalue, in order", ylabel="relative to the largest", title="Promoters, edit distance")
ax.legend()
plt.show()

# %%
for spectrum in ["clip", "flip"]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # which says how negative the smallest eigenvalue is
        model = make_pipeline(sm.Nystroem(rbf, 84, spectrum=spectrum, random_state=0), RidgeClassifier(0.1))
        print(f"{spectrum}: accuracy {cross_val_score(model, X, y, cv=5).mean():.3f}")
model = make_pipeline(sm.D2KE(distance, 512, random_state=0), RidgeClassifier(1e-3))
print(f"D2KE: accuracy {cross_val_score(model, X, y, cv=5).mean():.3f}")
