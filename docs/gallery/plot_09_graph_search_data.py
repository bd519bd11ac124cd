"""
Search for graphs by their shape
================================

|needs-data|

Optical features of graphlets see only how a graph is wired. As bits they are an index: here the enzymes whose
networks are wired most like that of a given one, among 600, drawn.
"""

import matplotlib.pyplot as plt
import networkx as nx
import numpy as np
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import similia as sm

X = sm.datasets.fetch("ENZYMES").data
encoder = make_pipeline(
    sm.GraphletSampling(size=5, n_samples=2000, n_components=None, random_state=0),
    StandardScaler(),
    sm.SignRandomProjection(1024, random_state=0),
)
search = sm.SimilaritySearch(encoder).fit(X)
distances, ids = search.kneighbors(X.take(np.array([7])), 4)

# %%
fig, axes = plt.subplots(1, 4, figsize=(9, 2.6))
for ax, i, d in zip(axes, ids[0], distances[0], strict=True):
    nodes = slice(X.node_offsets[i], X.node_offsets[i + 1])
    start = X.indptr[nodes.start]
    sources = np.repeat(np.arange(nodes.start, nodes.stop), np.diff(X.indptr[nodes.start : nodes.stop + 1]))
    targets = X.indices[start : X.indptr[nodes.stop]]
    graph = nx.Graph(zip(sources.tolist(), targets.tolist(), strict=True))
    nx.draw(graph, nx.kamada_kawai_layout(graph), ax=ax, node_size=14, width=0.8, edge_color="0.6")
    ax.set_title("query" if i == 7 else f"{int(d)} bits of 1024", loc="center")
plt.show()
