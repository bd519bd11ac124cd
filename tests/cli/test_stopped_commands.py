"""Ctrl-C in commands that have written nothing yet: one line, exit code 130, and a second Ctrl-C changes neither."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import similia as sm
from similia.cli.app import app

WORDS = ["".join(word) for word in np.random.default_rng(0).choice(list("ACGT"), (40, 12))]
LABELS = ["even", "odd"] * 20
NOTHING = "similia: stopped; nothing was written\n"
GOES_ON = "similia: stopped after 0 objects; run the same command again to resume\n"
SCRIPT = """
import atexit, sys, time
def wait(*given, **how):
    if "ends" in {places}:
        atexit.register(stop_here, "ends")
    try:
        stop_here("works")
    finally:
        if "unwinds" in {places}:
            stop_here("unwinds")
def stop_here(place):
    print(place, flush=True)
    time.sleep(60)
from similia.cli import main
import similia.{module} as module
module.{function} = wait
sys.argv = ["similia", *{arguments}]
main()
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table, a model and an index."""
    folder = tmp_path_factory.mktemp("stopped")
    rows = "".join(f"{word},{label}\n" for word, label in zip(WORDS, LABELS, strict=True))
    (folder / "words.csv").write_text("text,label\n" + rows)
    model = sm.recipes.nyshd(sm.kernels.Spectrum(k=2), n_bits=64, random_state=0).fit(WORDS, LABELS)
    sm.save(model, folder / "m.similia")
    sm.SimilaritySearch(model[:-1]).fit(WORDS).save(folder / "index")
    return folder


def stopped(folder: Path, arguments: str, where: str, *places: str) -> tuple[int, str]:
    """Run a command that waits in the function `where`, send Ctrl-C at each of the `places`, return code and stderr."""
    module, _, function = where.rpartition(".")
    script = SCRIPT.format(places=places, module=module, function=function, arguments=arguments.split())
    command = [sys.executable, "-c", script]
    with subprocess.Popen(
        command, cwd=folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    ) as process:
        assert process.stdout
        try:
            for place in places:
                assert place + "\n" in process.stdout
                process.send_signal(signal.SIGINT)
            _, said = process.communicate(timeout=60)
        finally:
            process.kill()
    return process.returncode, said


def interrupted(monkeypatch: pytest.MonkeyPatch, arguments: str, where: str, again: bool = False) -> tuple[int, str]:
    """Run a command in this process, in which Ctrl-C comes in the function `where`, and once more on its way out."""

    def interrupt(*given: object, **how: object) -> None:
        try:
            raise KeyboardInterrupt
        finally:
            if again:
                raise KeyboardInterrupt

    handler = signal.getsignal(signal.SIGINT)
    with monkeypatch.context() as patch:
        patch.setattr(f"similia.{where}", interrupt)
        done = CliRunner().invoke(app, arguments.split())
    assert signal.getsignal(signal.SIGINT) is handler  # which is not the command's where it is not the process
    return done.exit_code, done.stderr


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize(
    ("arguments", "where"),
    [
        ("fit words.csv -o out.similia", "cli.inputs.read_labelled"),
        ("fit words.csv -o out.similia --kernel Spectrum(k=2)", "cli.training.fitted"),
        ("fit words.csv -o m.similia --kernel Spectrum(k=2)", "cli.training.fitted"),
        ("report m.similia words.csv -o out.html", "cli.inputs.read_objects"),
        ("index search index words.csv", "cli.inputs.read_objects"),
        ("index search index words.csv -o found.csv", "cli.inputs.read_objects"),
    ],
)
def test_nothing_was_written(folder, monkeypatch, arguments, where, again):
    monkeypatch.chdir(folder)
    before = set(folder.rglob("*"))
    assert interrupted(monkeypatch, arguments, where, again) == (130, NOTHING)
    assert set(folder.rglob("*")) == before


def test_what_was_written_is_not_denied(folder, monkeypatch):
    monkeypatch.chdir(folder)
    for _ in ("new", "in the place of another"):
        arguments = "fit words.csv -o done.similia --kernel Spectrum(k=2) --bits 64 --test 0"
        assert interrupted(monkeypatch, arguments, "cli.voice.result") == (130, "similia: stopped\n")
    assert (folder / "done.similia").exists()
    to_terminal = interrupted(monkeypatch, "predict m.similia words.csv", "scale.stream.print_stream")
    assert to_terminal == (130, "similia: stopped\n")


@pytest.mark.parametrize(
    ("arguments", "where", "line"),
    [
        ("index search index words.csv", "cli.inputs.read_objects", NOTHING),
        ("predict m.similia words.csv -o out.csv", "scale.stream.write_stream", GOES_ON),
    ],
)
def test_a_process_ends_with_one_line_however_often(folder, arguments, where, line):
    assert stopped(folder, arguments, where, "works", "unwinds", "ends") == (130, line)
