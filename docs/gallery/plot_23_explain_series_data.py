"""
Which moments make two movements alike?
=======================================

|needs-data|

Dynamic time warping matches each time point of one series with some of the other. The path says where they agree and
which stretch makes the distance.
"""

import matplotlib.pyplot as plt

import similia as sm

X, y = sm.datasets.fetch("gunpoint", return_X_y=True)
found = sm.explain(sm.distances.DTW(window=0.1), X[0:1], X[3:4], top=4)
print(found.to_text())

# %%
# The picture: each line is a matched pair of time points, darker where it adds more.
found.plot()
plt.show()
