"""The pages say what happens: their code is run, their links lead somewhere, every public name has its page.

README, guide and scale are run here, each page as one test. The gallery and the ``{run}`` blocks of all other pages are
run by ``python dev.py docs`` (``python -m sphinx -W``), where what fails or warns is an error; that it is one is tested
here.
"""

import ast
import doctest
import importlib
import inspect
import io
import re
import runpy
import shlex
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

import similia as sm

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
GUIDE = sorted({*DOCS.glob("guide/*.md")} - {DOCS / "guide" / "index.md"})
WRITTEN = sorted([*DOCS.glob("*.md"), *DOCS.glob("guide/*.md"), *DOCS.glob("theory/*.md")])  # others: by commands
TRIED = [*GUIDE, DOCS / "scale.md"]  # by doctest
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *WRITTEN]
MADE = ("auto_gallery/", "api/", "_static/made/")  # by the build
FENCE = re.compile(r"^(`{3,}|~{3,})(.*)\n((?:.*\n)*?)\1$", re.MULTILINE)

sys.path[:0] = [str(DOCS / "_ext"), str(ROOT / "tools")]
api_pages = importlib.import_module("api_pages")
blocks = pytest.importorskip("blocks", reason="Sphinx is not installed: pip install '.[docs]'")
docutils_namespace = importlib.import_module("sphinx.util.docutils").docutils_namespace


def name_of(path):
    return str(path.relative_to(ROOT))


def fenced(path):
    """Return the fenced blocks of a page as pairs of what stands behind the fence and the text."""
    return [(info.strip(), text) for _, info, text in FENCE.findall(path.read_text(encoding="utf-8"))]


@pytest.mark.parametrize("page", TRIED, ids=name_of)
def test_examples_of_the_pages(page):
    failures, tried = doctest.testfile(str(page), module_relative=False)
    assert (failures, tried > 3) == (0, True)


