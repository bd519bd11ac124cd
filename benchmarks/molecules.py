"""Molecules: the matrix of count Tanimoto similarities, from SMILES, beside RDKit's own."""

from __future__ import annotations

import importlib.util

import numpy as np
from measure import Row, in_turns

from similia.datasets import fetch
from similia.kernels import MinMax, Morgan


def run() -> list[Row]:
    """Return one row; none if RDKit or the molecules of ESOL are missing."""
    if importlib.util.find_spec("rdkit") is None:
        print("skipped: RDKit is not installed")
        return []
    try:
        smiles = list(fetch("ESOL").data)
    except (FileNotFoundError, ValueError, OSError) as error:
        print(f"skipped: {error}")
        return []
    ours, theirs = MinMax(Morgan())(smiles), _bulk(smiles)
    np.testing.assert_array_equal(ours, theirs)
    fast, slow = in_turns(lambda: MinMax(Morgan())(smiles), lambda: _bulk(smiles), rounds=3)
    what = f"`MinMax(Morgan())` of ESOL, {len(smiles)} SMILES, all pairs, the same values: speed"
    return [Row(what, "RDKit BulkTanimotoSimilarity, row by row", slow / fast, at_least=2)]


def _bulk(smiles: list[str]) -> np.ndarray:
    from rdkit import Chem, DataStructs
    from rdkit.Chem import rdFingerprintGenerator

    generator = rdFingerprintGenerator.GetMorganGenerator(radius=2, includeChirality=True)
    found = [generator.GetSparseCountFingerprint(Chem.MolFromSmiles(text)) for text in smiles]
    return np.array([DataStructs.BulkTanimotoSimilarity(one, found) for one in found])


if __name__ == "__main__":
    print(*run(), sep="\n")
