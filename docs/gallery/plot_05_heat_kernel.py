"""
The exact heat kernel on a sphere
=================================

Put on a sphere, two rows of counts are as alike as much heat as reaches one from the other in a time t. The kernel is
computed exactly; the usual approximation of it, the parametrix, is no positive semi-definite kernel, and is hotter
beside the source than at it when t > 3 / (n - 2).
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import similia as sm

cosine = np.linspace(-1, 1, 401)
fig, ax = plt.subplots()
for contrast, style in [(1, "-"), (4, "-"), (16, "-")]:
    n = 64
    t = np.log(n / contrast) / (n - 1)
    ax.plot(cosine, sm.kernels.heat_profile(1 - cosine, n, t), style, label=f"contrast {contrast}, t = {t:.3f}")
ax.set(xlabel="cosine of two rows", ylabel="kernel", title="Heat kernel on the sphere in 64 dimensions")
ax.legend()
plt.show()

# %%
# `recipes.heat_svm` chooses contrast and C by cross-validation on one matrix of cosines.
X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, random_state=0)
model = sm.recipes.heat_svm(random_state=0).fit(X_train, y_train)
print(f"accuracy {model.score(X_test, y_test):.4f} at contrast {model.contrast_:g}, C {model.C_:g}")
