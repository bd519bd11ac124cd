"""
Which moments make two movements alike, and which decide?
=========================================================

|needs-data|

Dynamic time warping matches each time point of one series with some of the other. The path says where they agree and
which stretch makes the distance. A classifier on convolutions says which stretch of a spectrum speaks for its class.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import RidgeClassifierCV
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import StandardScaler

import similia as sm
from similia.embeddings import Hydra, SparseScaler

X, y = sm.datasets.fetch("gunpoint", return_X_y=True)
found = sm.explain(sm.distances.DTW(window=0.1), X[0:1], X[3:4], top=4)
print(found.to_text())

# %%
# The picture: each line is a matched pair of time points, darker where it adds more.
found.plot()
plt.show()

# %%
# The pipeline that `AutoClassifier` prefers for series, here for two kinds of coffee by their infrared spectra. Each
# column is a statistic of a convolution over time; what it adds is split over the time points that make it.
train, test = (sm.datasets.fetch("coffee", subset=part) for part in ("train", "test"))
rocket = make_pipeline(sm.RandomConvolutions(10_000, "multirocket", random_state=0), StandardScaler())
hydra = make_pipeline(Hydra(random_state=0), SparseScaler())
union = FeatureUnion([("rocket", rocket), ("hydra", hydra)])
model = make_pipeline(union, RidgeClassifierCV(np.logspace(-3, 3, 10))).fit(train.data, train.target)
found = sm.explain(model, test.data[0], top=4)
print(found.to_text())

# %%
# Blue is what speaks for the predicted class, orange what speaks against it.
found.plot()
plt.show()
