"""
Groups in a collection without labels
=====================================

`KernelKMeans` finds groups by any kernel, `SimilarityMap` draws them, and `explain_classes` says what the members of
each group share. `HDBSCAN` finds small dense groups. The labels of these stretches of DNA are not used; they only tell
us at the end what was found.
"""

import matplotlib.pyplot as plt
import numpy as np

import similia as sm

X, y = sm.datasets.load_splice(return_X_y=True)
kernel = sm.kernels.WeightedDegree(degree=5, normalize=True)
groups = sm.KernelKMeans(kernel, n_clusters=[2, 3, 4, 5, 6], random_state=0).fit(X)
for n, agreement in zip(groups.n_clusters_tried_, groups.stability_.mean(axis=1), strict=True):
    print(f"{n} groups: two random subsamples agree by {agreement:.2f} (1 is full agreement, 0 is chance)")

# %%
# The map. A star is the object nearest to the centre of its group.
points = sm.SimilarityMap(kernel, random_state=0).fit_transform(X)
fig, ax = plt.subplots(figsize=(6.4, 4.4))
for c in range(groups.n_clusters_):
    members = groups.labels_ == c
    (line,) = ax.plot(*points[members].T, ".", ms=3, alpha=0.6, label=f"group {c}: {members.sum()} stretches")
    ax.plot(*points[groups.medoid_indices_[c]], "*", ms=18, color=line.get_color(), mec="black")
ax.legend(markerscale=3)
ax.set(xticks=[], yticks=[], title="groups of DNA, found without labels")
plt.show()

# %%
# What do the members of a group share? The parts are short words at a certain place: around the middle of the stretch,
# where a gene is cut in two of the three classes.
for c, parts in sm.explanations.explain_classes(groups, X, top=4).items():
    print(f"group {c}: " + ", ".join(f"{part.name} ({part.share:.0%})" for part in parts))

# %%
# The classes, which no step above has seen.
names, codes = np.unique(y, return_inverse=True)
counts = np.zeros((groups.n_clusters_, len(names)), int)
np.add.at(counts, (groups.labels_, codes), 1)
for c, row in enumerate(counts):
    print(f"group {c}: " + ", ".join(f"{n} {name}" for name, n in zip(names, row, strict=True)))

# %%
# k-means puts every stretch into a group. `HDBSCAN` finds families of at least ten stretches that are much alike; all
# else is noise.
families = sm.HDBSCAN(kernel, min_cluster_size=10, random_state=0).fit(X)
print(f"{families.n_clusters_} families; {np.mean(families.labels_ < 0):.0%} of the stretches are in none")
for c, medoid in enumerate(families.medoid_indices_):
    members = families.labels_ == c
    print(f"{members.sum()} like {X[medoid]}: {np.mean(y[members] == y[medoid]):.0%} are {y[medoid]}")
