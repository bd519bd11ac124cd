"""Kill a process that adds codes to an index on disk, at random moments, and count what is lost or doubled.

    python benchmarks/kill_index.py 200

The process adds chunks of 1 to 7 codes, each with how far it has come in the same commit, merges and compacts; after
each kill the index is opened and compared with what was acknowledged. A lost code is one whose adding was
acknowledged before the kill and that is not there; a doubled one is there twice.
"""

from __future__ import annotations

import argparse
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from similia.storage.store import Store

LONGEST = 0.3  # seconds before the kill
WRITER = """
import sys
import numpy as np
from similia.storage.store import Store
store = Store.open(sys.argv[1])
with store.writing():
    print("ready", flush=True)
    while True:
        done = store.progress.get("done", 0)
        rows = np.arange(done, done + 1 + done % 7, dtype=">u8")
        store.append(rows.view(np.uint8).reshape(-1, 8), progress={"done": int(rows[-1]) + 1})
        print(store.progress["done"], flush=True)
        if done % 50 == 0:
            store.compact()
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("n_kills", type=int, nargs="?", default=200)
    n_kills = parser.parse_args().n_kills
    delays, lost, doubled, unreadable, done = random.Random(0), 0, 0, 0, 0
    with tempfile.TemporaryDirectory() as parent:
        folder = Path(parent) / "index"
        Store.create(folder, 64)
        for _ in range(n_kills):
            acknowledged = _run_and_kill(folder, delays.uniform(0, LONGEST))
            try:
                store = Store.open(folder)
                store.verify()
            except ValueError as error:
                print(error)
                unreadable += 1
                continue
            rows = np.concatenate([np.empty(0, ">u8"), *(codes.view(">u8").ravel() for codes, _ in store.arrays())])
            done = store.progress.get("done", 0)
            lost += len(np.setdiff1d(np.arange(max(done, acknowledged)), rows))
            doubled += len(rows) - len(np.unique(rows))
    print(f"{n_kills} kills, {done} codes: {lost} lost, {doubled} doubled, {unreadable} times not to be opened")
    sys.exit(bool(lost or doubled or unreadable))


def _run_and_kill(folder: Path, delay: float) -> int:
    """Return how many codes the process said were in before it was killed."""
    with subprocess.Popen([sys.executable, "-c", WRITER, str(folder)], stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        writer.stdout.readline()
        time.sleep(delay)
        writer.send_signal(signal.SIGKILL)
        lines = writer.stdout.read().split("\n")[:-1]  # the last may be cut
    return int(lines[-1]) if lines else 0


if __name__ == "__main__":
    main()
