"""The two DNA data sets that come with similia."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

from similia.datasets._tsv import bunch, parse_tsv

_PROMOTERS = """Promoter gene sequences (UCI, E. coli): 106 DNA sequences of 57 bases over a, c, g, t;
53 promoters (+) and 53 others (-), all distinct.

Molecular Biology (Promoter Gene Sequences), C. Harley, R. Reynolds, M. Noordewier (1990), UCI Machine
Learning Repository, https://doi.org/10.24432/C5S01D, CC BY 4.0."""

_SPLICE = """Splice-junction gene sequences (UCI, Statlog version): 3186 DNA sequences of 60 bases around a
candidate junction: 767 exon-intron (ei), 765 intron-exon (ie), 1654 neither (n).

The letters are A, C, G, T only: of the 15 UCI sequences with ambiguous letters, four (with D, R or S) are
left out and eleven have every N written as G. 3001 sequences are distinct; 125 of them occur more than
once (310 rows), so that a random split can put copies on both sides; one occurs with two labels.

Molecular Biology (Splice-junction Gene Sequences), G. Towell, M. Noordewier, J. Shavlik (1991), UCI
Machine Learning Repository, https://doi.org/10.24432/C5M888, CC BY 4.0, as in the R package mlbench."""


def load_promoters(*, return_X_y: bool = False) -> Any:
    """Load the promoter gene sequences: 106 DNA strings of 57 bases, two balanced classes.

    Parameters
    ----------
    return_X_y : bool
        Whether to return ``(data, target)`` instead of a Bunch.

    Returns
    -------
    sklearn.utils.Bunch
        ``data`` (list of 106 str over a, c, g, t), ``target`` (str array, ``"+"`` is a promoter),
        ``target_names``, ``DESCR``.

    References
    ----------
    UCI Machine Learning Repository, https://doi.org/10.24432/C5S01D (CC BY 4.0).

    Examples
    --------
    >>> from similia.datasets import load_promoters
    >>> X, y = load_promoters(return_X_y=True)
    >>> print(len(X), X[0][:10], y[0])
    106 gccttctcca +
    """
    return _load("promoters.tsv", _PROMOTERS, return_X_y)


def load_splice(*, return_X_y: bool = False) -> Any:
    """Load the splice-junction sequences: 3186 DNA strings of 60 bases, three classes.

    Parameters
    ----------
    return_X_y : bool
        Whether to return ``(data, target)`` instead of a Bunch.

    Returns
    -------
    sklearn.utils.Bunch
        ``data`` (list of 3186 str over A, C, G, T), ``target`` (str array of ``"ei"``, ``"ie"``,
        ``"n"``), ``target_names``, ``DESCR``.

    Notes
    -----
    This is the Statlog version, as in the R package mlbench. Its four letters hide that 15
    sequences of the UCI file hold ambiguous ones: four (with D, R or S) are left out, in eleven every N
    is written as G. 3001 sequences are distinct; 125 of them occur more than once (310 rows, at
    most 5 times), so that a random split can put copies on both sides; one occurs with two labels.

    References
    ----------
    UCI Machine Learning Repository, https://doi.org/10.24432/C5M888 (CC BY 4.0).

    Examples
    --------
    >>> from similia.datasets import load_splice
    >>> splice = load_splice()
    >>> len(splice.data), len(set(splice.data)), splice.target_names
    (3186, 3001, array(['ei', 'ie', 'n'], dtype='<U2'))
    """
    return _load("splice.tsv", _SPLICE, return_X_y)


def _load(file: str, description: str, return_X_y: bool) -> Any:
    text = files("similia.datasets").joinpath("data", file).read_text(encoding="ascii")
    labels, strings = parse_tsv(text, file)
    return bunch(strings, labels, description, return_X_y)
