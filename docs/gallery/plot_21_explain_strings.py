"""
Why are two strings alike? Why this class?
==========================================

A kernel that counts has features, so a similarity is a sum of named parts with their places in both strings. The same
holds for what a linear classifier decides.
"""

import matplotlib.pyplot as plt
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import similia as sm

X, y = sm.datasets.load_promoters(return_X_y=True)
kernel = sm.kernels.Spectrum(k=4, normalize=True)
nearest = kernel(X[:1], X)[0].argsort()[-2]
sm.explain(kernel, X[0], X[nearest], top=5)

# %%
# A classifier on the explicit features: which words of this stretch speak for a promoter, which against? What the
# listed parts leave out is the residual; parts and residual add up to the decision.
model = make_pipeline(sm.KernelFeatures(kernel), LogisticRegression(C=100.0)).fit(X[1:], y[1:])
found = sm.explain(model, X[0], top=6)
print(found.to_text())

# %%
found.plot()
plt.show()

# %%
# The same with gapped k-mers, words of six letters of which any four count, as a sequence logo: each letter is as high
# as what it adds to the decision, and hangs below the axis if it speaks against it.
gapped = sm.kernels.GappedKmers(6, 4, normalize=True)
model = make_pipeline(sm.KernelFeatures(gapped, 2**14), LogisticRegression(C=100.0)).fit(X[1:], y[1:])
fig, ax = plt.subplots(figsize=(6.4, 4.4))
sm.explain(model, X[0]).logo(ax)
ax.set_xlim(6.5, 26.5)  # a part of the stretch
plt.show()  # sphinx_gallery_thumbnail_number = 2
