"""``similia demo`` classifies real DNA with a kernel and hypervectors, on one screen."""

from __future__ import annotations

import time
from typing import Any

from similia.cli.options import Seed

_FLIPPED = (0.0, 0.1, 0.2, 0.3, 0.4)


def demo(seed: Seed = 0) -> None:
    """Classify real DNA with packed bits made from a kernel.

    The demo trains on the two bundled data sets (promoters, splice junctions) and shows the accuracy, with and without
    random flips of bits in the codes.
    """
    import numpy as np
    from rich.table import Table
    from sklearn.dummy import DummyClassifier
    from sklearn.model_selection import train_test_split

    import similia as sm
    from similia.cli.voice import console, result

    say = console()
    start = time.perf_counter()
    say.print("similia: a similarity of strings becomes packed bits, and the bits a classifier\n")
    table = Table(
        "DNA, kernel", "train", "test", "majority", "one_pass", "ridge",
        title="NysHD on held-out sequences: accuracy in percent", title_justify="left",
    )  # fmt: skip
    robust = Table("bits flipped", *(f"{share:.0%}" for share in _FLIPPED), title_justify="left")
    robust.title = "the same test codes with bits flipped at random: accuracy in percent"
    results: list[dict[str, Any]] = []
    promoters, splice = sm.datasets.load_promoters(), sm.datasets.load_splice()
    gappy, placed = sm.kernels.GappyKmers(k=4, gaps=1), sm.kernels.WeightedDegree(degree=5)
    for name, data, kernel in (("promoters", promoters, gappy), ("splice", splice, gappy), ("splice", splice, placed)):
        X, y = data.data, data.target
        train, test = train_test_split(np.arange(len(y)), test_size=0.2, random_state=42)
        model = sm.recipes.nyshd(kernel, random_state=seed)
        X_train, X_test = sm.objects.take(X, train), sm.objects.take(X, test)
        model.fit(X_train, y[train])
        encoder, classifier = model[:-1], model[-1]
        codes, test_codes = encoder.transform(X_train), encoder.transform(X_test)
        one_pass = sm.HDClassifier(init="bundle", max_iter=0).fit(codes, y[train])
        found: dict[str, Any] = {
            "data": name, "kernel": type(kernel).__name__, "train": len(train), "test": len(test),
            "majority": DummyClassifier().fit(train[:, None], y[train]).score(test[:, None], y[test]),
            "one_pass": float(np.mean(one_pass.predict(test_codes) == y[test])),
        }  # fmt: skip
        found["bits_flipped"] = {
            share: np.mean(classifier.predict(sm.codes.flip_bits(test_codes, share, random_state=seed)) == y[test])
            for share in _FLIPPED
        }
        results.append(found)
        of, accuracies = f"{name}, {found['kernel']}", list(found["bits_flipped"].values())
        percents = [f"{100 * a:.1f}" for a in (found["majority"], found["one_pass"], *accuracies)]
        table.add_row(of, str(len(train)), str(len(test)), *percents[:3])
        robust.add_row(of, *percents[2:])
    say.print(table)
    say.print("Each sequence is a code of 1250 bytes. Splice sites depend on the positions of letters: WeightedDegree")
    say.print("compares positions, and GappyKmers counts k-mers wherever they are.\n")
    say.print(robust)
    _show_predictions(say, X_test[:3], y[test][:3], classifier.predict(test_codes)[:3])
    result(results)
    say.print(f"done in {time.perf_counter() - start:.1f} s; the README shows the same as a program")


def _show_predictions(say: Any, X: Any, y: Any, found: Any) -> None:
    from rich.table import Table

    table = Table("sequence", "class", "predicted", title="three of them", title_justify="left")
    for text, true, predicted in zip(X, y, found, strict=True):
        table.add_row(f"{text[:24]}…", str(true), str(predicted))
    say.print(table)
