"""Properties that are computed once wait for no other thread."""

from __future__ import annotations

import os
import signal
import threading

from plancast.cached import cached_property


class Slow:
    """Whose property ends when it may."""

    def __init__(self, may_end: threading.Event | None = None):
        self.begun, self._may_end = threading.Event(), may_end
        self.times = 0

    @cached_property
    def value(self) -> list[int]:
        """A list."""
        self.times += 1
        self.begun.set()
        if self._may_end is not None:
            assert self._may_end.wait(60)
        return [1]


def test_it_is_computed_once_and_can_be_forgotten():
    one = Slow()
    assert one.value is one.value
    assert one.times == 1
    del one.value
    assert one.value == [1]
    assert one.times == 2
    assert Slow.value.__doc__ == "A list."


def test_neither_another_object_nor_a_forked_child_waits_for_one_under_way():
    may_end = threading.Event()
    slow = Slow(may_end)
    thread = threading.Thread(target=lambda: slow.value)
    thread.start()
    assert slow.begun.wait(60)
    child = os.fork()
    if child == 0:
        signal.alarm(60)  # it would wait for ever
        os._exit(0 if Slow().value == [1] else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert Slow().value == [1]
    may_end.set()
    thread.join()


def test_threads_that_compute_it_together_are_given_the_same():
    may_end = threading.Event()
    slow, found = Slow(may_end), []
    threads = [threading.Thread(target=lambda: found.append(slow.value)) for _ in range(4)]
    for thread in threads:
        thread.start()
    may_end.set()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    assert all(one is slow.value for one in found)