@pytest.mark.parametrize("page", GUIDE, ids=name_of)
def test_the_index_of_the_guide_links_to_every_question(page):
    index = (page.parent / "index.md").read_text(encoding="utf-8")
    for question in re.findall("^## (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE):
        anchor = re.sub(r"[^\w -]", "", question.lower()).replace(" ", "-")
        assert f"({page.name}#{anchor})" in index, question


def test_the_examples_of_the_readme(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    code = [text for info, text in fenced(ROOT / "README.md") if info == "python"]
    names = {}
    exec(compile("\n".join(code), "README.md", "exec"), names)
    said = capsys.readouterr().out.splitlines()
    claimed = [float(number) for block in code for number in re.findall(r"print\(.*  # (0\.\d\d)", block)]
    assert len(claimed) == 3
    assert [*map(float, said[:3])] == pytest.approx(claimed, abs=0.015)
    (alone,) = (float(share) for share in re.findall(r"most common class alone: (0\.\d\d)", "".join(code)))
    labels = names["y"][1::2].tolist()
    assert max(map(labels.count, labels)) / len(labels) == pytest.approx(alone, abs=0.006)
    assert said[3].startswith("similarity of x and y by Spectrum(k=4)")
    assert (tmp_path / "splice.similia").exists()
    assert (tmp_path / "report.html").exists()
    assert any(f"{len(names['windows']):,} of them" in text for text in code)


def test_the_readme_is_short_and_has_pictures():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.split()) <= 1500
    assert len(re.findall(r"!\[[^]]+\]\([^)]+\.svg\)", text)) >= 6


def release_of(citation, changelog):
    """Return the version of CITATION.cff, and the days of the release in it and in the changelog, or None."""
    version = re.search(r"^version: (\S+)", citation, re.MULTILINE)[1]
    day = re.search(r"^date-released: (\d{4}-\d\d-\d\d)$", citation, re.MULTILINE)
    name, written = re.search(r"^## (\S+) \((unreleased|\d{4}-\d\d-\d\d)\)$", changelog, re.MULTILINE).groups()
    assert version.split(".dev")[0] == name
    return version, day and day[1], None if written == "unreleased" else written


def test_a_version_is_released_everywhere_or_nowhere():
    texts = [(ROOT / name).read_text(encoding="utf-8") for name in ("CITATION.cff", "CHANGELOG.md", "README.md")]
    version, cited, changed = release_of(*texts[:2])
    assert version == sm.__version__
    assert cited == changed
    assert (cited is None) == (".dev" in version) == ("is not released yet" in texts[2])


def test_a_release_has_a_day():
    assert release_of("version: 1.2.0\ndate-released: 2027-01-31\n", "# C\n\n## 1.2.0 (2027-01-31)\n") == (
        "1.2.0", "2027-01-31", "2027-01-31"
    )  # fmt: skip


def test_a_page_that_stands_for_missing_ones_has_absolute_links():
    rooted = runpy.run_path(str(DOCS / "conf.py"))["rooted"]
    page = (
        '<a href="#main"></a> <a href="api/index.html#x"> <html data-content_root="./"> <script src="https://a/b.js">'
    )
    found = rooted(page, "/similia/")
    assert 'href="#main"' in found
    assert 'href="/similia/api/index.html#x"' in found
    assert 'data-content_root="/similia/"' in found
    assert 'src="https://a/b.js"' in found
    assert rooted(found, "/similia") == found
    assert 'href="/api/index.html#x"' in rooted(page, "/")


def test_dead_links_and_dead_anchors_are_found(tmp_path):
    accessible = importlib.import_module("accessible")
    (tmp_path / "a").mkdir()
    (tmp_path / "404.html").write_text('<a href="/a/b.html#here">', encoding="utf-8")
    links = ["../404.html", "#here", "b.html#gone", "b.html#he&#114;e", "no.html", "/no", "https://nowhere/#x", "?q=1"]
    page = '<p id="here">' + "".join(f' <a href="{link}">' for link in links)
    (tmp_path / "a" / "b.html").write_text(page, encoding="utf-8")
    assert accessible.dead_links(tmp_path) == [f"a/b.html: {link}" for link in ("/no", "b.html#gone", "no.html")]


def test_a_terminal_is_drawn_scene_by_scene(tmp_path):
    drawn = importlib.import_module("terminal")
    scenes = [
        (command, drawn.run(command, tmp_path)) for command in ("echo 'a < b'; printf '\\033[32mgreen\\033[0m'", "pwd")
    ]
    root = ElementTree.fromstring(drawn.animated(scenes))
    texts = [(element.text, element.get("fill")) for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert ("a < b", drawn.TEXT) in texts
    assert ("green", drawn.COLOURS[2]) in texts
    assert (str(tmp_path), drawn.TEXT) in texts
    shown = [g for g in root if g.tag.endswith("}g")]
    assert [g.get("opacity") for g in shown] == ["1", "0"], "without animation, the first scene is seen"
    times = [[float(t) for t in g[0].get("keyTimes").split(";")] for g in shown]
    assert times[0][2] == times[1][1] > 0, "a scene begins when the one before ends"
    assert times[1][2] == 1
    with pytest.raises(subprocess.CalledProcessError):
        drawn.run("exit 3", tmp_path)


def test_the_animation_of_the_readme_shows_commands_that_exist():
    text = (DOCS / "pictures" / "terminal.svg").read_text(encoding="utf-8")
    assert len(text) < 1_000_000
    for command in ("fit", "report", "explain"):
        assert f">similia {command} " in text


@pytest.mark.parametrize("chart", ["models", "search"])
def test_the_bars_of_the_readme_are_those_of_the_benchmarks(chart):
    drawn = importlib.import_module("readme_pictures")
    picture = DOCS / "pictures" / f"speed_{chart}.svg"
    texts = re.findall(r"<text[^>]*>([^<]*)</text>", picture.read_text(encoding="utf-8"))
    ratios = drawn.ratios(chart)
    assert set(ratios) <= set(texts), "python dev.py pictures writes them anew"
    assert {drawn.shown(ratio) for ratio in ratios.values()} <= set(texts), "python dev.py pictures writes them anew"
    assert picture.name in (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_badges_of_the_readme_say_what_the_package_says():
    drawn = importlib.import_module("readme_pictures")
    assert drawn.badges() == {"python": "3.11 to 3.14", "licence": "BSD-3-Clause"}
    for name, text in drawn.badges().items():
        assert (DOCS / "pictures" / f"{name}.svg").read_text(encoding="utf-8") == drawn.badge(name, text)


def rows(page):
    """Return the rows of all tables of a page, as lists of cells."""
    lines = (DOCS / page).read_text(encoding="utf-8").splitlines()
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]


def row(page, *cells):
    """Return the first row that begins with these cells."""
    return next(found for found in rows(page) if found[: len(cells)] == [*cells])


def test_the_counts_of_the_readme_are_those_of_the_tables():
    text = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    specialists, printed = (
        row("reproduction/specialists.md", f"the best {what}, chosen afterwards", "all")[2:6]
        for what in ("of them", "in print")
    )
    sets, wins, ties, losses = specialists
    assert losses == "0"
    assert f"On {sets} data sets, `sm.AutoClassifier`" in text
    assert f"it is better on {wins} sets, level on {ties} and worse on none." in text
    sets, wins, ties, losses = printed
    assert f"it is better on {wins} of {sets} sets, level on {ties} and worse on {losses}." in text
    assert "The five losses to published results" in text
    assert losses == "5"
    memory = row("benchmarks.md", "encode 1,000,000 strings from FASTA to 1024-bit codes: peak memory, GiB")
    assert f"takes {float(memory[2]):.2f} GiB |" in text
    query = row("benchmarks.md", "one query, 100,000 strings of 60 letters, 256 bits, rerank=Levenshtein(): time")
    assert "a query among 100,000 strings takes less than 0.3 ms" in text
    assert query[1] == "0.3 ms"
    assert float(query[2]) < 1
    tasks = (DOCS / "tasks.md").read_text(encoding="utf-8").count("\n| ") - 1
    assert round(tasks, -1) == 50
    assert "About fifty more tasks" in text
    assert f"map of {len(sm.datasets.load_splice().data)} stretches" in text


def percent(cell):
    """Return the mean in a cell as a percentage."""
    return f"{float(cell.split()[0]):.1f} %"


def test_the_results_of_the_papers_in_the_readme_are_those_of_the_tables():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    said = {
        name: [printed, here] for name, printed, here in re.findall(r"\n\| \*\*(.*?)\*\*.*\| (.*) \| (.*) \|", text)
    }
    page = "reproduction/nyshd-graphs.md"
    at = [row(page, "method", "NCI1", "ENZYMES").index(name) for name in ("ENZYMES", "NCI1")]
    paper, ours = ([percent(row(page, who)[i]) for i in at] for who in ("NysHD (paper)", "**NysHD** (ours)"))
    assert said.pop("NysHD") == [f"ENZYMES {paper[0]}, NCI1 {paper[1]}", f"{ours[0]}, {ours[1]}"]

    page = "reproduction/d2ke.md"
    ours, paper = row(page, "splice", "2233/957", "ours"), row(page, "splice", "", "paper")
    here = f"{percent(ours[3])}; with mosaics of training strings {percent(ours[4])}"
    assert said.pop("D2KE") == [f"splice {percent(paper[3])}", here]

    optical = row("reproduction/graphlet-real.md", "REDDIT-BINARY", "rbf")
    assert said.pop("GSA-φ") == [f"REDDIT-BINARY {optical[5]} % (graphlet kernel)", percent(optical[3])]

    page = "reproduction/hashing-map.md"
    full, ours = (
        np.array([[float(cell.split()[0]) for cell in found[3:]] for found in rows(page) if found[0] == who])
        for who in ("full PCA + ITQ", "Nyström, uniform + ITQ")
    )  # of 64, 128 and 256 bits
    assert full.shape == (4, 3)
    assert np.abs(full - ours).max() < 0.01
    faster = row(
        "benchmarks.md", "generalized Nyström PCA + ITQ, 60,000 x 1584, 64 bits: speed", "faiss ITQTransform, all rows"
    )
    here = f"within .01 of the mAP of full PCA from 64 bits on; {float(faster[2]):.1f} times as fast as ITQ of faiss"
    assert said.pop("PCA + ITQ hashing with generalised Nyström")[1] == here

    page = rows("reproduction/heat-webkb.md")
    exact = next(found for found in page if found[0] == "pages").index("exact")
    at = [[found[0] for found in page].index(f"{words} words, 400 a class") for words in (393, 1312)]
    printed, here = ([percent(page[i + below][exact]) for i in at] for below in (1, 0))
    assert said.pop("The exact heat kernel on a hypersphere") == [
        f"WebKB, 393 words {printed[0]}, 1312 words {printed[1]}", f"{here[0]}, {here[1]}"
    ]  # fmt: skip
    assert not said


def built(folder, **pages):
    """Build pages (reStructuredText) as plain text; return them, and the warnings of the build."""
    application = importlib.import_module("sphinx.application")
    for name, text in pages.items():
        (folder / f"{name}.rst").write_text(f":orphan:\n\n{name}\n{'=' * len(name)}\n\n{text}", encoding="utf-8")
    told, out = io.StringIO(), folder / "out"
    options = {"extensions": ["blocks"], "root_doc": next(iter(pages))}
    with docutils_namespace():
        app = application.Sphinx(folder, None, out, out, "text", options, status=None, warning=told)
        app.build()
    return [(out / f"{name}.txt").read_text(encoding="utf-8") for name in pages], told.getvalue()


def block(language, *lines):
    return f".. run:: {language}\n\n" + "".join(f"   {line}\n" for line in lines) + "\n"


def test_blocks_of_a_page_run_one_after_the_other_in_a_folder_of_their_own(tmp_path):
    first = block(
        "python", "from pathlib import Path", "_ = Path('kept').write_text('ACGT')", "print('in', Path.cwd())"
    )
    second = block("python", "print('kept', Path('kept').read_text())")
    third = block("sh", "similia --version")
    (text, other), told = built(tmp_path, one=first + second + third, two=block("python", "print('Path' in globals())"))
    assert not told
    assert not Path(re.search(r"\n   in (.*)\n", text)[1]).exists()
    assert re.search(rf"\n   kept ACGT\n(.*\n)*   similia {re.escape(sm.__version__)}\n", text)
    assert "False" in other


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        (block("python", "1 / 0"), "ZeroDivisionError"),
        (block("python", "import warnings", "warnings.warn('this is old')"), "UserWarning: this is old"),
        (block("sh", "similia fit nowhere.csv -o model"), "exit code"),
    ],
    ids=["fails", "warns", "exits"],
)
def test_the_build_warns_of_a_block_that_fails_or_warns(tmp_path, code, sentence):
    _, told = built(tmp_path, bad=code)
    assert "WARNING: this code failed" in told
    assert sentence in told
    assert "bad.rst:6" in told


