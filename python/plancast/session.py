"""The memo that predictions share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plancast import _core, arguments

if TYPE_CHECKING:
    from plancast.records import Records


class Session:
    """A thread-safe memo of everything that plans share: graphs, blocks, backward rules.

    Pass one to several calls to share their work. It never changes a result
    and only grows; drop it to free the memory.

    >>> session = Session()
    >>> session.misses
    0
    """

    __slots__ = ("_core",)

    def __init__(self, *, records: Records | None = None) -> None:
        """A memo whose predictions price kernels by `records` where those know them
        (docs/records.md)."""
        if records is None:
            self._core = _core.Session()
            return
        from plancast.records import Records

        arguments.instance(records, Records, "records", 'Records("kernels.db")')
        self._core = records._make_session()

    @property
    def misses(self) -> int:
        """How many values had to be made rather than found."""
        return self._core.misses

    def __repr__(self) -> str:
        return f"Session(misses={self.misses})"
