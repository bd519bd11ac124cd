"""Read molecules from SMILES as graphs, with RDKit (``pip install 'similia[molecules]'``).

The label of an atom is its symbol, as in a networkx graph with nodes labelled "C" and "O", stored as a 64-bit hash. A
fixed table (`graph_batch.SYMBOLS`) recovers symbols from their hashes. Other properties of an atom, such as its charge,
are its *details*, not part of its label: otherwise most neighbourhoods would be unique.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from functools import cache
from typing import Any

from similia.core.text import short
from similia.core.validation import BadType, BadValue
from similia.objects.graph_batch import GraphBatch, Names, read_graph
from similia.objects.graphs import join_parts
from similia.objects.sequences import StringBatch, as_strings
from similia.objects.tables import is_frame, objects_in

_SMILES = re.compile(r"(?:Br|Cl|[BCNOPSFIbcnops]|\[[^\[\]\s]+\]|[-=#$:/\\.()]|\d|%\d\d)+")
_BOND_TYPES = {"-": "SINGLE", "=": "DOUBLE", "#": "TRIPLE", ":": "AROMATIC"}


def from_smiles(smiles: Any, *, hydrogens: bool = False, details: bool = True) -> GraphBatch:
    """Convert molecules from SMILES, a notation of molecules as text, to graphs.

    Parameters
    ----------
    smiles : sequence of n str
        SMILES strings in any form that `as_strings` accepts, such as a list or a column of a table. An empty string is
        a molecule without atoms.
    hydrogens : bool, default=False
        Whether all hydrogens become nodes, including those that are not written in the SMILES.
    details : bool, default=True
        Whether to store, as ``node_details``, properties that distinguish atoms of one element: charge, number of
        hydrogens, number of neighbours, isotope, handedness (R or S), whether aromatic, and whether in a ring.
        By default, `similia.kernels.WeisfeilerLehman` also counts pairs of a label and these details.

    Returns
    -------
    GraphBatch
        Atoms are nodes, labelled by symbol. Bonds are edges, labelled ``-`` (single), ``=`` (double), ``#`` (triple) or
        ``:`` (aromatic, as RDKit decides). A double bond with known geometry is labelled ``=(E)`` or ``=(Z)``, any
        other kind of bond by RDKit's name. Labels are stored as 64-bit hashes; `similia.explain` and reports show the
        symbols.

    Raises
    ------
    ValueError
        If a string is not a SMILES, or if RDKit rejects the molecule, for example because a carbon has five bonds. The
        message gives the position and the string.
    ModuleNotFoundError
        If RDKit is not installed.

    References
    ----------
    Weininger, "SMILES, a chemical language and information system", J. Chem. Inf. Comput. Sci. 28, 1988.

    Examples
    --------
    >>> from similia.objects.molecules import from_smiles
    >>> ethanol, benzene = from_smiles(["CCO", "c1ccccc1"])
    >>> ethanol.n_nodes, benzene.degrees
    (3, array([2, 2, 2, 2, 2, 2]))
    >>> import similia as sm
    >>> [part.name for part in sm.explain(sm.kernels.EdgeHistogram(), ethanol, ethanol).parts]
    ['C-C', 'C-O']
    """
    graphs = read_smiles(smiles, hydrogens)
    return graphs if details else replace(graphs, node_details=None)


def read_smiles(smiles: Any, hydrogens: bool = False, bad: Callable[[int, str], None] | None = None) -> GraphBatch:
    """Return molecules as graphs; ``bad(position, reason)`` is called for each invalid text, which is then left out.

    By default, the first invalid text raises an error.
    """
    Chem, _ = import_rdkit()
    molecules = parse_smiles(smiles, bad)
    return join_parts([read_graph(Chem.AddHs(mol) if hydrogens else mol, Names()) for mol in molecules])


def parse_smiles(
    smiles: Any, bad: Callable[[int, str], None] | None = None, collection: str = "smiles"
) -> Iterator[Any]:
    """Yield an RDKit molecule for each valid text; `bad` as for `read_smiles`; errors call the texts `collection`."""
    Chem, rdBase = import_rdkit()
    with rdBase.BlockLogs():  # otherwise RDKit also prints the errors raised here
        for i, text in enumerate(as_strings(smiles)):
            text = text.decode("ascii", "replace") if isinstance(text, bytes) else text
            letters = text.encode("ascii", "replace").decode()  # RDKit drops others at the ends
            molecule = Chem.MolFromSmiles(letters)
            if molecule is not None:
                yield molecule
                continue
            why = f"{short(text)}, which is {_problem(Chem, letters)}"
            if bad is None:
                raise BadValue(i, f"is {why}", remedy="correct or drop it", collection=collection)
            bad(i, why)


def look_like_smiles(texts: Sequence[str | bytes]) -> bool:
    decoded = [text.decode("ascii", "replace") if isinstance(text, bytes) else text for text in texts]
    marked = sum(bool(re.search(r"[=#(\d]", text)) for text in decoded)
    return 2 * marked >= max(1, len(decoded)) and all(map(_SMILES.fullmatch, decoded))


class SmilesBatch(StringBatch):
    """Texts that RDKit has read as molecules, see `StringBatch` and `as_smiles`."""


def as_smiles(X: Any) -> SmilesBatch:
    """Return SMILES in any form that `as_strings` takes, or RDKit molecules, as a batch of SMILES.

    Raise BadValue, which names the position, if a text is not a SMILES of a valid molecule.
    """
    if isinstance(X, SmilesBatch):
        return X
    if isinstance(X, GraphBatch):
        raise BadType(None, "is a GraphBatch", "SMILES or RDKit molecules", "WeisfeilerLehman compares graphs")
    items = X if isinstance(X, StringBatch) else objects_in(X)
    one_or_unordered = is_frame(items) or isinstance(items, str | bytes | StringBatch | Mapping | Set)
    if not one_or_unordered and hasattr(items, "__len__") and hasattr(items, "__iter__"):
        items = [import_rdkit()[0].MolToSmiles(item) if hasattr(item, "GetAtoms") else item for item in items]
    batch = as_strings(items)
    for _ in parse_smiles(batch, collection="X"):
        continue
    return SmilesBatch(batch.values, batch.offsets, batch.is_bytes)


def canonical_smiles(batch: SmilesBatch) -> SmilesBatch:
    """Return RDKit's canonical SMILES: the same text for a molecule however its atoms were ordered."""
    Chem, _ = import_rdkit()
    texts = as_strings([Chem.MolToSmiles(molecule) for molecule in parse_smiles(batch)])
    return SmilesBatch(texts.values, texts.offsets, texts.is_bytes)


