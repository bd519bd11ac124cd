"""The command line: ``similia fit``, ``predict``, ``report``, ``index`` and others, most in their own modules.

Commands import what they need when they run, so that ``similia --help`` answers at once.
"""

from __future__ import annotations

import os
import signal
import sys


def main() -> None:
    """Run the command line; for invalid input, print one sentence on stderr and exit with code 2."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # not where a shell had Ctrl-C ignored
        signal.signal(signal.SIGINT, _stop_before_the_command)
    try:
        from similia.cli.app import app
        from similia.cli.voice import own_process

        own_process()
        app()
    except (ValueError, TypeError, OSError, ImportError) as error:
        print(f"similia: {_sentence(error)}", file=sys.stderr)
        raise SystemExit(2) from None


def _stop_before_the_command(*_: object) -> None:
    """End the process at once: while libraries are imported, compiled code may swallow a KeyboardInterrupt."""
    os.write(2, b"similia: stopped before anything was written\n")
    os._exit(130)


def _sentence(error: Exception) -> str:
    from similia.storage.disk import says_full

    full = says_full(error)
    if full is not None:
        return f"{full}; make room and run the same command again"
    if isinstance(error, OSError) and error.filename is not None and error.strerror is not None:
        return f"{error.filename}: {error.strerror[:1].lower()}{error.strerror[1:]}"
    return str(error)
