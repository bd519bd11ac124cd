"""Molecules as graphs: RDKit's Mol objects and SMILES."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import similia as sm
from similia.objects import as_graphs
from similia.objects.molecules import from_smiles

Chem = pytest.importorskip("rdkit.Chem", reason="RDKit is not installed (extra: molecules)")

SMILES = ["CCO", "c1ccccc1", "C#N", "CC(=O)O", "[Na+].[Cl-]", "C"]


def by_hand(i):
    """Atomic numbers and labelled bonds of each of SMILES, written by hand."""
    carbons = [(k, (k + 1) % 6, 12) for k in range(6)]
    return [
        ([6, 6, 8], [(0, 1, 1), (1, 2, 1)]),
        ([6] * 6, carbons),
        ([6, 7], [(0, 1, 3)]),
        ([6, 6, 8, 8], [(0, 1, 1), (1, 2, 2), (1, 3, 1)]),
        ([11, 17], []),
        ([6], []),
    ][i]


@pytest.mark.parametrize("i", range(len(SMILES)))
def test_atoms_and_bonds_are_those_of_the_formula(i):
    atoms, bonds = by_hand(i)
    graph = from_smiles(SMILES)[i]
    assert graph.node_labels.tolist() == atoms
    expected = {(a, b): label for a, b, label in bonds} | {(b, a): label for a, b, label in bonds}
    arcs = map(tuple, graph.edge_index.T.tolist())
    assert dict(zip(arcs, graph.edge_labels.tolist(), strict=True)) == expected
    assert graph.edge_weights is None
    assert graph.node_attributes is None


def test_molecules_are_graphs_wherever_graphs_are_taken():
    molecules = [Chem.MolFromSmiles(text) for text in SMILES]
    column = pd.Series(molecules, index=range(5, 11))
    kernel = sm.kernels.WeisfeilerLehman(n_iter=2)
    expected = kernel(from_smiles(SMILES))
    for X in (
        molecules,
        column,
        from_smiles(pd.Series(SMILES, dtype="string[pyarrow]")),
        from_smiles(np.array(SMILES)),
    ):
        np.testing.assert_array_equal(kernel(X), expected)
    assert as_graphs(molecules, node_label=None).node_labels is None
    assert as_graphs(molecules, edge_label=None).edge_labels is None


def test_one_molecule_has_one_kernel_value_however_it_is_written():
    kernel = sm.kernels.WeisfeilerLehman(n_iter=3)
    pairs = [("CCO", "OCC"), ("c1ccccc1O", "Oc1ccccc1"), ("C1=CC=CC=C1", "c1ccccc1"), ("CC(=O)O", "OC(C)=O")]
    for one, other in pairs:
        K = kernel(from_smiles([one, other]))
        assert (K[0, 0] == K).all()
    assert (lambda K: K[0, 1] < K[0, 0])(kernel(from_smiles(["CCO", "COC"])))


def test_hydrogens_become_nodes_if_wanted():
    assert from_smiles(["C", "O"], hydrogens=True).node_offsets.tolist() == [0, 5, 8]


def test_an_empty_text_is_a_molecule_without_atoms():
    assert from_smiles(["C", ""]).node_offsets.tolist() == [0, 1, 1]


WRONG = {
    "no SMILES": (["CCO", "C(C"], ValueError, r"smiles\[1\] is 'C\(C', which is no SMILES; correct or drop it"),
    "words": (["ethanol"], ValueError, r"smiles\[0\] is 'ethanol', which is no SMILES"),
    "five bonds": (["CCO", "C", "C(C)(C)(C)(C)C"], ValueError, r"smiles\[2\] is .*no molecule \(Explicit valence"),
    "an open ring of aromatic atoms": (["c1cccc1"], ValueError, r"smiles\[0\] is 'c1cccc1', which is no molecule \("),
    "one text": ("CCO", TypeError, r"write \[x\]"),
    "missing": (["CCO", None], TypeError, r"X\[1\] is missing"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_no_molecule_is_named_by_position_and_text(case, capfd):
    smiles, error, sentence = WRONG[case]
    with pytest.raises(error, match=sentence):
        from_smiles(smiles)
    assert capfd.readouterr() == ("", "")  # RDKit says nothing besides


def test_a_molecule_that_rdkit_could_not_read_is_named():
    with pytest.raises(TypeError, match=r"graph 1 is NoneType \(None\)"):
        as_graphs([Chem.MolFromSmiles("C"), None])
    with pytest.raises(TypeError, match=r"got one Mol; write \[graph\]"):
        as_graphs(Chem.MolFromSmiles("C"))


def test_rdkit_is_imported_only_when_it_is_used():
    code = (
        "import sys, similia.objects.molecules as m, similia as sm; sm.objects.as_graphs\n"
        "assert 'rdkit' not in sys.modules\n"
        "sys.modules['rdkit'] = None\n"
        "try: m.from_smiles(['C'])\n"
        "except ModuleNotFoundError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip().endswith("pip install 'similia[molecules]'"), done.stderr


def test_molecules_to_a_classifier():
    X = ["C" * n + "O" for n in range(1, 13)] + ["C" * n + "N" for n in range(1, 13)]
    y = np.repeat(["alcohol", "amine"], 12)
    model = sm.recipes.nyshd(sm.kernels.WeisfeilerLehman(n_iter=1), n_bits=1024, random_state=0)
    assert model.fit(from_smiles(X[::2]), y[::2]).score(from_smiles(X[1::2]), y[1::2]) > 0.9
