"""Data sets that do not come with similia: found in a folder, in the cache, or downloaded and checked."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from similia.datasets import bundled
from similia.datasets._archives import ARCHIVES, Archive, load_archive
from similia.datasets._download import download
from similia.datasets._load import load
from similia.datasets._registry import REGISTRY, Entry
from similia.datasets._tsv import bunch

_BUNDLED = {"promoters": bundled.load_promoters, "splice": bundled.load_splice}


def available() -> list[str]:
    """Return the names that `fetch` knows.

    Examples
    --------
    >>> from similia.datasets import available
    >>> available()[:4]
    ['BZR', 'COX2', 'DD', 'ENZYMES']
    """
    return [*REGISTRY, *ARCHIVES, *_BUNDLED]


def fetch(
    name: str,
    *,
    return_X_y: bool = False,
    cache: str | os.PathLike[str] | None = None,
    base_url: str | None = None,
) -> Any:
    """Load a data set by name: from the ``SIMILIA_DATA`` folder, else the cache, else the network.

    Parameters
    ----------
    name : str
        One of `available`. Graphs: ``"MUTAG"``, ``"NCI1"``, ``"NCI109"``, ``"Mutagenicity"``,
        ``"ENZYMES"``, ``"DD"``, ``"BZR"``, ``"COX2"``, ``"REDDIT-BINARY"``; strings: ``"sms_spam"``,
        ``"multiloc_proteins"`` and ``"splice_uci"`` (from the folder only), ``"promoters"`` and ``"splice"`` (bundled).
        Series, point sets and pictures (from the folder only): ``"gunpoint"``, ``"japanese_vowels"``, ``"pendigits"``,
        ``"flowers_sift"``, ``"mnist_train"`` and others of `available`.
    return_X_y : bool
        Whether to return ``(data, target)`` instead of a Bunch.
    cache : path, optional
        Folder for downloads; the user's cache folder at the start.
    base_url : str, optional
        Address of a mirror that holds the same archives under the same file names; the
        environment variable ``SIMILIA_MIRROR`` at the start, else each data set's own address.

    Returns
    -------
    sklearn.utils.Bunch
        ``data`` (a `GraphBatch`, `SeriesBatch`, `SetBatch`, a list of str or an array), ``target`` (int64 labels of
        graphs, str labels of strings), ``target_names``, ``DESCR`` (with source and licence); for series, sets and
        pictures also the other columns of their file, such as ``split`` (0 for training, 1 for test).

    Raises
    ------
    ValueError
        If the name is unknown, or a file does not hold what it should: every set is held against its
        numbers of objects, nodes, arcs and members of each class; downloads also against the
        sha256 of each file inside whose published bytes are known (all but the edges of ``DD`` and
        ``REDDIT-BINARY``).
    ConnectionError
        If the download fails three times. Nothing half-written is left in the cache.
    FileNotFoundError
        If the set cannot be downloaded and is not in ``SIMILIA_DATA``, or the server does not have it.

    Notes
    -----
    ``SIMILIA_DATA`` names a folder with ``graphs/NAME.zip``, ``strings/NAME.tsv.gz`` and ``series/NAME.npz`` (also
    ``sets/`` and ``vectors/``). What it holds is taken as the user's own: its contents are counted, not compared with
    checksums.

    Examples
    --------
    >>> from similia.datasets import fetch
    >>> fetch("promoters").target_names
    array(['+', '-'], dtype='<U1')
    """
    if name in _BUNDLED:
        return _BUNDLED[name](return_X_y=return_X_y)
    if name in ARCHIVES:
        return _from_folder(name, ARCHIVES[name], return_X_y)
    if name not in REGISTRY:
        raise ValueError(f"unknown data set {name!r}; known are {', '.join(available())}")
    entry = REGISTRY[name]
    path = _in_folder(name, entry, ".zip" if entry.kind == "graphs" else ".tsv.gz")
    if path is not None:
        data, target = load(path, entry, checksums=False)
    else:
        data, target = download(name, entry, cache, base_url or os.environ.get("SIMILIA_MIRROR"))
    return bunch(data, target, entry.description, return_X_y)


def _from_folder(name: str, archive: Archive, return_X_y: bool) -> Any:
    path = _in_folder(name, archive, ".npz")
    if path is None:
        file = f"{archive.kind}/{archive.file or name}.npz"
        raise FileNotFoundError(f"{name} cannot be downloaded; put {file} into a folder and name it in SIMILIA_DATA")
    columns = load_archive(path, archive)
    result = bunch(columns.pop("data"), columns.pop("target"), archive.description, return_X_y)
    if not return_X_y:
        result.update(columns)
    return result


def _in_folder(name: str, entry: Entry | Archive, ending: str) -> Path | None:
    """Return the file below ``SIMILIA_DATA``, or None if there is no such folder or file."""
    folder = os.environ.get("SIMILIA_DATA")
    if not folder:
        return None
    path = Path(folder, entry.kind, (entry.file or name) + ending)
    return path if path.exists() else None
