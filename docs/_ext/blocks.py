"""Code of a page that is run when the page is built, with what it prints below it.

``{run} python`` runs in one namespace a page, ``{run} sh`` runs lines that begin with ``similia`` through the command
line of this process; both in one temporary folder a page. What fails or warns is a warning, thus an error of the build.

``{printed}`` behind such a block is its output for those who read the page unbuilt: held against what is printed, word
by word, numbers within a tenth, ``...`` for a word that is always another. The build shows what was printed instead.
"""

import contextlib
import io
import os
import shlex
import tempfile
import traceback
import warnings
from itertools import zip_longest

from docutils import nodes
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

LOGGER = logging.getLogger(__name__)
WIDTH = "96"


def python(code, names):
    """Run `code` in the namespace `names`; return what it printed, and the error or None."""
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed):
            exec(compile(code, "page", "exec"), names)
    except Exception:
        return printed.getvalue(), traceback.format_exc(limit=-2)
    return printed.getvalue(), None


def shell(lines):
    """Run lines of ``similia ...``, a backslash at the end of one going on in the next; return what they print."""
    from typer.testing import CliRunner

    from similia.cli.app import app

    output = []
    for line in lines.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        if not words:
            continue
        if words[0] != "similia":
            return "".join(output), f"{line}: only lines of similia are run"
        result = CliRunner(env={"COLUMNS": WIDTH, "TERM": "dumb", "NO_COLOR": "1"}).invoke(app, words[1:])
        output.append(result.output)
        if result.exit_code:
            return "".join(output), f"{line}: exit code {result.exit_code}"
    return "".join(output), None


@contextlib.contextmanager
def inside(folder):
    """Work inside `folder`, where a warning is an error, as in the tests."""
    before = os.getcwd()
    os.chdir(folder)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            yield
    finally:
        os.chdir(before)


def alike(written, printed):
    """Return whether the words of two texts are the same, but for numbers that differ by a tenth and ``...``."""
    return all(a in (b, "...") or _near(a, b) for a, b in zip_longest(written.split(), printed.split(), fillvalue=""))


def _near(a, b):
    try:
        x, y = (float(word.strip("()[]%,;:")) for word in (a, b))
    except ValueError:
        return False
    return abs(x - y) <= 0.1 * max(abs(x), abs(y))


class Run(SphinxDirective):
    """Show a block of code, run it, and show what it prints."""

    required_arguments = 1
    has_content = True

    def run(self):
        places = self.env.temp_data.setdefault("similia_run", {})
        if "folder" not in places:
            places["folder"], places["names"] = tempfile.TemporaryDirectory(), {"__name__": "page"}
        code = "\n".join(self.content)
        language = self.arguments[0]
        with inside(places["folder"].name):
            printed, error = python(code, places["names"]) if language == "python" else shell(code)
        if error:
            LOGGER.warning("this code failed: %s\n%s", error, printed, location=self.get_location())
        places["printed"] = printed
        shown = [nodes.literal_block(code, code, language=language)]
        if printed.strip():
            text = "\n".join(line.rstrip() for line in printed.strip("\n").splitlines())
            shown.append(nodes.literal_block(text, text, language="text", classes=["printed"]))
        return shown


class Printed(SphinxDirective):
    """Hold the text against what the block before it printed; `Run` has shown that."""

    has_content = True

    def run(self):
        printed = self.env.temp_data.get("similia_run", {}).get("printed", "")
        if not alike("\n".join(self.content), printed):
            LOGGER.warning("what is printed is not what stands here:\n%s", printed, location=self.get_location())
        return []


def _clean(app, doctree):
    """Remove the folder of a page that was read."""
    places = app.env.temp_data.pop("similia_run", None)
    if places:
        places["folder"].cleanup()


def setup(app):
    app.add_directive("run", Run)
    app.add_directive("printed", Printed)
    app.connect("doctree-read", _clean)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
