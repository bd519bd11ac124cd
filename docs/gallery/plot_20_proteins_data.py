"""
Proteins that look alike
========================

|needs-data|

5,959 proteins of known location in the cell. An index of learnt bits finds those within a short edit distance without
comparing with all; the neighbours' location is a first guess at a protein's own.
"""

import time

import numpy as np
from sklearn.pipeline import make_pipeline

import similia as sm

X, y = sm.datasets.fetch("multiloc_proteins", return_X_y=True)
X = [str(protein)[:300] for protein in X]  # the first 300 residues
rng = np.random.default_rng(0)
order = rng.permutation(len(X))
queries, base = order[:60], order[60:2060]
distance = sm.distances.Levenshtein()
encoder = make_pipeline(
    sm.KernelFeatures(sm.kernels.Spectrum(k=2, normalize=True), 4096),
    sm.GeneralizedNystroemPCA(128, 512, 1.0, random_state=0),
    sm.ITQ(128, random_state=0),
)
search = sm.SimilaritySearch(encoder, rerank=distance, n_candidates=50).fit([X[i] for i in base])

# %%
begin = time.perf_counter()
distances, ids = search.kneighbors([X[i] for i in queries], 1)
seconds = time.perf_counter() - begin
near = distances[:, 0] < 150
same = y[base[ids[:, 0]]] == y[queries]
print(f"{len(queries)} searches in {seconds:.2f} s")
print(f"same location as the nearest: {same.mean():.2f}")
print(f"where that is less than 150 edits away ({near.sum()}): {same[near].mean():.2f}")
