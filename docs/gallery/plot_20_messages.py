"""
Messages that look alike
========================

800 text messages, some of them spam. Min-max similarity of short substrings, as a map; the nearest message as a first
guess; and the pairs that are nearly the same.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import cross_val_score

import similia as sm

X, y = sm.datasets.load_messages(return_X_y=True)
kernel = sm.kernels.MinMax(sm.kernels.Spectrum(k=(1, 4), boundaries="words", ignore_case=True))
scores = cross_val_score(sm.KNeighborsClassifier(kernel), X, y, cv=5, scoring="balanced_accuracy")
print(f"spam by the nearest message: balanced accuracy {scores.mean():.2f}, 0.50 by a guess")

# %%
points = sm.SimilarityMap(kernel, random_state=0).fit_transform(X)
fig, ax = plt.subplots(figsize=(6.4, 4.4))
for name, marker in (("ham", "."), ("spam", "x")):
    ax.plot(*points[y == name].T, marker, alpha=0.7, label=name)
ax.set(xticks=[], yticks=[], title="text messages by their substrings")
ax.legend()
plt.show()

# %%
# Senders of spam vary their text. Pairs with at least half of their substrings in common:
found = sm.search.near_duplicates(X, kernel, 0.5, random_state=0)
for at in np.argsort(-found.values, kind="stable")[:4]:
    i, j = found.pairs[at]
    print(f"\n{found.values[at]:.2f}  {y[i]}: {X[i]}\n      {y[j]}: {X[j]}")
