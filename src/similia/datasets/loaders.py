"""Load the bundled data sets, and other data sets from a folder, the cache or the network."""

from __future__ import annotations

import gzip
import hashlib
import os
import sys
import zipfile
import zlib
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from similia.core.errors import BadFile
from similia.datasets._registry import ARCHIVES, BUNDLED, REGISTRY, Archive, Entry, load_archive

_RETRIES = 2
_TIMEOUT = 30  # seconds without a byte

_DAMAGE = (  # errors of the standard library for truncated or altered archives
    zipfile.BadZipFile, gzip.BadGzipFile, zlib.error, EOFError, NotImplementedError, KeyError, UnicodeDecodeError,
)  # fmt: skip


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

    Examples
    --------
    >>> from similia.datasets import load_promoters
    >>> X, y = load_promoters(return_X_y=True)
    >>> print(len(X), X[0][:10], y[0])
    106 gccttctcca +
    """
    return _bundled("promoters", return_X_y)


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
    This is the Statlog version, as in the R package mlbench, without ambiguous letters. Of the 3001 distinct sequences,
    125 occur more than once, so a random split can put copies on both sides. ``DESCR`` has the details.

    Examples
    --------
    >>> from similia.datasets import load_splice
    >>> splice = load_splice()
    >>> len(splice.data), len(set(splice.data)), splice.target_names
    (3186, 3001, array(['ei', 'ie', 'n'], dtype='<U2'))
    """
    return _bundled("splice", return_X_y)


def available() -> list[str]:
    """Return the names of the data sets that `fetch` can load.

    Examples
    --------
    >>> from similia.datasets import available
    >>> available()[:4]
    ['BZR', 'COX2', 'DD', 'ENZYMES']
    """
    return [*REGISTRY, *ARCHIVES, *BUNDLED]


def fetch(
    name: str,
    *,
    return_X_y: bool = False,
    cache: str | os.PathLike[str] | None = None,
    base_url: str | None = None,
) -> Any:
    """Load a data set by name from the ``SIMILIA_DATA`` folder, the cache or the network, in this order.

    Parameters
    ----------
    name : str
        One of `available`. Graphs: ``"MUTAG"``, ``"NCI1"``, ``"NCI109"``, ``"Mutagenicity"``,
        ``"ENZYMES"``, ``"DD"``, ``"BZR"``, ``"COX2"``, ``"REDDIT-BINARY"``; strings: ``"sms_spam"``;
        ``"promoters"`` and ``"splice"``, which are bundled; ``"multiloc_proteins"`` and ``"splice_uci"``, which come
        from the folder only.
        Series, point sets and pictures, such as ``"gunpoint"`` and ``"mnist_train"``, come from the folder only.
    return_X_y : bool
        Whether to return ``(data, target)`` instead of a Bunch.
    cache : path, optional
        Folder for downloads; by default the user's cache folder.
    base_url : str, optional
        Address of a mirror that holds the same archives under the same file names. The default is the environment
        variable ``SIMILIA_MIRROR`` or, if it is not set, the data set's own address.

    Returns
    -------
    sklearn.utils.Bunch
        ``data`` (a `GraphBatch`, `SeriesBatch`, `SetBatch`, a list of str or an array), ``target`` (int64 labels of
        graphs, str labels of strings), ``target_names``, ``DESCR`` (with source and licence); for series, sets and
        pictures also the other columns of their file, such as ``split`` (0 for training, 1 for test).

    Raises
    ------
    ValueError
        If the name is unknown, or a file does not have the expected number of objects, nodes, directed edges or members
        of each class. Files of downloads must also have the known sha256 digests (except the edges of ``DD`` and all of
        ``REDDIT-BINARY``, whose digests are not known).
    ConnectionError
        If the download fails three times. The cache never keeps partial files.
    FileNotFoundError
        If the set is not in ``SIMILIA_DATA`` and has no download address, or the server does not have it.

    Notes
    -----
    ``SIMILIA_DATA`` names a folder with ``graphs/NAME.zip``, ``strings/NAME.tsv.gz`` and ``series/NAME.npz`` (also
    ``sets/`` and ``vectors/``). Their checksums are not compared, as these files may be your own.

    Examples
    --------
    >>> from similia.datasets import fetch
    >>> fetch("promoters").target_names
    array(['+', '-'], dtype='<U1')
    """
    if name in BUNDLED:
        return _bundled(name, return_X_y)
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
    """Return a data set that can only be read from the folder ``SIMILIA_DATA``."""
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
    """Return the path of a data set below ``SIMILIA_DATA``, or None if there is no such folder or file."""
    folder = os.environ.get("SIMILIA_DATA")
    if not folder:
        return None
    path = Path(folder, entry.kind, (entry.file or name) + ending)
    return path if path.exists() else None


