"""Rankings in pieces: on several processes or machines, into a store, to be gone on with later."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from plancast.search.store import SearchStore

__all__ = ["SearchStore"]


def __getattr__(name: str) -> Any:
    # A store brings sqlite3, and with it a library of the host, which forecasts do without.
    if name != "SearchStore":
        raise AttributeError(f"module 'plancast.search' has no attribute {name!r}")
    from plancast.search.store import SearchStore

    return SearchStore
