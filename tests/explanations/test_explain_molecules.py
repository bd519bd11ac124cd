"""Molecules in explanations and reports: functional groups and rings by name, drawn by RDKit with bonds and colours."""

import re
from xml.etree import ElementTree

import networkx as nx
import numpy as np
import pytest

import similia as sm
from similia import kernels
from similia.explanations import _views, explain
from similia.explanations._html import as_html
from similia.explanations._views import groups, is_molecule, shade, tables, view_of
from similia.report import _context

pytest.importorskip("rdkit", reason="RDKit is not installed: pip install 'similia[molecules]'")

WL = kernels.WeisfeilerLehman(n_iter=2)
ASPIRIN, PARACETAMOL = "CC(=O)Oc1ccccc1C(=O)O", "CC(=O)Nc1ccc(O)cc1"


def groups_of(smiles):
    view = view_of(sm.objects.from_smiles([smiles]))
    return [(name, atoms.tolist()) for name, atoms in groups(view)]


@pytest.fixture
def without_rdkit(monkeypatch):
    for module in (_views, _context):
        monkeypatch.setattr(module, "has_rdkit", lambda: False)


# whole substructures; what chemists call them


NAMES = {  # atoms are numbered as the SMILES writes them
    ASPIRIN: {"methyl": [0], "ester": [1, 2, 3], "benzene ring": [4, 5, 6, 7, 8, 9], "carboxyl": [10, 11, 12]},
    PARACETAMOL: {"methyl": [0], "amide": [1, 2, 3], "benzene ring": [4, 5, 6, 7, 9, 10], "hydroxyl": [8]},
    "O=[N+]([O-])c1ccc(Cl)cc1": {"nitro": [0, 1, 2], "benzene ring": [3, 4, 5, 6, 8, 9], "chlorine": [7]},
    "CS(=O)(=O)Nc1ccccc1": {"methyl": [0], "sulfonamide": [1, 2, 3, 4], "benzene ring": [5, 6, 7, 8, 9, 10]},
    "N#CCC=C": {"nitrile": [0, 1], "methylene": [2], "double bond C=C": [3, 4]},
    "C1CCCCC1N": {"carbon ring C6": [0, 1, 2, 3, 4, 5], "amine": [6]},
    "CCCCOC": {"carbon chain C4": [0, 1, 2, 3], "ether": [4], "methyl": [5]},
    "CCC(C)=O": {"carbon chain C2": [0, 1], "ketone": [2, 4], "methyl": [3]},
    "c1ccncc1": {"pyridine ring": [0, 1, 2, 3, 4, 5]},
    "c1ccc2[nH]ccc2c1": {"indole": [0, 1, 2, 3, 4, 5, 6, 7, 8]},
    "[Na+].[Cl-]": {"Na": [0], "Cl": [1]},
    "C": {"carbon": [0]},
}


@pytest.mark.parametrize("smiles", NAMES)
def test_groups_have_the_names_that_chemists_use(smiles):
    assert groups_of(smiles) == [*NAMES[smiles].items()]


@pytest.mark.parametrize("smiles", [ASPIRIN, "CN1C=NC2=C1C(=O)N(C(=O)N2C)C", "OC(=O)C1CC1C#CS(=O)(=O)NCF", "CCO.O"])
def test_each_atom_is_in_one_group_and_the_order_of_atoms_does_not_matter(smiles):
    from rdkit import Chem

    expected = sorted(name for name, _ in groups_of(smiles))
    molecule = Chem.MolFromSmiles(smiles)
    assert sorted(v for _, atoms in groups_of(smiles) for v in atoms) == [*range(molecule.GetNumAtoms())]
    rng = np.random.default_rng(0)
    for _ in range(5):
        order = rng.permutation(molecule.GetNumAtoms()).tolist()
        view = view_of(sm.objects.as_graphs([Chem.RenumberAtoms(molecule, order)]))
        assert sorted(name for name, _ in groups(view)) == expected


