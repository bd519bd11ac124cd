"""Warnings that one thread hears while others work."""

import threading
import warnings

import pytest

from similia.core.threads import collected_warnings, in_threads


def test_threads_that_leave_out_of_order_hear_their_own_and_leave_what_was():
    shown, filters = warnings.showwarning, list(warnings.filters)
    said, steps = {}, [threading.Event() for _ in range(4)]

    def first():
        with collected_warnings() as caught:
            steps[0].set()
            steps[1].wait(10)
            warnings.warn("one", UserWarning, stacklevel=1)
        said["first"] = caught
        steps[2].set()

    def second():
        steps[0].wait(10)
        with collected_warnings() as caught:
            steps[1].set()
            steps[2].wait(10)
            for _ in range(2):
                warnings.warn("two", RuntimeWarning, stacklevel=1)
        said["second"] = caught

    threads = [threading.Thread(target=run) for run in (first, second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {name: [str(w.message) for w in caught] for name, caught in said.items()} == {
        "first": ["one"],
        "second": ["two", "two"],
    }
    assert warnings.showwarning is shown
    assert warnings.filters == filters


def test_others_are_shown_meanwhile():
    inside, told, kept = threading.Event(), threading.Event(), []

    def listen():
        with collected_warnings() as caught:
            inside.set()
            told.wait(10)
        kept.append(caught)

    thread = threading.Thread(target=listen)
    with warnings.catch_warnings(record=True) as shown:
        thread.start()
        inside.wait(10)
        warnings.warn("of another thread", UserWarning, stacklevel=1)
        told.set()
        thread.join()
    assert [str(w.message) for w in shown] == ["of another thread"]
    assert kept == [[]]


def test_listeners_hear_the_threads_they_share_work_among_and_say_it_again():
    with collected_warnings() as outer:
        with collected_warnings() as inner:
            in_threads(lambda i: warnings.warn(f"row {i}", UserWarning, stacklevel=1), range(3), 2)
        assert sorted(str(w.message) for w in inner) == ["row 0", "row 1", "row 2"]
        warnings.warn("again", UserWarning, stacklevel=1)
    assert [str(w.message) for w in outer] == ["again"]
    with pytest.warns(UserWarning, match="after"):
        warnings.warn("after", UserWarning, stacklevel=1)
