"""What the commands write for others to read."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from similia.persistence import write_atomically


def write_csv(rows: Iterable[Sequence[Any]], output: Path | None) -> None:
    """Write rows to a file, which is complete or not there, or to the terminal if `output` is None."""
    if output is None:
        csv.writer(sys.stdout).writerows(rows)
        return
    lines = io.StringIO(newline="")
    csv.writer(lines).writerows(rows)
    write_atomically(output, lines.getvalue().encode())
