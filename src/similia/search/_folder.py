"""`HammingIndex` to a folder and back: whole, or only what changed since it came from there."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from similia.core.text import _short
from similia.search import _faiss
from similia.search._manifest import MANIFEST
from similia.search._rows import Part
from similia.search.ids import Ids, check_ids
from similia.search.store import Store, consistent

if TYPE_CHECKING:
    from similia.search.hamming_index import HammingIndex


def save(index: HammingIndex, path: Path) -> None:
    """See `HammingIndex.save`."""
    from similia.search.on_disk import holds_codes

    if holds_codes(path.resolve()):
        raise ValueError(
            f"{path} holds the codes of the search in {path.parent}, which would no longer belong to its objects; save "
            "the whole search with SimilaritySearch.save, or this index to another folder"
        )
    exists = (path / MANIFEST).exists()
    store = Store.open(path) if exists else Store.create(path, index.n_bits, _settings(index))
    with store.writing():
        origin, rows = index._origin, index._rows
        if origin is not None and exists and origin["folder"] == path.resolve():
            if origin["version"] != store.version:
                raise ValueError(f"{path} was changed after this index was loaded from it; load it again")
            new = np.flatnonzero(rows.dead[origin["rows"] :]) + origin["rows"]
            _change(index, store, rows.parts(origin["rows"]), np.concatenate([*origin["removed"], new]))
        else:
            fields = {"n_bits": index.n_bits, "token": os.urandom(8).hex(), "progress": {}}
            _change(index, store, rows.parts(), np.flatnonzero(rows.dead), replace=True, **fields)
        if 2 * store.n_dead > store.n_rows:  # of a mapped index: one in memory has dropped its removed rows
            store.compact()
        if index._mapped:
            _read(index, store, mmap=True)
        _set_origin(index, store)


def _change(index: HammingIndex, store: Store, parts: list[Part], dead: Ids, **fields: Any) -> None:
    kept, structure = store.manifest["structure"], None
    if index._structure is not None and ("replace" in fields or kept is None or kept["covers"] != index._n_built):
        structure = _faiss.to_bytes(index._structure), index._n_built
    rows, next_id = [(part.codes, part.ids) for part in parts], index._rows.next_id
    store.change(rows, dead, structure=structure, settings=_settings(index), next_id=next_id, **fields)


def load(kind: type[HammingIndex], path: Path, mmap: bool) -> HammingIndex:
    """See `HammingIndex.load`."""
    return consistent(path, lambda store: _loaded(kind, store, mmap))


def _loaded(kind: type[HammingIndex], store: Store, mmap: bool) -> HammingIndex:
    try:
        index = kind(store.n_bits, **store.settings)
        index._check_parameters()
    except (TypeError, ValueError) as error:
        problem = _short(str(error), 200)[1:-1]
        raise ValueError(f"{store.folder} has settings that this similia does not know: {problem}") from None
    _read(index, store, mmap)
    if not mmap:
        try:
            check_ids(index.ids)
        except ValueError as error:
            raise ValueError(f"{store.folder} is damaged, {error}; restore it from a copy") from None
    _set_origin(index, store)
    return index


def _read(index: HammingIndex, store: Store, mmap: bool) -> None:
    index._start()
    index._mapped = mmap
    keep = index._rows.attach if mmap else index._rows.append
    for codes, ids in store.arrays(mmap):
        keep(codes, ids)
    index._rows.kill(store.dead_rows())
    index._rows.next_id = max(index._rows.next_id, store.manifest["next_id"])
    stored = store.structure()
    if stored is not None and index.kind != "exact":
        try:
            index._structure = _faiss.from_bytes(stored[0], index.kind, index.n_bits, stored[1])
        except ValueError as error:
            raise ValueError(f"{store.folder} is damaged: {error}; restore it from a copy") from None
        index._n_built = stored[1]


def _set_origin(index: HammingIndex, store: Store) -> None:
    folder = store.folder.resolve()
    index._origin = {"folder": folder, "version": store.version, "rows": store.n_rows, "removed": []}


def _settings(index: HammingIndex) -> dict[str, Any]:
    """Return the parameters; of `random_state` only a seed can be kept."""
    settings = {name: value for name, value in index.get_params().items() if name != "n_bits"}
    if not isinstance(index.random_state, int):
        settings["random_state"] = None
    return settings
