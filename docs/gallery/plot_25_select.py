"""
Which pipeline? Let them compete
================================

`AutoClassifier` tries kernels and distances, embeddings and learners of all five systems by cross-validation, leaves
the losers early, and says how good the whole choice is, by repeating it without each outer fold. Here it has six
seconds.
"""

import matplotlib.pyplot as plt

import similia as sm

X, y = sm.datasets.load_promoters(return_X_y=True)
auto = sm.AutoClassifier(budget=6, cv=3, random_state=0, progress=False).fit(X[:80], y[:80])
results = auto.cv_results_
for i in range(5):
    score, error = results["mean_test_score"][i], results["standard_error"][i]
    print(f"{score:.3f} ± {error:.3f}  {results['state'][i]:12s} {results['name'][i][:90]}")

# %%
# The best candidate of each kernel and learner, with its standard error.
best = {}
for i, name in enumerate(results["name"]):  # the best stand first
    kernel, *_, learner = name.split(" · ")
    best.setdefault(f"{kernel.split()[0]}, {learner.split('(')[0]}", i)
shown = [*best.items()][7::-1]
plt.figure(figsize=(6.4, 4.4))
for place, (_, i) in enumerate(shown):
    plt.errorbar(results["mean_test_score"][i], place, xerr=results["standard_error"][i], fmt="o", ms=8, color="C0")
plt.yticks(range(len(shown)), [name for name, _ in shown])
plt.xlabel("accuracy by cross-validation")
plt.show()

# %%
# The estimator predicts by what it chose: a pipeline, or some that vote.
print(type(auto.best_estimator_).__name__, f"nested estimate {auto.best_score_:.2f}")
print("share right of 26 that were not shown:", round(auto.score(X[80:], y[80:]), 2))
