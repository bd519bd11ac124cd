"""Choosing under a time limit: the order of work is fixed, the whole budget is used, and what was cut is said."""

import threading

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin

from similia.selection import auto as _select
from similia.selection import budget as _budget
from similia.selection._ladder import DEAR, Group, ladder
from similia.selection._search import Rung, Unit, View, first_units
from similia.selection.folds import recognised

from samples.select import choose, rows, sample  # isort: skip


class Clock:
    now = 0.0

    def __call__(self):
        return Clock.now


class Timed(ClassifierMixin, BaseEstimator):
    """Takes seconds for each object it is fitted to, and is right as often as it is told to be."""

    speed = 1.0
    log: list = []  # noqa: RUF012

    def __init__(self, name="", seconds=0.0, quality=0.5):
        self.name = name
        self.seconds = seconds
        self.quality = quality

    def fit(self, X, y):
        Clock.now += Timed.speed * self.seconds * len(y)
        if len(y) > 200:
            Timed.log.append(self.name)
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        X = np.asarray(X)
        return np.where(X[:, 1] < self.quality, X[:, 0], 1 - X[:, 0]).astype(int)


def timed(name, seconds, quality, **facts):
    learner = Timed(name, seconds, quality)
    return Group(name, (), (("", (("learner", learner),)),), **{"slow": False, **facts})


@pytest.fixture
def objects(monkeypatch):
    Clock.now, Timed.speed = 0.0, 1.0
    Timed.log.clear()
    monkeypatch.setattr(_budget, "clock", Clock())
    monkeypatch.setattr("similia.core.config.cpu_count", lambda: 1)
    y = np.arange(1000) % 2
    return np.column_stack([y, np.random.default_rng(0).random(1000)]).astype(float), y


def use(monkeypatch, groups):
    monkeypatch.setattr(_select, "ladder", lambda *given: groups)


def names_of_work():
    return [*dict.fromkeys(Timed.log)]


def test_the_cheapest_of_each_family_is_first_whatever_time_there_is(monkeypatch, objects):
    X, y = objects
    groups = [
        timed("dear spectrum", 3e-3, 0.6, family="spectrum", cost=2),
        timed("spectrum", 1e-3, 0.6, family="spectrum"),
        timed("edit", 2e-3, 0.7, family="edit", cost=1),
        timed("dear edit", 2e-3, 0.8, family="edit", cost=3),
        timed("other spectrum", 1e-3, 0.65, family="spectrum"),
    ]
    use(monkeypatch, groups)
    choose(X, y, budget=None, random_state=0)
    assert names_of_work() == ["spectrum", "edit", "other spectrum", "dear spectrum", "dear edit"]
    for budget in (8.0, 20.0):
        Timed.log.clear()
        Clock.now = 0.0
        found = choose(X, y, budget=budget, random_state=0)
        assert names_of_work()[:2] == ["spectrum", "edit"]
        assert found.stopped_early_


def test_learners_that_take_turns_are_tried_one_by_one():
    groups = [
        Group("a", (), (("x", ()), ("y", ()), ("z", ())), turns=(1, 2, 0)),
        Group("b", (), (("x", ()), ("y", ()))),
    ]
    assert [tuple(unit) for unit in first_units(groups)] == [(0, (1,)), (1, (0, 1)), (0, (2,)), (0, (0,))]


@pytest.mark.parametrize("speed", [0.3, 1.0, 20.0])
def test_the_choice_does_not_depend_on_the_speed_of_the_machine_unless_that_is_said(monkeypatch, objects, speed):
    X, y = objects
    rng = np.random.default_rng(1)
    costs, qualities = 10 ** rng.uniform(-5, -3, 9), rng.random(9)
    groups = [timed(f"{i}", costs[i], qualities[i]) for i in range(9)]
    use(monkeypatch, groups)
    whole = choose(X, y, budget=None, random_state=3)
    Clock.now, Timed.speed = 0.0, speed
    found = choose(X, y, budget=60.0, random_state=3)
    if not found.stopped_early_:
        columns = ("name", "mean_test_score", "n_objects", "state")
        assert [[row[c] for c in columns] for row in rows(found)] == [[r[c] for c in columns] for r in rows(whole)]
        assert found.notes_ == whole.notes_ or found.n_outer_folds_ < 5
    else:
        assert any("the time for the search ended before" in note for note in found.notes_)
    assert found.stopped_early_ == (speed > 10)


