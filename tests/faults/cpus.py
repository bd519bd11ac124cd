"""The same models on other processors: equal codes, labels and neighbours, and floats within a tolerance.

python dev.py cpus                  # all settings
python dev.py cpus --quick          # those that CI runs; other arrangements of the objects only in the first run
python dev.py cpus --only Nystroem  # the cases with this word in their names
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from _cpus_cases import Case, cases, missing
from _cpus_job import changed

TITLE = "Processors, threads and arrangements"
TEXT = """
Every public estimator, kernel and distance runs in every setting, each setting in a process of its own. The first run
has two threads; it fits all models and saves them. Every other setting loads them and computes the same outputs:
values, vectors, codes, labels, neighbours. BLAS, numba, numpy, faiss and the C library can be told to use the
instructions of other processors; the settings called *another processor* do all of that at once. Each collection has an
odd number of objects; some objects are equal, some differ in the last bits, some are tiny. There are float32 and
float64.

Integers, codes, labels and neighbours must be equal in all settings. Floats must have the same bits in all settings of
one processor; on another processor they may differ by 2e-6 (float32) or 1e-12 (float64) of the largest entry of an
output. In every setting each output is computed once more in other arrangements and must keep its bits: objects alone,
seven at a time, backwards, in 64 KiB of working memory, on one thread; vectors stored by columns; float32 arrays beside
a float64 one; in the setting *Dask*, in parts on threads and in other processes. Indexes of the kind ivf
promise equality on one processor only. *Broken* counts outputs that break a promise; the command names them and fails.
It also fails if a public class has no case.

*Refitted* models are fitted anew in the setting. On one processor they must be equal bit for bit. On another processor,
the eigenvectors of LAPACK differ in their last bits, so a bit of a code may differ if the number whose sign it is lies
that close to zero. Such differences are counted.