@pytest.mark.parametrize(
    ("written", "printed", "same"),
    [
        ("right: 0.95 (2.0 MB)", "right:  0.93\n(2.1 MB)", True),
        ("right: 0.95", "right: 0.85", False),
        ("... ms", "3.1 ms", True),
        ("... ms", "3.1 s", False),
        ("0 12 %", "0 12 %", True),
        ("0", "0.1", False),
        ("one", "one two", False),
        ("one two", "one", False),
    ],
)
def test_what_a_page_says_is_printed_is_held_against_what_is(tmp_path, written, printed, same):
    assert blocks.alike(written, printed) is same
    page = block("python", *(f"print({line!r})" for line in printed.splitlines()))
    (text,), told = built(tmp_path, page=f"{page}.. printed::\n\n   {written}\n")
    assert (not told) is same
    assert "what is printed is not what stands here" in told or same
    assert text.count(printed.splitlines()[-1]) == 2  # in the code and below it


def test_a_block_that_fails_is_told(tmp_path):
    assert "ZeroDivisionError" in blocks.python("1 / 0", {})[1]
    assert "exit code" in blocks.shell("similia fit nowhere.csv -o model")[1]
    assert "only lines of similia" in blocks.shell("rm -r .")[1]


@pytest.mark.parametrize("page", WRITTEN, ids=name_of)
def test_every_block_of_code_is_run_or_is_no_code(page):
    """Python is run by the build (`blocks`) or by doctest; lines of the shell are held against the commands, below."""
    bare = FENCE.sub("", page.read_text(encoding="utf-8"))
    assert "\n>>> " not in bare, "without a fence, Markdown makes it a quotation"
    for info, text in fenced(page):
        if info == "python":
            assert page in TRIED, "doctest is not run on this page"
            assert text.startswith(">>> "), text
        else:
            assert info in ("", "text", "csv") or info.startswith("{"), f"a block of {info} that nothing runs"
            assert info or not text.startswith(("import ", "from ", ">>>")), text


