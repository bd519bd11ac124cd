"""BLAS held at one thread by several at once, and given back; warnings that one thread hears while others work."""

import subprocess
import sys
import threading
import time
import warnings

import numpy as np
import pytest
from threadpoolctl import ThreadpoolController, threadpool_limits

from similia.core.config import collected_warnings, in_threads, limited_to, n_threads, one_blas_thread, run_blas_tasks


def counts():
    """Threads of the BLAS of numpy and scipy; others, such as that of faiss, stay as they are."""
    libraries = ThreadpoolController().select(user_api="blas").lib_controllers
    return {library.num_threads for library in libraries if "numpy" in library.filepath or "scipy" in library.filepath}


def test_limits_undone_out_of_order_leave_what_was():
    with threadpool_limits(2, user_api="blas"):
        entered, leave, seen = threading.Event(), threading.Event(), []

        def other():
            with one_blas_thread() as n_threads:
                seen.append(n_threads)
                entered.set()
                leave.wait(10)

        thread = threading.Thread(target=other)
        with one_blas_thread() as n_threads:
            thread.start()
            assert entered.wait(10)
            assert counts() == {1}
        assert counts() == {1}  # the other still holds it, which came later
        leave.set()
        thread.join()
        assert counts() == {2}
        assert [n_threads, *seen] == [2, 2]


def test_an_error_gives_threads_back():
    with threadpool_limits(2, user_api="blas"):
        with pytest.raises(KeyError), one_blas_thread(), one_blas_thread():
            raise KeyError
        assert counts() == {2}


@pytest.mark.parametrize("work", [1, 2**40])
def test_tasks_are_all_done_with_one_thread_each(work):
    with threadpool_limits(2, user_api="blas"):
        done, seen = np.zeros(9, int), []

        def task(i):
            done[i] += 1
            seen.append(counts())

        run_blas_tasks(task, range(9), work)
        assert (done == 1).all()
        assert counts() == {2}
        if work > 1:
            assert all(count == {1} for count in seen)


def test_results_are_in_the_order_of_the_arguments():
    assert in_threads(lambda i: i * i, range(100), 3) == [i * i for i in range(100)]
    assert in_threads(str, [], 3) == []


def test_of_several_errors_the_first_is_raised():
    def fails(i):
        if i == 1:
            time.sleep(0.05)
        raise KeyError(i)

    for _ in range(5):
        with pytest.raises(KeyError, match=r"^0$"):
            in_threads(fails, range(9), 3)


def test_after_an_error_what_has_not_begun_never_does():
    begun, released = [], threading.Event()

    def work(number):
        begun.append(number)
        if number == 0:
            released.set()
            raise SystemExit
        released.wait(10)

    with pytest.raises(SystemExit):
        in_threads(work, range(5000), 2)
    assert len(begun) < 5000


def test_threads_know_what_holds_in_the_caller():
    with limited_to(1), np.errstate(over="raise"):
        assert in_threads(lambda _: (n_threads(), np.geterr()["over"]), range(3), 3) == [(1, "raise")] * 3


STOPPED = """
import faulthandler, random, signal, sys, time
import numpy as np
from similia.core.config import in_threads, one_blas_thread

class Stopped(Exception):
    pass

def stop(*_):
    raise Stopped

def work():
    with one_blas_thread():
        in_threads(lambda i: out[i:i + 1].fill(i), range(64), 3)

faulthandler.dump_traceback_later(100, exit=True)
signal.signal(signal.SIGALRM, stop)
out, stopped, seconds = np.zeros(64), 0, 1e-3
work()  # BLAS is loaded
for i in range(1500):
    try:
        signal.setitimer(signal.ITIMER_REAL, random.Random(i).uniform(1e-6, 1.2 * seconds))
        begin = time.perf_counter()
        work()
        seconds = time.perf_counter() - begin
        signal.setitimer(signal.ITIMER_REAL, 0)
    except Stopped:
        stopped += 1
signal.setitimer(signal.ITIMER_REAL, 0)
assert stopped > 100

step = 0
def raising(frame, event, argument):
    global step
    if frame.f_code.co_name != "in_threads":
        return None
    frame.f_trace_opcodes = True
    if event == "opcode":
        step -= 1
        if step == 0:
            raise Stopped
    return raising

for first in range(1, 10**6):
    step = first
    sys.settrace(raising)
    try:
        work()
    except Stopped:
        pass
    else:
        if step > 0:
            break
    finally:
        sys.settrace(None)
assert first > 100, first
work()
assert (out == range(64)).all()
print("no hang")
"""


def test_a_signal_at_any_step_leaves_no_lock_taken():
    said = subprocess.run([sys.executable, "-c", STOPPED], capture_output=True, text=True, timeout=300)
    assert said.stdout.strip() == "no hang", said.stderr[-2000:]


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