def test_groups_add_up_to_what_their_atoms_add():
    found = explain(WL, *sm.objects.from_smiles([ASPIRIN, PARACETAMOL]))
    for side, shares in (("in_x", found.shares_x), ("in_y", found.shares_y)):
        mine = [part for part in found.groups if len(getattr(part, side))]
        for part in mine:
            assert part.contribution == pytest.approx(shares[getattr(part, side)].sum())
        assert sum(part.contribution for part in mine) == pytest.approx(found.value)
    sizes = [abs(part.contribution) for part in found.groups]
    assert sizes == sorted(sizes, reverse=True)
    lines = found.to_text().splitlines()
    heads = [i for i, line in enumerate(lines) if line.split()[:1] in (["substructure"], ["part"])]
    assert lines[heads[0]].split()[0] == "substructure"  # above the parts of the kernel
    assert len(heads) == 3  # of x, of y, of parts
    assert re.search(r"benzene ring +[\d.]+ +\d+ +4-9", found.to_text())


def test_other_graphs_have_no_groups():
    cycle = nx.cycle_graph(5)
    assert explain(WL, cycle, cycle).groups == []
    nx.set_node_attributes(cycle, "C", "label")  # atoms whose bonds are not known
    found = explain(WL, cycle, cycle)
    assert found.groups == []
    assert "substructure" not in found.to_text()
    assert "bond-0" not in found.to_html()


def test_every_table_splits_the_whole_value():
    smiles = ["CCC", "CCCC", "CCCCC", "CCCCCC", "CO", "CCO", "CCCO", "CCCCO"]
    model = sm.KernelSVC(kernels.MinMax(kernels.Morgan(radius=1))).fit(smiles, [0, 0, 0, 0, 1, 1, 1, 1])
    found = explain(model, "CCCCCO")
    by_group, by_part = tables(found)
    for table, by, percentages in ((by_group, "substructure", "%"), (by_part, "part", "% of sum |adds|")):
        assert table.heading == f"the decision by {by} (each table splits all of it)"
        assert table.percentages == percentages  # of an intercept and groups of one sign, and of parts of two
        assert [row.name for row in table.rows].count("intercept") == 1
        assert sum(row.amount for row in table.rows) == pytest.approx(found.value)
        assert table.whole == pytest.approx(sum(abs(row.amount) for row in table.rows))
        for shown in (found.to_text(), found.to_html()):
            assert table.heading in shown
            assert percentages in shown
    first = found.to_text().splitlines()[3:]
    assert first[1].split()[:2] == [by_group.rows[0].name, f"{by_group.rows[0].amount:.4g}"]
    assert first[1].split()[2] == f"{100 * by_group.rows[0].amount / found.value:.0f}"
    alone = explain(kernels.WeisfeilerLehman(), nx.path_graph(3), nx.path_graph(4))
    assert [table.heading for table in tables(alone)] == [""]


def test_substructures_that_are_not_listed_are_counted():
    many = ".".join(["CCO", "CN", "CS", "CF", "CCl", "CBr", "CI", "C#N", "C=O", "CC(=O)O", "CCCO"])
    found = explain(WL, *sm.objects.from_smiles([many, "CCO"]))
    table = tables(found)[0]
    smaller = [part for part in found.groups if len(part.in_x)][8:]
    assert table.rows[8].name == f"{len(smaller)} smaller pieces"
    assert table.rows[8].amount == pytest.approx(sum(part.contribution for part in smaller))
    assert sum(row.amount for row in table.rows) == pytest.approx(found.value)


# drawings


def drawings(html):
    return re.findall(r"<svg.*?</svg>", html, re.DOTALL)


def test_molecules_are_drawn_with_bonds_and_the_colours_of_what_atoms_add():
    found = explain(WL, *sm.objects.from_smiles([ASPIRIN, "CCCCCCCCO"]))
    html = found.to_html()
    svgs = drawings(html)
    assert len(svgs) == 2
    assert "<script" not in html
    assert "<?xml" not in html
    for svg, shares in zip(svgs, (found.shares_x, found.shares_y), strict=True):
        ElementTree.fromstring(svg)
        tips = re.findall(r"<title>atom (\d+), (\w+) adds ([^<]*)</title>", svg)
        assert [int(number) for number, *_ in tips] == [*range(len(shares))]
        assert [float(add) for *_, add in tips] == pytest.approx(shares, rel=1e-3, abs=1e-3)
        for v, share in enumerate(shares / np.abs(shares).max()):
            drawn = re.findall(rf"class='atom-{v}'[^>]*fill:(#\w{{6}})", svg)
            assert (shade(share).upper() in drawn) == (share != 0)
    assert len(set(re.findall(r"class='bond-(\d+) ", svgs[0]))) == 13
    assert len(re.findall(r"class='bond-1 atom-1 atom-2'[^>]*stroke:#000000", svgs[0])) == 2  # C=O
    assert len(re.findall(r"class='bond-0 atom-0 atom-1'[^>]*stroke:#000000", svgs[0])) == 1
    assert "stroke-dasharray" in svgs[0]  # aromatic
    assert "stroke-dasharray" not in svgs[1]


