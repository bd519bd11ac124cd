"""Counts of requests and their durations, in the text format of Prometheus, summed over the processes of a service."""

from __future__ import annotations

import json
import time
import uuid
from collections import Counter
from pathlib import Path

_SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 5.0)  # upper ends of the histogram
_FRESH = 10.0  # seconds without news after which a process counts as dead
_FAMILIES = {  # of metrics, and their types
    "similia_requests_total": "counter", "similia_request_seconds": "histogram", "similia_objects_total": "counter",
    "similia_reloads_total": "counter", "similia_reload_failures_total": "counter", "similia_batches_total": "counter",
    "similia_waiting_objects": "gauge", "similia_body_bytes": "gauge",
}  # fmt: skip


class Metrics:
    """Counts of requests and their durations, in the text format of Prometheus.

    Several processes that serve together have a folder in which each writes its counts: every second, and before it
    shows the sums. So a sum never falls below one shown before, whichever process shows it, and also if a process dies.
    """

    def __init__(self, folder: str | None) -> None:
        self.counts: dict[str, Counter[str]] = {family: Counter() for family in _FAMILIES}
        self.path = Path(folder) / f"{uuid.uuid4().hex}.json" if folder else None
        for family in _FAMILIES:
            if family not in ("similia_requests_total", "similia_request_seconds"):
                self.counts[family][""] = 0

    def note(self, operation: str, status: int, seconds: float) -> None:
        label = f'operation="{operation}"'
        self.counts["similia_requests_total"][f'{{{label},status="{status}"}}'] += 1
        histogram = self.counts["similia_request_seconds"]
        for end in _SECONDS:
            histogram[f'_bucket{{{label},le="{end}"}}'] += seconds <= end
        histogram[f'_bucket{{{label},le="+Inf"}}'] += 1
        histogram[f"_sum{{{label}}}"] += seconds  # type: ignore[assignment]
        histogram[f"_count{{{label}}}"] += 1

    def write(self) -> None:
        """Write the counts for the other processes."""
        if self.path is not None:
            part = self.path.with_suffix(".part")
            part.write_text(json.dumps(self.counts), encoding="utf-8")
            part.replace(self.path)

    def text(self) -> str:
        """Return the counts, summed over all processes."""
        lines = []
        for family, counts in self._sums().items():
            lines.append(f"# TYPE {family} {_FAMILIES[family]}")
            lines += [f"{family}{name} {value}" for name, value in counts.items()]
        return "\n".join(lines) + "\n"

    def _sums(self) -> dict[str, Counter[str]]:
        if self.path is None:
            return self.counts
        self.write()
        sums: dict[str, Counter[str]] = {family: Counter() for family in _FAMILIES}
        for path in sorted(self.path.parent.glob("*.json")):  # in a fixed order, so that sums of floats never fall
            dead = time.time() - path.stat().st_mtime > _FRESH
            for family, counts in json.loads(path.read_text(encoding="utf-8")).items():
                if not dead or _FAMILIES[family] != "gauge":
                    sums[family].update(counts)
        return sums
