"""Run the reliability sections and write docs/reliability.md.

    python tests/faults/run.py                                      # all sections, tables on the terminal
    python tests/faults/run.py fuzz --inputs 100000 --seed 3
    python tests/faults/run.py fuzz --output docs/reliability.md    # this section anew, the others stay as they are

A section is a module beside this file with

    TITLE, TEXT       heading and a paragraph of what is done, what counts, and what is not covered
    INPUTS            how many trials by default
    MUST_BE_ZERO      columns whose every number must be 0; otherwise the command fails
    run(n, seed)      the rows of the table: dicts with equal keys, in the order of the columns; or several tables
"""

from __future__ import annotations

import argparse
import importlib
import re
import sys
import time
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
ORDER = ("fuzz", "magnitudes", "faults", "interrupts", "together", "soak", "cpus")  # of the document; those that exist
SECTIONS = tuple(name for name in ORDER if (FOLDER / f"{name}.py").exists())

_HEAD = """# Reliability

How we tried to break similia, and how often it broke. Each table stands below the command that made it.
"""
_SECTION = re.compile(r"<!-- (?P<name>\w+) -->\n(?P<body>.*?)\n<!-- end (?P=name) -->", re.DOTALL)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", choices=[*SECTIONS, []], help=f"any of {', '.join(SECTIONS)}")
    parser.add_argument("--inputs", type=int, help="number of trials, by default that of the section")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="cpus: only the settings that CI runs")
    parser.add_argument("--only", metavar="WORD", help="cpus, faults: only those with this word in their names")
    parser.add_argument("--output", type=Path, help="Markdown file whose sections of these names are replaced")
    arguments = parser.parse_args()
    parts = {name: value for name in ("quick", "only") if (value := getattr(arguments, name))}
    alone = [["cpus"]] if arguments.quick else [["cpus"], ["faults"]]
    if parts and (arguments.names not in alone or arguments.output):
        parser.error("--quick (cpus) and --only (cpus, faults) need one name and no --output: a part is not written")
    failed = False
    for name in arguments.names or SECTIONS:
        module = importlib.import_module(name)
        n, start = arguments.inputs or module.INPUTS, time.perf_counter()
        found = module.run(n, arguments.seed, **parts)
        tables = found if isinstance(found[0], list) else [found]
        text = "\n\n".join(map(_table, tables))
        print(f"\n== {name}: {time.perf_counter() - start:.0f} s\n{text}", flush=True)
        failed |= any(row.get(column) for rows in tables for row in rows for column in module.MUST_BE_ZERO)
        if arguments.output:
            command = f"python tests/faults/run.py {name} --inputs {n} --seed {arguments.seed}"
            body = f"## {module.TITLE}\n\n`{command}`\n\n{module.TEXT.strip()}\n\n{text}"
            before = arguments.output.read_text(encoding="utf-8") if arguments.output.exists() else ""
            arguments.output.write_text(updated(before, name, body), encoding="utf-8")
            print(f"wrote section {name} of {arguments.output}")
    sys.exit(int(failed))


def updated(document: str, name: str, body: str) -> str:
    """Return the document with one section replaced or added; sections stand in the order of `ORDER`."""
    bodies = {found["name"]: found["body"] for found in _SECTION.finditer(document)} | {name: body}
    names = sorted(bodies, key=ORDER.index)
    return "\n".join([_HEAD, *(f"<!-- {name} -->\n{bodies[name]}\n<!-- end {name} -->\n" for name in names)])


def _table(rows: list[dict[str, Any]]) -> str:
    columns = list(rows[0])
    lines = [columns, ["---"] * len(columns), *([_cell(row[column]) for column in columns] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:.3g}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    main()