def test_dear_embeddings_wait_for_all_learners_of_the_others():
    groups = [
        Group("a", (), (("x", ()), ("y", ())), family="f", turns=(0, 1)),
        Group("dear", (), (("x", ()),), family="f", cost=DEAR),
        Group("only one of its family", (), (("x", ()),), family="g", cost=DEAR),
    ]
    assert [tuple(unit) for unit in first_units(groups)] == [(0, (0,)), (2, (0,)), (0, (1,)), (1, (0,))]


def test_nothing_else_is_tried_on_a_rung_before_the_best_of_the_rung_before(objects):
    X, y = objects
    search = _select.Search(*_search_of(X, y, [timed("best", 0.0, 0.9), timed("other", 0.0, 0.6)]))
    best, other = Unit(0, (0,)), Unit(1, (0,))
    search.main.tables = [{(0, 0): np.full(5, 0.9), (1, 0): np.full(5, 0.6)}, {}]
    assert search._obstacle(best, 1, 1.0) == ""
    assert search._obstacle(other, 1, 1.0) == "out of time"
    assert not search._try(other, 1, 1.0)
    assert search.out == {(1, 0): "out of time"}
    search.main.tables[1][0, 0] = np.full(5, 0.9)
    assert search._obstacle(other, 1, 1.0) == ""


def test_the_final_fit_of_a_learner_is_not_expected_to_take_the_time_of_those_it_was_tried_with(monkeypatch, objects):
    X, y = objects
    learners = (("slow", 2e-2, 0.6), ("fast", 1e-5, 0.95))
    both = tuple((name, (("learner", Timed(name, cost, right)),)) for name, cost, right in learners)
    search = _select.Search(*_search_of(X, y, [Group("both", (), both, slow=False)]))
    search.search()
    assert search.times.final((0, 0)) >= 20.0
    assert search.times.final((0, 1)) == pytest.approx(0.01, rel=0.1)


class OwnTime(ClassifierMixin, BaseEstimator):
    """Takes 2 s, that only its own thread sees: that much with one thread or many."""

    clock = threading.local()

    def fit(self, X, y):
        OwnTime.clock.now = getattr(OwnTime.clock, "now", 0.0) + 2.0
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.asarray(X)[:, 0].astype(int)


def test_the_final_fit_is_expected_to_take_the_time_of_one_fit_not_its_share_of_several_at_once(monkeypatch, objects):
    X, y = objects
    monkeypatch.setattr(_budget, "clock", lambda: getattr(OwnTime.clock, "now", 0.0))
    monkeypatch.setattr("similia.core.config.cpu_count", lambda: 5)
    search = _select.Search(*_search_of(X, y, [Group("one", (), (("", (("learner", OwnTime()),)),), slow=False)]))
    search.search()
    assert search.times.final((0, 0)) == pytest.approx(2.0, rel=0.1)


def test_what_is_left_of_the_budget_goes_to_candidates_that_have_waited(monkeypatch, objects):
    X, y = objects
    # On 300 objects each takes 12 s for 5 folds, far above a rung's part of a budget of 120 s for all of them.
    groups = [timed(f"{i}", 1e-2, 0.6 + 0.02 * i) for i in range(8)]
    use(monkeypatch, groups)
    found = choose(X, y, budget=120.0, random_state=0)
    assert found.stopped_early_
    assert 90 <= Clock.now <= 135
    waits = [row for row in rows(found) if row["state"] == "out of time" and not row["n_objects"]]
    assert f"before {len(waits)} of 8 candidates were tried" in " ".join(found.notes_)


def test_having_waited_changes_nothing_if_there_was_time_in_the_end(monkeypatch, objects):
    X, y = objects
    use(monkeypatch, [timed(f"{i}", 1e-2, 0.6 + 0.02 * i) for i in range(8)])
    whole = choose(X, y, budget=None, random_state=0, nested=False)
    needed = Clock.now
    waited, halve = [], _select.Search._halve
    monkeypatch.setattr(_select.Search, "_halve", lambda self, left: waited.append(halve(self, left)) or waited[-1])
    Clock.now = 0.0
    found = choose(X, y, budget=1.4 * needed, random_state=0, nested=False)
    assert waited[0]  # a rung had no time for something
    assert not waited[-1]
    assert not found.stopped_early_
    columns = ("name", "mean_test_score", "n_objects", "state")
    assert [[row[c] for c in columns] for row in rows(found)] == [[row[c] for c in columns] for row in rows(whole)]


