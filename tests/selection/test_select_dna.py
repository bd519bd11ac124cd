"""Choosing for DNA: a family whose mark is on either strand is found."""

import numpy as np
import pytest

from samples.select import choose
from similia.selection import auto as _select
from similia.selection._ladder import ladder
from similia.selection.folds import recognised

COMPLEMENT = str.maketrans("ACGTacgt", "TGCAtgca")
BOTH = "Spectrum 6, reverse_complement=True · features"


def strings(n, seed, length=100, mark="GATTACCATG"):
    """Return random DNA; every second string holds the mark, one letter of it changed, on one strand or the other."""
    rng = np.random.default_rng(seed)
    found, labels = [], np.arange(n) % 2
    for label in labels:
        letters = rng.choice(list("ACGT"), size=length)
        if label:
            planted = np.array(list(mark))
            planted[rng.integers(len(mark))] = rng.choice(list("ACGT"))
            place = rng.integers(length - len(mark))
            letters[place : place + len(mark)] = planted
        one = "".join(letters)
        found.append(one.translate(COMPLEMENT)[::-1] if rng.random() < 0.5 else one)
    return found, labels


def names(X, task="classification"):
    kind, X = recognised(X)
    return [group.name for group in ladder(kind, X, task, 0)]


@pytest.mark.parametrize("letters", ["ACGT", "ACGTN", "acgt", "ACGU"])
def test_both_strands_are_a_candidate_for_dna_after_the_plain_ones(letters):
    found = names([letters * 3, letters * 2] * 4)
    assert found.index(BOTH) > found.index("Spectrum 2–5 · features")
    assert BOTH.replace("features", "landmarks") in names([letters * 3, letters * 2] * 4, "regression")


@pytest.mark.parametrize("letters", ["ACDEFGHIKLMNPQRSTVWY", "a cat", "ACGT-"])
def test_other_strings_have_no_strands(letters):
    assert not any("reverse_complement" in name for name in names([letters * 3, letters * 2] * 4))


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_shared_and_minmax_counts_are_candidates_for_all_strings(task):
    found = names(["ACDEFGHIKLMNPQRSTVWY", "CDACDA"] * 4, task)
    vectors = "features" if task == "classification" else "landmarks"
    assert f"Intersection Spectrum k=(1, 5) · {vectors}" in found
    assert {"MinMax Spectrum 1–3", "MinMax Spectrum 1–5"} <= set(found)


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_gapped_kmers_are_candidates_for_proteins_but_not_for_texts(task):
    proteins, texts = names(["ACDEFGHIKLMNPQRSTVWY", "CDACDA"] * 4, task), names(["a cat", "the dog sat"] * 4, task)
    assert {"GappedKmers 6, informative=3", "GappedKmers 8, informative=4"} <= set(proteins)
    assert not any(name.startswith("GappedKmers") for name in texts)


def test_letters_of_both_cases_are_alike():
    found = [name for name in names(["ACGTacgt", "ACGNNNTT"] * 4) if "reverse_complement" in name]
    assert found[0].startswith("Spectrum 6, reverse_complement=True, ignore_cas")


def test_a_few_unknown_letters_leave_gapped_kmers_among_the_candidates():
    known, unknown = names(["ACGTACGT", "TTACGCA"] * 4), names(["ACGTACGT", "TTACGCN"] * 4)
    gapped = [name for name in known if name.startswith("GappedKmers")]
    assert len(gapped) == 6
    assert [name for name in unknown if name.startswith("GappedKmers")] == gapped


def test_a_mark_on_either_strand_is_found(monkeypatch):
    features = [g for g in ladder(*recognised(strings(200, 0)[0]), "classification", 0) if "features" in g.name]
    plain = [group for group in features if group.name.startswith("Spectrum")]
    (both,) = [group for group in plain if group.name == BOTH]
    X, y = strings(200, seed=0)
    Z, z = strings(400, seed=1)
    right = {}
    for given in (plain, [group for group in plain if group is not both]):
        monkeypatch.setattr(_select, "ladder", lambda *_, groups=given: groups)
        found = choose(X, y, budget=None, random_state=0, nested=False, max_voters=1, progress=False)
        assert not found.stopped_early_
        right[BOTH in found.best_name_] = np.mean(found.predict(Z) == z)
    assert right[True] > right[False] + 0.03
