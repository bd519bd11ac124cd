"""Molecules as graphs: RDKit's Mol objects and SMILES."""

from __future__ import annotations

import subprocess
import sys

import networkx as nx
import numpy as np
import pandas as pd
import pytest

import similia as sm
from similia.objects import as_graphs
from similia.objects.graph_batch import SYMBOLS, atom_text
from similia.objects.molecules import as_smiles, from_smiles, look_like_smiles

Chem = pytest.importorskip("rdkit.Chem", reason="RDKit is not installed (extra: molecules)")

SMILES = ["CCO", "c1ccccc1", "C#N", "CC(=O)O", "[Na+].[Cl-]", "C"]


def hashed(text):
    """The label of a text as the batch holds it: that of a networkx node with this label."""
    graph = nx.Graph()
    graph.add_node(0, label=text)
    return int(as_graphs([graph]).node_labels[0])


def by_hand(i):
    """Symbols and bonds of each of SMILES, written by hand."""
    carbons = [(k, (k + 1) % 6, ":") for k in range(6)]
    return [
        (["C", "C", "O"], [(0, 1, "-"), (1, 2, "-")]),
        (["C"] * 6, carbons),
        (["C", "N"], [(0, 1, "#")]),
        (["C", "C", "O", "O"], [(0, 1, "-"), (1, 2, "="), (1, 3, "-")]),
        (["Na", "Cl"], []),
        (["C"], []),
    ][i]


