"""
Which objects do not belong, and how sure is a prediction?
==========================================================

Four answers to doubt, each for objects of any kind: p-values of outliers, sets of labels that hold the truth with a
given probability, probabilities that tell sure answers from doubtful ones, and predictions with a standard deviation.
"""

import matplotlib.pyplot as plt
import numpy as np

import similia as sm

X, y = sm.datasets.load_splice(return_X_y=True)
rng = np.random.default_rng(0)
order = rng.permutation(len(X))
train, test = [X[i] for i in order[:1500]], [X[i] for i in order[1500:2000]]
kernel = sm.kernels.Spectrum(k=3, normalize=True)

# %%
# Beside the new stretches stand 20 of another kind: a word of four random letters, repeated. A p-value is the share of
# training objects that are at least as far from their neighbours.
strange = ["".join(rng.choice([*"ACGT"], 4)) * 15 for _ in range(20)]
detector = sm.OutlierDetector(kernel, novelty=True, random_state=0).fit(train)
p_usual, p_strange = detector.p_values(test), detector.p_values(strange)
for name, p in (("usual", p_usual), ("strange", p_strange)):
    print(f"p <= 0.01: {(p <= 0.01).mean():.1%} of the {name} stretches")

# %%
# A classifier that may answer with a set of labels. The sets hold the true one in 98 % of cases, so objects that are
# hard to tell get two or three labels.
base = sm.recipes.nyshd(sm.kernels.WeightedDegree(degree=5), n_landmarks=100, n_bits=2048, random_state=0)
model = sm.ConformalClassifier(base, random_state=0).fit(train, y[order[:1500]])
sets = model.predict_set(test, coverage=0.98)
truth = np.searchsorted(model.classes_, y[order[1500:2000]])
print(f"{sets[np.arange(500), truth].mean():.1%} of the sets hold the truth")

# %%
# A Gaussian process that classifies averages over all functions that fit the labels. Its largest probability tells
# which answers to trust.
classifier = sm.GaussianProcessClassifier(sm.kernels.WeightedDegree(degree=5), random_state=0)
shares = classifier.fit(train, y[order[:1500]]).predict_proba(test)
right, by_doubt = shares.argmax(axis=1) == truth, np.argsort(-shares.max(axis=1))
for name, half in (("surer", by_doubt[:250]), ("other", by_doubt[250:])):
    print(f"right: {right[half].mean():.1%} of the {name} half")

# %%
# A Gaussian process on strings: here it learns the share of G and C by words of two letters, from 12 strings only.
few, gc = train[:12], np.array([sum(letter in "GC" for letter in x) / 60 for x in train[:12]])
process = sm.GaussianProcessRegressor(sm.kernels.Spectrum(k=2, normalize=True)).fit(few, gc)
mean, std = process.predict(test[:40], return_std=True)
real = np.array([sum(letter in "GC" for letter in x) / 60 for x in test[:40]])

fig = plt.figure(figsize=(6.8, 4.8))
axes = [*fig.subplot_mosaic("AB;CC", height_ratios=[1, 1.3]).values()]
axes[0].hist([p_usual, p_strange], 20, density=True, label=["usual", "strange"])
axes[0].set(title="p-values", xlabel="p", yticks=[])
axes[0].legend()
sizes = np.bincount(sets.sum(axis=1), minlength=4)
axes[1].bar(range(len(sizes)), sizes)
axes[1].set(title="labels in a set", xlabel="labels, coverage 98 %", xticks=range(len(sizes)))
axes[2].errorbar(real, mean, 2 * std, fmt="o", ms=3, lw=0.8)
axes[2].plot([0.3, 0.8], [0.3, 0.8], color="grey", lw=0.8)
axes[2].set(title="Gaussian process, 12 strings", xlabel="true share of G and C", ylabel="predicted, ± 2 std")
plt.show()
