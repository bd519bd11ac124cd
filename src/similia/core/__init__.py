"""Internal helpers shared by all packages of similia; `attach` imports the public names of a room when first used."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any


def attach(package: str, names: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``(__getattr__, __dir__)`` for `package`, so that its public `names` are imported when first used.

    `names` maps each name to the submodule that defines it, relative to `package` unless it begins with ``similia.``;
    "" means that the name is itself a submodule. Once imported, a name is an attribute of the package like any other.
    """

    def __getattr__(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {package!r} has no attribute {name!r}{_like(name, names)}")
        if names[name] == "":
            return importlib.import_module(f"{package}.{name}")
        home = names[name] if names[name].startswith("similia.") else f"{package}.{names[name]}"
        found = getattr(importlib.import_module(home), name)
        setattr(sys.modules[package], name, found)
        return found

    def __dir__() -> list[str]:
        return sorted(names)

    return __getattr__, __dir__


def _like(name: str, names: Mapping[str, str]) -> str:
    from similia.core.text import did_you_mean

    return "" if name.startswith("_") else did_you_mean(name, names)
