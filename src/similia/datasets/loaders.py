"""Load the bundled data sets, and other data sets from a folder, the cache or the network.

``data/registry.toml`` lists addresses, checksums and expected contents. Checksums are those of the files inside an
archive, so a re-packed archive passes. The class sizes of every data set are also checked, and of graphs the numbers of
nodes and arcs (directed edges).
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import sys
import tomllib
import zipfile
import zlib
from dataclasses import dataclass, field
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from similia.core.text import did_you_mean
from similia.core.validation import BadFile
from similia.objects.sequences import offsets_of

Subset = Literal["all", "train", "test"]

_RETRIES = 2
_TIMEOUT = 30  # seconds without a byte

_DAMAGE = (  # errors of the standard library for truncated or altered archives
    zipfile.BadZipFile, gzip.BadGzipFile, zlib.error, EOFError, NotImplementedError, KeyError, UnicodeDecodeError,
)  # fmt: skip


@dataclass(frozen=True)
class Entry:
    """One downloadable data set: its address, description and expected contents."""

    kind: str  # "graphs" or "strings"; also the name of its folder below those of SIMILIA_DATA
    description: str
    classes: dict[Any, int]  # number of objects with each label
    url: str | None = None
    n_nodes: int | None = None
    n_arcs: int | None = None  # directed edges, after merging repeated lines
    sha256: dict[str, str] = field(default_factory=dict)  # of files inside the archive, by name
    file: str | None = None  # name of the file without ending, if it is not the name of the set

    def files(self, name: str) -> list[str]:
        return [f"{self.kind}/{self.file or name}{'.zip' if self.kind == 'graphs' else '.tsv.gz'}"]


@dataclass(frozen=True)
class Archive:
    """A data set that is only read from the folders of ``SIMILIA_DATA``: its description and expected contents."""

    kind: str  # "series", "sets", "vectors", "strings" or "molecules"; also the name of its folder, without `folder`
    description: str
    n: int
    n_classes: int  # number of distinct targets
    n_values: int  # total number of time points (series), points (sets), vectors or characters (strings, molecules)
    target: str = "y"
    file: str | None = None  # name of the file without ending, if it is not the name of the set
    folder: str | None = None  # name of the folder, if it is not the kind
    n_train: int | None = None  # strings in two files: number of those for training

    def files(self, name: str) -> list[str]:
        text = self.kind in ("strings", "molecules")
        endings = (".train.tsv.gz", ".test.tsv.gz") if self.n_train else (".tsv.gz" if text else ".npz",)
        return [f"{self.folder or self.kind}/{self.file or name}{ending}" for ending in endings]


def _entry(table: dict[str, Any]) -> Entry:
    """Return an `Entry` of the TOML file; labels of graphs become integers, which TOML keys cannot be."""
    if table["kind"] == "graphs":
        table["classes"] = {int(label): n for label, n in table["classes"].items()}
    return Entry(**table)


_SETS = tomllib.loads(files("similia.datasets").joinpath("data", "registry.toml").read_text(encoding="utf-8"))
BUNDLED: dict[str, dict[str, str]] = _SETS["bundled"]  # for each name its "kind" and "description"
REGISTRY = {name: _entry(table) for name, table in _SETS["downloads"].items()}
ARCHIVES = {name: Archive(**table) for name, table in _SETS["archives"].items()}
FOLDS = {"NCI1": "features", "DD": "features", "ENZYMES": "features", "REDDIT-BINARY": "degree"}  # names of splits


def load_promoters(*, return_X_y: bool = False) -> Any:
    """Load the promoter gene sequences: 106 DNA strings of 57 bases, two balanced classes.

    Parameters
    ----------
    return_X_y : bool
        Whether to return ``(data, target)`` instead of a Bunch.

    Returns
    -------
    sklearn.utils.Bunch
        ``data`` (list of 106 str of the letters a, c, g, t), ``target`` (str array of ``"+"`` for promoters and ``"-"``
        for other sequences), ``target_names``, ``DESCR``.

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
        ``data`` (list of 3186 str of the letters A, C, G, T), ``target`` (str array of ``"ei"`` for exon to intron,
        ``"ie"`` for intron to exon, and ``"n"`` for no junction), ``target_names``, ``DESCR``.

    Notes
    -----
    This is the Statlog version, which has no ambiguous letters. Of the 3001 distinct sequences, 125 occur more than
    once, so a random split can put copies of a sequence into both the training and the test part. ``DESCR`` has the
    details.

    Examples
    --------
    >>> from similia.datasets import load_splice
    >>> splice = load_splice()
    >>> len(splice.data), len(set(splice.data)), splice.target_names
    (3186, 3001, array(['ei', 'ie', 'n'], dtype='<U2'))
    """
    return _bundled("splice", return_X_y)


def load_messages(*, return_X_y: bool = False) -> Any:
    """Load 800 text messages, 86 of them spam.

    Parameters
    ----------
    return_X_y : bool
        Whether to return ``(data, target)`` instead of a Bunch.

    Returns
    -------
    sklearn.utils.Bunch
        ``data`` (list of 800 str), ``target`` (str array of ``"ham"`` and ``"spam"``), ``target_names``, ``DESCR``.

    Examples
    --------
    >>> from similia.datasets import load_messages
    >>> X, y = load_messages(return_X_y=True)
    >>> print(y[1], "-", X[1])
    ham - Ok lar... Joking wif u oni...
    """
    return _bundled("messages", return_X_y)


def load_molecules(*, return_X_y: bool = False) -> Any:
    """Load 122 common molecules of 11 families, such as amino acids, sugars, steroids and painkillers.

    Parameters
    ----------
    return_X_y : bool
        Whether to return ``(data, target)`` instead of a Bunch.

    Returns
    -------
    sklearn.utils.Bunch
        ``data`` (list of 122 SMILES strings, which `similia.objects.from_smiles` reads), ``target`` (str array of
        families), ``names`` (str array), ``target_names``, ``DESCR``.

    Examples
    --------
    >>> from similia.datasets import load_molecules
    >>> molecules = load_molecules()
    >>> print(molecules.names[0], molecules.data[0], molecules.target[0])
    glycine NCC(=O)O amino acid
    """
    return _bundled("molecules", return_X_y)


def load_movements(*, return_X_y: bool = False) -> Any:
    """Load 180 movements of Brazilian sign language: series of 45 positions of the hand, 15 balanced classes.

    Parameters
    ----------
    return_X_y : bool
        Whether to return ``(data, target)`` instead of a Bunch.

    Returns
    -------
    sklearn.utils.Bunch
        ``data`` (`SeriesBatch` of 180 series with two channels), ``target`` (str array of ``"1"`` to ``"15"``),
        ``target_names``, ``DESCR``.

    Examples
    --------
    >>> from similia.datasets import load_movements
    >>> X, y = load_movements(return_X_y=True)
    >>> len(X), X[0].shape
    (180, (45, 2))
    """
    return _bundled("movements", return_X_y)


def load_vowels(*, return_X_y: bool = False) -> Any:
    """Load 135 spoken vowels: series of 7 to 26 frames with 12 channels, nine balanced classes (the speakers).

    Parameters
    ----------
    return_X_y : bool
        Whether to return ``(data, target)`` instead of a Bunch.

    Returns
    -------
    sklearn.utils.Bunch
        ``data`` (`SeriesBatch` of 135 series), ``target`` (str array: the speakers ``"1"`` to ``"9"``),
        ``target_names``, ``DESCR``.

    Examples
    --------
    >>> from similia.datasets import load_vowels
    >>> X, y = load_vowels(return_X_y=True)
    >>> len(X), X[0].shape
    (135, (20, 12))
    """
    return _bundled("vowels", return_X_y)


def available() -> list[str]:
    """Return the names of the data sets that `fetch` can load.

    Some are bundled with similia, some are downloaded, and some must be in a folder listed in the environment variable
    ``SIMILIA_DATA``; see `fetch`.

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
    subset: Subset = "all",
    return_X_y: bool = False,
    cache: str | os.PathLike[str] | None = None,
    base_url: str | None = None,
) -> Any:
    """Load a data set by name, from the package, from one of your folders, or by download.

    Parameters
    ----------
    name : str
        One of the names that `available` returns:

        - ``"promoters"``, ``"splice"``, ``"messages"``, ``"molecules"``, ``"movements"`` and ``"vowels"`` are bundled;
        - sets of graphs (``"MUTAG"``, ``"NCI1"``, ``"NCI109"``, ``"Mutagenicity"``, ``"ENZYMES"``, ``"DD"``,
          ``"BZR"``, ``"COX2"``, ``"REDDIT-BINARY"``) and ``"sms_spam"`` (strings) are downloaded, unless they are in a
          folder listed in ``SIMILIA_DATA`` (see Notes) or in the cache;
        - all other sets must be in a folder listed in ``SIMILIA_DATA``: series such as ``"gunpoint"``, strings such as
          ``"multiloc_proteins"`` and ``"CTCF"``, molecules such as ``"ESOL"``, point sets such as ``"flowers_sift"``,
          and vectors such as ``"mnist_train"``.
    subset : {"all", "train", "test"}
        Which objects to load: all objects, or only the published training or test part.
    return_X_y : bool
        Whether to return ``(data, target)`` instead of a Bunch.
    cache : path, optional
        Folder for downloads; by default the user's cache folder.
    base_url : str, optional
        Address of a mirror that holds the same archives under the same file names. The default is the value of the
        environment variable ``SIMILIA_MIRROR``. If this variable is not set, the archive comes from its original
        address.

    Returns
    -------
    sklearn.utils.Bunch
        Its attributes are:

        - ``data``: a `GraphBatch`, `SeriesBatch`, `SetBatch`, list of str or array. Molecules are SMILES strings, which
          `similia.objects.from_smiles` reads;
        - ``target``: class labels (for example, int64 for graphs and str for strings), or measured values for
          molecules such as ``"ESOL"``;
        - ``target_names``: the classes, if there are any;
        - ``DESCR``: a description with source and licence;
        - ``kind``: ``"graphs"``, ``"strings"``, ``"molecules"``, ``"series"``, ``"sets"`` or ``"vectors"``;
        - any other columns of the file, such as ``split`` (0 for training, 1 for test).

    Raises
    ------
    ValueError
        If the name is unknown; if `subset` is not ``"all"`` but the set has no published parts; or if a file is damaged
        or its counts, such as the number of objects, classes or nodes, are not as expected.
    ConnectionError
        If three attempts to download the file fail, or give a file with unexpected contents or sha256 digests. The
        cache keeps no incomplete or unexpected files. (No digests are known for ``REDDIT-BINARY`` and for the edges of
        ``DD``.)
    FileNotFoundError
        If the set must be in a folder listed in ``SIMILIA_DATA`` but is not, or if the server refuses the request (HTTP
        status 400 to 499).

    See Also
    --------
    splits : The published training and test parts, or folds, of a data set as indices.

    Notes
    -----
    The environment variable ``SIMILIA_DATA`` lists folders, separated as in ``PATH`` (by `os.pathsep`). They hold
    ``graphs/NAME.zip``, ``strings/NAME.tsv.gz`` (or ``NAME.train.tsv.gz`` and ``NAME.test.tsv.gz``),
    ``molecules/NAME.tsv.gz``, ``series/NAME.npz``, ``sets/NAME.npz``, ``vectors/NAME.npz`` and, for ``"isolet"`` and
    the three sets ``"emg_patient..."``, ``hdc/NAME.npz``. A few files are not named after their set; if a file is
    missing, the error message names it. The first folder that has the file is used. Digests of these files are not
    checked, since you may have made them.

    Examples
    --------
    >>> from similia.datasets import fetch
    >>> fetch("promoters").target_names
    array(['+', '-'], dtype='<U1')
    """
    if subset not in get_args(Subset):
        raise ValueError(f"subset is {subset!r}; expected one of {', '.join(get_args(Subset))}")
    if name in BUNDLED:
        found = _bundled(name)
    elif name in ARCHIVES:
        found = _from_folder(name, ARCHIVES[name])
    elif name in REGISTRY:
        entry = REGISTRY[name]
        path = data_file(*entry.files(name))
        mirror = base_url or os.environ.get("SIMILIA_MIRROR")
        data, target = load(path, entry, checksums=False) if path else download(name, entry, cache, mirror)
        found = bunch(data, target, entry.description, entry.kind)
    else:
        like = did_you_mean(name, available())
        raise ValueError(f"unknown data set {name!r}{like}; similia.datasets.available() lists them")
    if subset != "all":
        found = _part(name, found, 0 if subset == "train" else 1)
    return (found.data, found.target) if return_X_y else found


