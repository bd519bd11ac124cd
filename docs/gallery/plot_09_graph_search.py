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
distances, ids = search.kneighbors([graphs[i] for i in queries], 3)

# %%
# Each column has a query and the two graphs that are nearest to it.
fig, axes = plt.subplots(3, 4, figsize=(7.6, 5.3), layout="constrained")
for column, found, bits in zip(axes.T, ids, distances, strict=True):
    for ax, i, d in zip(column, found, bits, strict=True):
        nx.draw(graphs[i], nx.kamada_kawai_layout(graphs[i]), ax=ax, node_size=22, width=1.2, edge_color="0.6")
        ax.set_title(names[i] if d == 0 else f"{int(d)} bits away", fontsize=12, loc="center")
plt.show()

# %%
_, ids = search.kneighbors(graphs, 4)
print(f"{(names[ids[:, 1:]] == names[:, None]).mean():.1%} of the three nearest are of the same kind")