@pytest.mark.parametrize("budget", [0.5, 3.0, 10.0, 100.0])
def test_there_is_an_estimate_in_any_time(monkeypatch, objects, budget):
    X, y = objects
    use(monkeypatch, [timed(f"{i}", 1e-3, 0.55 + 0.05 * i) for i in range(6)])
    found = choose(X, y, budget=budget, random_state=0)
    right = 0.55 + 0.05 * int(found.best_name_) if found.best_name_.isdigit() else None
    assert np.isfinite(found.best_score_)
    assert np.isfinite(found.best_score_interval_).all()
    if right is not None:
        assert abs(found.best_score_ - right) < 0.08


class Lucky(ClassifierMixin, BaseEstimator):
    """Answers that have nothing to do with the labels."""

    def __init__(self, seed=0):
        self.seed = seed

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        answers = np.random.default_rng(self.seed).integers(2, size=1000)
        return answers[np.asarray(X)[:, 0].astype(int)]


def test_the_quick_estimate_of_the_best_of_many_useless_candidates_is_chance(monkeypatch):
    X = np.arange(100.0)[:, None]
    groups = [Group(f"{i}", (), (("", (("learner", Lucky(i)),)),), slow=False) for i in range(20)]
    use(monkeypatch, groups)
    monkeypatch.setattr(_select.Search, "nested", lambda self, fold: None)  # no time for any
    monkeypatch.setattr("similia.selection._search._ENOUGH_HELD_OUT", 100)
    best, quick = [], []
    for seed in range(8):
        y = np.random.default_rng(seed).permutation(np.arange(100) % 2)
        found = choose(X, y, budget=None, cv=5, random_state=seed, max_voters=1)
        best.append(rows(found)[0]["mean_test_score"])
        quick.append(found.best_score_)
        assert found.n_outer_folds_ == 0
    assert np.mean(best) > 0.56  # too good: the best of twenty
    assert abs(np.mean(quick) - 0.5) < 0.053  # three standard errors of 800 answers
    assert View(1, refits=False).cells(_select.Rung(100, 1), 3) == [((0, frozenset({0})), 0), ((0, frozenset({2})), 2)]


def test_the_table_says_why_its_leader_was_not_chosen(monkeypatch, objects):
    X, y = objects
    monkeypatch.setattr("similia.selection._search.REFIT", 0.05)  # 2 seconds for the final fit, and "dear" takes 5
    use(monkeypatch, [timed("cheap", 1e-5, 0.6), timed("dear", 5e-3, 0.9)])
    found = choose(X, y, budget=40.0, random_state=0)
    assert found.best_name_ == "cheap"
    assert found.stopped_early_
    assert next(row for row in rows(found) if row["name"] == "dear")["state"] == "too slow for the final fit"


def test_a_vote_is_explained(monkeypatch, objects):
    X, y = objects
    rows = np.array_split(np.arange(1000), 5)
    X = np.column_stack([X, np.arange(1000)])  # no two alike
    for part in range(5):  # each is wrong about other objects
        X[rows[part], 1] = part
    groups = [Group(f"{i}", (), (("", (("learner", Blind(i)),)),), slow=False) for i in range(5)]
    use(monkeypatch, groups)
    found = choose(X, y, budget=None, random_state=0)
    voters = found.best_name_[8]
    assert found.best_name_.startswith(f"vote of {voters}: ")
    assert found.notes_ == [f"the vote of {voters} scored 1.000, the best of them alone 0.800"]


class Blind(Timed):
    """Is wrong about the objects of one part."""

    def __init__(self, part=0):
        self.part = part

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        X = np.asarray(X)
        return np.where(X[:, 1] != self.part, X[:, 0], 1 - X[:, 0]).astype(int)


def test_names_are_short_and_each_is_met_once():
    for kind in ("strings", "graphs", "series", "vectors", "sets"):
        X = sample(kind, 12)[0]
        kind, X = recognised(X)
        for task in ("classification", "regression"):
            groups = ladder(kind, X, task, 0)
            names = [group.named(i) for group in groups for i in range(len(group.learners))]
            assert len(set(names)) == len(names)
            assert all(len(name) <= 130 and "\n" not in name and "normalize" not in name for name in names)
    assert "Spectrum 2–5 · features" in [group.name for group in ladder("strings", _strings(), "classification", 0)]