def download(name: str, entry: Entry, cache: str | os.PathLike[str] | None, base_url: str | None) -> tuple[Any, Any]:
    """Return ``(data, target)`` from the cache; if the file is missing there or damaged, download it."""
    if entry.url is None:
        raise FileNotFoundError(
            f"{name} has no public download; put {entry.kind}/{name}.tsv.gz (label<TAB>text) into a folder "
            "and set the environment variable SIMILIA_DATA to it"
        )
    import pooch
    from requests.exceptions import RequestException

    folder = Path(cache) if cache is not None else Path(pooch.os_cache("similia"))
    file = entry.url.rpartition("/")[2]
    if (folder / file).exists():
        try:
            return load(folder / file, entry, checksums=True)
        except ValueError:
            (folder / file).unlink()  # damaged: download it again
    url = f"{base_url.rstrip('/')}/{file}" if base_url else entry.url
    downloader = _Downloader(entry)
    store = pooch.create(folder, base_url="", urls={file: url}, registry={file: None}, retry_if_failed=_RETRIES)
    try:
        store.fetch(file, downloader=downloader)
    except (RequestException, ValueError) as error:
        raise ConnectionError(
            f"{name} could not be downloaded from {url} in {_RETRIES + 1} attempts ({error}); try again, or "
            f"download the file yourself into the folder {folder}"
        ) from error
    return downloader.loaded


class _Downloader:
    """Downloader for pooch that checks the file; if the check raises, pooch deletes the file and retries."""

    def __init__(self, entry: Entry) -> None:
        self.entry = entry
        self.loaded: Any = None

    def __call__(self, url: str, output_file: str, pooch: Any) -> None:
        import requests

        with requests.get(url, stream=True, timeout=_TIMEOUT) as response:
            if 400 <= response.status_code < 500:  # retrying will not help
                raise FileNotFoundError(f"{url} is not there (HTTP {response.status_code})")
            response.raise_for_status()
            _save(response, Path(output_file))
        try:
            self.loaded = load(Path(output_file), self.entry, checksums=True)
        except ValueError as error:
            raise ValueError(str(error).replace(str(output_file), "the received file")) from None


def _save(response: Any, path: Path) -> None:
    """Write the body of a response to a file, with a progress bar on a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    size = int(response.headers.get("content-length", 0)) or None
    bar = Progress(*columns, console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty())
    with bar, path.open("wb") as file:
        task = bar.add_task(response.url.rpartition("/")[2], total=size)
        for chunk in response.iter_content(2**16):
            file.write(chunk)
            bar.advance(task, len(chunk))


def load(path: Path, entry: Entry, *, checksums: bool) -> tuple[Any, Any]:
    """Return ``(data, target)`` of a file; raise ValueError if contents (with `checksums`, also digests) are wrong."""
    try:
        if checksums:
            _check_sha256(path, entry)
        data, target = _graphs(path, entry) if entry.kind == "graphs" else _strings(path)
    except FileNotFoundError as error:  # a file inside the archive
        raise ValueError(str(error)) from None
    except _DAMAGE as error:
        raise BadFile(path, f"is damaged or of another kind: {error}") from None
    labels, counts = np.unique(target, return_counts=True)
    found = dict(zip(labels.tolist(), counts.tolist(), strict=True))
    if found != entry.classes:
        raise BadFile(path, f"holds classes {found}, expected {entry.classes}; it is damaged or another version")
    return data, target


def _check_sha256(path: Path, entry: Entry) -> None:
    """Raise if a file inside the archive is missing or has another checksum than expected."""
    with zipfile.ZipFile(path) as archive:
        members = {Path(member).name: member for member in archive.namelist()}
        for file, expected in entry.sha256.items():
            if file not in members:
                raise BadFile(path, f"has no file {file}")
            found = hashlib.sha256(archive.read(members[file])).hexdigest()
            if found != expected:
                raise BadFile(path, f"sha256 is {found}, expected {expected}", at=file)


def _graphs(path: Path, entry: Entry) -> tuple[Any, Any]:
    from similia.objects import read_tudataset

    graphs, y = read_tudataset(path)
    counts = ("nodes", graphs.n_nodes, entry.n_nodes), ("arcs", len(graphs.indices), entry.n_arcs)
    for what, found, expected in counts:
        if found != expected:
            raise BadFile(path, f"holds {found} {what}, expected {expected}; it is damaged or another version")
    return graphs, y


def _strings(path: Path) -> tuple[list[str], Any]:
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            text = archive.read("SMSSpamCollection")
    else:
        text = gzip.decompress(path.read_bytes())
    labels, strings = parse_tsv(text.decode("utf-8"), str(path))
    return strings, labels


def _bundled(name: str, return_X_y: bool) -> Any:
    text = files("similia.datasets").joinpath("data", f"{name}.tsv").read_text(encoding="ascii")
    labels, strings = parse_tsv(text, f"{name}.tsv")
    return bunch(strings, labels, BUNDLED[name], return_X_y)


def parse_tsv(text: str, name: str) -> tuple[npt.NDArray[np.str_], list[str]]:
    """Return the labels and texts of lines ``label<TAB>text``; a text may contain tabs and quotes."""
    lines = text.removesuffix("\n").split("\n")
    pairs = [line.rstrip("\r").partition("\t") for line in lines]
    for number, (_, tab, _) in enumerate(pairs, 1):
        if not tab:
            raise ValueError(f"{name}, line {number}: no tab, expected label<TAB>text; is the file truncated?")
    return np.array([label for label, _, _ in pairs]), [string for _, _, string in pairs]


def bunch(data: Any, target: npt.NDArray[Any], description: str, return_X_y: bool) -> Any:
    """Return ``(data, target)``, or a Bunch that also holds the names of the classes and the description."""
    if return_X_y:
        return data, target
    from sklearn.utils import Bunch

    return Bunch(data=data, target=target, target_names=np.unique(target), DESCR=description)
