"""All pairs of objects above a similarity or below a distance, in time near-linear in the number of objects.

``method="hashes"`` finds candidates by locality-sensitive hashing and compares each of them exactly:

1. `similia.MinHash` gives each object one key for each of b bands of r hashes. Two objects whose min-max kernel is J
   have the same key in a given band with probability J**r, and in at least one band with probability p(J) = 1 - (1 -
   J**r)**b.
2. Objects with equal keys of a band are candidates. A pair is considered only in the first band in which its keys are
   equal, so no table of pairs is needed. The number of equal hashes of a pair estimates J; the pair is left out if a
   pair at the threshold would hardly have so few.
3. The similarity itself decides. So every pair returned is right, but some pairs may be missing.

For `MinMax`, J is the similarity. For a cosine (`similia.kernels.Cosine`, `Normalized`, and kernels with
``normalize=True``), hashes are signs of random projections, and the expected share of them on which two objects agree
is J = 1 - arccos(cosine) / pi. Strings within an edit distance share k-mers, so J is the min-max kernel of k-mers;
strings shorter than k are compared with all strings of similar length.

**Plan.** r and b (and k) are chosen to minimise the estimated time among those for which a pair at the threshold is
compared with a probability of at least `recall`, on average; a tenth of 1 - `recall` may be lost in step 2. For edit
distances, such pairs are made by random edits of strings of the collection. The number of candidates is estimated from
the values of J among a sample of objects.

**Recall of hashes.** Each pair found agreed in a band with the known probability p(J). So the sum of 1 / p(J) over the
pairs found estimates the number of all pairs that share a feature, except those left out in step 2 (Horvitz & Thompson
1952).

With ``method="neighbours"``, the encoder, that of `similia.search.knn_graph`, is fitted to 1,024 of the objects, and
all pairs of codes are compared: n^2 times four words of 64 bits.

Papers: Broder, "On the resemblance and containment of documents", 1997; Indyk & Motwani, "Approximate nearest
neighbors", STOC 1998; Charikar, "Similarity estimation techniques from rounding algorithms", STOC 2002; Horvitz &
Thompson, "A generalization of sampling without replacement", JASA 1952.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import numpy.typing as npt

from similia.core.config import in_threads, logger_of, track
from similia.core.estimators import is_lazy
from similia.core.text import counted
from similia.core.validation import (
    BadParameter,
    BadValue,
    as_path,
    check_positive_int,
    generator,
    is_finite,
    numbered,
    spawn_seeds,
)
from similia.distances.edit import Levenshtein
from similia.kernels import Cosine, MinMax
from similia.objects import n_objects, take
from similia.objects.sequences import at_least_one
from similia.search import _duplicates_on_disk as disk
from similia.search._join import (
    CHECKED,
    FIT_ON,
    QUERIES,
    Bits,
    Checked,
    Join,
    Limit,
    checked,
    components,
    estimated_recall,
    fitted_to,
    groups_of,
    is_cosine,
    n_letters_compared,
    pairs_to_estimate,
    parts_of,
    plan,
    propose_equal,
    sample_of,
    warn_if_below,
    warn_of_case,
)
from similia.similarity import Floats, Index, Metric, check_direction, metric_from
from similia.sources.dask import as_partitions, check_readable
from similia.sources.source import Source

_EXACT = 2_000  # objects up to which method="auto" compares all pairs
_BUFFER = 2**22  # about how many candidates are collected before they are compared
_SORTED = 4  # bands sorted at once
_LOGGER = logger_of(__name__)
discard = disk.discard


@dataclass(frozen=True, eq=False, repr=False)
class Duplicates:
    """Pairs of near-duplicates among n objects, and the groups that they form.

    Attributes
    ----------
    pairs : ndarray of int64, shape (m, 2)
        Positions of the two objects of each pair, the smaller position first. The rows are sorted.
    values : ndarray of float64, shape (m,)
        The similarity (or distance) of each pair.
    groups : ndarray of int64, shape (n,)
        For each object, the smallest position of an object in its group. Two objects are in one group if a chain of
        pairs connects them; an object without near-duplicates is a group of its own.
    recall : float
        Estimated share of all pairs of near-duplicates that were found; 1.0 if all pairs were compared, NaN if the
        share cannot be estimated, for example because no pair was found.
    similarity : kernel or distance
        The parameter `similarity` of `near_duplicates`, with settings such as ``gamma="median"`` replaced by numbers.
    threshold : float
        The parameter `threshold` of `near_duplicates`.
    relative : bool
        The parameter `relative` of `near_duplicates`.
    method : {"exact", "hashes", "neighbours"}
        How pairs were found; see `near_duplicates`.
    """

    pairs: Index
    values: Floats
    groups: Index
    recall: float
    similarity: Any
    threshold: float
    relative: bool
    method: str

    def __repr__(self) -> str:
        sizes = np.unique(self.groups, return_counts=True)[1]
        members = sizes[sizes > 1]
        recall = "unknown" if np.isnan(self.recall) else f"{self.recall:.3g}"
        groups = f" in {counted(len(members), 'group')} of {members.sum()} objects" if len(members) else ""
        found = f"{counted(len(self.pairs), 'pair')}{groups}; method={self.method!r}, recall {recall}"
        return f"<Duplicates among {counted(len(self.groups), 'object')}: {found}>"

    @property
    def kept(self) -> Index:
        """Positions of the first object of each group, ascending; keep only these to remove near-duplicates."""
        return np.unique(self.groups)

    def check(self, X: Any, n_checked: int = 100, random_state: Any = None) -> Checked:
        """Compare randomly drawn objects with all others, and count how many of their near-duplicates were found.

        Parameters
        ----------
        X : collection of n objects, Source or Dask collection
            The objects that `near_duplicates` searched.
        n_checked : int, default=100
            Number of objects drawn; each is compared with n - 1 others.
        random_state : int, numpy generator or None, default=None
            Source of randomness.

        Returns
        -------
        Checked
            A named tuple. `n_true` is the number of near-duplicates of the drawn objects, and `n_found` is how many of
            these were found. `recall` is ``n_found / n_true``, with a 95 % interval from `low` to `high`. `n_checked`
            is the number of objects drawn.

        Examples
        --------
        >>> import similia as sm
        >>> texts = ["the cat sat on the mat", "the cat sat on a mat", "a dog", "the cat sat on the mat!"]
        >>> found = sm.search.near_duplicates(texts, sm.kernels.MinMax(sm.kernels.Spectrum(3)), 0.7)
        >>> checked = found.check(texts, n_checked=4)
        >>> checked.n_found, checked.n_true, checked.recall
        (2, 2, 1.0)
        """
        metric, n = metric_from(self.similarity, "similarity"), len(self.groups)
        limit = Limit(metric, self.threshold, self.relative)
        n_checked = min(check_positive_int(n_checked, "n_checked"), n)
        sample = generator(random_state).choice(n, n_checked, replace=False)
        X = as_partitions(X).converted(metric.as_objects) if is_lazy(X) else X
        objects = X if isinstance(X, Source) else metric.as_objects(X)
        found = disk.counted(X) if isinstance(X, Source) else n_objects(objects)
        if found != n:
            raise BadValue(None, f"has {found} objects", f"the {n} in which near-duplicates were looked for")
        if isinstance(X, Source):
            parts: Iterator[Any] = (metric.as_objects(chunk.objects) for chunk in X.chunks())
            return checked(limit, self.pairs, n, sample, metric.as_objects(X.take(sample)), parts)
        return checked(limit, self.pairs, n, sample, take(objects, sample), parts_of(objects, n, n_checked))


def near_duplicates(
    X: Any,
    similarity: Any,
    threshold: float,
    *,
    relative: bool = False,
    method: str = "auto",
    recall: float = 0.98,
    random_state: Any = None,
    folder: str | os.PathLike[str] | None = None,
) -> Duplicates:
    """Return the pairs of objects that have at least a given similarity, or at most a given distance.

    For large collections, the default method finds most of these pairs, but not always all; see `method` and `recall`.

    Parameters
    ----------
    X : collection of n objects, Source or Dask collection
        A `similia.sources.Source` (see `similia.sources.open_objects`) or a Dask collection is read in chunks, with the
        same result as for objects in memory, whatever the similarity and method. There is one exception: settings of
        the similarity that are estimated from the objects, such as ``RBF(gamma="median")``, are estimated from a sample
        of 1,024 objects. Memory is bounded by ``config(max_memory=...)``, plus a few whole numbers for each object and
        for each pair found.
    similarity : kernel or distance of similia
        The fast method "hashes" works for ``MinMax(kernel)`` (Jaccard, Tanimoto), `similia.distances.Levenshtein`, and
        cosines of features (`similia.kernels.Cosine`, ``Normalized(kernel)``, kernels with ``normalize=True``).
    threshold : float
        For a kernel, the smallest value of the pairs to return; for a distance, the largest value. An asymmetric
        distance is measured from the earlier object to the later one.
    relative : bool, default=False
        For `Levenshtein`: whether `threshold` is a share of the length of the longer string, such as 0.1 for one edit
        in ten letters.
    method : {"auto", "exact", "hashes", "neighbours"}, default="auto"
        "exact" compares all pairs. "hashes" compares only objects that share a hash key, made by `similia.MinHash` or
        from signs of random projections. "neighbours" works for any similarity. It makes a code of 256 bits for each
        object, compares each object with the 100 objects whose codes are nearest, and measures the share of pairs found
        on a sample. If this share is below `recall`, the pairs found so far are joined into groups, and the objects of
        a group are compared with each other (for at most 200 n pairs in all). "auto" uses "exact" for up to 2,000
        objects. For more objects, it uses "hashes" if this method works for the similarity, otherwise "neighbours".
    recall : float, default=0.98
        Required share of pairs found, below 1. For "hashes": the probability of finding a pair whose value equals the
        threshold; more similar pairs are found with a higher probability. For "neighbours": the share of pairs found,
        measured on a sample of objects.
    random_state : int, numpy generator or None, default=None
        Source of randomness. An integer makes results the same for any number of threads and any
        ``config(max_memory=...)``.
    folder : path, optional
        For a source or Dask collection: folder for intermediate results, new or empty; by default, a temporary folder.
        An interrupted run resumes if you call `near_duplicates` again with the same source, parameters and folder; with
        other parameters, or a function that cannot be pickled, it begins anew and deletes the former results. A source
        of at most 2,000 objects is read into memory if `method` is "auto", and nothing is written. Size of the folder
        with "hashes": for each object, 1 byte per hash, 8 bytes per band (a group of hashes) and 17 more bytes; for
        each pair that is compared, 16 bytes. With "neighbours": for each object, 48 bytes for its code and about 1,600
        bytes for the objects with which it is compared. With either method, each pair found takes another 24 bytes.

    Returns
    -------
    Duplicates
        The pairs, their values, the groups that they form, and the estimated recall. An object without near-duplicates
        is a group of its own. The property ``kept`` of the result holds the position of the first object of each group;
        keep only these objects to remove near-duplicates. The values are exact, so every pair returned is a
        near-duplicate.

    Raises
    ------
    ValueError
        If a parameter is out of range, if `folder` holds files that `near_duplicates` did not write, or if more than
        2**27 pairs are found.
    OSError
        If the disk is full; `folder` keeps the finished part.

    Warns
    -----
    UserWarning
        If "hashes" or "neighbours" cannot reach `recall`; the method then finds as many pairs as it can. Or if some
        sequences are in capitals and others in small letters, and `similarity` does not ignore case.

    Examples
    --------
    >>> import similia as sm
    >>> texts = ["the cat sat on the mat", "the cat sat on a mat", "a dog", "the cat sat on the mat!"]
    >>> found = sm.search.near_duplicates(texts, sm.kernels.MinMax(sm.kernels.Spectrum(3)), 0.7)
    >>> found
    <Duplicates among 4 objects: 1 pair in 1 group of 2 objects; method='exact', recall 1>
    >>> found.pairs, found.values.round(2)
    (array([[0, 3]]), array([0.95]))
    >>> found.kept
    array([0, 1, 2])
    """
    metric = metric_from(similarity, "similarity")
    _check(metric, threshold, relative, method, recall)
    threshold, relative, recall = float(threshold), bool(relative), float(recall)
    if isinstance(X, Source) or is_lazy(X):
        return _elsewhere(metric, X, threshold, relative, method, recall, random_state, folder)
    if folder is not None:
        raise BadParameter("folder", "None for objects in memory", repr(folder), "a Source is read in chunks")
    objects = metric.as_objects(X)
    n = at_least_one(objects)
    check_direction(metric.function, metric.is_kernel, objects, "similarity")
    warn_of_case(objects, metric.function)
    limit = Limit(metric.decided(objects), threshold, relative)
    join = Join(limit, objects)
    if method == "exact" or (method == "auto" and n <= _EXACT) or n < 3:
        share, used = 1.0, "exact"
        join.all_pairs(np.arange(n), np.arange(n))
    elif method == "hashes" or (method == "auto" and has_hashes(limit.metric.function)):
        share, used = _by_hashes(join, recall, random_state), "hashes"
    else:
        share, used = _by_neighbours(join, recall, random_state), "neighbours"
    pairs, values = join.found()
    groups = components([(pairs[:, 0], pairs[:, 1])], n)
    _LOGGER.info("near_duplicates: %d pairs, estimated recall %.3f", len(pairs), share)
    return Duplicates(pairs, values, groups, share, limit.metric.function, limit.threshold, relative, used)


def _elsewhere(
    metric: Metric, X: Any, threshold: float, relative: bool, method: str, recall: float, random_state: Any, folder: Any
) -> Duplicates:
    """Return the near-duplicates among objects of a source or a Dask collection, in bounded memory."""
    folder = None if folder is None else as_path(folder, "folder")
    if folder is not None:
        disk.check_folder(folder)
    source = as_partitions(X, anew=True).converted(metric.as_objects) if is_lazy(X) else X
    check_readable(source)
    hashable = has_hashes(metric.function)
    used = method if method != "auto" else "hashes" if hashable else "neighbours"
    n = disk.counted(source)
    if n < 3 or (method == "auto" and n <= _EXACT):
        objects = disk.whole(source, n) if n else []
        return near_duplicates(objects, metric.function, threshold, relative=relative, random_state=random_state)
    seen = source
    if not isinstance(metric.function, Cosine):
        rows = np.unique(np.linspace(0, n - 1, 1 if hashable else FIT_ON).astype(np.int64))
        seen = disk.taken(metric, source, rows)
        check_direction(metric.function, metric.is_kernel, seen, "similarity")
    limit = Limit(metric.decided(seen), threshold, relative)
    with nullcontext(folder) if folder is not None else TemporaryDirectory(prefix="similia-") as place:
        found = disk.find(limit, source, n, used, recall, random_state, Path(place))
    _LOGGER.info("near_duplicates: %d pairs, estimated recall %.3f", len(found.pairs), found.recall)
    function = limit.metric.function
    return Duplicates(found.pairs, found.values, found.groups, found.recall, function, threshold, relative, used)


def has_hashes(similarity: Any) -> bool:
    """Return whether near-duplicates by a kernel or distance can be found by hashes."""
    return type(similarity) in (MinMax, Levenshtein) or is_cosine(similarity)


def _check(metric: Metric, threshold: Any, relative: bool, method: str, recall: Any) -> None:
    """Raise if a parameter is out of range."""
    if not is_finite(threshold):
        raise BadParameter("threshold", "a finite number", repr(threshold))
    if not metric.is_kernel and threshold < 0:
        raise BadParameter("threshold", "a distance >= 0", repr(threshold))
    if has_hashes(metric.function) and metric.is_kernel and not 0 < threshold <= 1:
        name = type(metric.function).__name__
        raise BadParameter("threshold", f"above 0 and at most 1 for {name}", repr(threshold))
    if relative and type(metric.function) is not Levenshtein:
        raise BadParameter("relative", "False, except for Levenshtein", repr(relative))
    if relative and threshold >= 1:
        share = "below 1 with relative=True: a share of the longer string"
        raise BadParameter("threshold", share, repr(threshold), "for a number of edits, leave relative out")
    if method not in ("auto", "exact", "hashes", "neighbours"):
        raise BadParameter("method", "'auto', 'exact', 'hashes' or 'neighbours'", repr(method))
    if method == "hashes" and not has_hashes(metric.function):
        words = f"'auto', 'exact' or 'neighbours' for {type(metric.function).__name__}"
        raise BadParameter("method", words, repr(method), "MinMax, Levenshtein and cosines of features have 'hashes'")
    if not is_finite(recall) or not 0 < recall < 1:
        raise BadParameter("recall", "a number above 0 and below 1", repr(recall), "method='exact' finds all pairs")


# ---- by hashes
def _by_hashes(join: Join, recall: float, random_state: Any) -> float:
    """Compare the objects that agree in a key; return the estimated recall."""
    seeds = spawn_seeds(random_state, 2)
    rng = generator(seeds[0])
    bands = plan(join.limit, take(join.X, sample_of(join.n, rng)), join.n, recall, rng)
    if bands is None:
        join.all_pairs(np.arange(join.n), np.arange(join.n))
        return 1.0
    _LOGGER.info("near_duplicates: %d bands of %d hashes of %r", bands.bands, bands.rows, bands.kernel)
    keys, hashes, no_features = bands.hashed(bands.hashing(seeds[1]).fit(join.X), join.X)
    for left, right in _with_equal_keys(keys, hashes, bands.least, np.flatnonzero(~no_features)):
        join.compare(left, right)
    if join.limit.is_edits and no_features.any():
        lengths = np.diff(join.X.offsets)
        near = np.flatnonzero(lengths <= n_letters_compared(join.limit, int(lengths[no_features].max())))
        join.all_pairs(near, near)
    pairs, values = join.found()
    if join.limit.is_edits:
        pairs = pairs[pairs_to_estimate(len(pairs))]
        values = MinMax(bands.kernel).paired(join.X, join.X, pairs[:, 0], pairs[:, 1]) if len(pairs) else np.zeros(0)
    return estimated_recall(values, bands)


def _with_equal_keys(
    keys: npt.NDArray[np.uint64], hashes: npt.NDArray[np.uint8], least: int, rows: Index
) -> Iterator[tuple[Index, Index]]:
    """Yield once each pair of `rows`, left < right, that agrees in a column of `keys` and `least` of `hashes`."""
    size = max(_BUFFER // _SORTED, len(rows))

    def propose(band: int) -> Iterator[tuple[Index, Index]]:
        own, at = keys[rows, band], 0
        order = np.argsort(own, kind="stable")
        own, order = own[order], rows[order]
        while at < len(order):
            left, right = np.empty(size, np.int64), np.empty(size, np.int64)
            at, used = propose_equal(keys, hashes, least, order, own, band, at, left, right)
            pairs = left[:used].copy(), right[:used].copy()
            del left, right
            yield pairs

    waiting: list[tuple[Index, Index]] = []
    for first in track(range(0, keys.shape[1], _SORTED), "candidates", -(-keys.shape[1] // _SORTED)):
        bands = [propose(band) for band in range(first, min(keys.shape[1], first + _SORTED))]
        waiting += [pairs for pairs in in_threads(lambda band: next(band, None), bands) if pairs]
        for band in bands:
            for pairs in band:  # more than fit into the arrays
                yield _joined(waiting)
                waiting.append(pairs)
        if sum(len(left) for left, _ in waiting) >= _BUFFER:
            yield _joined(waiting)
    yield _joined(waiting)


def _joined(pairs: list[tuple[Index, Index]]) -> tuple[Index, Index]:
    """Return pairs from several arrays in one pair of arrays, and empty the list."""
    left, right = zip(*pairs, strict=True) if pairs else ([np.empty(0, np.int64)], [np.empty(0, np.int64)])
    pairs.clear()
    return np.concatenate(left), np.concatenate(right)


# ---- by neighbours
def _by_neighbours(join: Join, recall: float, random_state: Any) -> float:
    """Compare each object with those that have the nearest codes and, if that misses too many, all objects of a group.

    Return the recall measured on a sample.
    """
    seeds, n = spawn_seeds(random_state, 2), join.n
    rows = fitted_to(n, seeds[0])
    with numbered(rows):
        encoder = Bits.encoder(join.metric, take(join.X, rows), seeds[0])
    codes = encoder.transform(join.X)
    keys = []
    for start in track(range(0, n, QUERIES), "candidates", -(-n // QUERIES)):
        left, right = Bits.near(codes, start, min(n, start + QUERIES))
        keys.append(np.unique(left * n + right))
    join.compare(*np.divmod(np.unique(np.concatenate(keys)), n))
    sample = generator(seeds[1]).choice(n, min(n, CHECKED), replace=False)
    queries = take(join.X, sample)

    def measured() -> float:
        return checked(join.limit, join.found()[0], n, sample, queries, parts_of(join.X, n, len(sample))).recall

    share = measured()
    if share < recall:
        for left, right in _within_groups(join.found()[0], n):
            join.compare(left, right)
        share = measured()
    warn_if_below(share, recall)
    return share


def _within_groups(pairs: Index, n: int) -> Iterator[tuple[Index, Index]]:
    """Yield all pairs of objects of each group that the pairs form, as `groups_of` says."""
    waiting, n_waiting = [], 0
    for group in groups_of(components([(pairs[:, 0], pairs[:, 1])], n)):
        rows, columns = np.triu_indices(len(group), 1)
        waiting.append((group[rows], group[columns]))
        n_waiting += len(rows)
        if n_waiting >= _BUFFER:
            yield _joined(waiting)
            n_waiting = 0
    yield _joined(waiting)
