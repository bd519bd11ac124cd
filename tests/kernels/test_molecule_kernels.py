"""Morgan fingerprints as a kernel, and Weisfeiler-Lehman on the same molecules as graphs."""

from __future__ import annotations

import pickle
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.model_selection import GridSearchCV

import similia as sm
from similia.checks import check_kernel
from similia.kernels import MinMax, Morgan, WeisfeilerLehman
from similia.objects import as_strings, from_smiles

Chem = pytest.importorskip("rdkit.Chem", reason="RDKit is not installed (extra: molecules)")

SMILES = [
    "CCO", "CC(=O)[O-]", "C[C@H](N)C(=O)O", "C[C@@H](N)C(=O)O", "F/C=C/F", "F/C=C\\F", "c1ccccc1O", "C1CCCC1",
    "[13CH4]", "[Na+].[Cl-]", "O=C(O)c1ccc(N)cc1", "CCCCCCCC", "", "N#N",
]  # fmt: skip
ALKANES = ["C" * n for n in range(2, 9)]


def by_rdkit(smiles, **parameters):
    """The fingerprints as dicts from number to count, each from RDKit's older function."""
    from rdkit import rdBase
    from rdkit.Chem import rdMolDescriptors

    with rdBase.BlockLogs():  # it says that it is old
        return [
            Counter(rdMolDescriptors.GetMorganFingerprint(Chem.MolFromSmiles(text), **parameters).GetNonzeroElements())
            for text in smiles
        ]


def inner_products(counters):
    return np.array([[sum(x[a] * y[a] for a in x.keys() & y.keys()) for y in counters] for x in counters], dtype=float)


@pytest.mark.parametrize("radius", [0, 1, 2, 3])
@pytest.mark.parametrize("chirality", [False, True])
def test_counts_are_those_of_rdkits_older_function(radius, chirality):
    for invariants in ("connectivity", "features"):
        expected = by_rdkit(SMILES, radius=radius, useChirality=chirality, useFeatures=invariants == "features")
        kernel = Morgan(radius, chirality, invariants)
        np.testing.assert_array_equal(kernel(SMILES), inner_products(expected))
        counts = kernel.counted(SMILES)
        for i, counter in enumerate(expected):
            found = counts.values[counts.offsets[i] : counts.offsets[i + 1]]
            assert sorted(found.tolist()) == sorted(counter.values())


def test_by_hand():
    # Radius 0 of ethanol: CH3, CH2, OH; radius 1: the neighbourhoods of C (bond 1), of CH2 (both bonds), of O (bond 2)
    counts = Morgan(radius=1).counted(["CCO"])
    assert counts.values.tolist() == [1.0] * 6
    # Octane: 2 CH3 and 6 CH2; radius 1: 2 ends, 2 CH2 beside an end and 4 others
    assert sorted(Morgan(radius=1).counted(["CCCCCCCC"]).values.tolist()) == [2.0, 2.0, 2.0, 4.0, 6.0]


def test_min_max_of_morgan_is_rdkits_tanimoto_similarity_of_counts():
    from rdkit import DataStructs
    from rdkit.Chem import rdFingerprintGenerator

    generator = rdFingerprintGenerator.GetMorganGenerator(radius=2, includeChirality=True)
    atoms = [text for text in SMILES if text]  # RDKit calls two molecules without atoms unlike
    theirs = [generator.GetSparseCountFingerprint(Chem.MolFromSmiles(text)) for text in atoms]
    expected = [DataStructs.BulkTanimotoSimilarity(one, theirs) for one in theirs]
    np.testing.assert_array_equal(MinMax(Morgan())(atoms), expected)


def test_it_is_a_kernel():
    for kernel in (Morgan(), Morgan(normalize=True), Morgan(radius=1, invariants="features")):
        check_kernel(kernel, SMILES)


@settings(max_examples=30, deadline=None)
@given(text=st.sampled_from([text for text in SMILES if text]), seed=st.integers(0, 1000))
def test_one_molecule_has_one_row_however_it_is_written(text, seed):
    molecule = Chem.MolFromSmiles(text)
    order = np.random.default_rng(seed).permutation(molecule.GetNumAtoms()).tolist()
    other = Chem.MolToSmiles(Chem.RenumberAtoms(molecule, order), canonical=False)
    K = Morgan()([text, other])
    assert (K[0, 0] == K).all()
    graphs = from_smiles([text, other])
    K = WeisfeilerLehman(2)(graphs)
    assert (K[0, 0] == K).all()


def test_handedness_and_sides_of_double_bonds_count_only_if_wanted():
    for one, other in (("C[C@H](N)C(=O)O", "C[C@@H](N)C(=O)O"), ("F/C=C/F", "F/C=C\\F")):
        K = Morgan()([one, other])
        assert K[0, 1] < K[0, 0] == K[1, 1]
        K = Morgan(use_chirality=False)([one, other])
        assert (K[0, 0] == K).all()
        K = WeisfeilerLehman(2)(from_smiles([one, other]))
        assert K[0, 1] < K[0, 0] == K[1, 1]


def test_smiles_are_read_from_all_forms_and_from_molecules():
    expected = Morgan()(SMILES)
    molecules = [Chem.MolFromSmiles(text) for text in SMILES]
    for X in (
        np.array(SMILES), pd.Series(SMILES, index=range(3, 17)), pd.DataFrame({"smiles": SMILES}), as_strings(SMILES),
        [text.encode() for text in SMILES], molecules, pd.Series(molecules), [*SMILES[:3], *molecules[3:]],
    ):  # fmt: skip
        np.testing.assert_array_equal(Morgan()(X), expected)
        np.testing.assert_array_equal(Morgan()(SMILES[:2], X), expected[:2])


