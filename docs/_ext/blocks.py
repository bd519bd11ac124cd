"""Code of a page that is run when the page is built, with what it prints below it.

``{run} python`` runs in one namespace a page, ``{run} sh`` runs lines that begin with ``similia`` through the command
line of this process; both in one temporary folder a page. What fails is a warning, thus an error of the build.
"""

import contextlib
import io
import os
import shlex
import tempfile
import traceback

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
    """Work inside `folder`."""
    before = os.getcwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


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
        shown = [nodes.literal_block(code, code, language=language)]
        if printed.strip():
            text = "\n".join(line.rstrip() for line in printed.strip("\n").splitlines())
            shown.append(nodes.literal_block(text, text, language="text", classes=["printed"]))
        return shown


def setup(app):
    app.add_directive("run", Run)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
