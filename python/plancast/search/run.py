"""A search from its arguments to its answer."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from plancast.default_space import Space
from plancast.errors import InputError
from plancast.search.driver import Callbacks, Outcome, Search
from plancast.search.job import SearchJob
from plancast.search.pools import pool
from plancast.search.store import WritableStore


def search(
    job: SearchJob,
    spaces: Sequence[Space],
    *,
    top: int | None,
    exhaustive: bool,
    partial: bool,
    workers: int | None,
    store: str | Path | None,
    resume: bool,
    ray: str | None,
    callbacks: Callbacks,
) -> Outcome:
    """The best plans of some spaces, by threads or a Ray cluster, kept in a store."""
    if resume and store is None:
        raise InputError("there is nothing to resume without a store; name its file.")
    wanted = Search(job, spaces)
    kept = WritableStore.for_search(store, wanted.identity, resume=resume)
    try:
        with pool(job, ray, workers or os.cpu_count() or 1) as workforce:
            return wanted.run(
                kept,
                workforce,
                top=top,
                exhaustive=exhaustive,
                partial=partial,
                callbacks=callbacks,
            )
    finally:
        kept.close()