@pytest.mark.parametrize("i", range(len(SMILES)))
def test_atoms_and_bonds_are_those_of_the_formula(i):
    atoms, bonds = by_hand(i)
    graph = from_smiles(SMILES)[i]
    assert graph.node_labels.tolist() == [hashed(atom) for atom in atoms]
    bonds = [(a, b, hashed(bond)) for a, b, bond in bonds]
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
    "no SMILES": (["CCO", "C(C"], ValueError, r"smiles\[1\] is 'C\(C', which is not valid SMILES; correct or drop it"),
    "words": (["ethanol"], ValueError, r"smiles\[0\] is 'ethanol', which is not valid SMILES"),
    "five bonds": (["CCO", "C", "C(C)(C)(C)(C)C"], ValueError, r"smiles\[2\] is .*not a valid molecule \(Expl"),
    "an open ring of aromatic atoms": (["c1cccc1"], ValueError, r"smiles\[0\] is 'c1cccc1', .* not a valid molecule"),
    "cut short by an editor": (["CCO…"], ValueError, r"smiles\[0\] is 'CCO…', which is not valid SMILES"),
    "bytes of no letter": (["CCO…".encode()], ValueError, r"smiles\[0\] is 'CCO.*', which is not valid SMILES"),
    "half a letter": (["CCO\ud800"], ValueError, r"smiles\[0\] is .*which is not valid SMILES"),
    "one text": ("CCO", TypeError, r"write \[x\]"),
    "missing": (["CCO", None], TypeError, r"X\[1\] is missing"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_no_molecule_is_named_by_position_and_text(case, capfd):
    smiles, error, sentence = WRONG[case]
    with pytest.raises(error, match=sentence):
        from_smiles(smiles)
    assert capfd.readouterr() == ("", "")  # RDKit says nothing besides


@pytest.mark.parametrize(
    ("X", "said"),
    [
        ({"CCO", "C"}, "is set, expected an ordered collection"),
        ({"CCO": 1}, "is dict, expected an ordered collection"),
        (pd.DataFrame({"CCO": ["C"], "C": ["N"]}), "is a table of 2 columns"),
    ],
)
def test_what_has_no_order_or_several_columns_is_no_smiles(X, said):
    with pytest.raises(TypeError, match=said):
        as_smiles(X)


def test_a_molecule_that_rdkit_could_not_read_is_named():
    with pytest.raises(TypeError, match=r"graph 1 is NoneType \(None\)"):
        as_graphs([Chem.MolFromSmiles("C"), None])
    with pytest.raises(TypeError, match=r"is one Mol, .*write \[graph\]"):
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


ACIDS = ["CC(=O)O", "CCC(=O)O", "c1ccccc1C(=O)O", "CC#N"]


def named(kernel, x, y):
    return {part.name: part.contribution for part in sm.explain(kernel, x, y).parts}


def test_explanations_name_atoms_and_bonds_without_being_told(tmp_path):
    kernel, batch = sm.kernels.EdgeHistogram(), from_smiles(ACIDS)
    model = sm.Nystroem(kernel, 2, landmarks=[0, 1], random_state=0).fit(batch)
    loaded = sm.load(sm.save(model, tmp_path / "m.similia")).landmarks_
    apart = sm.objects.concatenate([batch[:1], batch[1:]])
    for graphs in (batch, batch.take([0, 1, 2]), apart, loaded, list(batch), list(map(Chem.MolFromSmiles, ACIDS))):
        assert named(kernel, graphs[0], graphs[1]) == {"C-C": 2.0, "C=O": 1.0, "C-O": 1.0}
    assert named(kernel, batch[2], batch[2]) == {"C:C": 36.0, "C-C": 1.0, "C=O": 1.0, "C-O": 1.0}
    assert named(kernel, batch[3], batch[3]) == {"C-C": 1.0, "C#N": 1.0}
    trees = named(sm.kernels.WeisfeilerLehman(n_iter=1), batch[0], batch[1])
    whole = {"C": 6.0, "O": 4.0, "C(-C)": 1.0, "C(-C, -O, =O)": 1.0, "O(=C)": 1.0, "O(-C)": 1.0}
    assert trees == whole | {"[C;H3;X4]": 1.0, "[C;H0;X3]": 1.0, "[O;H0;X1]": 1.0, "[O;H1;X2]": 1.0}
    assert named(sm.kernels.WeisfeilerLehman(n_iter=1, details=False), batch[0], batch[1]) == whole
    assert "atom 1, Na" in sm.explain(kernel, from_smiles(["C[Na]"])[0], batch[0]).to_html()


def test_numbers_of_other_data_sets_are_not_taken_for_atoms():
    graph = ([[0, 1], [1, 0]], 2, {"node_labels": [6, 8]})
    assert named(sm.kernels.EdgeHistogram(), graph, graph) == {"6-8": 1.0}


def test_names_that_are_given_come_before_symbols():
    graph = from_smiles(["CO"])[0]
    found = sm.explain(sm.kernels.EdgeHistogram(), graph, graph, label_names={hashed("C"): "carbon"})
    assert [part.name for part in found.parts] == ["O-carbon"]


def test_molecules_are_the_graphs_of_other_libraries_with_these_symbols():
    water = nx.Graph([(0, 1), (0, 2)])
    nx.set_node_attributes(water, {0: "O", 1: "H", 2: "H"}, "label")
    nx.set_edge_attributes(water, "-", "label")
    kernel = sm.kernels.WeisfeilerLehman(n_iter=2, normalize=True)
    assert kernel([water], from_smiles(["O"], hydrogens=True, details=False))[0, 0] == 1.0
    with pytest.raises(ValueError, match="nodes without details of X with nodes with details of Y"):
        kernel([water], from_smiles(["O"], hydrogens=True))
    kernel.set_params(details=False)
    assert kernel([water], from_smiles(["O"], hydrogens=True))[0, 0] == 1.0


def test_every_element_has_its_symbol():
    table = Chem.GetPeriodicTable()
    atoms = [Chem.Atom(number) for number in range(119)]
    for atom in atoms:
        molecule = Chem.RWMol()
        molecule.AddAtom(atom)
        symbol = "*" if atom.GetAtomicNum() == 0 else table.GetElementSymbol(atom.GetAtomicNum())
        (part,) = sm.explain(sm.kernels.VertexHistogram(), molecule, molecule).parts
        assert part.name == symbol


# details of atoms


DETAILS = {  # atoms as SMARTS: hydrogens, neighbours (with hydrogens), ring, charge, handedness; by hand
    "CC(=O)[O-]": ["[C;H3;X4]", "[C;H0;X3]", "[O;H0;X1]", "[O;H0;X1;-1]"],
    "C1CC1[NH3+]": ["[C;H2;X4;R]", "[C;H2;X4;R]", "[C;H1;X4;R]", "[N;H3;X4;+1]"],
    "C[C@H](N)C(=O)O": ["[C;H3;X4]", "[C;H1;X4;(S)]", "[N;H2;X3]", "[C;H0;X3]", "[O;H0;X1]", "[O;H1;X2]"],  # L-alanine
    "C[C@@H](N)C(=O)O": ["[C;H3;X4]", "[C;H1;X4;(R)]", "[N;H2;X3]", "[C;H0;X3]", "[O;H0;X1]", "[O;H1;X2]"],
    "c1ccsc1C": ["[c;H1;X3;R]", "[c;H1;X3;R]", "[c;H1;X3;R]", "[s;H0;X2;R]", "[c;H0;X3;R]", "[C;H3;X4]"],
    "[13CH3]O": ["[13C;H3;X4]", "[O;H1;X2]"],
    "[Fe+3]": ["[Fe;H0;X0;+3]"],
    "[U-99]": ["[U;H0;X0;-16]"],  # charges are kept up to 15 and -16
}


@pytest.mark.parametrize("smiles", DETAILS)
def test_atoms_have_their_details(smiles):
    graph = from_smiles([smiles])[0]
    atoms = zip(graph.node_labels.tolist(), graph.node_details.tolist(), strict=True)
    assert [atom_text(SYMBOLS[label], detail) for label, detail in atoms] == DETAILS[smiles]


def test_details_of_other_data_sets_are_not_taken_for_those_of_atoms():
    arcs = [[0, 1], [1, 0]]
    one = {"edge_index": arcs, "node_labels": [6, 8], "node_details": [0, 3]}
    other = {"edge_index": arcs, "node_labels": [6, 8], "node_details": [1, 3]}
    kernel = sm.kernels.WeisfeilerLehman(n_iter=0)
    assert named(kernel, one, other) == {"6": 1.0, "8": 1.0, "8[3]": 1.0}
    assert kernel([one, other]).tolist() == [[4.0, 3.0], [3.0, 4.0]]


def test_sides_of_double_bonds_are_read():
    kernel = sm.kernels.EdgeHistogram()
    trans, cis, unknown = from_smiles(["F/C=C/F", "F/C=C\\F", "FC=CF"])
    assert set(named(kernel, trans, trans)) == {"C-F", "C=(E)C"}
    assert set(named(kernel, cis, cis)) == {"C-F", "C=(Z)C"}
    assert set(named(kernel, unknown, unknown)) == {"C-F", "C=C"}
    assert named(kernel, trans, cis) == {"C-F": 4.0}
    butene = from_smiles(["C/C=C/C"])[0]
    found = sm.explain(sm.kernels.WeisfeilerLehman(1), butene, butene)
    assert [part.name for part in found.groups].count("double bond C=C") == 2
    assert "bond-1 atom-1 atom-2" in found.to_html()


def test_a_molecule_that_was_never_sanitised_gets_its_details():
    raw = Chem.MolFromSmiles("C1CC1O", sanitize=False)
    np.testing.assert_array_equal(as_graphs([raw]).node_details, from_smiles(["C1CC1O"]).node_details)
    assert raw.NeedsUpdatePropertyCache()  # the caller's molecule is left as it was


def test_smiles_are_told_from_other_strings():
    assert look_like_smiles(["CCO", "c1ccccc1", "CC(=O)[O-].[Na+]", "Clc1ccc(Br)cc1"])
    assert look_like_smiles([b"CC(C)=O"])
    for others in (
        [],
        ["CCO", "CCN"],  # no bond, branch or ring: may be a protein
        ["c1ccccc1", "tree"],
        ["PNNSCCBO"],
        ["f(x) = 3", "C(=O)"],
        ["ACGT", "CC(=O)O N"],
    ):
        assert not look_like_smiles(others)