def import_rdkit() -> tuple[Any, Any]:
    try:
        from rdkit import Chem, rdBase
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "SMILES are read by RDKit, which is not installed: pip install 'similia[molecules]'", name=error.name
        ) from None
    return Chem, rdBase


@cache
def has_rdkit() -> bool:
    try:
        from rdkit.Chem import rdDepictor
        from rdkit.Chem.Draw import rdMolDraw2D
    except ImportError:
        return False
    return bool(rdDepictor and rdMolDraw2D)


def in_the_plane(symbols: Sequence[str], bonds: Iterable[tuple[int, int, str]]) -> Any:
    """Return an RDKit molecule with 2-D coordinates, without checks of its chemistry.

    `bonds` are (atom, atom, type), with type ``-``, ``=``, ``#`` or ``:`` (aromatic).
    """
    from rdkit import Chem
    from rdkit.Chem import rdDepictor

    molecule = Chem.RWMol()
    for symbol in symbols:
        atom = Chem.Atom(symbol)
        atom.SetNoImplicit(True)
        molecule.AddAtom(atom)
    for u, v, bond in bonds:
        molecule.AddBond(u, v, getattr(Chem.BondType, _BOND_TYPES[bond]))
        if bond == ":":
            molecule.GetBondBetweenAtoms(u, v).SetIsAromatic(True)
            for end in (u, v):
                molecule.GetAtomWithIdx(end).SetIsAromatic(True)
    molecule.UpdatePropertyCache(strict=False)
    Chem.FastFindRings(molecule)
    rdDepictor.Compute2DCoords(molecule)
    rdDepictor.StraightenDepiction(molecule)
    return molecule


def _problem(Chem: Any, text: str) -> str:
    molecule = Chem.MolFromSmiles(text, sanitize=False)
    if molecule is None:
        return "not valid SMILES"
    problems = [problem.Message() for problem in Chem.DetectChemistryProblems(molecule)]
    return f"not a valid molecule ({problems[0]})" if problems else "not a valid molecule"
