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

    __slots__ = ("_core", "_prior", "_records")

    def __init__(self, *, records: Records | None = None, prior: bool = True) -> None:
        """Args:
        records: measured kernels, which predictions price by where those know them
          (docs/records.md).
        prior: whether forecasts are the median of what runs take, with what measured runs of
          the software take beyond its kernels; else what is simulated (docs/uncertainty.md).
        """
        self._records, self._prior = records, prior
        if records is None:
            self._core = _core.Session(prior=prior)
            return
        from plancast.records import Records

        arguments.instance(records, Records, "records", 'Records("kernels.db")')
        self._core = records._make_session(prior=prior)

    @property
    def misses(self) -> int:
        """How many values had to be made rather than found."""
        return self._core.misses

    def fresh(self) -> Session:
        """An empty memo with the same records; what a copy or another process gets, too."""
        return _with(self._records, self._prior)

    def __reduce__(self) -> tuple[Any, ...]:
        return _with, (self._records, self._prior)

    def __repr__(self) -> str:
        return f"Session(misses={self.misses})"


def _with(records: Records | None, prior: bool) -> Session:
    return Session(records=records, prior=prior)
