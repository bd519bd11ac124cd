"""
The kernel, read back from bits
===============================

Two codes agree in a share of bits that is the arcsine law of the cosine of their vectors. Inverting it, with the bias
removed, gives the kernel back from bits alone, with a standard error for each entry.
"""

import matplotlib.pyplot as plt
import numpy as np

import similia as sm

X = sm.datasets.load_splice().data[:200]
kernel = sm.kernels.GappyKmers(k=4, gaps=1, normalize=True)
vectors = sm.Nystroem(kernel, 200, random_state=0).fit_transform(X)
codes = sm.SignRandomProjection(10_000, random_state=0).fit_transform(vectors)

K = kernel(X)
estimate, error = sm.codes.kernel_from_codes(codes, return_std=True)
pairs = np.triu_indices(len(X), 1)
print(f"largest standard error {error[pairs].max():.4f}")
print(f"within two of them: {np.mean(np.abs(estimate - K)[pairs] < 2 * error[pairs]):.3f} of the pairs")

# %%
fig, ax = plt.subplots()
ax.plot(K[pairs][::7], estimate[pairs][::7], ".", ms=3, alpha=0.5)
ax.plot([0, 0.6], [0, 0.6], color="0.3", lw=1)
ax.set(xlabel="kernel of two strings", ylabel="read back from 10,000 bits", title="19,900 pairs of DNA")
plt.show()
