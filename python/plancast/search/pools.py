"""Who evaluates the plans of a search: threads of this process, or the workers of a Ray cluster."""

from __future__ import annotations

import importlib.util
import logging
import os
import pickle
import queue
from collections.abc import Iterator
from concurrent import futures
from contextlib import contextmanager
from typing import Any, Literal, Protocol

from plancast import _core
from plancast.errors import InputError
from plancast.search.job import SearchJob, core_digest

Step = Literal["bound", "simulate", "describe"]  # methods of `_core.PlanSearch`
# Of the objective, or why there is none; a bound: the least it can be, why there is none, or both.
Value = float | str | tuple[float | None, str | None]

LOCAL = "local"
# Times that a chunk is run again whose worker, or its machine, went away.
_RETRIES = 20
_OBJECTS_BYTES = 100 << 20  # of a local cluster; near the least that Ray takes
_TURN_S = 1.0  # between looks at whether Ctrl-C was pressed


class Pool(Protocol):
    """Evaluates chunks of plans, several at a time, in any order."""

    width: int  # chunks at a time
    bounds_at_once: int  # plans of a chunk whose bounds are asked for

    def submit(self, step: Step, plans: list[str]) -> object:
        """Begins with a chunk; what is given back stands for it."""
        ...

    def finished(self) -> tuple[object, list[Value]]:
        """Waits for any chunk that was submitted, and gives its answers, once."""
        ...


class Threads:
    """Threads of this process, which share the memo of the job's session."""

    bounds_at_once = 100

    def __init__(self, job: SearchJob, width: int) -> None:
        self.width = width
        self._idle: queue.SimpleQueue[_core.PlanSearch] = queue.SimpleQueue()
        for _ in range(width):
            self._idle.put(job.core())
        self._threads = futures.ThreadPoolExecutor(width)
        self._running: set[futures.Future[list[Any]]] = set()

    def submit(self, step: Step, plans: list[str]) -> object:
        """Begins with a chunk."""
        future = self._threads.submit(self._answer, step, plans)
        self._running.add(future)
        return future

    def finished(self) -> tuple[object, list[Any]]:
        """Waits for any chunk."""
        done: set[futures.Future[list[Any]]] = set()
        while not done:
            done, _ = futures.wait(self._running, _TURN_S, futures.FIRST_COMPLETED)
        future = done.pop()
        self._running.remove(future)
        return future, future.result()

    def close(self) -> None:
        """Drops what has not begun, and waits for what has."""
        self._threads.shutdown(cancel_futures=True)

    def _answer(self, step: Step, plans: list[str]) -> list[Any]:
        core = self._idle.get()
        try:
            return list(getattr(core, step)(plans))
        finally:
            self._idle.put(core)


class Cluster:
    """Tasks of a Ray cluster. One whose worker was killed is run again elsewhere."""

    # Each worker makes what neighbouring plans share for itself.
    bounds_at_once = 1000

    def __init__(self, job: SearchJob, ray: Any) -> None:
        self._ray = ray
        self.width = max(1, int(ray.cluster_resources().get("CPU", 1)))
        # In a list, so that tasks get it only when they ask.
        self._job = [ray.put(pickle.dumps(job))]
        self._task = ray.remote(num_cpus=1, max_retries=_RETRIES)(_answer)
        self._running: list[Any] = []

    def submit(self, step: Step, plans: list[str]) -> object:
        """Begins with a chunk."""
        task = self._task.remote(core_digest(), self._job, step, plans)
        self._running.append(task)
        return task

    def finished(self) -> tuple[object, list[Value]]:
        """Waits for any chunk."""
        ray = self._ray
        done: list[Any] = []
        while not done:
            done, self._running = ray.wait(self._running, timeout=_TURN_S)
        try:
            return done[0], ray.get(done[0])
        except ray.exceptions.RayTaskError as error:
            raise (error.cause if isinstance(error.cause, InputError) else error) from None
        except ray.exceptions.RayError as error:
            reason = str(error).splitlines()[0]
            raise InputError(
                f"plans could not be evaluated on the Ray cluster, though they were sent to it "
                f"{_RETRIES + 1} times: {reason} What was committed to a store is kept."
            ) from None

    def close(self) -> None:
        """Drops what is under way."""
        for task in self._running:
            self._ray.cancel(task, force=False)


_cores: dict[bytes, _core.PlanSearch] = {}


def _answer(digest: str, job: list[Any], step: Step, plans: list[str]) -> list[Value]:
    """What a worker of a cluster does."""
    import ray

    key = job[0].binary()
    if key not in _cores:
        if core_digest() != digest:
            raise InputError(
                "a worker of the Ray cluster has another build of plancast than this machine; "
                "install the same on all."
            )
        _cores.clear()  # of one search at a time
        _cores[key] = pickle.loads(ray.get(job[0])).core()
    return list(getattr(_cores[key], step)(plans))


@contextmanager
def pool(job: SearchJob, address: str | None, width: int) -> Iterator[Pool]:
    """Threads; or with an address a Ray cluster: `local` starts one of `width` workers here."""
    if address is not None and has_ray(address):
        with _connected(address, width) as ray:
            cluster = Cluster(job, ray)
            try:
                yield cluster
            finally:
                cluster.close()
        return
    threads = Threads(job, width)
    try:
        yield threads
    finally:
        threads.close()


def has_ray(address: str) -> bool:
    """Whether Ray is installed; without it, threads do what a local cluster would."""
    if importlib.util.find_spec("ray") is not None:
        return True
    if address == LOCAL:
        return False
    raise InputError(f"the Ray cluster `{address}` needs Ray. Run `pip install ray`.")


@contextmanager
def _connected(address: str, width: int) -> Iterator[Any]:
    import ray

    ours = not ray.is_initialized()  # else the user's own, which stays
    if ours:
        quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
        try:
            if address == LOCAL:
                # Of a cluster of ours nobody is told.
                os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
                ray.init(
                    "local",
                    num_cpus=width,
                    include_dashboard=False,
                    object_store_memory=_OBJECTS_BYTES,
                    **quiet,
                )
            else:
                ray.init(address, **quiet)
        except Exception as error:  # Ray raises no narrower one where a node is too slow to start
            reason = str(error).splitlines()[0]
            raise InputError(
                f"there is no Ray cluster at `{address}`: {reason} Give HOST:PORT of its head, "
                f"`auto`, or `{LOCAL}` to start one here."
            ) from None
    try:
        yield ray
    finally:
        if ours:
            ray.shutdown()
