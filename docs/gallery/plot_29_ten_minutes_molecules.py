"""
Ten minutes with molecules
==========================

From SMILES to a map, a search, a prediction with its uncertainty, and the next molecule to measure. Similarity is the
min-max of neighbourhoods of atoms, the generalised Tanimoto coefficient of chemists.
"""

import matplotlib.pyplot as plt
import numpy as np
from rdkit.Chem import Crippen, MolFromSmiles

import similia as sm

molecules = sm.datasets.load_molecules()
X, names, family = sm.objects.from_smiles(molecules.data), molecules.names, molecules.target
kernel = sm.kernels.MinMax(sm.kernels.WeisfeilerLehman(n_iter=3))

# %%
# **Look.** A map of all, coloured by family, which the kernel does not know.
points = sm.SimilarityMap(kernel, random_state=0).fit_transform(X)
fig, ax = plt.subplots(figsize=(8, 5))
for i, name in enumerate(molecules.target_names):
    ax.plot(*points[family == name].T, "os^D"[i % 4], color=f"C{i % 10}", ms=6, alpha=0.8, label=name)
ax.legend(fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))
ax.set(xticks=[], yticks=[], title="122 molecules")
plt.show()

# %%
# **Search.** The nearest of each, exactly.
graph = sm.search.knn_graph(X, kernel, n_neighbors=3, symmetric=False)
nearest = graph.indices.reshape(len(X), 3)
for name in ("caffeine", "testosterone", "dopamine"):
    i = int(np.flatnonzero(names == name)[0])
    print(f"{name}: {', '.join(names[nearest[i]])}")
print(f"the nearest is of the same family: {np.mean(family[nearest[:, 0]] == family):.0%}")

# %%
# **Why?** Atoms are darker the more they add to the similarity.
i, j = (int(np.flatnonzero(names == name)[0]) for name in ("dopamine", "adrenaline"))
sm.explain(kernel, X[i : i + 1], X[j : j + 1]).plot()
plt.show()

# %%
# **Predict, and say how sure.** The target is Crippen's logP, an estimate of solubility that RDKit computes; in a real
# project these would be measurements. A Gaussian process learns from half of the molecules.
logp = np.array([Crippen.MolLogP(MolFromSmiles(s)) for s in molecules.data])
order = np.random.default_rng(0).permutation(len(X))
known, rest = order[::2], order[1::2]
process = sm.GaussianProcessRegressor(kernel).fit(X.take(known), logp[known])
mean, std = process.predict(X.take(rest), return_std=True)
fig, ax = plt.subplots(figsize=(5, 4.4))
ax.errorbar(logp[rest], mean, 2 * std, fmt="o", ms=4, lw=0.8)
ax.plot([-6, 8], [-6, 8], color="grey", lw=0.8)
ax.set(xlabel="logP", ylabel="predicted, ± 2 standard deviations", title="61 molecules not learnt from")
plt.show()
inside = np.mean(np.abs(mean - logp[rest]) < 1.96 * std)
print(f"root mean squared error {np.sqrt(np.mean((mean - logp[rest]) ** 2)):.2f}, of a constant {logp[rest].std():.2f}")
print(f"within 1.96 standard deviations: {inside:.0%}")

# %%
# **What to measure next?** The molecules of largest expected improvement, if a large logP is wanted.
for at in process.suggest(X.take(rest), 3):
    print(f"{names[rest[at]]}: predicted {mean[at]:.1f} ± {std[at]:.1f}, true {logp[rest[at]]:.1f}")
