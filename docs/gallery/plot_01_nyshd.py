"""
NysHD: DNA to 10,000 bits
=========================

A kernel says how alike two stretches of DNA are; 300 landmarks turn it into vectors; signs of random projections into
bits; one prototype a class is learnt from the bits. The whole road is one scikit-learn pipeline.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import ConfusionMatrixDisplay
from sklearn.model_selection import train_test_split

import similia as sm

X, y = sm.datasets.load_splice(return_X_y=True)  # 60 letters around a splice site, or around none
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.2, stratify=y, random_state=0)

model = sm.recipes.nyshd(sm.kernels.WeightedDegree(degree=5), random_state=0).fit(X_train, y_train)
print(f"accuracy on {len(X_test)} unseen stretches: {model.score(X_test, y_test):.3f}")

# %%
# The classes: exon to intron (ei), intron to exon (ie), neither (n).
names = {"ei": "exon to intron", "ie": "intron to exon", "n": "neither"}
fig, ax = plt.subplots(figsize=(6.4, 4.2))
ConfusionMatrixDisplay.from_estimator(
    model, X_test, y_test, display_labels=list(names.values()), cmap="Blues", colorbar=False, ax=ax
)
ax.spines[:].set_visible(False)
plt.show()

# %%
# The bits stay packed, eight in a byte. An object is 1250 bytes, and a prototype is the sum of its class's codes.
codes = model[:-1].transform(X_test)
print(codes.dtype, codes.shape, f"{np.unpackbits(codes).mean():.3f} of the bits are set")
