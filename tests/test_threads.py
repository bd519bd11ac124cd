"""BLAS held at one thread by several at once, and given back."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from threadpoolctl import ThreadpoolController, threadpool_limits

from similia._threads import one_blas_thread, run_blas_tasks, wait_for


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


def test_after_an_error_what_has_not_begun_never_does():
    begun, released = [], threading.Event()

    def work(number):
        begun.append(number)
        if number == 0:
            raise KeyboardInterrupt
        released.wait(10)

    with ThreadPoolExecutor(2) as pool:
        tasks = [pool.submit(work, number) for number in range(50)]
        with pytest.raises(KeyboardInterrupt):
            wait_for(pool, tasks)
        released.set()
    assert tasks[49].cancelled()
    assert len(begun) <= 3  # one a thread, and another in the place of the one that failed
