"""
Which moments make two movements alike, and which decide?
=========================================================

Dynamic time warping matches each time point of one series with some of the other. The path says where they agree and
which stretch makes the distance. A classifier on convolutions says which stretch of a sound speaks for its class.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import RidgeClassifierCV
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import StandardScaler

import similia as sm
from similia.embeddings import Hydra, SparseScaler

X, y = sm.datasets.load_movements(return_X_y=True)
found = sm.explain(sm.distances.DTW(window=0.2), X[24:25], X[27:28], top=4)
print(found.to_text())

# %%
# The picture: each line is a matched pair of time points, darker where it adds more.
found.plot()
plt.show()

# %%
# The pipeline that `AutoClassifier` prefers for series, here for vowels spoken by nine men. Each column is a statistic
# of a convolution over time; what it adds is split over the time points that make it.
vowels, speakers = sm.datasets.load_vowels(return_X_y=True)
train, test = np.arange(len(vowels)) % 3 > 0, np.arange(len(vowels)) % 3 == 0
rocket = make_pipeline(sm.RandomConvolutions(10_000, "multirocket", random_state=0), StandardScaler())
hydra = make_pipeline(Hydra(random_state=0), SparseScaler())
union = FeatureUnion([("rocket", rocket), ("hydra", hydra)])
model = make_pipeline(union, RidgeClassifierCV(np.logspace(-3, 3, 10)))
model.fit(vowels.take(np.flatnonzero(train)), speakers[train])
unseen = vowels.take(np.flatnonzero(test))
print(f"accuracy on unseen vowels: {model.score(unseen, speakers[test]):.2f}")
found = sm.explain(model, unseen[0], top=4)
print(found.to_text())

# %%
# Blue is what speaks for the predicted speaker, orange what speaks against him.
fig, ax = plt.subplots(figsize=(6.4, 4.4))
found.plot(ax)
plt.show()  # sphinx_gallery_thumbnail_number = 2
