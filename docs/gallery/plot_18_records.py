"""
Records: a text and numbers in one code
=======================================

Objects often have parts of several kinds. Each part is encoded by what suits it, bound to its role and bundled: one
code, to which everything applies that applies to codes. Here: lines of a (made-up) log, each with a temperature and a
load.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

import similia as sm

rng = np.random.default_rng(0)
words = np.array(["pump", "valve", "fan", "filter", "door", "light"])
risk = np.array([1.0, 0.6, 0.2, -0.2, -0.6, -1.0])
chosen = rng.integers(6, size=(400, 2))
numbers = rng.normal(size=(400, 2))  # temperature and load
alarm = risk[chosen].sum(axis=1) + numbers[:, 0] - 0.5 * numbers[:, 1] > 0
records = [(f"{a} and {b} checked", *pair) for (a, b), pair in zip(words[chosen], numbers, strict=True)]

text = (0, sm.NGramEncoder(n=4, random_state=0))
levels = ([1, 2], sm.LevelEncoder(random_state=1))
scores = {}
for name, parts in {"text": [text], "numbers": [levels], "both": [text, levels]}.items():
    bundle = sm.codes.RecordEncoder(parts, output="counts", random_state=0)
    model = make_pipeline(bundle, sm.HDClassifier(random_state=0))
    scores[name] = cross_val_score(model, records, alarm, cv=5).mean()

# %%
fig, ax = plt.subplots(figsize=(6.4, 2.2))
ax.bar_label(ax.barh(list(scores), list(scores.values()), height=0.6), fmt="%.2f", padding=4)
ax.invert_yaxis()
ax.set(xlim=(0.5, 1), xlabel="accuracy, five folds", title="Alarm or not?")
plt.show()
