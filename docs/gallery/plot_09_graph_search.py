"""
Search for graphs by their shape
================================

Optical features of graphlets see only how a graph is wired. As bits they are an index: here the networks that are wired
most like a given one, among 400 of four kinds, drawn.
"""

import matplotlib.pyplot as plt
import networkx as nx
import numpy as np
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import similia as sm

kinds = {
    "small world": lambda n, seed: nx.watts_strogatz_graph(n, 4, 0.15, seed=seed),
    "tree": lambda n, seed: nx.random_labeled_tree(n, seed=seed),
    "hubs": lambda n, seed: nx.barabasi_albert_graph(n, 2, seed=seed),
    "cliques": lambda n, seed: nx.random_partition_graph([6] * (n // 6), 0.9, 0.02, seed=seed),
}
rng = np.random.default_rng(0)
names = np.repeat([*kinds], 100)
graphs = [kinds[name](int(rng.integers(24, 48)), seed) for seed, name in enumerate(names)]

encoder = make_pipeline(
    sm.GraphletSampling(size=5, n_samples=2000, n_components=None, random_state=0),
    StandardScaler(),
    sm.SignRandomProjection(1024, random_state=0),
)
search = sm.SimilaritySearch(encoder).fit(graphs)
queries = [0, 100, 200, 300]
distances, ids = search.kneighbors([graphs[i] for i in queries], 4)

# %%
fig, axes = plt.subplots(4, 4, figsize=(9, 9), layout="constrained")
for row, found, bits in zip(axes, ids, distances, strict=True):
    for ax, i, d in zip(row, found, bits, strict=True):
        nx.draw(graphs[i], nx.kamada_kawai_layout(graphs[i]), ax=ax, node_size=14, width=0.8, edge_color="0.6")
        ax.set_title(f"query: {names[i]}" if d == 0 else f"{names[i]}, {int(d)} bits", fontsize=9, loc="center")
plt.show()

# %%
_, ids = search.kneighbors(graphs, 4)
print(f"{(names[ids[:, 1:]] == names[:, None]).mean():.1%} of the three nearest are of the same kind")