def test_without_rdkit_molecules_are_drawn_as_graphs(without_rdkit):
    found = explain(WL, *sm.objects.from_smiles([ASPIRIN, PARACETAMOL]))
    html = found.to_html()
    assert "bond-0" not in html
    assert html.count("<circle") == 13 + 11
    assert "benzene ring" in html
    figure = found.plot().figure
    assert not any(ax.images for ax in figure.axes)
    shown = _context.for_page(_context.look_at(sm.objects.from_smiles([ASPIRIN])))[0]
    assert "xy" not in shown
    assert shown["s"].split() == ["C", "C", "O", "O", "C", "C", "C", "C", "C", "C", "C", "O", "O"]


def test_plots_show_molecules_and_bars_of_their_groups(tmp_path):
    from matplotlib import pyplot as plt

    found = explain(WL, *sm.objects.from_smiles([ASPIRIN, PARACETAMOL]))
    axes, bars = found.plot().figure.axes
    assert len(axes.images) == 2
    for image in axes.images:
        pixels = image.get_array()
        assert pixels[..., :3].min() < 0.1  # bonds
        blue = np.array([int(shade(1.0)[i : i + 2], 16) for i in (1, 3, 5)]) / 255
        assert (np.abs(pixels[..., :3] - blue).max(axis=2) < 0.01).any()
    names = [label.get_text() for label in bars.get_yticklabels()][::-1]
    assert names[0] == f"{found.groups[0].name} of {'x' if len(found.groups[0].in_x) else 'y'}"
    assert names[len(found.groups)] == found.parts[0].name
    axes.figure.savefig(tmp_path / "molecules.png")
    assert is_molecule(view_of(sm.objects.from_smiles(["C"])))
    plt.close("all")


def test_odd_molecules_can_be_drawn():
    odd = [
        "[NH4+].[Cl-]",
        "C",
        "*CC",
        "[2H]O[2H]",
        "C[N+](C)(C)C",
        "c1cc[nH]c1",
        "S(F)(F)(F)(F)(F)F",
        "O=C=O",
        "[H][H]",
    ]
    graphs = sm.objects.from_smiles(odd)
    for i in range(len(odd)):
        assert len(drawings(explain(WL, graphs[i], graphs[i]).to_html())) == 2, odd[i]
    hydrogens = sm.objects.from_smiles(["CCO"], hydrogens=True)
    assert {part.name for part in explain(WL, hydrogens, hydrogens).groups} >= {"hydroxyl", "hydrogen"}
    empty = sm.objects.from_smiles([""])
    assert as_html(explain(WL, empty, empty)).startswith("<div")


def test_reports_know_the_places_and_bonds_of_atoms():
    shown = _context.for_page(_context.look_at(sm.objects.from_smiles(["CC(=O)C#N", "c1ccccc1", "C"])))
    assert shown[0]["g"] == [5, 0, 1, 1, 2, 1, 3, 3, 4]
    assert shown[0]["b"] == "-=-#"
    assert shown[1]["b"] == "::::::"
    for one in shown[:2]:
        places = np.array(one["xy"]).reshape(-1, 2)
        ends = np.array(one["g"][1:]).reshape(-1, 2)
        lengths = np.linalg.norm(places[ends[:, 0]] - places[ends[:, 1]], axis=1)
        np.testing.assert_allclose(lengths, 150, atol=8)  # RDKit's bonds are 1.5 units long
    assert shown[2]["g"] == [1]


def test_reports_explain_by_substructures(tmp_path):
    smiles = [ASPIRIN, PARACETAMOL, "CCO", "CCCO", "c1ccccc1", "Cc1ccccc1", "CC(=O)O", "CCC(=O)O"]
    model = sm.KernelSVC(kernels.WeisfeilerLehman(n_iter=2, normalize=True))
    X, y = sm.objects.from_smiles(smiles), [0, 0, 1, 1, 0, 0, 1, 1]
    page = sm.report.write_report(model.fit(X, y), X, y, tmp_path / "r.html").read_text()
    assert "substructure" in page
    assert "class='bond-0" in page
