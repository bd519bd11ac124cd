"""
Why does a molecule look mutagenic?
===================================

|needs-data|

Weisfeiler-Lehman features are neighbourhoods of atoms. A linear model on them is a sum over neighbourhoods, and each
has its place in the molecule. Label 0 is carbon, 1 nitrogen, 2 oxygen.
"""

import matplotlib.pyplot as plt
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import similia as sm

X, y = sm.datasets.fetch("MUTAG", return_X_y=True)
kernel = sm.kernels.WeisfeilerLehman(n_iter=2, normalize=True)
model = make_pipeline(sm.KernelFeatures(kernel), LogisticRegression(C=1000.0, max_iter=5000)).fit(X, y)
found = sm.explain(model, X[0:1], top=5)
print(found.to_text())

# %%
found.plot()
plt.show()
