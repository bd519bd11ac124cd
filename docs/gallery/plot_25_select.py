"""
Which pipeline? Let them compete
================================

`select` tries kernels and distances, embeddings and learners of all five systems by cross-validation, leaves the
losers early, and says how good the whole choice is, by repeating it without each outer fold. Here it has six seconds.
"""

import similia as sm

X, y = sm.datasets.load_promoters(return_X_y=True)
found = sm.select(X[:80], y[:80], budget=6, cv=3, random_state=0, progress=False)
for row in found.table_[:5]:
    print(f"{row['mean_score']:.3f} ± {row['standard_error']:.3f}  {row['state']:12s} {row['name'][:90]}")

# %%
# What was chosen is fitted, and a model like any other: a pipeline, or some that vote.
print(type(found.best_).__name__, f"nested estimate {found.score_:.2f}")
print("share right of 26 that were not shown:", (found.predict(X[80:]) == y[80:]).mean().round(2))
