"""Write the pages of the API: one a room, with a table of its names and a page for each."""

import ast
import functools
import importlib.util
import inspect
from pathlib import Path

ROOMS = ["objects", "kernels", "distances", "embeddings", "codes", "learn", "search", "selection", "explanations",
         "recipes", "devices", "sources", "scale", "planning", "datasets", "checks", "report", "adapters"]  # fmt: skip
TOP = ["config", "save", "load", "warmup"]  # what lives in no room


def names_of(room):
    """Return the public names of `room`: its __all__, else what it defines, or takes over by ``import x as x``."""
    module = importlib.import_module(f"similia.{room}")
    if hasattr(module, "__all__"):
        return sorted(module.__all__, key=str.lower)
    tree = ast.parse(inspect.getsource(module))
    imports = [alias for node in tree.body if isinstance(node, ast.ImportFrom) for alias in node.names]
    found = [node.name for node in tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef)]
    found += [alias.name for alias in imports if alias.name == alias.asname]
    return sorted((name for name in found if not name.startswith("_")), key=str.lower)


@functools.cache
def public_names():
    """Return ``{room: [full dotted name, ...]}``: what has a page; submodules are opened once."""
    found = {"similia": [f"similia.{name}" for name in TOP]}
    for room in ROOMS:
        spec = importlib.util.find_spec(f"similia.{room}")
        if spec is None or spec.origin is None:
            continue
        module = importlib.import_module(f"similia.{room}")
        names = []
        for name in names_of(room):
            value = getattr(module, name)
            if inspect.ismodule(value):
                names += [f"{value.__name__}.{inner}" for inner in names_of(value.__name__.removeprefix("similia."))]
            else:
                names.append(f"similia.{room}.{name}")
        found[room] = names
    return found


def _page(room, names):
    module = importlib.import_module("similia" if room == "similia" else f"similia.{room}")
    title = "Models and settings" if room == "similia" else f"similia.{room}"
    text = "Read and written models, and settings." if room == "similia" else _first_paragraph(module)
    lines = [title, "=" * len(title)]
    for home in dict.fromkeys(name.rpartition(".")[0] for name in names):
        if home == f"similia.{room}":
            lines += ["", f".. module:: {home}"]
        elif home != "similia":
            text = _first_paragraph(importlib.import_module(home))
            lines += ["", home, "-" * len(home), "", f".. module:: {home}"]
        here = [name for name in names if name.rpartition(".")[0] == home]
        lines += ["", text, "", ".. currentmodule:: similia", "", ".. autosummary::", "   :toctree: names",
                  "   :nosignatures:", "", *(f"   {name.removeprefix('similia.')}" for name in here)]  # fmt: skip
    return "\n".join([*lines, ""])


def _first_paragraph(module):
    return (inspect.getdoc(module) or "").split("\n\n")[0]


def write(folder: Path):
    """Write a page a room into `folder`, and the page that lists them; unchanged files are left alone."""
    folder.mkdir(exist_ok=True)
    found = public_names()
    index = ["API by room", "===========", "",
             "In the direction data flows: objects, kernels and distances, embeddings, codes, learners and search.",
             "", ".. toctree::", "   :maxdepth: 1", ""]  # fmt: skip
    for room, names in found.items():
        _write(folder / f"{room}.rst", _page(room, names))
        index.append(f"   {room}")
    _write(folder / "index.rst", "\n".join(index) + "\n")


def _write(path, text):
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")