def splits(name: str) -> list[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]]:
    """Return the published splits of a data set as indices, for the parameter ``cv`` of scikit-learn.

    Parameters
    ----------
    name : str
        Name of a data set, as in `fetch`. Sets with a published training and test part, such as ``"CTCF"`` and
        ``"gunpoint"``, have one split. ``"NCI1"``, ``"DD"``, ``"ENZYMES"`` and ``"REDDIT-BINARY"`` have ten splits: the
        folds of Errica et al., with the validation objects of each fold added to its training objects. These folds are
        read from ``splits/NAME.json`` in a folder listed in the environment variable ``SIMILIA_DATA`` (see `fetch`).

    Returns
    -------
    list of (ndarray of int64, ndarray of int64)
        For each split, the indices of the training objects and of the test objects.

    Raises
    ------
    ValueError
        If the name is unknown, if the set has no published splits, or if ``splits/NAME.json`` is damaged.
    FileNotFoundError
        If ``splits/NAME.json``, or a data set that cannot be downloaded, is in no folder listed in ``SIMILIA_DATA``.

    References
    ----------
    F. Errica, M. Podda, D. Bacciu, A. Micheli, A fair comparison of graph neural networks for graph classification,
    ICLR 2020.

    Examples
    --------
    >>> import similia as sm
    >>> sm.datasets.splits("promoters")
    Traceback (most recent call last):
    ValueError: promoters has no published training and test parts; split it yourself
    """
    if name in FOLDS:
        path = data_file(f"splits/{name}.json")
        if path is None:
            raise FileNotFoundError(f"splits/{name}.json is missing; put it into a folder that SIMILIA_DATA names")
        return load_folds(path, FOLDS[name], sum(REGISTRY[name].classes.values()))
    split = _split_of(name, fetch(name))
    return [(np.flatnonzero(split == 0), np.flatnonzero(split == 1))]


