"""The command line: ``similia fit``, ``predict``, ``report``, ``index`` and others, most in their own modules.

Commands import what they need when they run, so that ``similia --help`` answers at once.
"""

from __future__ import annotations

import signal
import sys


def main() -> None:
    """Run the command line; for invalid input, print one sentence on stderr and exit with code 2."""
    try:
        from similia.cli.app import app
        from similia.cli.voice import own_process

        own_process()
        app()
    except (ValueError, TypeError, OSError, ImportError) as error:
        print(f"similia: {_sentence(error)}", file=sys.stderr)
        raise SystemExit(2) from None
    except KeyboardInterrupt:  # while a command was being imported
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        print("similia: stopped before anything was written", file=sys.stderr)
        raise SystemExit(130) from None


def _sentence(error: Exception) -> str:
    from similia.storage.disk import says_full

    full = says_full(error)
    return str(error) if full is None else f"{full}; make room and run the same command again"
