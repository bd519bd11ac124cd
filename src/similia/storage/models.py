"""Models on disk, without pickle: a loaded file cannot run code.

A model is a zip archive of arrays and one JSON description (the skops format), which names the version of similia
that wrote it. On loading, every class that the description names must be on a literal list: similia's own classes
below and what `estimators` adds of scikit-learn. Functions are never loaded, but for ufuncs.
"""

from __future__ import annotations

import io
import json
import os
import stat
import tempfile
import zipfile
from pathlib import Path
from typing import IO, Any

from similia._version import __version__
from similia.core.text import _short
from similia.storage.model_file import Builder, canonical, check_model_file, refused_names, written_by
from similia.storage.states import check_states, written

_HEADER = "similia-model"

# Literal names, never a prefix: a trusted prefix would load anything that a module re-exports.
_TRUSTED = (
    "similia.pipelines.Pipeline",
    "similia.objects.transformers.AttributeScaler",
    "similia.objects.transformers.FromColumn",
    "similia.objects.strings.StringBatch",
    "similia.objects.graphs.GraphBatch",
    "similia.objects.series.SeriesBatch",
    "similia.objects.sets.SetBatch",
    "similia.kernels.strings.Spectrum",
    "similia.kernels.strings.GappyKmers",
    "similia.kernels.strings.Mismatch",
    "similia.kernels.strings.WeightedDegree",
    "similia.kernels.propagation.Propagation",
    "similia.kernels.graphs.WeisfeilerLehman",
    "similia.kernels.graphs.ShortestPath",
    "similia.kernels.graphs.VertexHistogram",
    "similia.kernels.graphs.EdgeHistogram",
    "similia.kernels.series.GlobalAlignment",
    "similia.kernels.from_distance.FromDistance",
    "similia.kernels.from_distance.DistanceRBF",
    "similia.kernels.from_distance.NegativeDistance",
    "similia.kernels.combine.Sum",
    "similia.kernels.combine.Product",
    "similia.kernels.combine.Normalized",
    "similia.distances.edit.Levenshtein",
    "similia.distances.edit.Hamming",
    "similia.distances.edit.DamerauLevenshtein",
    "similia.distances.edit.JaroWinkler",
    "similia.distances.dtw.DTW",
    "similia.distances.elastic.ERP",
    "similia.distances.elastic.MSM",
    "similia.distances.elastic.TWE",
    "similia.distances.elastic.LCSS",
    "similia.distances.elastic.SoftDTW",
    "similia.distances.sets.ModifiedHausdorff",
    "similia.distances.sets.Hausdorff",
    "similia.distances.sets.Chamfer",
    "similia.distances.sets.SlicedWasserstein",
    "similia.embeddings.d2ke.D2KE",
    "similia.learn.d2ke_search.D2KESearch",
    "similia.embeddings.random_objects.RandomStrings",
    "similia.embeddings.random_objects.RandomSeries",
    "similia.embeddings.random_objects.RandomSets",
    "similia.embeddings.random_objects.Representatives",
    "similia.embeddings.random_objects.Mosaics",
    "similia.embeddings.random_objects.Mixture",
    "similia.embeddings.pseudo_euclidean.PseudoEuclidean",
    "similia.kernels.graphs.Graphlet",
    "similia.kernels.vectors.Optical",
    "similia.kernels.hypersphere.Cosine",
    "similia.kernels.heat.HypersphericalHeat",
    "similia.embeddings.heat_features.HeatRandomFeatures",
    "similia.learn.heat_svc.HeatSVC",
    "similia.distances.mmd.MMD",
    "similia.embeddings.random_features.OpticalRandomFeatures",
    "similia.embeddings.graphlets.GraphletSampling",
    "similia.embeddings.vectors.FeatureScaler",
    "similia.embeddings.graphlets.Match",
    "similia.embeddings.graphlets.MatchClasses",
    "similia.embeddings.graphlets.Quadratic",
    "similia.embeddings.graphlets.Waves",
    "similia.embeddings.graphlets.PerPattern",
    "similia.embeddings.graphlets.Spectra",
    "similia.embeddings.nystroem.Nystroem",
    "similia.embeddings.kernel_features.KernelFeatures",
    "similia.codes.sign_projection.SignRandomProjection",
    "similia.codes.generalized_nystroem.GeneralizedNystroemPCA",
    "similia.codes.itq.ITQ",
    "similia.codes.itq.SignCodes",
    "similia.codes.ngram.NGramEncoder",
    "similia.codes.graphhd.GraphHDEncoder",
    "similia.codes.levels.LevelEncoder",
    "similia.codes.sequence.SequenceEncoder",
    "similia.codes.fractional_power.FractionalPowerEncoder",
    "similia.codes.records.RecordEncoder",
    "similia.learn.hd_classifier.HDClassifier",
    "similia.learn.kernel_machines.KernelSVC",
    "similia.learn.kernel_machines.KernelRidge",
    "similia.learn.kernel_machines.KernelSVR",
    "similia.learn.vote.VoteClassifier",
    "similia.learn.vote.VoteRegressor",
    "similia.embeddings.vectors.SeriesVectors",
    "similia.adapters.series.AeonDistance",
    "similia.adapters.series.TslearnDistance",
    "similia.adapters.series.TslearnKernel",
    "similia.adapters.transport.POTDistance",
    "similia.learn.neighbors.KNeighborsClassifier",
    "similia.learn.neighbors.KNeighborsRegressor",
    "similia.selection.auto.AutoClassifier",
    "similia.selection.auto.AutoRegressor",
    "similia.search.hamming_index.HammingIndex",
    "similia.search.similarity_search.SimilaritySearch",
)


