"""What ``index.json`` must look like; anything else is refused with a sentence."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from similia.core.text import _short
from similia.core.validation import check_n_bits

FORMAT, VERSION = "similia-index", 1
MANIFEST = "index.json"
_MOST_BITS = 2**31  # of a code: distances are int32
OURS = re.compile(r"(codes|ids|dead|structure)-[0-9]{6,18}\.npy")  # names of array files


def read_manifest(folder: Path) -> dict[str, Any]:
    path = folder / MANIFEST
    if not path.is_file():
        raise ValueError(f"{folder} holds no similia index (no {MANIFEST}); make one with HammingIndex.save")
    try:
        manifest = json.loads(path.read_bytes())
        if manifest["format"] != FORMAT or not isinstance(manifest["version"], int):
            raise ValueError
    except (ValueError, KeyError, TypeError, RecursionError):
        raise ValueError(f"{path} was not written by similia; name a folder that HammingIndex.save made") from None
    if manifest["version"] > VERSION:
        found = _short(manifest["version"])
        raise ValueError(f"{path} has format {found}, this similia reads up to {VERSION}; upgrade it")
    try:
        if manifest.pop("crc32", None) not in (None, _checksum(manifest)):  # older ones have none
            raise ValueError
        _check_manifest(manifest)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, RecursionError):
        raise ValueError(f"{path} is damaged; restore the index from a copy") from None
    return manifest


def sealed(text: str) -> bytes:
    """Return the content of the file: the manifest and its checksum."""
    manifest = json.loads(text)
    return json.dumps({**manifest, "crc32": _checksum(manifest)}).encode()


def _checksum(manifest: dict[str, Any]) -> int:
    return zlib.crc32(json.dumps(manifest, sort_keys=True).encode())


def _check_manifest(manifest: dict[str, Any]) -> None:
    if check_n_bits(manifest["n_bits"]) > _MOST_BITS:
        raise ValueError
    structure = manifest["structure"]
    entries = [("dead", entry) for entry in manifest["dead"]]
    entries += [] if structure is None else [("structure", structure)]
    for segment in manifest["segments"]:
        entries += [("codes", segment["codes"]), ("ids", segment["ids"])]
        numbers = (segment["rows"], segment["min_id"], segment["max_id"])
        if not segment["rows"] == segment["codes"]["rows"] == segment["ids"]["rows"] or not _naturals(numbers):
            raise ValueError
    if structure is not None and not _naturals([structure["covers"]], sum(s["rows"] for s in manifest["segments"])):
        raise ValueError
    for kind, entry in entries:
        named = OURS.fullmatch(entry["file"])  # a path out of the folder is not
        if not named or named[1] != kind or not _naturals((entry["rows"], entry["bytes"], entry["crc32"])):
            raise ValueError
    dicts = (manifest["settings"], manifest["meta"], manifest["progress"])
    numbers = (manifest["commit"], manifest["next_file"], manifest["next_id"])
    if not all(isinstance(d, dict) for d in dicts) or not _naturals(numbers) or not isinstance(manifest["token"], str):
        raise ValueError


def _naturals(values: Iterable[Any], most: int = 2**63) -> bool:
    return all(isinstance(value, int) and 0 <= value <= most for value in values)
