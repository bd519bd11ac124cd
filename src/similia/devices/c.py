"""Write a quantised model as C99: one header, one source without libraries, and a test program.

The loops are in ``templates/model.c.jinja``; ``tables.py`` makes the constant arrays.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from similia.core.hashing import GOLDEN
from similia.core.text import short
from similia.devices.files import answers, check_name, quantised, render, write
from similia.devices.inputs import (
    LARGEST,
    LN2,
    LN2_REST,
    LOG2_E,
    SERIES,
    Decay,
    Edits,
    FloatVectors,
    NGrams,
    Substrings,
    Subtrees,
    Warped,
)
from similia.devices.quantised import Loss, Quantised
from similia.devices.stages import (
    FloatHadamard,
    HadamardSigns,
    Linear,
    Prototypes,
    literal,
    operations_of,
    short_length,
    tables_of,
)
from similia.kernels import GappyKmers, Spectrum, WeightedDegree
from similia.kernels.strings import check_lengths

_N_TESTS = 20


def export_c(
    model: Any, folder: str | Path, X: Any = None, *, name: str = "model", max_length: int | None = None,
    letters: str = "", numbers: str = "whole", overwrite: bool = False,
) -> Quantised:  # fmt: skip
    """Write a fitted pipeline as C99 source code, for small devices.

    For each object, the C code computes the same bits (the code of the object) and the same label as the Python model
    that `similia.quantise` returns.

    Four files are written: ``NAME.h`` and ``NAME.c``, which need only ``stdint.h``; ``NAME_test.c``, a program that
    checks on any machine whether C and Python agree for up to 20 objects; and ``NAME.txt``, which lists the sizes of
    constants and memory and the number of operations. The C code has no floating point (unless `numbers` is "float"),
    no library calls and no recursion, and allocates no memory. It is not reentrant, since its scratch memory is static:
    threads and interrupts must not call it concurrently.

    Parameters
    ----------
    model : Pipeline or Quantised
        A pipeline that `similia.quantise` accepts, or the model that it returns.
    folder : path
        Folder for the files; it is made if it does not exist.
    X : collection of objects, optional
        Objects such as the training objects. Together with the landmarks (the objects with which the model compares all
        others), these objects set the limits of the model, such as the maximum length of an object; see
        `similia.quantise`. The test program checks the first 20 objects of `X` or, without `X`, the first 20 landmarks.
        A model without landmarks needs `X`. There is one exception: a quantised model that makes codes with
        `similia.LevelEncoder`, `similia.SequenceEncoder` or `similia.NGramEncoder` can be written without `X`, and the
        test program then checks nothing.
    name : str, default="model"
        Prefix of the names of all files, and of functions and types in C: a letter, then letters, digits and
        underscores.
    max_length, letters : int, str, optional
        Limits of the objects, as in `similia.quantise`; not used if `model` is quantised already.
    numbers : "whole" or "float", default="whole"
        Arithmetic of the model, as in `similia.quantise`; "float" is for processors with a floating-point unit. A
        `model` that is quantised already keeps its arithmetic. If it was quantised with ``numbers="whole"``,
        ``numbers="float"`` raises an error here.
    overwrite : bool, default=False
        Whether to replace files that exist.

    Returns
    -------
    Quantised
        The model that was written.

    Raises
    ------
    TypeError, ValueError
        Errors that `similia.quantise` raises for `model` and the other parameters. Also ValueError if `name` is not a
        valid name in C.
    FileExistsError
        If a file exists and `overwrite` is False. Then nothing is written.

    Warns
    -----
    UserWarning
        If quantising changes more than 3 % of the bits of the codes of `X`, measured on at most 300 objects.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import similia as sm
    >>> X, y = sm.datasets.load_promoters(return_X_y=True)
    >>> model = sm.recipes.nyshd(sm.kernels.GappyKmers(k=4, gaps=1), 40, 2000, random_state=0).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     small = sm.export_c(model, folder, X, name="promoters")
    ...     sorted(path.name for path in Path(folder).iterdir())
    ['promoters.c', 'promoters.h', 'promoters.txt', 'promoters_test.c']
    """
    check_name(name)
    small, loss = quantised(model, X, max_length, letters, numbers)
    write(_rendered(small, name, _tests(small, X), loss), folder, overwrite)
    return small


def _tests(small: Quantised, X: Any) -> list[tuple[npt.NDArray, int, str]]:
    """Return (arguments of the C function, number of the class, code in hexadecimal) for a few objects."""
    if X is None and small.linear is None:
        return []
    objects, codes, labels = answers(small, X, _N_TESTS)
    arguments = small.input.arguments(objects)
    if isinstance(small.input, FloatVectors):
        arguments = [[literal(number, "float") for number in x] for x in arguments]
    return [
        (value, int(label), code.tobytes().hex()) for value, label, code in zip(arguments, labels, codes, strict=True)
    ]


def _rendered(small: Quantised, name: str, tests: list[Any], loss: Loss | None) -> dict[str, str]:
    """Return the text of each file, by its name."""
    tables = list(tables_of(small))
    read = small.input
    facts = {
        "name": name, "NAME": name.upper(), "small": small, "kind": read.kind, "tables": tables,
        "has": {table.name for table in tables}, "type_of": {table.name: table.type for table in tables},
        "labels": [] if small.classes_ is None else [_quoted(str(label)) for label in small.classes_.tolist()],
        "tests": tests, "n_bytes": sum(table.n_bytes for table in tables), "GOLDEN": int(GOLDEN),
        "strings": read.kind in ("substrings", "edits", "ngrams"), "series": read.kind in ("warped", "sequence"),
        "graphs": read.kind == "subtrees",
        "ram": _scratch(small), "operations": operations_of(small), "kmers": _kmers(read),
        "shift": getattr(getattr(read, "curve", None), "shift", 0),
        "longest": read.letters.longest if hasattr(read, "letters") else getattr(read, "longest", 0),
        "units": getattr(read, "units", None), "loss": loss,
        "short": short_length(small.linear) if isinstance(small.linear, Linear) else 0,
        "floats": small.in_floats, **_float_facts(read),
        "exponents": _exponents(read), "counter": f"uint{_counter_bits(read)}_t",
    }  # fmt: skip
    files = (".h", ".c", "_test.c")
    found = {name + file: render("model" + file, facts) for file in files}
    found[f"{name}.txt"] = render("model.txt", facts)
    return found


def _exponents(read: Any) -> str:
    """Return the exponents of the steps, which are powers of two, as a number or an array initialiser in C."""
    units = getattr(read, "units", None)
    found = [] if units is None else np.log2(units.steps).astype(int).tolist()
    return str(found[0]) if len(found) == 1 else "{" + ", ".join(map(str, found)) + "}"


def _float_facts(read: Any) -> dict[str, Any]:
    """Return the type of the numbers k, and for float32 the constants of exp(-gamma q)."""
    curve = getattr(read, "curve", None)
    if not isinstance(curve, Decay):
        return {"similarity": "float" if isinstance(read, FloatVectors) else "int32_t", "decay": None}
    named: dict[str, Any] = {"gamma": curve.gamma, "largest": LARGEST, "log2_e": LOG2_E}
    named |= {"ln2": LN2, "ln2_rest": LN2_REST}
    constants = {name: literal(np.float32(value), "float") for name, value in named.items()}
    series = [literal(coefficient, "float") for coefficient in SERIES]
    return {"similarity": "float", "decay": {**constants, "series": series, "square": curve.square}}


def _kmers(read: Any) -> dict[str, int]:
    """Return the parameters of the loop over the features of a string; empty for other inputs."""
    kernel = read.features.kernel if isinstance(read, Substrings) else None
    if isinstance(kernel, Spectrum):
        least, most = check_lengths(kernel.k, "k")
        return {"least": least, "most": most, "ranged": int(not isinstance(kernel.k, int | np.integer)), "half": 0,
                "gaps": 0, "merge": 1, "degree": 0}  # fmt: skip
    if isinstance(kernel, GappyKmers):
        return {"least": kernel.k, "most": kernel.k, "ranged": 0, "half": kernel.k // 2, "gaps": kernel.gaps,
                "merge": int(kernel.merge), "degree": 0}  # fmt: skip
    if isinstance(kernel, WeightedDegree):
        return {"degree": kernel.degree}
    return {}


def _counter_bits(read: Any) -> int:
    """Return the number of bits of a counter for the hypervectors that an encoder adds."""
    length = read.letters.longest if isinstance(read, NGrams) else max(1, getattr(read, "longest", 1))
    return 16 if length * getattr(read, "n_channels", 1) < 2**16 else 32


def _scratch(small: Quantised) -> int:
    """Return the number of bytes of static memory that the C writes to."""
    read, total = small.input, 0 if small.prototypes is None else small.n_bits // 8
    if isinstance(small.prototypes, Prototypes):
        total += 4 * len(small.prototypes.R)
    if small.linear is None:
        rows = 4 * (read.encoder.n or 1) if read.kind == "sequence" else 0
        return total + rows + small.n_bits * _counter_bits(read) // 8
    r = len(small.linear.A)
    total += 4 * read.width + (4 * r if small.in_floats else 10 * r + 8 * (r % 2))
    if isinstance(small.signs, FloatHadamard):
        total += 4 * small.signs.flips.shape[2]
    if isinstance(small.signs, HadamardSigns):
        total += 4 * (small.signs.flips.shape[2] + short_length(small.linear))  # type: ignore[arg-type]
    if isinstance(read, Edits):
        total += 4 * (read.letters.longest + 1)
    if isinstance(read, Subtrees):
        total += 16 * read.most_nodes
    if isinstance(read, Warped):
        total += 8 * (read.longest + 1)
    return total


def _quoted(text: str) -> str:
    """Return a string literal in C, with escapes for all but plain ASCII."""
    if any("\ud800" <= c <= "\udfff" for c in text):
        raise ValueError(f"the label {short(text)} holds a surrogate, which UTF-8 cannot express; rename the label")
    plain = "".join(
        c if " " <= c <= "~" and c not in '"\\?' else "".join(f"\\{b:03o}" for b in c.encode()) for c in text
    )
    return f'"{plain}"'