The second table has a line for each output: its digest in the first run, in how many of the settings the saved model
gives the same bits, the largest relative difference, and the same for refitted models.
"""
INPUTS = 1
MUST_BE_ZERO = ("broken",)

JOB = Path(__file__).with_name("_cpus_job.py")
TOLERANCES = {4: 2e-6, 8: 1e-12}  # of floats (by bytes of a real number) on another processor, to the largest entry
Arrays = dict[str, np.ndarray]


@dataclass(frozen=True)
class Setting:
    """Environment of a process: a part of it imitates another processor, unless `one_machine`."""

    environment: dict[str, str]
    one_machine: bool = False
    quick: bool = True
    needs: str = "SSE2"  # what the processor must have, as numpy calls it

    @property
    def target(self) -> str:
        """What numba compiles for; settings of one target share compiled code."""
        return self.environment.get("NUMBA_CPU_NAME", "")


def _blas(core: str) -> dict[str, str]:
    return {"OPENBLAS_CORETYPE": core}


def _numba(name: str) -> dict[str, str]:
    return {"NUMBA_CPU_NAME": name, "NUMBA_CPU_FEATURES": ""}  # "": those of that processor, not of this one


def _faiss(level: str) -> dict[str, str]:
    return {"FAISS_OPT_LEVEL": level.lower() if level == "AVX2" else "generic", "FAISS_SIMD_LEVEL": level}


def _numpy(*families: str) -> dict[str, str]:
    """Switch off what numpy would use on this processor beyond the families named."""
    from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__

    there = [name for name in __cpu_dispatch__ if __cpu_features__[name] and name not in families]
    return {"NPY_DISABLE_CPU_FEATURES": " ".join(there)}


def _threads(n: int) -> dict[str, str]:
    return {"OPENBLAS_NUM_THREADS": str(n), "OMP_NUM_THREADS": str(n), "LOKY_MAX_CPU_COUNT": str(n)}


_AVX2 = ("X86_V3", "AVX2", "FMA3", "AVX", "F16C", "FMA4", "XOP")
_OLD_LIBM = {"GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-FMA,-FMA4,-AVX512F"}


def settings() -> dict[str, Setting]:
    """Return all settings by name; the first run, with which they are compared, has two threads and nothing else."""
    old = _blas("Nehalem") | _numba("nehalem") | _numpy() | _faiss("NONE") | _OLD_LIBM
    zen = _blas("Zen") | _numba("haswell") | _numpy(*_AVX2) | _faiss("AVX2")
    return {
        "one thread": Setting(_threads(1), one_machine=True),
        "four threads, another hash seed": Setting(_threads(4) | {"PYTHONHASHSEED": "12345"}, one_machine=True),
        "Dask": Setting({"CPUS_DASK": "1"}, one_machine=True, quick=False),
        "BLAS: Haswell": Setting(_blas("Haswell"), needs="AVX2", quick=False),  # CI runs the tests of equal bits on it
        "BLAS: Haswell, one thread": Setting(_blas("Haswell") | _threads(1), needs="AVX2", quick=False),
        "BLAS: Zen": Setting(_blas("Zen"), needs="AVX2", quick=False),
        "BLAS: SkylakeX": Setting(_blas("SkylakeX"), needs="AVX512F"),
        "BLAS: Nehalem": Setting(_blas("Nehalem"), needs="SSE42", quick=False),
        "numba: Haswell": Setting(_numba("haswell"), needs="AVX2", quick=False),
        "numba: Nehalem": Setting(_numba("nehalem"), needs="SSE42", quick=False),
        "numba: generic": Setting(_numba("generic"), quick=False),
        "numpy without AVX-512": Setting(_numpy(*_AVX2), needs="AVX512F", quick=False),
        "faiss: generic": Setting(_faiss("NONE"), quick=False),
        "C library without FMA": Setting(_OLD_LIBM, needs="FMA3", quick=False),
        "another processor (AVX2)": Setting(zen, needs="AVX2"),
        "another processor (SSE 4.2)": Setting(old, needs="SSE42", quick=False),  # fused operations in software: slow
    }


# ---- one process a setting


@dataclass
class Found:
    """What a process has found: outputs of saved and of refitted models, changed rows by arrangement, errors."""

    saved: Arrays = field(default_factory=dict)
    fitted: Arrays = field(default_factory=dict)
    rearranged: dict[str, dict[str, int]] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0


class Runs:
    """Processes that share a folder of models, data and compiled loops."""

    def __init__(self, folder: Path, names: Sequence[str], quick: bool) -> None:
        self.folder = folder
        self.names = names
        self.later = "quick" if quick else "again"
        (folder / "models").mkdir()

    def first(self) -> Found:
        """Fit and save all models."""
        return self._run(Setting({}), "first")

    def all(self, some: dict[str, Setting], tell: Callable[[str, Found], None]) -> dict[str, Found]:
        """Return what each setting gives; two run at once, those that share compiled loops one after another."""
        groups: dict[str, list[str]] = {}
        for name, setting in some.items():
            groups.setdefault(setting.target or name, []).append(name)
        found: dict[str, Found] = {}

        def work(names: list[str]) -> None:
            for name in names:
                found[name] = self._run(some[name], self.later)
                tell(name, found[name])

        longest_first = sorted(groups.values(), key=lambda names: not some[names[0]].target)
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(work, longest_first))
        return {name: found[name] for name in some}

    def _run(self, setting: Setting, how: str) -> Found:
        result = Path(tempfile.mkdtemp(dir=self.folder))
        command = [sys.executable, JOB, self.folder / "models", result, how, *self.names]
        start = time.perf_counter()
        done = subprocess.run(command, env=self._environment(setting), stderr=subprocess.PIPE, text=True)
        if done.returncode:
            last = done.stderr.strip().splitlines()[-1:] or ["no message"]
            return Found(errors={"the process": f"ended with code {done.returncode}: {last[0]}"})
        report = json.loads((result / "report.json").read_text())
        arrays = [dict(np.load(result / f"{name}.npz")) for name in ("saved", "fitted")]
        return Found(*arrays, report["rearranged"], report["errors"], time.perf_counter() - start)

    def _environment(self, setting: Setting) -> dict[str, str]:
        """Two threads and nothing else of what settings change, and compiled loops of the setting's own."""
        ours = ("OPENBLAS", "NUMBA_CPU", "OMP", "MKL", "NPY", "FAISS", "GLIBC_TUNABLES", "LOKY", "CPUS_")
        plain = {key: value for key, value in os.environ.items() if not key.startswith(ours)}
        cache = {"NUMBA_CACHE_DIR": str(self.folder / f"numba-{setting.target}")} if setting.target else {}
        return plain | _threads(2) | cache | setting.environment


# ---- what was promised


@dataclass(frozen=True)
class Difference:
    """Of one output, from that of the first run: rows of which a bit differs, and the largest relative difference."""

    rows: int
    relative: float
    tolerance: float  # 0 for what is not a float

    @property
    def is_float(self) -> bool:
        return self.tolerance > 0


