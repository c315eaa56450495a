"""The memo that predictions share."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from plancast import _core, arguments
from plancast.checked import checked
from plancast.errors import InputError

if TYPE_CHECKING:
    from plancast.learned import Learned
    from plancast.records import Records

_Memo = _core.Session
# Of some 75 kB each, in plans of a small model on eight GPUs.
_MOST_VALUES = 4096


@checked
class Session:
    """A thread-safe memo of everything that plans share: graphs, blocks, backward rules.

    Pass one to several calls to share their work. It never changes a result, and begins anew
    where it holds many thousands of values, so that memory does not grow without end, and in a
    child process, where a thread that is not there may have been about to change it.

    >>> session = Session()
    >>> session.misses
    0
    """

    __slots__ = ("_before", "_learned", "_memo", "_prior", "_process", "_records")

    def __init__(
        self,
        *,
        records: Records | None = None,
        prior: bool = True,
        learned: Learned | None = None,
    ) -> None:
        """Args:
        records: measured kernels, which predictions price by where those know them
          (docs/records.md).
        prior: whether forecasts are the median of what runs take, with what measured runs of
          the software take beyond its kernels; else what is simulated (docs/uncertainty.md).
        learned: what runs of one's own tell besides (`learn`, docs/learning.md).
        """
        if learned is not None and not prior:
            raise InputError(
                "what was learned is about forecasts with the prior; leave `prior=False` out."
            )
        if records is not None:
            from plancast.records import Records

            arguments.instance(records, Records, "records", 'Records("kernels.db")')
        self._records, self._prior, self._learned = records, prior, learned
        self._before = 0  # misses of memos that are gone
        self._process = os.getpid()
        self._memo = self._empty()

    def _empty(self) -> _Memo:
        fields = None if self._learned is None else self._learned.fields()
        if self._records is None:
            return _Memo(prior=self._prior, learned=fields)
        return self._records._make_session(prior=self._prior, learned=fields)

    @property
    def _core(self) -> _Memo:
        """The memo; an empty one where it has grown large, or is another process's. Calls under
        way keep theirs."""
        memo = self._memo
        if memo.misses > _MOST_VALUES or self._process != os.getpid():
            self._before += memo.misses
            self._memo, self._process = self._empty(), os.getpid()
            memo = self._memo
        return memo

    @property
    def misses(self) -> int:
        """How many values had to be made rather than found."""
        return self._before + self._memo.misses

    @property
    def learned(self) -> Learned | None:
        """What it was given that runs tell."""
        return self._learned

    def fresh(self) -> Session:
        """An empty memo with the same records; what a copy or another process gets, too."""
        return _with(self._records, self._prior, self._learned)

    def knowledge(self) -> str:
        """What its prices go by beside the shipped models, with a digest; equal only of equals."""
        said = [] if self._prior else ["no prior"]
        if self._learned is not None:
            said.append(f"learned {_digest([self._learned.fields()])}")
        if self._records is not None:
            _, (_, library, version) = self._records.__reduce__()
            kept = self._records.select(library=library, version=version)
            said.append(f"records {_digest(kept)}")
        return ", ".join(said) or "shipped"

    def __reduce__(self) -> tuple[Any, ...]:
        return _with, (self._records, self._prior, self._learned)

    def __repr__(self) -> str:
        return f"Session(misses={self.misses})"


def _digest(what: Iterable[object]) -> str:
    digest = hashlib.sha256()
    for each in what:
        digest.update(repr(each).encode())
    return digest.hexdigest()[:16]


def _with(records: Records | None, prior: bool, learned: Learned | None) -> Session:
    return Session(records=records, prior=prior, learned=learned)
