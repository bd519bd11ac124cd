"""Molecules as graphs, from SMILES, by RDKit (``pip install 'similia[molecules]'``)."""

from __future__ import annotations

from typing import Any

from similia.objects._graphs import GraphBatch
from similia.objects._sequences import _short
from similia.objects.graphs import as_graphs
from similia.objects.strings import as_strings


def from_smiles(smiles: Any, *, hydrogens: bool = False) -> GraphBatch:
    """Return molecules written as SMILES as graphs.

    Parameters
    ----------
    smiles : sequence of n str
        Whatever `as_strings` takes: a list, a column of a table. An empty text is a molecule without atoms.
    hydrogens : bool, default=False
        Make hydrogens nodes, also those that SMILES leave out.

    Returns
    -------
    GraphBatch
        Atoms are nodes, labelled by atomic number; bonds are edges, labelled 1 (single), 2 (double), 3 (triple) or 12
        (aromatic), RDKit's numbers of its bond types. Aromaticity is RDKit's, whichever way the SMILES writes it.

    Raises
    ------
    ValueError
        If a text is no SMILES, or no molecule that RDKit can sanitise (a carbon of five bonds); the sentence names its
        position and the text.
    TypeError
        If `smiles` is one text, or an item is missing or no text.
    ModuleNotFoundError
        If RDKit is not installed.

    See Also
    --------
    as_graphs : Takes RDKit's ``Mol`` objects.

    References
    ----------
    Weininger, "SMILES, a chemical language and information system", J. Chem. Inf. Comput. Sci. 28, 1988.

    Examples
    --------
    >>> from similia.objects.molecules import from_smiles
    >>> ethanol, benzene = from_smiles(["CCO", "c1ccccc1"])
    >>> ethanol.node_labels, benzene.edge_labels
    (array([6, 6, 8]), array([12, 12, 12, 12, 12, 12, 12, 12, 12, 12, 12, 12]))
    >>> from similia.kernels import WeisfeilerLehman
    >>> WeisfeilerLehman(n_iter=1)(from_smiles(["CCO", "OCC"]))
    array([[8., 8.],
           [8., 8.]])
    """
    try:
        from rdkit import Chem, rdBase
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "from_smiles needs RDKit, which is not installed: pip install 'similia[molecules]'", name=error.name
        ) from None
    molecules = []
    with rdBase.BlockLogs():  # RDKit also prints what is raised here
        for i, text in enumerate(as_strings(smiles)):
            text = text.decode("ascii", "replace") if isinstance(text, bytes) else text
            molecule = Chem.MolFromSmiles(text)
            if molecule is None:
                raise ValueError(f"smiles[{i}] is {_short(text)}, which is {_problem(Chem, text)}; correct or drop it")
            molecules.append(Chem.AddHs(molecule) if hydrogens else molecule)
    return as_graphs(molecules)


def _problem(Chem: Any, text: str) -> str:
    """Return what is wrong with a text that is no molecule."""
    molecule = Chem.MolFromSmiles(text, sanitize=False)
    if molecule is None:
        return "no SMILES"
    problems = [problem.Message() for problem in Chem.DetectChemistryProblems(molecule)]
    return f"no molecule ({problems[0]})" if problems else "no molecule"