def lines_of_similia(path):
    """Return lines that call the command line, out of blocks of any kind."""
    text = path.read_text(encoding="utf-8").replace("\\\n", " ")
    return re.findall(r"^(?:    |\$ )?(similia [a-z].*)$", text, re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_lines_of_the_shell_name_commands_and_options_that_exist(page):
    import typer

    from similia.cli.app import app

    for line in lines_of_similia(page):
        command, words = typer.main.get_command(app), shlex.split(line, comments=True)[1:]
        while hasattr(command, "commands"):
            assert words, line
            assert words[0] in command.commands, line
            command = command.commands[words.pop(0)]
        known = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
        assert {word for word in words if re.match(r"--?[a-z]", word)} <= known | {"--help"}, line


def test_that_lines_of_the_shell_are_found(tmp_path):
    assert len(lines_of_similia(DOCS / "guide" / "search.md")) > 3
    page = tmp_path / "page.md"
    page.write_text("text\n\n    similia fit a.csv \\\n      --nonsense\n", encoding="utf-8")
    with pytest.raises(AssertionError, match="nonsense"):
        test_lines_of_the_shell_name_commands_and_options_that_exist(page)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page):
    text = page.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text):
        path = (page.parent / target).resolve()
        made = path.is_relative_to(DOCS) and path.relative_to(DOCS).as_posix().startswith(MADE)
        assert target.startswith("http") or made or path.exists(), target


