"""
Were two collections drawn alike?
=================================

Does a generator make graphs like the real ones? A kernel on graphs answers with a two-sample test: the distance
between the mean embeddings of both collections, held against permutations.
"""

import matplotlib.pyplot as plt
import networkx as nx

import similia as sm

kernel = sm.kernels.Graphlet(size=4, n_samples=1000, normalize=True)
real = [nx.watts_strogatz_graph(60, 6, 0.1, seed=i) for i in range(30)]
shares, values = [0.1, 0.15, 0.2, 0.3], []
for share in shares:
    made = [nx.watts_strogatz_graph(60, 6, share, seed=1000 + i) for i in range(30)]
    values.append(sm.distances.two_sample_test(real, made, kernel, n_permutations=500, random_state=0).p_value)

# %%
fig, ax = plt.subplots()
ax.bar([str(share) for share in shares], values)
ax.axhline(0.05, color="0.4", ls="--", lw=1)
ax.set(xlabel="share of rewired edges in the generator (real graphs: 0.1)", ylabel="p-value", yscale="log")
ax.set_title("Small worlds, told apart by their graphlets")
plt.show()
