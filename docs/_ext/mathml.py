"""Formulas as MathML, which browsers draw themselves: nothing is fetched, no TeX is needed.

docutils has the converter; this names it as Sphinx's renderer of mathematics in HTML.
"""

import re

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.util import logging

LOGGER = logging.getLogger(__name__)
SIZES = re.compile(r"\\([bB]igg?)(?![a-zA-Z])")  # the converter knows \bigl and \bigr only


def convert(node, block):
    """Return MathML of `node`; a formula that cannot be converted is a warning, thus an error of the build."""
    try:
        return tex2mathml(SIZES.sub(r"\\\1l", node.astext()), as_block=block)
    except MathError as error:
        LOGGER.warning("cannot convert the formula %s: %s", node.astext(), error, location=node)
        return f"<code>{node.astext()}</code>"


def visit_inline(translator, node):
    translator.body.append(convert(node, block=False))
    raise nodes.SkipNode


def visit_block(translator, node):
    translator.body.append(f'<div class="formula">{convert(node, block=True)}</div>\n')
    raise nodes.SkipNode


def setup(app):
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
