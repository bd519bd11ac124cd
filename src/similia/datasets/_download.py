"""One file from the network into the cache: progress, retry, checks; all of it or nothing."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from similia.datasets._load import load
from similia.datasets._registry import Entry

_RETRIES = 2
_TIMEOUT = 30  # seconds without a byte


def download(name: str, entry: Entry, cache: str | os.PathLike[str] | None, base_url: str | None) -> tuple[Any, Any]:
    """Return ``(data, target)`` from the cache, or from the network if it is not there or is damaged.

    Only a file that loads without complaint is put into the cache.
    """
    if entry.url is None:
        raise FileNotFoundError(
            f"{name} has no public download; put {entry.kind}/{name}.tsv.gz (label<TAB>text) into a folder "
            "and set the environment variable SIMILIA_DATA to it"
        )
    import pooch
    from requests.exceptions import RequestException

    folder = Path(cache) if cache is not None else Path(pooch.os_cache("similia"))
    file = entry.url.rpartition("/")[2]
    if (folder / file).exists():
        try:
            return load(folder / file, entry, checksums=True)
        except ValueError:
            (folder / file).unlink()  # damaged: get it again
    url = f"{base_url.rstrip('/')}/{file}" if base_url else entry.url
    downloader = _Downloader(entry)
    store = pooch.create(folder, base_url="", urls={file: url}, registry={file: None}, retry_if_failed=_RETRIES)
    try:
        store.fetch(file, downloader=downloader)
    except (RequestException, ValueError) as error:
        raise ConnectionError(
            f"{name} could not be downloaded from {url} in {_RETRIES + 1} attempts ({error}); try again, or "
            f"download the file yourself into the folder {folder}"
        ) from error
    return downloader.loaded


class _Downloader:
    """What pooch calls to get a file; after a ValueError it drops the file and tries again."""

    def __init__(self, entry: Entry) -> None:
        self.entry = entry
        self.loaded: Any = None

    def __call__(self, url: str, output_file: str, pooch: Any) -> None:
        import requests

        with requests.get(url, stream=True, timeout=_TIMEOUT) as response:
            if 400 <= response.status_code < 500:  # asking again will not help
                raise FileNotFoundError(f"{url} is not there (HTTP {response.status_code})")
            response.raise_for_status()
            _save(response, Path(output_file))
        try:
            self.loaded = load(Path(output_file), self.entry, checksums=True)
        except ValueError as error:
            raise ValueError(str(error).replace(str(output_file), "the received file")) from None


def _save(response: Any, path: Path) -> None:
    """Write the body of a response to a file, with a progress bar on a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    size = int(response.headers.get("content-length", 0)) or None
    bar = Progress(*columns, console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty())
    with bar, path.open("wb") as file:
        task = bar.add_task(response.url.rpartition("/")[2], total=size)
        for chunk in response.iter_content(2**16):
            file.write(chunk)
            bar.advance(task, len(chunk))