def _strings():
    return recognised(["ACGTACGT", "ACGTTT"] * 4)[1]


def test_a_leader_below_nearest_neighbours_on_a_rung_before_is_explained(monkeypatch, objects):
    X, y = objects
    # Tried on 300 objects only, then there is no time for it: what goes on must have been above it there.
    floor = timed("floor", 0.0, 0.6, floor=True)
    use(monkeypatch, [floor, timed("a", 0.0, 0.7), timed("b", 0.0, 0.65)])
    search = _select.Search(*_search_of(X, y, [floor, timed("a", 0.0, 0.7), timed("b", 0.0, 0.65)]))
    search.main.tables = [{(0, 0): np.full(5, 0.6), (1, 0): np.full(5, 0.7), (2, 0): np.full(5, 0.5)}]
    search.main.tables.append({(1, 0): np.full(5, 0.7), (2, 0): np.full(5, 0.8)})
    assert search.best(search.main) == ((1, 0), 1)
    assert search.why(((1, 0),)) == [
        "b has the best score (0.800) and was not chosen: nearest neighbours were better than it the last time they "
        "were tried"
    ]


def test_only_the_choice_marks_a_leader_as_too_slow(objects):
    X, y = objects
    evaluator, steps, folds, _, n = _search_of(X, y, [timed("dear", 0.0, 0.9), timed("cheap", 0.0, 0.7)])
    search = _select.Search(evaluator, steps, folds, _budget.Budget(10.0), n)
    search.times.costs.note(("final", 0, 0), 800, 100.0)
    search.main.tables = [{(0, 0): np.full(5, 0.9), (1, 0): np.full(5, 0.7)}]
    assert search.best(search.main) == ((1, 0), 0)
    assert search.out == {}  # the leaderboard asks for the best after each group
    assert search.choice(search.main) == ((1, 0),)
    assert search.out == {(0, 0): "too slow for the final fit"}


def _search_of(X, y, groups):
    def score(model, V, y):
        return np.mean(model.predict(V) == y)

    evaluator = _select.Evaluator(X, y, [np.arange(len(y)) % 5], score, groups)
    return evaluator, [_select.Rung(300, 1), _select.Rung(1000, 1)], 5, _budget.Budget(None), len(y)


def test_a_rung_without_time_for_the_best_of_the_rung_before_decides_nothing(objects):
    X, y = objects
    search = _select.Search(*_search_of(X, y, [timed("a", 0.0, 0.7), timed("b", 0.0, 0.65)]))
    first = {(0, 0): np.full(5, 0.9), (1, 0): np.full(5, 0.6)}
    search.main.tables = [first, {(1, 0): np.full(5, 0.62)}]  # no time for the best one
    assert search.best(search.main) == ((0, 0), 0)
    search.main.tables = [first, {(1, 0): np.full(5, 0.62), (0, 0): np.full(5, 0.61)}]
    assert search.best(search.main) == ((1, 0), 1)
    search.main.tables = [first, {(1, 0): np.full(5, 0.62)}]
    search.evaluator.failed[0, 0] = "ValueError: on more objects"
    assert search.best(search.main) == ((1, 0), 1)


def test_a_rung_decides_if_it_has_one_that_is_nearly_as_good_as_the_best_before(objects):
    X, y = objects
    search = _select.Search(*_search_of(X, y, [timed("a", 0.0, 0.7), timed("b", 0.0, 0.65)]))
    first = np.array([0.7, 0.6, 0.65, 0.6, 0.7])
    late = first + np.array([0.04, -0.03, 0.03, -0.02, 0.0])  # a little better, tried without time for more
    search.main.tables = [{(0, 0): first, (1, 0): late}, {(0, 0): np.full(5, 0.8)}]
    assert search.best(search.main) == ((0, 0), 1)
    search.main.tables[0][1, 0] = first + np.array([0.04, 0.03, 0.03, 0.02, 0.03])
    assert search.best(search.main) == ((1, 0), 0)


def test_notes_count_what_was_never_tried_and_say_nothing_of_zero(monkeypatch, objects):
    X, y = objects
    use(monkeypatch, [timed("a", 1e-3, 0.6), timed("b", 1e-3, 0.7), timed("c", 1.0, 0.9)])
    found = choose(X, y, budget=20.0, random_state=0)
    assert "before 1 of 3 candidates was tried; " in " ".join(found.notes_)
    Clock.now = 0.0
    use(monkeypatch, [timed("a", 1e-3, 0.6), timed("b", 5e-3, 0.9)])
    found = choose(X, y, budget=20.0, random_state=0)
    assert found.stopped_early_
    assert "before the best candidates were compared on more objects; a larger budget" in " ".join(found.notes_)
    assert not any(" 0 " in note for note in found.notes_)


