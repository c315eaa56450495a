"""The memo that predictions share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plancast import _core, arguments
from plancast.checked import checked

if TYPE_CHECKING:
    from plancast.records import Records


@checked
class Session:
    """A thread-safe memo of everything that plans share: graphs, blocks, backward rules.

    Pass one to several calls to share their work. It never changes a result
    and only grows; drop it to free the memory.

    >>> session = Session()
    >>> session.misses
    0
    """

    __slots__ = ("_core", "_records")

    def __init__(self, *, records: Records | None = None) -> None:
        """A memo whose predictions price kernels by `records` where those know them
        (docs/records.md)."""
        self._records = records
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

    def fresh(self) -> Session:
        """An empty memo with the same records; what a copy or another process gets, too."""
        return _with(self._records)

    def __reduce__(self) -> tuple[Any, ...]:
        return _with, (self._records,)

    def __repr__(self) -> str:
        return f"Session(misses={self.misses})"


def _with(records: Records | None) -> Session:
    return Session(records=records)
