"""
What flipped bits do
====================

A code of 10,000 bits says the same thing many times. Flip a share of the bits of the test codes, as a faulty memory
would, and see when the classifier notices.
"""

import matplotlib.pyplot as plt
from sklearn.model_selection import train_test_split

import similia as sm

X, y = sm.datasets.load_splice(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.2, stratify=y, random_state=0)
shares = [0.0, 0.05, 0.1, 0.2, 0.3, 0.35, 0.4, 0.45]
fig, ax = plt.subplots()
for n_bits, style in [(10_000, "o-"), (1024, "s-"), (128, "^-")]:
    model = sm.recipes.nyshd(sm.kernels.WeightedDegree(degree=5), n_bits=n_bits, random_state=0).fit(X_train, y_train)
    codes = model[:-1].transform(X_test)
    flipped = [sm.codes.flip_bits(codes, share, random_state=1) for share in shares]
    ax.plot(shares, [model[-1].score(c, y_test) for c in flipped], style, label=f"{n_bits:,} bits")
ax.set(xlabel="share of bits flipped", ylabel="accuracy", title="Splice sites, damaged codes")
ax.legend(loc="lower left")
plt.show()