def difference(a: np.ndarray, b: np.ndarray) -> Difference:
    """Compare two outputs; the relative difference is to the largest entry of the first."""
    if a.dtype.kind not in "fc":
        return Difference(changed(a, b), 0.0, 0.0)
    tolerance = TOLERANCES[a.dtype.itemsize // (2 if a.dtype.kind == "c" else 1)]
    rows = changed(a, b)
    if rows == 0:
        return Difference(0, 0.0, tolerance)
    if a.shape != b.shape or a.dtype != b.dtype or not np.array_equal(np.isfinite(a), np.isfinite(b)):
        return Difference(rows, np.inf, tolerance)
    finite = np.isfinite(a)
    apart, largest = (float(np.abs(x[finite]).max(initial=0.0)) for x in (a - b, a))
    return Difference(rows, apart / largest if largest else np.inf if apart else 0.0, tolerance)


def broken(name: str, setting: Setting, case: Case, first: Found, found: Found) -> list[str]:
    """Return a sentence for each promise that one output breaks in a setting."""
    rows = len(first.saved[name])
    if name not in found.saved:
        return [f"{name}: there is no such output"]
    sentences = [f"{name}: {n} of {rows} rows differ {how}" for how, n in found.rearranged.get(name, {}).items()]
    saved, fitted = (difference(getattr(first, kind)[name], getattr(found, kind)[name]) for kind in ("saved", "fitted"))
    if saved.rows and (setting.one_machine or (saved.relative > saved.tolerance or not saved.is_float)):
        by = f" by up to {saved.relative:.2g}" if saved.is_float else ""
        if setting.one_machine or not case.one_machine:
            sentences.append(f"{name}: {saved.rows} of {rows} rows differ{by}, of the saved model")
    if fitted.rows and setting.one_machine:
        sentences.append(f"{name}: {fitted.rows} of {rows} rows differ after another fit")
    return sentences


def digest(array: np.ndarray) -> str:
    """Return ten letters that differ where type, shape or any bit does."""
    return hashlib.sha256(f"{array.dtype.str}{array.shape}".encode() + array.tobytes()).hexdigest()[:10]


# ---- tables


def run(n: int, seed: int, quick: bool = False, only: str = "") -> list[list[dict[str, Any]]]:
    """Return two tables, a row a setting and a row an output; print each promise that is broken."""
    if sentences := missing(cases()):
        sys.exit("\n".join(sentences))
    some = {name: case for name, case in cases().items() if only in name}
    chosen = {name: setting for name, setting in settings().items() if setting.quick or not quick}
    there = {name: setting for name, setting in chosen.items() if _has(setting.needs)}
    for name in chosen.keys() - there.keys():
        print(f"{name}: not run; this processor has no {chosen[name].needs}")
    there = {"first run": Setting({}, one_machine=True)} | there
    rows = {}

    def tell(name: str, found: Found) -> None:
        sentences = _broken(there[name], some, first, found)
        lines = [f"{name}: {found.seconds:.0f} s", *(f"broken, {name}: {sentence}" for sentence in sentences)]
        print("\n".join(lines), flush=True)
        rows[name] = _of_setting(name, sentences, first, found)

    with tempfile.TemporaryDirectory() as folder:
        runs = Runs(Path(folder), list(some) if only else [], quick)
        first = runs.first()
        tell("first run", first)
        found = runs.all({name: there[name] for name in there if name != "first run"}, tell)
    return [[rows[name] for name in there], [_of_output(name, first, list(found.values())) for name in first.saved]]


def _has(feature: str) -> bool:
    from numpy._core._multiarray_umath import __cpu_features__

    return feature == "SSE2" or bool(__cpu_features__.get(feature))


def _broken(setting: Setting, some: dict[str, Case], first: Found, found: Found) -> list[str]:
    """Return a sentence for each case that failed and for each promise that an output breaks."""
    sentences = [f"{case}: {text.strip()}" for case, text in found.errors.items()]
    for output in first.saved:
        case = output.partition("|")[0]
        if not found.errors.keys() & {case, "the process"}:
            sentences += broken(output, setting, some[case], first, found)
    return sentences


def _of_setting(name: str, sentences: list[str], first: Found, found: Found) -> dict[str, Any]:
    pairs = [(first.saved[key], found.saved[key], found.fitted[key]) for key in first.saved if key in found.saved]
    saved, fitted = [difference(a, b) for a, b, _ in pairs], [difference(a, c) for a, _, c in pairs]
    return {
        "setting": name,
        "outputs": len(pairs),
        "codes, labels, ids": sum(len(a) for (a, *_), d in zip(pairs, saved, strict=True) if not d.is_float),
        "differ": sum(d.rows for d in saved if not d.is_float),
        "float outputs": sum(d.is_float for d in saved),
        "with other bits": sum(d.rows > 0 for d in saved if d.is_float),
        "float32 by": max((d.relative for d in saved if d.tolerance > 1e-9), default=0.0),
        "float64 by": max((d.relative for d in saved if 0 < d.tolerance < 1e-9), default=0.0),
        "refitted: codes, labels, ids differ": sum(d.rows for d in fitted if not d.is_float),
        "refitted: float outputs beyond the tolerance": sum(d.relative > d.tolerance > 0 for d in fitted),
        "broken": len({sentence.partition(": ")[0] for sentence in sentences}),
    }


def _of_output(name: str, first: Found, others: list[Found]) -> dict[str, Any]:
    array, there = first.saved[name], [found for found in others if name in found.saved]
    saved = [difference(array, found.saved[name]) for found in there]
    fitted = [difference(array, found.fitted[name]) for found in there]
    return {
        "output": _readable(name),
        "type": array.dtype.name if array.dtype.kind != "U" else "text",
        "rows": len(array),
        "digest": digest(array),
        "same bits": f"{sum(d.rows == 0 for d in saved)} of {len(saved)}",
        "differs by": max((d.relative for d in saved), default=0.0),
        "refitted: same bits": f"{sum(d.rows == 0 for d in fitted)} of {len(fitted)}",
        "refitted: rows differ": max((d.rows for d in fitted), default=0),
    }


def _readable(name: str) -> str:
    case, method, number = name.split("|")
    return f"{case}: {method}" + (f", {number}" if number != "0" else "")
