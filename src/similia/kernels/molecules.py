"""Morgan fingerprints of molecules as a kernel: counts of the neighbourhoods of atoms, computed by RDKit.

Counts are not folded to a fixed number of bits, so no two features share a column. If several neighbourhoods consist of
the same bonds, RDKit counts only one of them; `WeisfeilerLehman` on the graphs of `from_smiles` counts all.

Cost: RDKit reads a SMILES twice, to check it and to compare the molecule, in about 0.1 ms each time. It finds the
neighbourhoods of the molecule in 0.03 ms. The counts of landmarks are cached. Objects stay SMILES, so that models,
streams and reports hold strings.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from similia.core.state import count, state
from similia.core.validation import check_choice, check_positive_int
from similia.kernels.counts import Counts, FeatureKernel
from similia.kernels.graphs import vertex_ids
from similia.objects.molecules import SmilesBatch, as_smiles, import_rdkit, parse_smiles
from similia.objects.sequences import offsets_of


@state(radius=count(most=100))  # RDKit takes time for each, however small the molecule
class Morgan(FeatureKernel):
    r"""Morgan kernel: inner product of the counts of atoms' neighbourhoods, as in ECFP fingerprints.

    .. math:: K(x, y) = \sum_a c_a(x) \, c_a(y),

    where c_a(x) is the number of times that the neighbourhood a occurs in x. Each atom has a neighbourhood for each r =
    0, ..., `radius`: the atoms and bonds within r bonds of the atom. If several neighbourhoods consist of the same
    bonds, RDKit counts only one of them. Counts are not folded to a fixed number of bits.

    Parameters
    ----------
    radius : int, default=2
        Largest number of bonds from the centre of a neighbourhood to its border. 2 gives the counts of ECFP4, and 3
        gives the counts of ECFP6; 0 counts atoms.
    use_chirality : bool, default=True
        Whether the handedness of atoms (R or S) and the sides of double bonds (E or Z) distinguish neighbourhoods.
        RDKit's own default is False.
    invariants : {"connectivity", "features"}, default="connectivity"
        Properties by which atoms are distinguished. "connectivity" (ECFP): element, charge, numbers of hydrogens and
        neighbours, isotope, ring membership. "features" (FCFP): the role of the atom (donor, acceptor, aromatic,
        halogen, basic, acidic).
    normalize : bool, default=False
        Divide K(x, y) by sqrt(K(x, x) K(y, y)).

    Raises
    ------
    ValueError
        When called, if a parameter is out of range, or a string is not the SMILES of a valid molecule; the message
        gives the position of the string.
    TypeError
        If an object is neither a string nor an RDKit molecule.
    ModuleNotFoundError
        If RDKit is not installed (``pip install 'similia[molecules]'``).

    Notes
    -----
    Objects are RDKit molecules, or SMILES in a list, an array, a column of a table or any other form that
    `similia.objects.as_strings` takes. RDKit molecules are first converted to SMILES, so conformations are lost and
    hydrogens become implicit. An empty string is a molecule without atoms; its kernel with every other molecule is 0.

    RDKit gives each neighbourhood an id of 32 bits. The probability that at least two of v different neighbourhoods
    share an id is about v**2 / 2**33. A saved model is valid only with versions of RDKit that compute the same ids.

    References
    ----------
    Rogers & Hahn, "Extended-connectivity fingerprints", J. Chem. Inf. Model. 50, 2010.

    Examples
    --------
    Ethanol has one CH3, one CH2 and one OH; propanol has one more CH2:

    >>> from similia.kernels import Morgan
    >>> Morgan(radius=0)(["CCO", "CCCO"])
    array([[3., 4.],
           [4., 6.]])
    >>> Morgan(radius=2, normalize=True)(["CCO", "OCC", "c1ccccc1"]).round(2)
    array([[1., 1., 0.],
           [1., 1., 0.],
           [0., 0., 1.]])
    """

    def __init__(
        self, radius: int = 2, use_chirality: bool = True, invariants: str = "connectivity", normalize: bool = False
    ) -> None:
        self.radius = radius
        self.use_chirality = use_chirality
        self.invariants = invariants
        self.normalize = normalize

    def as_objects(self, X: Any) -> SmilesBatch:
        return as_smiles(X)

    def _counts(self, objects: SmilesBatch) -> Counts:
        generator = self._generator()
        found = [
            generator.GetSparseCountFingerprint(molecule).GetNonzeroElements() for molecule in parse_smiles(objects)
        ]
        offsets = offsets_of(np.fromiter(map(len, found), np.int64, len(found)))
        ids, values = np.empty(offsets[-1], np.uint64), np.empty(offsets[-1])
        for i, counts in enumerate(found):
            ids[offsets[i] : offsets[i + 1]] = [*counts]
            values[offsets[i] : offsets[i + 1]] = [*counts.values()]
        return Counts(offsets, vertex_ids(ids), values)

    def _generator(self) -> Any:
        """Return RDKit's generator of these fingerprints; raise if a parameter is out of range."""
        check_choice(self.invariants, "invariants", ("connectivity", "features"))
        radius = check_positive_int(self.radius, "radius", minimum=0)
        import_rdkit()
        from rdkit.Chem import rdFingerprintGenerator

        roles = rdFingerprintGenerator.GetMorganFeatureAtomInvGen() if self.invariants == "features" else None
        return rdFingerprintGenerator.GetMorganGenerator(
            radius=radius, includeChirality=bool(self.use_chirality), atomInvariantsGenerator=roles
        )