def _split_of(name: str, found: Any) -> npt.NDArray:
    """Return 0 for each training object and 1 for each test object; raise if the parts are not published."""
    if "split" not in found:
        remedy = "see similia.datasets.splits for its folds" if name in FOLDS else "split it yourself"
        raise ValueError(f"{name} has no published training and test parts; {remedy}")
    return found.split


def _part(name: str, found: Any, part: int) -> Any:
    from similia.objects import take

    split = _split_of(name, found)
    rows = np.flatnonzero(split == part)
    for column, values in found.items():
        if column == "data":
            found[column] = take(values, rows)
        elif isinstance(values, np.ndarray) and len(values) == len(split) and column != "target_names":
            found[column] = values[rows]
    return found


def _from_folder(name: str, archive: Archive) -> Any:
    files = archive.files(name)
    paths = [path for file in files if (path := data_file(file)) is not None]
    if len(paths) < len(files):
        raise FileNotFoundError(
            f"{name} cannot be downloaded; put {' and '.join(files)} into a folder that SIMILIA_DATA names"
        )
    columns = load_archive(paths[0], archive) if paths[0].suffix == ".npz" else _load_texts(paths, archive)
    return bunch(columns.pop("data"), columns.pop("target"), archive.description, archive.kind, **columns)


def _load_texts(paths: list[Path], archive: Archive) -> dict[str, Any]:
    parts = []
    for path in paths:
        try:
            parts.append(_strings(path))
        except _DAMAGE as error:
            raise BadFile(path, f"is damaged or of another kind: {error}") from None
    texts = [text for part, _ in parts for text in part]
    target = np.concatenate([labels for _, labels in parts])
    if archive.kind == "molecules":
        try:
            target = target.astype(np.int64 if archive.n_classes == 2 else np.float64)
        except ValueError as error:
            raise BadFile(paths[0], f"holds a target that is not a number: {error}") from None
    check_contents(paths[0], archive, target, sum(map(len, texts)))
    if len(parts) == 1:
        return {"data": texts, "target": target}
    split = np.repeat(np.arange(2, dtype=np.int8), [len(part) for part, _ in parts])
    return {"data": texts, "target": target, "split": split}


