"""The command line: ``similia demo | fit | predict | reproduce``.

Commands import what they need when they run, so that ``similia --help`` answers at once.
"""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line; a wrong input ends with one sentence on stderr and exit code 2."""
    from similia.cli.app import app

    try:
        app()
    except (ValueError, TypeError, OSError, ImportError) as error:
        print(f"similia: {error}", file=sys.stderr)
        raise SystemExit(2) from None
    except KeyboardInterrupt:  # while a command was being imported
        print("similia: stopped before anything was written", file=sys.stderr)
        raise SystemExit(130) from None