def save(model: Any, path: str | os.PathLike[str] | IO[bytes]) -> Any:
    """Write a fitted model to one file.

    The file appears complete or not at all: it is written beside `path` and then moved there. Saving a model twice
    gives the same bytes.

    Parameters
    ----------
    model : object
        A similia or scikit-learn estimator, or a pipeline of them.
    path : str, path or binary file
        Where to write; the folder must exist. A binary file, such as `io.BytesIO`, is written to where it stands.

    Returns
    -------
    pathlib.Path or binary file
        `path`.

    Raises
    ------
    ValueError
        If the model holds something that `load` would refuse: a user's kernel or distance, or parts of scikit-learn
        that cannot be checked (k-d trees, histogram gradient boosting). The sentence names it and the way out.

    Examples
    --------
    >>> import similia as sm, tempfile, os
    >>> path = os.path.join(tempfile.mkdtemp(), "kernel.similia")
    >>> _ = sm.save(sm.kernels.Spectrum(k=4), path)
    >>> sm.load(path)
    Spectrum(k=4)
    """
    target = _file_or_path(path, "write")
    if isinstance(target, Path) and not target.parent.is_dir():
        raise FileNotFoundError(f"the folder {target.parent} does not exist; make it first")
    data = _dumped({"format": _HEADER, "model": model})
    refused = _refused(data)
    if refused:
        held = [name for name in refused if not name.startswith("similia.")] or refused  # not what wraps a function
        raise ValueError(
            f"the model holds {', '.join(held)}, which a saved file may not contain (loading it could run code); "
            f"{_way_out(held)}"
        )
    try:
        check_states(model, written)
    except ValueError as error:
        raise ValueError(f"the model cannot be saved: {error}") from None
    if isinstance(target, Path):
        write_atomically(target, data)
    else:
        target.write(data)
    return target


def _file_or_path(path: Any, method: str) -> Any:
    """Return a path, or a binary file as it is."""
    if hasattr(path, method):
        if isinstance(path, io.TextIOBase):
            raise TypeError("the file is open for text; open it for bytes, with mode 'wb' or 'rb'")
        return path
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"path must be a str, a path or a binary file, got {type(path).__name__}")
    return Path(path)


