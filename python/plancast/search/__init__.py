"""Rankings in pieces: on several processes or machines, into a store, to be gone on with later."""

from plancast.search.store import SearchStore

__all__ = ["SearchStore"]
