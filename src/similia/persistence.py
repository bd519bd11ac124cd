"""Models on disk, without pickle: a loaded file cannot run code.

A model is a zip archive of arrays and one JSON description (the skops format). On loading, every
class that the description names must be on a literal list: similia's own classes below and
scikit-learn's estimators. Functions are never loaded.
"""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path
from typing import Any

from similia._model_file import check_model_file
from similia._states import check_states, written
from similia.objects._sequences import _short

_HEADER = "similia-model"

# Literal names, never a prefix: a trusted prefix would load anything that a module re-exports.
_TRUSTED = (
    "scipy.sparse._csr.csr_matrix",  # arrays, read without pickle; what an SVC on sparse features keeps
    "scipy.sparse._csr.csr_array",
    "similia.pipelines.Pipeline",
    "similia.objects.scaling.AttributeScaler",
    "similia.objects.columns.FromColumn",
    "similia.objects._strings.StringBatch",
    "similia.objects._graphs.GraphBatch",
    "similia.objects._vectors.SeriesBatch",
    "similia.objects._vectors.SetBatch",
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
    "similia.kernels.substitution.DistanceRBF",
    "similia.kernels.substitution.NegativeDistance",
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
    "similia.embeddings.d2ke_search.D2KESearch",
    "similia.embeddings.random_objects.RandomStrings",
    "similia.embeddings.random_objects.RandomSeries",
    "similia.embeddings.random_objects.RandomSets",
    "similia.embeddings.random_objects.Representatives",
    "similia.embeddings.random_objects.Mosaics",
    "similia.embeddings.random_objects.Mixture",
    "similia.embeddings.pseudo_euclidean.PseudoEuclidean",
    "similia.kernels.graphlet.Graphlet",
    "similia.kernels.vectors.Optical",
    "similia.kernels.hypersphere.Cosine",
    "similia.kernels.parametrix.Parametrix",
    "similia.kernels.heat.HypersphericalHeat",
    "similia.embeddings.heat_features.HeatRandomFeatures",
    "similia.learn.heat_svc.HeatSVC",
    "similia.distances.mmd.MMD",
    "similia.embeddings.random_features.OpticalRandomFeatures",
    "similia.embeddings.graphlets.GraphletSampling",
    "similia.embeddings.graphlets.FeatureScaler",
    "similia.embeddings._graphlet_maps.Match",
    "similia.embeddings._graphlet_maps.MatchClasses",
    "similia.embeddings._graphlet_maps.Quadratic",
    "similia.embeddings._graphlet_maps.Waves",
    "similia.embeddings._graphlet_maps.PerPattern",
    "similia.embeddings._graphlet_maps.Spectra",
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
    "similia.codes._records.Bundle",
    "similia.learn.hd_classifier.HDClassifier",
    "similia.learn.kernel_svc.KernelSVC",
    "similia.learn.kernel_regression.KernelRidge",
    "similia.learn.kernel_regression.KernelSVR",
    "similia.learn.vote.VoteClassifier",
    "similia.learn.vote.VoteRegressor",
    "similia.selection.series_vectors.SeriesVectors",
    "similia.adapters.series.AeonDistance",
    "similia.adapters.series.TslearnDistance",
    "similia.adapters.series.TslearnKernel",
    "similia.adapters.transport.POTDistance",
    "similia.learn.neighbors.KNeighborsClassifier",
    "similia.learn.neighbors.KNeighborsRegressor",
    "similia.search.hamming_index.HammingIndex",
    "similia.search.similarity_search.SimilaritySearch",
)


def save(model: Any, path: str | os.PathLike[str]) -> Path:
    """Write a fitted model to one file.

    The file appears complete or not at all: it is written beside `path` and then moved there.

    Parameters
    ----------
    model : object
        A similia or scikit-learn estimator, or a pipeline of them.
    path : str or path
        Where to write; the folder must exist.

    Returns
    -------
    pathlib.Path
        `path`.

    Raises
    ------
    ValueError
        If the model holds something that `load` would refuse: a user's kernel or distance, or what scikit-learn
        compiles (trees, neighbours). The sentence names it and the way out.

    Examples
    --------
    >>> import similia as sm, tempfile, os
    >>> path = os.path.join(tempfile.mkdtemp(), "kernel.similia")
    >>> _ = sm.save(sm.kernels.Spectrum(k=4), path)
    >>> sm.load(path)
    Spectrum(k=4)
    """
    from skops.io import dumps

    path = Path(path)
    if not path.parent.is_dir():
        raise FileNotFoundError(f"the folder {path.parent} does not exist; make it first")
    if f"{type(model).__module__}.{type(model).__name__}" == "similia.selection._select.Selection":
        raise ValueError(
            "a Selection is no model but what select found; save its pipeline: save(selection.best_, path)"
        )
    data = dumps({"format": _HEADER, "model": model})
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
    write_atomically(path, data)
    return path


def refused_types(model: Any) -> list[str]:
    """Return the names of the classes and functions in `model` for which `save` refuses it, sorted."""
    from skops.io import dumps

    return _refused(dumps(model))


def _refused(data: bytes) -> list[str]:
    from skops.io import get_untrusted_types

    return sorted(set(get_untrusted_types(data=data)) - set(_TRUSTED))


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


def load(path: str | os.PathLike[str]) -> Any:
    """Read a model that `save` wrote.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    object
        The model, with the same parameters and fitted state.

    Raises
    ------
    ValueError
        If the file is truncated, corrupted, of another program, or names a class that is not on
        the list of classes that may be loaded.
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
    from skops.io import load as skops_load
    from skops.io.exceptions import UntrustedTypesFoundException

    path = Path(path)
    if (path / "search.similia").is_file():
        raise ValueError(f"{path} is the folder of a search; similia.SimilaritySearch.load({str(path)!r}) reads it")
    if not path.is_file():
        raise FileNotFoundError(f"no model at {path}; similia.save(model, path) writes one")
    with path.open("rb") as stream:
        try:
            check_model_file(stream)
        except ValueError as error:
            raise ValueError(f"{path} {error}") from None
        try:
            content = skops_load(stream, trusted=list(_TRUSTED))
            check_states(content)
        except UntrustedTypesFoundException as error:
            raise ValueError(f"{path} was not loaded: {_short(str(error), 200)[1:-1]}") from None
        except (Exception, RecursionError, MemoryError) as error:  # whatever a part raises that was tampered with
            problem = _short(f"{type(error).__name__}: {error}", 200)[1:-1]
            raise ValueError(f"{path} is not a model that similia.save wrote ({problem})") from error
    if not isinstance(content, dict) or content.get("format") != _HEADER or "model" not in content:
        raise ValueError(f"{path} was written by another program; similia.save(model, path) writes what load reads")
    return content["model"]
