"""
Which atoms make a molecule a painkiller?
=========================================

Weisfeiler-Lehman features are neighbourhoods of atoms. A linear model on them is a sum over neighbourhoods, and each
has its place in the molecule.
"""

import matplotlib.pyplot as plt
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import similia as sm

molecules = sm.datasets.load_molecules()
X = sm.objects.from_smiles(molecules.data)
kernel = sm.kernels.WeisfeilerLehman(n_iter=2, normalize=True)
names = molecules.names.tolist()
unseen, others = names.index("naproxen"), [i for i, name in enumerate(names) if name != "naproxen"]
model = make_pipeline(sm.KernelFeatures(kernel, 2**12), LogisticRegression(C=1000.0, max_iter=1000))
model.fit(X.take(others), molecules.target[others])
found = sm.explain(model, X[unseen : unseen + 1], top=5)
print(f"naproxen: {model.predict(X[unseen : unseen + 1])[0]}")
print(found.to_text())

# %%
# Blue speaks for the predicted family, orange against it.
found.plot()
plt.show()
