"""
A report that can be sent
=========================

One page of HTML with everything a colleague asks: what the data are, accuracy with intervals, which classes are
confused, how many landmarks and bits are enough, a map to hover over, and what it cost. It needs no network and no
Python.
"""

import tempfile
from pathlib import Path

import similia as sm
from similia.report import write_report

X, y = sm.datasets.load_promoters(return_X_y=True)
model = sm.recipes.nyshd(sm.kernels.GappyKmers(k=4, gaps=1), n_landmarks=80, n_bits=2048, random_state=0)
with tempfile.TemporaryDirectory() as folder:
    path = write_report(model, X, y, Path(folder, "report.html"), title="Promoters")
    print(f"{path.name}: {path.stat().st_size / 1e3:.0f} kB")
    sections = [line.split("</h2>")[0].split(">")[-1] for line in path.read_text(encoding="utf-8").split("<h2")[1:]]
print("\n".join(sections))

# sphinx_gallery_thumbnail_path = 'pictures/report.png'

# %%
# .. image:: /pictures/report.png
#    :alt: The first screen of a report: objects, accuracy with its interval, and links to the sections below.
#    :class: sphx-glr-single-img
#
# On the command line: ``similia report model.similia promoters.csv -o report.html``.