def data_file(*names: str) -> Path | None:
    """Return the path of the first of `names` below the folders of ``SIMILIA_DATA``, or None if none is there."""
    folders = [folder for folder in os.environ.get("SIMILIA_DATA", "").split(os.pathsep) if folder]
    paths = (Path(folder, name) for name in names for folder in folders)
    return next((path for path in paths if path.exists()), None)


def download(name: str, entry: Entry, cache: str | os.PathLike[str] | None, base_url: str | None) -> tuple[Any, Any]:
    """Return ``(data, target)`` from the cache; if the file is missing there or damaged, download it."""
    if entry.url is None:
        raise FileNotFoundError(
            f"{name} has no public download; put {entry.files(name)[0]} (label<TAB>text) into a folder that the "
            "environment variable SIMILIA_DATA names"
        )
    import pooch
    from requests.exceptions import RequestException

    folder = Path(cache) if cache is not None else Path(pooch.os_cache("similia"))
    file = entry.url.rpartition("/")[2]
    if (folder / file).exists():
        try:
            return load(folder / file, entry, checksums=True)
        except ValueError:
            (folder / file).unlink(missing_ok=True)  # damaged: download it again
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
    if downloader.loaded is None:  # another process has put the file there since
        return load(folder / file, entry, checksums=True)
    return downloader.loaded