def _dumped(content: Any) -> bytes:
    from skops.io import dumps

    return canonical(dumps(content), similia=__version__)


def refused_types(model: Any) -> list[str]:
    """Return the names of the classes and functions in `model` for which `save` refuses it, sorted."""
    return _refused(_dumped(model))


def _refused(data: bytes) -> list[str]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return refused_names(json.loads(archive.read("schema.json")), _TRUSTED)


def _way_out(held: list[str]) -> str:
    """Return what a user can do whose model holds these classes and functions."""
    trusting = "joblib.dump(model, path) and joblib.load, for files from those you trust"
    if any(name.startswith(("sklearn.model_selection.", "sklearn.metrics._scorer.")) for name in held):
        return "save search.best_estimator_ instead of the search"
    if all(name.startswith("sklearn.") for name in held):
        return f"end it with a learner of arrays, such as LinearSVC, or write {trusting}"
    return (
        "use the kernels and distances of similia, kernel='precomputed' with your function kept in your own program, "
        f"or {trusting}"
    )


def write_atomically(path: Path, data: bytes) -> None:
    """Write `data` to `path`: beside it first, then moved there, so that the file is complete or not there."""
    mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else 0o666 & ~_umask()
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, mode)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def load(path: str | os.PathLike[str] | IO[bytes]) -> Any:
    """Read a model that `save` wrote.

    Parameters
    ----------
    path : str, path or binary file
        A binary file, such as `io.BytesIO`, is read from where it stands to its end.

    Returns
    -------
    object
        The model, with the same parameters and fitted state.

    Raises
    ------
    ValueError
        If the file is truncated, corrupted, of another program, or names a class that is not on
        the list of classes that may be loaded. The sentence names the version of similia that wrote the file if it is
        another one.
    FileNotFoundError
        If there is no such file.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import similia as sm
    >>> model = sm.Nystroem(sm.kernels.Spectrum(k=2), 2, random_state=0).fit(["GATTACA", "CATGAG", "TTAC"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = sm.save(model, pathlib.Path(folder, "letters.similia"))
    ...     sm.load(path).transform(["TACA"]).shape
    (1, 2)
    """
    source = _file_or_path(path, "read")
    if not isinstance(source, Path):
        return _load(io.BytesIO(source.read()), "the file")
    if (source / "search.similia").is_file():
        raise ValueError(f"{source} is the folder of a search; similia.SimilaritySearch.load({str(source)!r}) reads it")
    if not source.is_file():
        raise FileNotFoundError(f"no model at {source}; similia.save(model, path) writes one")
    with source.open("rb") as stream:
        return _load(stream, str(source))


def _load(stream: IO[bytes], name: str) -> Any:
    try:
        return _read(stream)
    except ValueError as error:
        writer = written_by(stream)
        other = f" (similia {writer} wrote it; this is {__version__})" if writer not in (None, __version__) else ""
        raise ValueError(f"{name} {error}{other}") from error.__cause__


def _read(stream: IO[bytes]) -> Any:
    """Return the model of a file, or raise what to say of it behind its name."""
    schema = check_model_file(stream)
    try:
        refused = refused_names(schema, _TRUSTED)
        if refused:
            held = _short(", ".join(refused), 200)[1:-1]
            raise _NotLoadedError(f"was not loaded: it holds {held}, which a model file may not contain")
        with zipfile.ZipFile(stream) as archive:
            content = Builder(archive).make(schema)
        check_states(content)
    except _NotLoadedError:
        raise
    except (Exception, RecursionError, MemoryError) as error:  # whatever a part raises that was tampered with
        problem = _short(f"{type(error).__name__}: {error}", 200)[1:-1]
        raise ValueError(f"is not a model that similia.save wrote ({problem})") from error
    if not isinstance(content, dict) or content.get("format") != _HEADER or "model" not in content:
        raise ValueError("was written by another program; similia.save(model, path) writes what load reads")
    return content["model"]


class _NotLoadedError(ValueError):
    """The file names what may not be loaded."""
