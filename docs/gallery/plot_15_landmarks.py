"""
How many landmarks, and which?
==============================

`Nystroem` is exact on its landmarks and approximates the kernel between all others. Landmarks chosen by what the
earlier ones leave unexplained (``"rpcholesky"``) need the fewest; uniform ones cost nothing to choose.
"""

import matplotlib.pyplot as plt

import similia as sm

X = sm.datasets.load_splice().data[:1500]
kernel = sm.kernels.Spectrum(k=4, normalize=True)
sizes = [10, 25, 50, 100, 200]
fig, ax = plt.subplots()
for landmarks, style in [("uniform", "o-"), ("kmeans++", "s-"), ("rpcholesky", "^-")]:
    errors = [
        sm.Nystroem(kernel, n, landmarks=landmarks, random_state=0).fit(X).approximation_error(X[:600]) for n in sizes
    ]
    ax.loglog(sizes, errors, style, label=landmarks)
ax.set(xlabel="landmarks", ylabel="relative error of the kernel", xticks=sizes, xticklabels=sizes)
ax.set_xticks([], minor=True)
ax.set_title("Splice sites, 4-mers")
ax.legend()
plt.show()
