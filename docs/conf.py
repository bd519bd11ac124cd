"""Sphinx builds the documentation: ``python -m sphinx -W --keep-going -b html docs docs/_build/html``.

The build reads nothing from the network. It makes the pages of the API (`api_pages.py`), the picture of the rooms
(`house.py`) and the gallery, whose examples use bundled or generated data. ``SIMILIA_DOCS_ROOT`` says in which folder
of its server the documentation will be, ``/`` by default: the page for missing pages needs to know.
"""

import os
import re
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

import api_pages  # noqa: E402
import pictures  # noqa: E402

import similia  # noqa: E402

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

project = "similia"
author = "The similia developers"
copyright = "the similia developers, BSD-3-Clause"
version = release = similia.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_parser",
    "sphinx_gallery.gen_gallery",
    "mathml",
    "blocks",
]
exclude_patterns = ["_build", "_ext", "gallery", "**/*.ipynb", "auto_gallery/sg_execution_times.rst"]
templates_path = ["_templates"]
default_role = "autolink"
# what names may stay unresolved: types of other packages (there is no network to look them up)
nitpicky = True
nitpick_ignore_regex = [("py:.*", r"(numpy|scipy|sklearn|pandas|polars|networkx|dask|matplotlib|collections)\b.*")]

autosummary_generate = [f"api/{room}.rst" for room in api_pages.public_names()]
autosummary_imported_members = False
autodoc_typehints = "none"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

myst_enable_extensions = ["dollarmath", "colon_fence", "deflist", "substitution"]
myst_substitutions = {"release": f"{release}, which is not released yet" if "dev" in release else release}
myst_heading_anchors = 3
myst_dmath_double_inline = True
html_math_renderer = "mathml"

html_theme = "pydata_sphinx_theme"
html_title = "similia"
html_static_path = ["_static"]
html_css_files = ["similia.css"]
html_js_files = [("reachable.js", {"defer": "defer"})]
html_show_sourcelink = False
html_copy_source = False
html_sidebars = {page: [] for page in ("index", "tour", "choose", "add_a_kernel")}
html_context = {"default_mode": "auto"}
html_theme_options = {
    "logo": {"text": f"similia {release}"},  # thus on every page
    "navbar_end": ["theme-switcher"],
    "secondary_sidebar_items": ["page-toc"],
    "show_prev_next": False,
    "footer_start": ["copyright"],
    "footer_end": [],
    "navigation_depth": 2,
    "collapse_navigation": True,
    "header_links_before_dropdown": 8,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}


sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "auto_gallery",
    "filename_pattern": r"plot_.*\.py$",
    "ignore_pattern": r"__init__\.py",
    "abort_on_example_error": False,
    "within_subsection_order": "FileNameSortKey",
    "reset_modules": ("pictures.around_example",),
    "reset_modules_order": "both",
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "remove_config_comments": True,
    "min_reported_time": 1e9,
    "write_computation_times": False,
    "default_thumb_file": str(HERE / "_static" / "made" / "text.png"),
    "image_srcset": ["2x"],
    "notebook_images": False,
    "backreferences_dir": None,
}


def _draw(app):
    pictures.write(HERE / "_static" / "made")


def _root_404(app, exception):
    """Make the links of 404.html absolute, as a server shows this page in place of any missing one."""
    page = Path(app.outdir, "404.html")
    if exception is None and app.builder.name == "html":
        page.write_text(rooted(page.read_text(encoding="utf-8"), os.environ.get("SIMILIA_DOCS_ROOT", "/")), "utf-8")


def rooted(html, root):
    """Return a page with its relative links beginning at `root`; ``#places`` of the page stay."""
    relative = r'(?<=\s)(href|src|action|data-content_root)="(?![a-z]+:|[/#])(?:\./)?'
    return re.sub(relative, rf'\1="{root.rstrip("/")}/', html)


def _skip_of_sklearn(app, what, name, obj, skip, options):
    """Leave out what scikit-learn's base classes give: its own documentation has it."""
    return True if str(getattr(obj, "__module__", "")).startswith("sklearn.") else None


def _resolve(app, env, node, contnode):
    """Find a public name written by a shorter or a private path; a name of an argument or attribute stays text."""
    target = node.get("reftarget", "")
    if node.get("refdomain") != "py":
        return None
    domain, parts = env.domains["py"], target.split(".")
    names = [name for names in api_pages.public_names().values() for name in names if name.endswith(f".{parts[-1]}")]
    names += [name for name in domain.objects if len(parts) > 1 and name.endswith(f".{parts[-2]}.{parts[-1]}")]
    if names:
        return domain.resolve_xref(env, node["refdoc"], app.builder, "obj", names[0], node, contnode)
    return None if target.startswith("similia.") else contnode


def setup(app):
    app.connect("autodoc-skip-member", _skip_of_sklearn)
    app.connect("missing-reference", _resolve)
    api_pages.write(HERE / "api")  # before Sphinx looks which pages there are
    app.connect("builder-inited", _draw, priority=100)  # before the gallery, which takes one for a thumbnail
    app.connect("build-finished", _root_404)
