"""What ``index.json`` must look like; anything else is refused with a sentence."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from similia._validation import check_n_bits

FORMAT, VERSION = "similia-index", 1
MANIFEST = "index.json"
OURS = re.compile(r"(codes|ids|dead|structure)-[0-9]{6,18}\.npy")  # names of array files


def read_manifest(folder: Path) -> dict[str, Any]:
    path = folder / MANIFEST
    if not path.is_file():
        raise ValueError(f"{folder} holds no similia index (no {MANIFEST}); make one with HammingIndex.save")
    try:
        manifest = json.loads(path.read_bytes())
        if manifest["format"] != FORMAT or not isinstance(manifest["version"], int):
            raise ValueError
    except (ValueError, KeyError, TypeError):
        raise ValueError(f"{path} was not written by similia; name a folder that HammingIndex.save made") from None
    if manifest["version"] > VERSION:
        raise ValueError(f"{path} has format {manifest['version']}, this similia reads up to {VERSION}; upgrade it")
    try:
        _check_manifest(manifest)
    except (KeyError, TypeError, ValueError, AttributeError):
        raise ValueError(f"{path} is damaged; restore the index from a copy") from None
    return manifest


def _check_manifest(manifest: dict[str, Any]) -> None:
    check_n_bits(manifest["n_bits"])
    structure = manifest["structure"]
    entries = [*manifest["dead"], *([] if structure is None else [structure])]
    for segment in manifest["segments"]:
        entries += [segment["codes"], segment["ids"]]
        numbers = (segment["rows"], segment["min_id"], segment["max_id"])
        if not segment["rows"] == segment["codes"]["rows"] == segment["ids"]["rows"] or not _naturals(numbers):
            raise ValueError
    for entry in entries:
        if not OURS.fullmatch(entry["file"]) or not _naturals((entry["rows"], entry["bytes"], entry["crc32"])):
            raise ValueError  # a path out of the folder among them
    dicts = (manifest["settings"], manifest["meta"], manifest["progress"])
    numbers = (manifest["commit"], manifest["next_file"], manifest["next_id"])
    if not all(isinstance(d, dict) for d in dicts) or not _naturals(numbers) or not isinstance(manifest["token"], str):
        raise ValueError


def _naturals(values: Iterable[Any]) -> bool:
    return all(isinstance(value, int) and value >= 0 for value in values)