WRONG = {
    "no SMILES": (["CCO", "C(C"], ValueError, r"X\[1\] is 'C\(C', which is not valid SMILES; correct or drop it"),
    "five bonds": (["C(C)(C)(C)(C)C"], ValueError, r"X\[0\] is .*not a valid molecule \(Explicit valence"),
    "missing": (["CCO", None], TypeError, r"X\[1\] is missing"),
    "a number": (["CCO", 1], TypeError, r"X\[1\] is int \(1\), expected str"),
    "one text": ("CCO", TypeError, r"X is one string, 'CCO'.*write \[x\]"),
    "graphs": (from_smiles(["CCO"]), TypeError, "is a GraphBatch, expected SMILES or RDKit mol.*WeisfeilerLehman"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_no_molecule_is_named(case, capfd):
    X, error, sentence = WRONG[case]
    with pytest.raises(error, match=sentence):
        Morgan()(X)
    with pytest.raises(error, match=sentence.replace("X", "Y") if "X" in sentence else sentence):
        Morgan()(["C"], X)
    assert capfd.readouterr() == ("", "")  # RDKit says nothing besides


def test_a_wrong_text_has_its_place_in_the_whole_collection():
    X = [*ALKANES * 3, "C(C"]
    with sm.config(max_memory=2000), pytest.raises(ValueError, match=r"X\[21\] is 'C\(C'"):
        sm.Nystroem(Morgan(), 2, random_state=0).fit(X)
    with pytest.raises(ValueError, match=r"X\[21\] is 'C\(C'"):
        sm.Nystroem(Morgan(), 2, landmarks=[0, 5], random_state=0).fit(as_strings(X))


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [({"radius": -1}, "radius"), ({"radius": 1.5}, "radius"), ({"invariants": "ecfp"}, "'connectivity' or 'features'")],
)
def test_wrong_parameters(parameters, sentence):
    with pytest.raises((ValueError, TypeError), match=sentence):
        Morgan(**parameters)(["C"])


def test_in_pipelines_files_and_searches(tmp_path):
    X = ALKANES + [text + "O" for text in ALKANES]
    y = np.repeat(["alkane", "alcohol"], 7)
    model = sm.recipes.nyshd(Morgan(), n_bits=512, random_state=0).fit(X[::2], y[::2])
    assert model.score(X[1::2], y[1::2]) == 1.0
    for copy in (sm.load(sm.save(model, tmp_path / "m.similia")), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(copy[:-1].transform(X), model[:-1].transform(X))
        assert list(copy[0].landmarks_) == list(model[0].landmarks_)  # plain SMILES
    features = sm.KernelFeatures(Morgan(), 2**16).fit_transform(X)
    np.testing.assert_array_equal((features @ features.T).toarray(), Morgan()(X))
    search = GridSearchCV(sm.KernelSVC(Morgan(normalize=True), C=100.0), {"kernel__radius": [0, 1, 2]}, cv=2).fit(X, y)
    assert search.score(X, y) == 1.0
    machine = sm.KernelRidge(Morgan(normalize=True), "auto").fit(X, [len(text) for text in X])
    assert machine.predict(["CCCCCCO"])[0] == pytest.approx(7, abs=1.0)
    shared = sm.explain(Morgan(), "CCO", "CCCO")
    assert {"[OH][CH2]", "[CH3][CH2]"} <= {part.name for part in shared.parts}


def test_streams_of_smiles():
    X = ALKANES * 3
    model = sm.recipes.nyshd(Morgan(), n_landmarks=5, n_bits=64, random_state=0)[:-1].fit(X)
    bags = pytest.importorskip("dask.bag", reason="Dask is not installed")
    found = model.transform(bags.from_sequence(X, npartitions=3)).compute()
    np.testing.assert_array_equal(found, model.transform(X))


def test_rows_do_not_depend_on_the_other_objects():
    X = SMILES
    kernel = Morgan(normalize=True)
    whole = kernel.features(X, 2**12)
    for i in range(len(X)):
        assert (kernel.features([X[i]], 2**12) != whole[[i]]).nnz == 0
    with sm.config(max_memory=4000):
        assert (kernel.features(X, 2**12) != whole).nnz == 0


# details of atoms in Weisfeiler-Lehman


def test_details_add_the_histogram_of_atoms_with_their_details():
    graphs = from_smiles(SMILES)
    pairs = []
    for g in range(len(graphs)):
        graph = graphs[g]
        pairs.append(Counter(zip(graph.node_labels.tolist(), graph.node_details.tolist(), strict=True)))
    for n_iter in (0, 1, 3):
        with_details = WeisfeilerLehman(n_iter)(graphs)
        without = WeisfeilerLehman(n_iter, details=False)(graphs)
        np.testing.assert_array_equal(with_details, without + inner_products(pairs))
        np.testing.assert_array_equal(WeisfeilerLehman(n_iter)(from_smiles(SMILES, details=False)), without)


def test_details_are_the_atoms_of_morgan_fingerprints():
    plain = [text for text in SMILES if "@" not in text and "13C" not in text]  # and no ring atom with a double bond
    pairs = WeisfeilerLehman(0)(from_smiles(plain)) - WeisfeilerLehman(0, details=False)(from_smiles(plain))
    np.testing.assert_array_equal(pairs, Morgan(radius=0)(plain))


def test_details_of_one_collection_only():
    with pytest.raises(ValueError, match="nodes with details of X with nodes without details of Y"):
        WeisfeilerLehman(1)(from_smiles(["CCO"]), from_smiles(["CCO"], details=False))
    kernel = WeisfeilerLehman(1, details=False)
    assert kernel(from_smiles(["CCO"]), from_smiles(["CCO"], details=False))[0, 0] == kernel(from_smiles(["CCO"]))[0, 0]
