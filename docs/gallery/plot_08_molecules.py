"""
Molecules: a graph kernel to bits
=================================

122 common molecules of 11 families, from amino acids to steroids. The Weisfeiler-Lehman kernel compares neighbourhoods
of atoms; NysHD makes bits of it. The parameters of the kernel are within reach of a grid search.
"""

import matplotlib.pyplot as plt
from sklearn.model_selection import GridSearchCV, StratifiedKFold

import similia as sm

smiles, y = sm.datasets.load_molecules(return_X_y=True)
X = sm.objects.from_smiles(smiles)
model = sm.recipes.nyshd(sm.kernels.WeisfeilerLehman(n_iter=3, normalize=True), n_bits=4096, random_state=0)
grid = GridSearchCV(
    model, {"nystroem__kernel__n_iter": [0, 1, 2, 3, 4]}, cv=StratifiedKFold(5, shuffle=True, random_state=0)
).fit(X, y)

# %%
fig, ax = plt.subplots()
results = grid.cv_results_
ax.errorbar(range(5), results["mean_test_score"], results["std_test_score"] / 5**0.5, fmt="o-", capsize=3)
ax.set(xlabel="rounds of Weisfeiler-Lehman", ylabel="accuracy, five folds", xticks=range(5))
ax.set_title("the family of a molecule, among twelve")
plt.show()
