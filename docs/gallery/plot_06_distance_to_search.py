"""
From an edit distance to bits to search
=======================================

What no single one of the five systems does: a distance that is no kernel (D2KE makes vectors of it), bits that are
learnt from these vectors (ITQ) and a search among the bits, whose candidates are sorted by the distance itself.
"""

import matplotlib.pyplot as plt
from sklearn.pipeline import make_pipeline

import similia as sm

X = sm.datasets.load_splice().data
dna = "".join(X)
windows = [dna[i : i + 60] for i in range(0, len(dna) - 60, 40)]  # 4778 overlapping stretches
reads = [w[:9] + w[10:30] + "T" + w[30:45] + "GA" + w[47:] for w in windows[::50]]  # letters lost, added, changed
distance = sm.distances.Levenshtein()

encoder = make_pipeline(
    sm.D2KE(distance, 256, objects=sm.embeddings.Mosaics(), random_state=0),
    sm.GeneralizedNystroemPCA(128, 512, 1.0, random_state=0),
    sm.ITQ(128, random_state=0),
)
search = sm.SimilaritySearch(encoder, rerank=distance).fit(windows)
distances, ids = search.kneighbors(reads[:1], 3)
print(reads[0])
for i, d in zip(ids[0], distances[0], strict=True):
    print(windows[i], "at distance", int(d))

# %%
# How many candidates are needed? Recall is the share of the true nearest that are found.
sizes = [1, 2, 5, 10, 20, 50]
fig, ax = plt.subplots()
for n_bits, style in [(16, "^-"), (32, "s-"), (128, "o-")]:
    encoder.set_params(generalizednystroempca__n_components=n_bits, itq__n_bits=n_bits)
    search = sm.SimilaritySearch(encoder, rerank=distance).fit(windows)
    shares = [search.set_params(n_candidates=size).recall(reads, 1, metric=distance).recall for size in sizes]
    ax.semilogx(sizes, shares, style, label=f"{n_bits} learnt bits")
ax.legend(loc="lower right")
ax.set(xlabel=f"candidates, of {len(windows)}", ylabel="recall of the nearest", xticks=sizes, xticklabels=sizes)
ax.set(title="Bits that find what the edit distance means", ylim=(0, 1.03))
plt.show()
