"""
Learnt bits of strings
======================

Hashing methods learn from vectors. Through the landmarks of a string kernel they learn from strings: the same number
of bits finds more of the strings that are near in edit distance than random bits do.
"""

import matplotlib.pyplot as plt
from sklearn.pipeline import make_pipeline

import similia as sm

dna = "".join(sm.datasets.load_splice().data)
base = [dna[i : i + 60] for i in range(0, 160_000, 80)]
reads = [w[:12] + w[13:40] + "C" + w[40:50] + "TT" + w[52:] for w in base[::20]]
distance = sm.distances.Levenshtein()
features = sm.Nystroem(sm.kernels.Spectrum(k=4, normalize=True), 256, random_state=0)


def recall(*steps):
    """Return the share of the nearest strings that are among 20 candidates."""
    search = sm.SimilaritySearch(make_pipeline(features, *steps), rerank=distance, n_candidates=20).fit(base)
    return search.recall(reads, 1, metric=distance).recall


sizes = [16, 32, 64, 128]
learnt = [recall(sm.GeneralizedNystroemPCA(n, 4 * n, 1.0, random_state=0), sm.ITQ(n, random_state=0)) for n in sizes]
signs = [recall(sm.SignRandomProjection(n, random_state=0)) for n in sizes]

# %%
fig, ax = plt.subplots()
ax.semilogx(sizes, learnt, "o-", label="learnt (PCA + ITQ)")
ax.semilogx(sizes, signs, "s--", label="random (signs)")
ax.set(xlabel="bits", xticks=sizes, xticklabels=sizes, ylabel="recall of the nearest", ylim=(0, 1.03))
ax.set_xticks([], minor=True)
ax.set(title="100 damaged reads among 2000 strings")
ax.legend(loc="lower right")
plt.show()
