"""
D2KE: any distance becomes vectors
==================================

The edit distance is no kernel: ``exp(-d)`` of it has negative eigenvalues. D2KE compares each string with random
ones, drawn once; inner products of ``exp(-gamma d)`` are then a positive definite kernel by construction, and time is
linear in the number of strings. More random strings give a better estimate; `extend` adds some and keeps those drawn
before.
"""

import matplotlib.pyplot as plt
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier

import similia as sm

X, y = sm.datasets.load_splice(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, train_size=800, test_size=400, stratify=y, random_state=0)
distance = sm.distances.Levenshtein()

embedding = sm.D2KE(distance, n_components=32, objects=sm.embeddings.Mosaics(), random_state=0).fit(X_train)
sizes, accuracies = [32, 64, 128, 256, 512, 1024], []
for size in sizes:
    embedding.extend(size, X_train)
    learner = LogisticRegression(C=100.0, max_iter=2000).fit(embedding.transform(X_train), y_train)
    accuracies.append(learner.score(embedding.transform(X_test), y_test))

# %%
# The usual way to use a distance is to look at the nearest neighbours, which compares every test object with every
# training object.
nearest = KNeighborsClassifier(5, metric="precomputed").fit(distance(X_train), y_train)
neighbours = nearest.score(distance(X_test, X_train), y_test)

fig, ax = plt.subplots()
ax.semilogx(sizes, accuracies, "o-", base=2, label="D2KE, logistic regression")
ax.axhline(neighbours, color="0.5", ls="--", label="5 nearest neighbours, same distance")
ax.set(
    xlabel="random strings", ylabel="accuracy", xticks=sizes, xticklabels=sizes, title="Splice sites by edit distance"
)
ax.legend()
plt.show()
