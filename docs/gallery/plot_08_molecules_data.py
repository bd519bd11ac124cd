"""
Molecules: a graph kernel to bits
=================================

|needs-data|

188 molecules, mutagenic or not (MUTAG). The Weisfeiler-Lehman kernel compares neighbourhoods of atoms; NysHD makes
bits of it. The parameters of the kernel are within reach of a grid search.
"""

import matplotlib.pyplot as plt
from sklearn.model_selection import GridSearchCV, StratifiedKFold

import similia as sm

X, y = sm.datasets.fetch("MUTAG", return_X_y=True)
model = sm.recipes.nyshd(sm.kernels.WeisfeilerLehman(n_iter=3), n_bits=4096, random_state=0)
grid = GridSearchCV(
    model, {"nystroem__kernel__n_iter": [0, 1, 2, 3, 4]}, cv=StratifiedKFold(10, shuffle=True, random_state=0)
).fit(X, y)

# %%
fig, ax = plt.subplots()
results = grid.cv_results_
ax.errorbar(range(5), results["mean_test_score"], results["std_test_score"] / 10**0.5, fmt="o-", capsize=3)
ax.set(xlabel="rounds of Weisfeiler-Lehman", ylabel="accuracy, ten folds", xticks=range(5), title="MUTAG")
plt.show()