class _Downloader:
    """Check a file after its download; if the check raises, pooch deletes the file and retries."""

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
        except BadFile as error:  # its path is a temporary name
            raise error.changed(path=error.path.replace(str(output_file), "the received file")) from None


def _save(response: Any, path: Path) -> None:
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
    """Return ``(data, target)`` of a file; raise ValueError for unexpected contents or, with `checksums`, digests."""
    try:
        if checksums:
            _check_sha256(path, entry)
        data, target = _graphs(path, entry) if entry.kind == "graphs" else _strings(path)
    except FileNotFoundError as error:  # a file inside the archive
        raise BadFile(path, f"lacks a file: {error}") from None
    except _DAMAGE as error:
        raise BadFile(path, f"is damaged or of another kind: {error}") from None
    labels, counts = np.unique(target, return_counts=True)
    found = dict(zip(labels.tolist(), counts.tolist(), strict=True))
    if found != entry.classes:
        raise BadFile(path, f"holds classes {found}, expected {entry.classes}; it is damaged or another version")
    return data, target


def _check_sha256(path: Path, entry: Entry) -> None:
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


def _bundled(name: str, return_X_y: bool = False) -> Any:
    from similia.sources.files import read_ts

    kind, description = BUNDLED[name]["kind"], BUNDLED[name]["description"]
    with as_file(files("similia.datasets").joinpath("data", f"{name}.{'ts' if kind == 'series' else 'tsv'}")) as path:
        data: Any
        target: Any
        if kind == "series":
            data, target = read_ts(path)
        else:
            target, data = parse_tsv(path.read_text(encoding="ascii"), path.name)
    columns = {}
    if kind == "molecules":
        data, names = map(list, zip(*(line.split("\t") for line in data), strict=True))
        columns["names"] = np.array(names)
    found = bunch(data, target, description, kind, **columns)
    return (found.data, found.target) if return_X_y else found


