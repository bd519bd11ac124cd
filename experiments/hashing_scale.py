"""Generalised Nyström hashing at scale: codes of a million rows of 12,800 numbers that are never stored."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from joblib import cpu_count
from threadpoolctl import threadpool_limits

from experiments._hashing import FEATURES, SAMPLES
from experiments._report import Record, Table, distinct, values
from similia.codes import ITQ, GeneralizedNystroemPCA
from similia.core.config import run_in_ranges, track
from similia.core.jit import njit
from similia.core.products import panels, row_product

Vectors = npt.NDArray[np.float32]

CHUNK = 2000  # rows
SHARED, OWN, GROUP = 32, 32, 10  # latent numbers of all words, and of each group of so many words
NOISE, TABLE = 0.5, 2**18
ITQ_ROWS = 100_000
SGEMM_EVERY = 10  # chunks between two that plain sgemm is timed on
_TILE = 256
GIB = 2**30


@dataclass(frozen=True)
class Scale:
    """How much data: rows, visual words times numbers of each, and bits."""

    name: str
    n_rows: int
    n_words: int = 100
    n_dims: int = 128
    n_bits: int = 256


TASKS = (Scale("100k", 100_000), Scale("1M", 1_000_000))
TITLE = "Generalised Nyström hashing: a million rows of 12,800 numbers"
TEXT = f"""
Rows of 100 x 128 numbers, float32, built like VLAD vectors: to each visual word belong 128 numbers, sums of {SHARED}
latent numbers that all words share, {OWN} that {GROUP} words share, with standard deviations that fall as the root of
their rank ({SHARED} + {100 // GROUP * OWN} in all), and noise; each word's numbers are divided by their length. They
are made in chunks of {CHUNK} from a seed whenever they are read (chunk i depends on the seed and on i only) and never
stored. Noise comes from one table of {TABLE} normal numbers, entered for each row at a random place with a random sign.

The principal components (256, {SAMPLES:.0%} of rows, {FEATURES:.0%} of features) are learnt in one pass over a source
that is addressed by row and counts what is read; then every row is projected, ITQ is fitted on {ITQ_ROWS} of the
projected rows, drawn at random, and all rows are encoded. Codes and projections stay in memory. All cores are used, in
a process of its own, whose peak of memory is that of the whole: data, learning, projections (1 GB for a million) and
codes. Seconds of making rows are counted apart. *sgemm* is the bare product of chunks and components by BLAS, timed on
every {SGEMM_EVERY}th chunk in turns with the projection and scaled to all rows. Where the sampled rows do not fit into
half of max_memory (from some 210,000 rows on), the fit sums up the products of all with the sampled features instead,
{FEATURES:.0%} of 12,800 for each sampled row: at a million rows these alone are three quarters of the projection.
The paper's seconds (4000 for full PCA, 250 for its approximation) were taken with a disk and on another machine.
"""


class WordRows:
    """Rows like VLAD vectors, made from a seed when they are read; counts the rows and seconds that this took.

    Parameters
    ----------
    scale : Scale
    seed : int

    Attributes
    ----------
    shape : (int, int)
    rows_read : int
    seconds : float
    """

    dtype = np.dtype(np.float32)

    def __init__(self, scale: Scale, seed: int) -> None:
        self.shape = (scale.n_rows, scale.n_words * scale.n_dims)
        self.rows_read, self.seconds = 0, 0.0
        self._n_dims, self._seed = scale.n_dims, seed
        random = np.random.default_rng([seed, 2**32])
        self._groups = -(-scale.n_words // GROUP)
        width = GROUP * scale.n_dims
        self._noise = np.float32(NOISE) * random.standard_normal(TABLE + self.shape[1], dtype=np.float32)
        self._loadings = random.standard_normal((self._groups, SHARED + OWN, width), dtype=np.float32)
        own = np.arange(1, self._groups * OWN + 1).reshape(OWN, self._groups).T  # ranks go round the groups
        rank = np.concatenate([np.broadcast_to(np.arange(1, SHARED + 1), (self._groups, SHARED)), own], axis=1)
        self._loadings /= np.sqrt(rank)[:, :, None].astype(np.float32)

    def __getitem__(self, rows: Any) -> Vectors:
        """Return rows at a slice or at sorted indices."""
        start = time.perf_counter()
        where = np.arange(self.shape[0])[rows]
        out = np.empty((len(where), self.shape[1]), np.float32)
        cuts = np.flatnonzero(np.diff(where // CHUNK)) + 1
        first = 0
        for part in np.split(where, cuts):
            self._make(int(part[0]) // CHUNK, part % CHUNK, out[first : first + len(part)])
            first += len(part)
        self.rows_read += len(where)
        self.seconds += time.perf_counter() - start
        return out

    def _make(self, chunk: int, rows: npt.NDArray[np.int64], out: Vectors) -> None:
        random = np.random.default_rng([self._seed, chunk])
        shared = random.standard_normal((CHUNK, SHARED), dtype=np.float32)[rows]
        own = random.standard_normal((CHUNK, self._groups, OWN), dtype=np.float32)[rows]
        places = random.integers(0, TABLE, CHUNK)[rows]
        signs = random.choice(np.array([-1, 1], np.float32), CHUNK)[rows]
        width, loadings = self._loadings.shape[2], [panels(matrix) for matrix in self._loadings]

        def fill(start: int, stop: int) -> None:
            latent = np.zeros((_TILE, SHARED + OWN), np.float32)
            product = np.empty((_TILE, width), np.float32)
            for i in range(start, stop, _TILE):
                part = slice(i, min(stop, i + _TILE))
                n = len(rows[part])
                latent[:n, :SHARED] = shared[part]
                for group in range(self._groups):
                    latent[:n, SHARED:] = own[part, group]
                    row_product(latent, loadings[group], product, threads=False)
                    columns = slice(group * width, (group + 1) * width)
                    _finish(
                        product, self._noise, places[part], signs[part], group * width, self._n_dims, out[part, columns]
                    )

        run_in_ranges(fill, len(rows), _TILE)


@njit()
def _finish(product, noise, places, signs, column, n_dims, out):  # type: ignore[no-untyped-def]
    """Add the noise and divide the numbers of each word by their length; sums have one order, so rows the same bits."""
    for i in range(out.shape[0]):
        place = places[i] + column
        for first in range(0, out.shape[1], n_dims):
            square = np.float32(0)
            for j in range(first, first + n_dims):
                value = product[i, j] + signs[i] * noise[place + j]
                out[i, j] = value
                square += value * value
            scale = np.float32(1) / np.sqrt(square)
            for j in range(first, first + n_dims):
                out[i, j] *= scale


def measure(task: Scale, seeds: int) -> list[Record]:
    """Run the whole in a process of its own for each seed."""
    records = []
    for seed in range(seeds):
        command = [sys.executable, "-m", "experiments.hashing_scale", json.dumps(asdict(task)), str(seed)]
        printed = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout
        records.append({"set": task.name, "seed": seed} | json.loads(printed.splitlines()[-1]))
    return records


def run(scale: Scale, seed: int) -> dict[str, float]:
    """Learn, project and encode; return seconds, shares and the peak of memory of this process."""
    with threadpool_limits(cpu_count(), "blas"):
        source = WordRows(scale, seed)
        found: dict[str, float] = {"rows": scale.n_rows, "features": source.shape[1], "bits": scale.n_bits}
        model = GeneralizedNystroemPCA(scale.n_bits, SAMPLES, FEATURES, random_state=seed)
        seconds = _timed(model.fit, source)[0]
        found |= {"fit": seconds - source.seconds, "making, fit": source.seconds}
        found |= {"rows_read": source.rows_read, "bytes_read": source.rows_read * source.shape[1] * 4}
        beyond = WordRows(Scale(scale.name, scale.n_rows + CHUNK // 2, scale.n_words, scale.n_dims), seed)
        found["error"] = model.projection_error(beyond[scale.n_rows :])
        found["peak, fit"] = peak_bytes()
        source = WordRows(scale, seed)
        Z, times = _project(source, model)
        found |= times | {"making, all": source.seconds}
        itq = ITQ(scale.n_bits, random_state=seed, max_samples=ITQ_ROWS)
        found["itq"] = _timed(itq.fit, Z)[0]
        found["coding"], codes = _timed(itq.transform, Z)
        found |= {"codes": codes.nbytes, "peak": peak_bytes()}
    return {name: round(value, 4) if isinstance(value, float) else value for name, value in found.items()}


def _project(source: WordRows, model: GeneralizedNystroemPCA) -> tuple[Vectors, dict[str, float]]:
    """Return the projections of all rows; seconds of all, and of sgemm and ours on the chunks where both are timed."""
    n, B = source.shape[0], model.components_
    Z = np.empty((n, len(B)), np.float32)
    projection = ours = sgemm = 0.0
    compared = 0
    for number, (start, chunk) in enumerate(track(_chunks(source), "projection", -(-n // CHUNK))):
        seconds, Z[start : start + len(chunk)] = _timed(model.transform, chunk)
        projection += seconds
        if number % SGEMM_EVERY == 1 or n <= CHUNK:  # the first chunk starts threads
            ours, compared = ours + seconds, compared + len(chunk)
            sgemm += _timed(np.matmul, chunk, B.T)[0]
    return Z, {"projection": projection, "projection to sgemm": ours / sgemm, "sgemm": sgemm * n / compared}


def _chunks(source: WordRows) -> Iterator[tuple[int, Vectors]]:
    for start in range(0, source.shape[0], CHUNK):
        yield start, source[start : start + CHUNK]


def _timed(call: Callable[..., Any], *arguments: Any) -> tuple[float, Any]:
    start = time.perf_counter()
    result = call(*arguments)
    return time.perf_counter() - start, result


def peak_bytes() -> int:
    """Return the largest memory that this process has held so far.

    Linux counts in ``ru_maxrss`` what the parent held when it started this process, in ``VmHWM`` it does not.
    """
    status = Path("/proc/self/status")
    if status.exists():
        return 1024 * next(int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith("VmHWM"))
    import resource  # Windows has none

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak


def present(records: list[Record]) -> tuple[list[Table], None]:
    """Return a table of seconds, one of what is read and held, and one of the goals."""
    names = distinct(records, "set")
    mean = {name: _means(records, name) for name in names}
    seconds = Table("Seconds (means over seeds)", ["step", *names])
    for column, label in {
        "fit": "learning the components, beyond making rows",
        "making, fit": "making the rows that it reads",
        "projection": "projection",
        "sgemm": "sgemm of the projection",
        "itq": "ITQ, fit",
        "coding": "coding",
        "making, all": "making all rows",
    }.items():
        seconds.rows.append([label, *(f"{mean[name][column]:.2f}" for name in names)])
    held = Table("What is read, held and lost", ["", *names])
    for label, show in {
        "rows x features": lambda m: f"{m['rows']:,.0f} x {m['features']:,.0f}",
        "rows read by the fit": lambda m: f"{m['rows_read']:,.0f} ({m['rows_read'] / m['rows']:.2%})",
        "bytes read by the fit": lambda m: f"{m['bytes_read'] / GIB:.2f} GiB of {_bytes(m) / GIB:.2f}",
        "peak of memory, fit": lambda m: f"{m['peak, fit'] / GIB:.2f} GiB",
        "peak of memory, whole": lambda m: f"{m['peak'] / GIB:.2f} GiB",
        "codes": lambda m: f"{m['codes'] / 1e6:.1f} MB",
        "projection error on rows not seen": lambda m: f"{m['error']:.3f}",
    }.items():
        held.rows.append([label, *(show(mean[name]) for name in names)])
    goals = Table("Goals", ["", "at most", *(cell for name in names for cell in (name, "met"))])
    for label, limit, ratio in (
        ("bytes read by the fit / the sampled share", 1.1, lambda m: m["bytes_read"] / (SAMPLES * _bytes(m))),
        ("projection / sgemm, same chunks", 1.2, lambda m: m["projection to sgemm"]),
        ("projection and coding / sgemm", 1.2, lambda m: (m["projection"] + m["coding"]) / m["sgemm"]),
        ("all arithmetic (with both fits) / sgemm", 1.2, _all_arithmetic),
        ("peak of memory in GiB", 2.0, lambda m: m["peak"] / GIB),
    ):
        found = [ratio(mean[name]) for name in names]
        goals.rows.append(
            [label, f"{limit}", *(c for v in found for c in (f"{v:.2f}", "yes" if v <= limit else "**no**"))]
        )
    return [seconds, held, goals], None


def _means(records: list[Record], name: str) -> dict[str, float]:
    columns = [key for key in records[0] if key not in ("set", "seed")]
    return {column: float(np.mean(values(records, column, set=name))) for column in columns}


def _bytes(m: dict[str, float]) -> float:
    return 4 * m["rows"] * m["features"]


def _all_arithmetic(m: dict[str, float]) -> float:
    return (m["fit"] + m["projection"] + m["itq"] + m["coding"]) / m["sgemm"]


if __name__ == "__main__":
    print(json.dumps(run(Scale(**json.loads(sys.argv[1])), int(sys.argv[2]))))