def public_names():
    return [name for names in api_pages.public_names().values() for name in names]


def found(name):
    home, _, last = name.rpartition(".")
    return getattr(importlib.import_module(home), last)


def test_every_public_name_has_a_page():
    documented = {id(found(name)) for name in public_names()}
    rooms = {*api_pages.ROOMS, "experiments", "__version__"}
    for room in ["similia", *(f"similia.{room}" for room in api_pages.ROOMS if hasattr(sm, room))]:
        module = importlib.import_module(room)
        for name in getattr(module, "__all__", []):
            value = getattr(module, name)
            assert name in rooms or type(value).__name__ == "module" or id(value) in documented, f"{room}.{name}"


# numpydoc's checks that are not asked for, and why
NOT_ASKED = {
    "SA01",  # "See Also" of every name
    "ES01",  # a second paragraph: where one says all, one will do
    "PR07", "RT03",  # a description of what the type says already
    "PR08", "PR09", "RT04",  # a description may be a phrase
}  # fmt: skip
ONE_LINE = re.compile(r"^Return [^\n]*\.(\n|$)")  # a function that says what it returns in its summary
NOT_HERE = r"\.landmarks\.|\.adapters\."  # strategies, of which `Nystroem` has examples; of libraries not installed
STRATEGY = r"\.landmarks\."  # the module describes the parameters that all strategies share
BASES = {"similia.kernels.Kernel", "similia.kernels.FeatureKernel", "similia.distances.Distance"}
RESULTS = re.compile(r"\nAttributes\n-+\n")  # a result has attributes; nobody makes one from parameters


@pytest.mark.parametrize("name", public_names())
def test_docstrings_are_numpydoc(name):
    validate = pytest.importorskip("numpydoc.validate", reason="numpydoc is not installed: pip install '.[docs]'")
    result = validate.validate(name)
    text = result["docstring"]
    wrong = {code: message for code, message in result["errors"] if code not in NOT_ASKED}
    if ONE_LINE.match(text):
        wrong.pop("RT01", None)
    if "RT01" in wrong and "\nYields\n" in text:
        wrong.pop("RT01")
    if name in BASES or re.search(NOT_HERE, name):
        wrong.pop("EX01", None)
    if re.search(STRATEGY, name):
        wrong.pop("PR01", None)
    if RESULTS.search(text) and "\nParameters\n" not in text:
        wrong.pop("PR01", None)
        wrong.pop("EX01", None)
    assert not wrong, name