def parse_tsv(text: str, name: str) -> tuple[npt.NDArray[np.str_], list[str]]:
    """Return the labels and texts of lines ``label<TAB>text``; a text may contain tabs and quotes."""
    lines = text.removesuffix("\n").split("\n")
    pairs = [line.rstrip("\r").partition("\t") for line in lines]
    for number, (_, tab, _) in enumerate(pairs, 1):
        if not tab:
            raise BadFile(name, "no tab, expected label<TAB>text; is the file truncated?", at=f"line {number}")
    return np.array([label for label, _, _ in pairs]), [string for _, _, string in pairs]


def bunch(data: Any, target: npt.NDArray[Any], description: str, kind: str, **columns: Any) -> Any:
    from sklearn.utils import Bunch

    if target.dtype.kind != "f":  # classes
        columns["target_names"] = np.unique(target)
    return Bunch(data=data, target=target, DESCR=description, kind=kind, **columns)


def load_archive(path: Path, archive: Archive) -> dict[str, Any]:
    """Return ``data``, ``target`` and other columns of a file; points stored as bytes become float32."""
    from similia.objects import SeriesBatch, SetBatch

    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as file:
            columns = {name: file[name] for name in file.files}
        values = columns.pop("x") if archive.kind == "vectors" else columns.pop("values")
        target = columns.pop(archive.target)
        target = target.astype(np.int64) if target.dtype.kind in "iu" else target
        lengths = None if archive.kind == "vectors" else columns.pop("lengths")
    except (zipfile.BadZipFile, OSError, EOFError, KeyError, ValueError) as error:
        raise BadFile(path, f"is damaged or of another kind: {error}") from error
    check_contents(path, archive, target, len(values))
    if lengths is None:
        return {"data": values, "target": target, **{name: c for name, c in columns.items() if c.ndim}}
    check_contents(path, archive, target, int(lengths.sum()))
    columns = {name: column for name, column in columns.items() if column.shape[:1] == (archive.n,)}
    kind = SeriesBatch if archive.kind == "series" else SetBatch
    try:
        batch = kind(values.astype(np.float32, copy=False), offsets_of(lengths))
        batch._check()
    except (TypeError, ValueError) as error:
        raise BadFile(path, f"is damaged or of another kind: {error}") from error
    if len(batch) != archive.n:
        raise BadFile(path, f"holds {len(batch)} lengths, expected {archive.n}; it is damaged or another version")
    return {"data": batch, "target": target, **columns}


def check_contents(path: Path, archive: Archive, target: npt.NDArray, n_values: int) -> None:
    found = (len(target), len(np.unique(target)), n_values)
    if found != (archive.n, archive.n_classes, archive.n_values):
        raise BadFile(
            path,
            f"holds {found[0]} objects of {found[1]} classes and {found[2]} values, expected {archive.n}, "
            f"{archive.n_classes} and {archive.n_values}; it is damaged or another version",
        )


def load_folds(path: Path, variant: str, n: int) -> list[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]]:
    try:
        folds = json.loads(path.read_text(encoding="utf-8"))["variants"][variant]["folds"]
        pairs = [(np.sort(fold["train"] + fold["validation"]), np.sort(fold["test"])) for fold in folds]
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise BadFile(path, f"is damaged or of another kind: {error}") from error
    for number, (train, test) in enumerate(pairs):
        if not np.array_equal(np.sort(np.concatenate([train, test])), np.arange(n)):
            raise BadFile(path, f"does not hold each of {n} objects once; it is damaged", at=f"fold {number}")
    return pairs