def test_neighbours_chosen_on_a_rung_before_the_last_do_not_vote(objects):
    X, y = objects
    search = _select.Search(*_search_of(X, y, [timed("floor", 0.0, 0.7, floor=True), timed("a", 0.0, 0.7)]), voters=5)
    floor = np.array([0.7, 0.6, 0.65, 0.6, 0.7])
    nearly = floor - np.array([0.04, -0.03, 0.03, -0.02, 0.0])
    search.main.tables = [{(0, 0): floor, (1, 0): nearly}, {(1, 0): np.full(5, 0.8)}]
    assert search.choice(search.main) == ((0, 0),)


def test_compiling_is_not_counted_in_the_budget(monkeypatch, objects, capsys):
    """In a fresh place the first run compiles for a minute, and finds the same as the second."""
    compiled = []

    def slow(kinds):
        compiled.extend(kinds)
        Clock.now += 1000.0

    monkeypatch.setattr("similia.compilation.warmup", slow)
    monkeypatch.setattr(_select, "_compiled", set())
    use(monkeypatch, [timed("a", 1e-5, 0.6), timed("b", 1e-4, 0.9)])
    found = [choose(*objects, budget=30, nested=False, random_state=0, progress=True) for _ in range(2)]
    assert compiled == ["vectors"]  # once in a process
    assert capsys.readouterr().err.startswith("prepare fast code for vectors (once, not counted in the budget): 1/1")
    assert [one.best_name_ for one in found] == ["b", "b"]
    assert not any(one.stopped_early_ for one in found)
    assert found[0].seconds_ == pytest.approx(found[1].seconds_)
    assert found[0].seconds_ < 30


class Learners:
    """Stands in for `Evaluator`: each fit takes the seconds that its learner has, and all scores are known."""

    scores_answers = False

    def __init__(self, seconds, n_groups=2):
        turns = (1, 2, 0, 3)
        self.groups = [
            Group(f"svm {g}", (), tuple((f"C{i}", ()) for i in turns), slow=False, family=f"{g}", turns=turns)
            for g in range(n_groups)
        ]
        self.cost, self.y, self.kept, self.seconds, self.failed = seconds, np.arange(1000) % 2, {}, {}, {}

    def holds(self, group, n):
        return True

    def shared(self, group):
        return None

    def probe(self, *given):
        pass

    def run(self, group, learners, n, left):
        for i in learners:
            self.kept |= dict.fromkeys([(group, i, n, one) for one in left])
            Clock.now += self.cost[i] * len(left)
            self.seconds[group, i, n] = [self.cost[i]] * len(left)
        return 0.0, sum(self.cost[i] for i in learners) * len(left), len(learners) * len(left)

    def scores(self, group, learner, n, cells):
        known = all((group, learner, n, left) in self.kept for left, _ in cells)
        return 0.8 + 0.01 * learner + 0.001 * np.arange(len(cells)) if known else None


def test_a_learner_that_there_was_no_time_for_leaves_the_others_in_the_nested_estimate(objects):
    """Only one of the four learners of each embedding was compared: that one is compared again, not none."""
    search = _select.Search(Learners([0.2] * 4), [Rung(300, 1)], 5, _budget.Budget(3.0), 1000)
    search.search()
    compared = {*search.main.tables[0]}
    assert {g for g, _ in compared} == {0, 1}
    assert len(compared) < 8
    search.budget = search.times.budget = _budget.Budget(None)
    assert search.nested(0) == pytest.approx(0.8 + 0.01 * max(i for _, i in compared))


def test_the_nested_estimate_counts_the_time_of_all_learners_that_take_turns(objects):
    search = _select.Search(Learners([0.1, 0.2, 0.3, 0.4], 1), [Rung(300, 1)], 5, _budget.Budget(None), 1000)
    search.search()
    for learners in [(0,), (3,), (0, 2, 3)]:
        expected = sum(search.evaluator.cost[i] for i in learners) * 5
        assert search.times.expected(Unit(0, learners), Rung(300, 1)) == pytest.approx(expected, rel=0.01)