DEFAULT = re.compile(r"^    (\w+) : [^\n]*?default=(\S+)$", re.MULTILINE)


@pytest.mark.parametrize("name", public_names())
def test_defaults_in_docstrings_are_those_of_the_signature(name):
    of = found(name)
    if not callable(of):
        return
    parameters = inspect.signature(of).parameters
    for parameter, default in DEFAULT.findall(of.__doc__ or ""):
        if parameter in parameters:  # others are of a method that is described with the class
            same = eval(default, vars(np) | vars(sm)) == parameters[parameter].default
            assert same, f"{name}({parameter}=...): {default} in the docstring"


def test_the_gallery():
    examples = sorted((DOCS / "gallery").glob("plot_*.py"))
    assert len(examples) >= 15
    for path in examples:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        title, line, *_ = ast.get_docstring(tree).splitlines()
        assert set(line) == {"="}, path.name
        assert len(line) >= len(title), path.name
        assert "datasets.fetch" not in path.read_text(encoding="utf-8"), f"{path.name} must run without a network"


def test_formulas_become_mathml():
    pytest.importorskip("docutils.utils.math.latex2mathml", reason="docutils is too old: pip install '.[docs]'")
    from docutils import nodes

    mathml = importlib.import_module("mathml")
    assert "<msup>" in mathml.convert(nodes.math("", r"\big(x^2\big)"), block=False)


DOTTED = re.compile(
    rf"(?<![\w./{{}}-])(import |from )?(?:(?:sm|similia)\.|(?<=`)(?=(?:{'|'.join(api_pages.ROOMS)})\.(?:\w+\.)*[A-Z]))"
    r"([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)"
)


def dotted_names(text):
    """Return what stands behind ``sm.`` or ``similia.``, or a class behind a room; not in imports, which reach more."""
    return [path for imported, path in DOTTED.findall(text) if not imported]


def is_reached(path):
    """Return whether a name below `similia` can be written after ``import similia`` alone, as in a fresh process.

    ``dir`` lists all that a package declares. Any other submodule is an attribute only once it was imported, perhaps
    by another test.
    """
    value = sm
    for part in path.split("."):
        declared = not hasattr(value, "__path__") or part in {*dir(value), "__version__"}
        if not declared or not hasattr(value, part):
            return False
        value = getattr(value, part)
    return True


def is_imported(path, inside=0):
    """Return whether a name below `similia` is a module, or at most so many levels inside one."""
    for level in range(inside + 1):
        module, *names = f"similia.{path}".rsplit(".", level)
        try:
            value = importlib.import_module(module)
        except ModuleNotFoundError:
            continue
        return all(hasattr(value, name) and (value := getattr(value, name)) is not None for name in names)
    return False


def texts_of(path):
    """Return the sentences of a source file that a program may say, and its docstrings."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    homes = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docs = [
        text for node in ast.walk(tree) if isinstance(node, homes) and (text := ast.get_docstring(node, clean=False))
    ]
    said = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    return [text for text in said if " " in text and text not in docs], docs


def docstrings_of(name):
    of = found(name)
    members = vars(of) if inspect.isclass(of) else {}
    return [inspect.getdoc(of) or "", *((inspect.getdoc(m) or "") for key, m in members.items() if key[0] != "_")]


def test_dotted_names_can_be_written_as_they_stand():
    pages = {
        name_of(path): [path.read_text(encoding="utf-8")]
        for path in [*map(ROOT.joinpath, ("README.md", "CHANGELOG.md")), *WRITTEN]
    }
    sources = {name_of(path): texts_of(path) for path in sorted((ROOT / "src").rglob("*.py"))}
    said = {where: texts for where, (texts, _) in sources.items()}
    public = {name: docstrings_of(name) for name in public_names()}
    names = [(where, name) for where, texts in [*pages.items(), *said.items(), *public.items()]
             for text in texts for name in dotted_names(text)]  # fmt: skip
    assert len(names) > 1000
    assert not [(where, name) for where, name in names if not (is_reached(name) or is_imported(name))]
    inner = [(where, name) for where, (_, docs) in sources.items() for text in docs for name in dotted_names(text)]
    assert not [(where, name) for where, name in inner if not (is_reached(name) or is_imported(name, inside=2))]
