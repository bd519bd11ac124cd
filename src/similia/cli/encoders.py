"""Load the encoder of a command, or choose one by the kind and properties of the objects, and fit it.

Each choice is the encoder that found the most true neighbours (for strings, the most neighbours at a small distance) of
all that were measured, in ``benchmarks/similarity_search.py --encoders`` and in the experiment hashing-objects.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.preprocessing import StandardScaler

import similia as sm
from similia.cli.inputs import DEFAULT_KERNEL, Objects, remember_columns
from similia.cli.options import parse_distance, parse_kernel
from similia.cli.outputs import bars, meters, stoppable
from similia.cli.voice import console, note
from similia.core.errors import BadFile, BadParameter
from similia.core.hashing import digest_of
from similia.pipelines import Pipeline
from similia.scale.stream import FIT_ON, identity, places_named
from similia.search.automatic import kmer_length
from similia.search.on_disk import SearchFolder
from similia.sources.source import Source, sample
from similia.storage.disk import Journal

FIT_BYTES = 2**28  # maximum bytes of objects to fit to
_COLUMNS = 4096  # into which counts of k-mers are folded


def default_encoder(
    data: Objects, kernel: str | None, distance: str | None, bits: int, landmarks: int, seed: int
) -> tuple[str, Any]:
    """Return a description of the encoder that suits `data`, and the encoder, unfitted.

    "Signs" below are the signs of random projections.

    - strings, without a kernel or with an edit distance: counts of k-mers, PCA, ITQ; if the strings are too few or too
      simple for so many bits, `Nystroem` and signs;
    - vectors: `recipes.pca_itq`; if there are too few rows or features, centring and signs;
    - graphs, and objects with a given kernel: `Nystroem` and signs;
    - series and sets of points, and objects with another given distance: `D2KE` (distances to objects of the data),
      centring and signs.
    """
    if data.kind == "vectors" and not (kernel or distance):
        return _of_vectors(data, bits, seed)
    if _compared_by_edits(data, kernel, distance):
        return _of_strings(data, bits, landmarks, seed)
    if kernel or (data.kind == "graphs" and not distance):
        kernel = kernel or DEFAULT_KERNEL["graphs"]
        return f"kernel {kernel}", _by_kernel(parse_kernel(kernel), data, bits, landmarks, seed)
    distance = distance or ("DTW()" if data.kind == "series" else "ModifiedHausdorff()")
    n, own = min(landmarks, len(data.objects)), sm.embeddings.Representatives()
    d2ke = sm.D2KE(parse_distance(distance), n_components=n, objects=own, random_state=seed)
    return f"distance {distance}", Pipeline([("d2ke", d2ke), *_signs(bits, seed).steps])


def encoder_to_index(
    data: Objects, kernel: str | None, distance: str | None, bits: int, landmarks: int, seed: int, normalize: bool
) -> tuple[str, Any]:
    """Return a description of the vectors that suit `data`, and a pipeline to a `VectorIndex` of them, unfitted.

    If the data are vectors, and no kernel or distance is given, they stay as they are. Otherwise, the vectors are made
    as for the bits of `default_encoder`, except that the PCA of k-mers has `landmarks` components instead of `bits`.
    """
    if data.kind == "vectors" and not (kernel or distance):
        spec, steps = "as they are", [("vectors", "passthrough")]
    elif _compared_by_edits(data, kernel, distance):
        own, steps, _ = _kmers_and_pca(data.objects, landmarks, seed)
        spec = f"{own.k}-mers and PCA" if steps else f"kernel {own}"
        steps = steps or _by_kernel(own, data, 8, landmarks, seed).steps[:1]
    else:
        spec, encoder = default_encoder(data, kernel, distance, 8, landmarks, seed)
        steps = encoder.steps[:1]
    index = sm.search.VectorIndex(bits, normalize=normalize, random_state=seed)
    return f"vectors, {bits} bits a number ({spec})", Pipeline([*steps, ("index", index)])


def _compared_by_edits(data: Objects, kernel: str | None, distance: str | None) -> bool:
    """Return whether objects are strings to be compared by edits: no kernel and no other distance is given."""
    edits = sm.distances.Levenshtein, sm.distances.DamerauLevenshtein
    return data.kind == "strings" and not kernel and (not distance or isinstance(parse_distance(distance), edits))


def default_rerank(data: Objects | Source, kernel: str | None, distance: str | None) -> str:
    """Return the default of --rerank: the given kernel or distance, else one that suits the kind of the objects."""
    if kernel or distance:
        return distance or "kernel"
    return {"strings": "Levenshtein()", "vectors": "projected"}.get(data.kind, "kernel")


def sample_of(stream: Source, seed: int) -> tuple[int, Objects, npt.NDArray[np.int64]]:
    """Return the number of objects in a source, a sample to fit an encoder to, and the positions of the sample."""
    return sample(stream, FIT_ON, FIT_BYTES, seed)


def _of_strings(data: Objects, bits: int, landmarks: int, seed: int) -> tuple[str, Any]:
    """Return a description of the encoder that suits these strings, and the encoder, unfitted."""
    kernel, steps, n_kmers = _kmers_and_pca(data.objects, bits, seed)
    if steps:
        itq = sm.ITQ(bits, max_iter=20, random_state=seed, max_samples=10_000)
        return f"{kernel.k}-mers, PCA and ITQ", Pipeline([*steps, ("itq", itq)])
    _note_fewer(min(n_kmers, len(data.objects)), bits, f"kernel {kernel}", f"{kernel.k}-mers, PCA and ITQ")
    return f"kernel {kernel}", _by_kernel(kernel, data, bits, landmarks, seed)


def _kmers_and_pca(strings: Any, n_components: int, seed: int) -> tuple[Any, list[Any], int]:
    """Return the kernel of k-mers that suits these strings, the steps of a PCA of them, and how many k-mers occur.

    There are no steps if the strings vary in fewer directions than `n_components`.
    """
    kernel = sm.kernels.Spectrum(k=kmer_length(strings), normalize=True)
    counts = sm.KernelFeatures(kernel, _COLUMNS)
    pca = sm.GeneralizedNystroemPCA(n_components, min(len(strings), 4 * n_components), 1.0, random_state=seed)
    features = counts.transform(strings)
    n_kmers = len(np.unique(features.indices))
    enough = n_kmers > n_components and _has_directions(pca, features)
    return kernel, [("kmers", counts), ("pca", pca)] if enough else [], n_kmers


def _note_fewer(most: int, bits: int, made_by: str, instead_of: str) -> None:
    """Print that `made_by` makes the bits because `instead_of` makes at most `most`; print nothing if `most` <= 8."""
    if most > 8:  # otherwise no number of bits is possible
        note(
            f"note: the data vary in too few directions for {bits} bits by {instead_of}, the usual way. The bits are "
            f"made by {made_by}, which often finds fewer neighbours; with fewer --bits, the usual way may work"
        )


def _of_vectors(data: Objects, bits: int, seed: int) -> tuple[str, Any]:
    """Return a description of the encoder that suits these vectors, and the encoder, unfitted."""
    share = 1.0 if len(data.objects) < FIT_ON else 0.3
    learnt = sm.recipes.pca_itq(bits, share, share, random_state=seed)
    if _has_directions(learnt[0], data.objects):
        return "PCA and ITQ", learnt
    _note_fewer(min(data.objects.shape), bits, "signs of random projections", "PCA and ITQ")
    return "signs of random projections", _signs(bits, seed)


def _by_kernel(kernel: Any, data: Objects, bits: int, landmarks: int, seed: int) -> Pipeline:
    n = min(landmarks, len(data.objects))
    nystroem = sm.Nystroem(kernel, n_components=n, random_state=seed)
    return Pipeline([("nystroem", nystroem), ("bits", sm.SignRandomProjection(bits, random_state=seed))])


def _signs(bits: int, seed: int) -> Pipeline:
    centre, signs = StandardScaler(with_std=False), sm.SignRandomProjection(bits, random_state=seed)
    return Pipeline([("centre", centre), ("bits", signs)])


def _has_directions(pca: Any, X: Any) -> bool:
    """Return whether the vectors in `X` span as many directions as `pca` has components, so that it can be fitted."""
    try:
        clone(pca).fit(X)
    except BadParameter as error:
        if error.name != "n_components":
            raise
        return False
    return True


# ---- encoders in files
def load_model(path: Path) -> Any:
    """Return the model in a file, or the encoder of an index if `path` is the folder of an index."""
    return SearchFolder.open(path).search.encoder_ if path.is_dir() else sm.load(path)


def encoder_of(model: Any) -> Any:
    """Return a pipeline without its last step if that step is a classifier or regressor, else the model itself."""
    return model[:-1] if hasattr(model, "steps") and not hasattr(model[-1], "transform") else model


def check_encoder(encoder: Any, path: Path, stream: Source) -> None:
    """Raise if `encoder` cannot encode the first object of `stream`, or does not return packed bits."""
    if not hasattr(encoder, "transform"):
        made = "predictions only"
    else:
        try:
            rows = encoder.transform(stream.take([0]))
        except (TypeError, ValueError) as error:
            why = " ".join(str(error).split())[:150]
            raise BadFile(stream.source, f"holds {stream.called}, which {path} cannot encode ({why})") from error
        if getattr(rows, "dtype", None) == np.uint8:
            return
        made = f"vectors of {rows.shape[1]} numbers" if np.ndim(rows) == 2 or hasattr(rows, "toarray") else "no bits"
    raise ValueError(
        f"{path} makes {made}, but similia encode writes packed bits; drop --model to fit an encoder, or give a model "
        "that 'similia fit --kernel' or 'similia encode' wrote"
    )


def of_interrupted_run(
    journal: Journal, stream: Source, path: Path, options: dict[str, Any]
) -> tuple[int | None, Any] | None:
    """Return the number of objects and the encoder of the run in `journal`, or None if it had other data or options."""
    header = journal.header or {}
    if header.get("options") != options or not path.is_file() or header["belongs"]["data"] != identity(stream):
        return None
    encoder = sm.load(path)
    return (header.get("n"), encoder) if header["belongs"]["model"] == digest_of(encoder) else None


def fit_encoder(stream: Source, path: Path, options: dict[str, Any], data: str, table: Any) -> tuple[int, Any]:
    """Fit an encoder to a sample of the stream and save it at `path`; return the number of objects and the encoder."""
    with stoppable(lambda: 0, stream.n), meters():
        n, drawn, numbers = sample_of(stream, options["seed"])
    with stoppable(lambda: 0, n), bars(), places_named(stream, numbers=numbers):
        spec, encoder = default_encoder(drawn, **options)
        console().print(f"{n} {stream.called}; {options['bits']} bits by {spec}")
        encoder.fit(drawn.objects)
        remember_columns(encoder, data, table)
        sm.save(encoder, path)
    return n, sm.load(path)
