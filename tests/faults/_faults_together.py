"""Several processes on one index or one output."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import _faults_jobs as jobs
import numpy as np
from _faults_runs import LABELS, OPTIONS, QUERIES, Kind, Run, Tally, Work, objects_of, rows_of, undisturbed

import similia as sm
from similia.search.on_disk import SearchFolder

_HOW = ("add and add", "add twice", "add and remove", "build twice", "encode thrice", "encode two files")


class TwoWriters(Kind):
    """Two or three commands that write to the same index or output, begun at random moments."""

    name = "two writers"

    def __init__(self, base: Path) -> None:
        super().__init__(base)
        self.add, self.build, self.encode = map(self.work, ("add", "build", "encode"))
        self.words = [objects_of(self.build.output(self.build.whole)), objects_of(self.add.output(self.add.whole))]
        self.other = base / "other.npy"
        undisturbed(jobs.command, ["encode", str(self.add.data[1]), "-o", str(self.other), *OPTIONS])

    def trial(self, rng: random.Random, tally: Tally) -> None:
        """Start writers; what they leave must be what those that were not refused have written."""
        how = tally.note = rng.choice(_HOW)
        work = self.encode if how.startswith("encode") else self.build if how.startswith("build") else self.add
        folder = work.new(self.fresh())
        own, other = work.arguments(folder), self._other(how, work, folder, rng)
        commands = [own, *[other] * (2 if how == "encode thrice" else 1)]
        rng.shuffle(commands)
        runs: list[Run] = []
        together = False
        for arguments in commands:
            together = together or (bool(runs) and any(run.sleep(rng.uniform(0, 0.9 * work.seconds)) for run in runs))
            runs.append(Run(jobs.command, arguments))
        done = [arguments for arguments, run in zip(commands, runs, strict=True) if run.end(tally)]
        if together:
            tally.faults += 1
        else:
            tally.ended_before += 1
        self._check(how, work, folder, own, other, done, tally)

    def _other(self, how: str, work: Work, folder: Path, rng: random.Random) -> list[str]:
        output = str(work.output(folder))
        if how == "add and add":
            return ["index", "add", str(self._third()), output, "--chunk", "50"]
        if how == "add and remove":
            return ["index", "remove", output, *(str(i) for i in range(5, 1800, 9))]
        if how == "build twice":
            return [*work.arguments(folder), "--seed", "1"]
        if how == "encode two files":
            return ["encode", str(work.data[1]), "-o", output, *OPTIONS, "--chunk", "50"]
        return work.arguments(folder)

    def _third(self) -> Path:
        path = self.base / "third.fasta"
        if not path.exists():
            words = self.add.data[1].read_text().replace(">second", ">third")
            path.write_text(words)
        return path

    def _check(
        self, how: str, work: Work, folder: Path, own: list[str], other: list[str], done: list[list[str]], tally: Tally
    ) -> None:
        output = work.output(folder)
        if how == "encode two files":
            allowed = [work.expected] * (own in done) + [rows_of(self.other)] * (other in done)
            found = rows_of(output) if output.exists() else []
            if found not in allowed:
                tally.compare(found, work.expected)
        elif how == "encode thrice":
            tally.compare(work.left(folder), work.expected if done else [])
        elif how == "build twice":
            if own in done and other not in done:
                tally.compare(work.left(folder), work.expected)
            elif other in done and own not in done:
                tally.compare(work.left(folder), self._seeded())
            else:
                tally.wrong += 1
                tally.complain(f"{len(done)} builds of one index say that they are done", count=False)
        else:
            first, second = self.words[0], self.words[1][len(self.words[0]) :]
            added = second if own in done else []
            if how == "add and add" and other in done:
                added = [*added, *((name.replace("second", "third"), *rest) for name, *rest in second)]
            if how == "add and remove" and other in done:
                first = [item for i, item in enumerate(first) if i % 9 != 5 or i > 1800]
            tally.compare(sorted(objects_of(output)), sorted([*first, *added]))
        tally.compare([path.name for path in folder.glob("*.partial")], [])

    def _seeded(self) -> Any:
        if not hasattr(self, "seeded"):
            self.seeded = self.work("build", "--seed", "1").expected
        return self.seeded


class Readers(Kind):
    """An index is opened and searched again and again, in memory and mapped, while objects come and go."""

    name = "readers of an index being changed"
    weight = 1
    _commits, _batch = 70, 8  # more than the segments that are kept apart: some are merged

    def trial(self, rng: random.Random, tally: Tally) -> None:
        """Change an index while two processes read it."""
        letters = np.random.default_rng(rng.randrange(2**32))
        words = ["".join(word) for word in letters.choice(list("ACGT"), (self._commits * self._batch, 12))]
        batches = [words[i : i + self._batch] for i in range(0, len(words), self._batch)]
        gone = self._gone(rng, len(batches))
        folder = self.fresh()
        encoder = sm.recipes.nyshd(sm.kernels.Spectrum(k=2), 8, 64, random_state=0).fit(words[:60], LABELS)[:-1]
        search = sm.SimilaritySearch(encoder, sm.distances.Levenshtein(), n_candidates=10**6)
        SearchFolder.create(folder, search.fit(words[:60]))
        SearchFolder.open(folder).add(words[:1])
        SearchFolder.open(folder).remove([0])
        done = folder.with_name(f"{folder.name} is done")
        readers = [Run(jobs.read, str(folder), QUERIES, mmap, done) for mmap in (False, True)]
        writer = Run(jobs.change, str(folder), batches, gone, done)
        for run in (writer, *readers):
            run.end(tally, may_be_refused=False)
        tally.faults += 1
        self._check(words, batches, gone, [answer for run in readers for answer in run.sent], tally)

    def _gone(self, rng: random.Random, n: int) -> list[list[int]]:
        """Return which ids are removed after each addition; now and then so many that the index is written anew."""
        alive: list[int] = []
        gone = []
        for number in range(n):
            alive += range(1 + number * self._batch, 1 + (number + 1) * self._batch)
            share = rng.choice((0.0, 0.0, 0.05, 0.6 if number % 20 == 19 else 0.02))
            dead = sorted(rng.sample(alive, int(share * len(alive))))
            alive = sorted(set(alive) - set(dead))
            gone.append(dead)
        return gone

    def _check(self, words: Any, batches: Any, gone: Any, answers: list[Any], tally: Tally) -> None:
        states = {tuple(i + 1 for i in ids) for ids in jobs.changes(batches, [[i - 1 for i in ids] for ids in gone])}
        distances = sm.distances.Levenshtein()(QUERIES, words)
        tally.runs += len(answers)
        if not answers:
            tally.complain("nothing was read")
        for answer in answers:
            if isinstance(answer, str):
                tally.complain(answer)
                continue
            there, ids, scores = answer
            if tuple(there.tolist()) not in states:
                tally.wrong += 1
                tally.complain(f"{len(there)} objects, which were never those of the index", count=False)
                continue
            true = distances[:, there - 1]
            order = np.lexsort((np.broadcast_to(there, true.shape), true))[:, : ids.shape[1]]
            near = np.take_along_axis(true, order, 1)
            if not (np.array_equal(there[order], ids) and np.array_equal(np.abs(scores), near)):
                tally.wrong += 1
                tally.complain(f"{ids} {scores} are not the nearest, {there[order]} {near} are", count=False)
