"""
Heat kernel, landmarks, bits and prototypes
===========================================

Three systems in a row: the exact heat kernel on a sphere, the Nyström method so that no n × n matrix is needed, and
hypervectors with one prototype a class. What does each step cost in accuracy?
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.linear_model import RidgeClassifier
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline

import similia as sm

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, random_state=0)
landmarks = sm.Nystroem(sm.kernels.HypersphericalHeat(contrast=4.0), 300, landmarks="rpcholesky", random_state=0)
scores = {
    "exact kernel, SVM": sm.recipes.heat_svm(contrast=4.0, C=10.0),
    "300 landmarks, ridge": make_pipeline(landmarks, RidgeClassifier(alpha=1e-3)),
    "10,000 bits, prototypes": make_pipeline(
        landmarks, sm.SignRandomProjection(10_000, random_state=0), sm.HDClassifier(random_state=0)
    ),
    "1,024 bits, prototypes": make_pipeline(
        landmarks, sm.SignRandomProjection(1024, random_state=0), sm.HDClassifier(random_state=0)
    ),
}
scores = {name: model.fit(X_train, y_train).score(X_test, y_test) for name, model in scores.items()}

# %%
fig, ax = plt.subplots(figsize=(6.4, 2.4))
bars = ax.barh(list(scores), list(scores.values()), height=0.6)
ax.bar_label(bars, fmt="%.3f", padding=4)
ax.invert_yaxis()
ax.set(xlim=(0.9, 1.0), xlabel="accuracy on 899 digits")
plt.show()
