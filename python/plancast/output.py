"""Result files that appear whole or not at all.

A file is written beside its place, made safe on the disk and then renamed, so that whoever is
killed or runs out of space leaves the old file as it was. Several files change together. What
somebody who was killed has left beside a file goes when the file is next written.
"""

from __future__ import annotations

import atexit
import contextlib
import errno
import fcntl
import os
import shutil
import signal
import stat
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

# More files than this are synced at once: one by one they would take minutes.
_MOST_SYNCED = 256

# A folder that takes no new file.
_CLOSED = (errno.EACCES, errno.EPERM, errno.EROFS)

# Folders in use beside the files to be, and the processes that made them, for `clean`.
_stages: dict[str, int] = {}
_SUFFIX = ".plancast"
# A file in each that its process has locked for as long as it lives, and these locks.
_HELD = "held"
_locks: dict[str, int] = {}
_lock = threading.RLock()
# How often a folder is removed that another thread still writes into.
_TRIES = 100


class Outputs:
    """Files that change together when the block ends, or, if it raises, not at all.

    What is no regular file (a terminal, a pipe, /dev/null), and what lies where no file can be
    put beside it, is written straight. A process that is killed while files are renamed leaves
    no first file of a set, so that nothing takes a part of it for the whole.

    Raises OSError, with the name of the file, where one cannot be written.
    """

    def __init__(self) -> None:
        self._stages: dict[str, str] = {}  # by folder
        self._new: dict[str, str] = {}  # staged files by target, in order
        self._stale: dict[str, str] = {}  # places in a stage by target
        self._names = 0

    def __enter__(self) -> Outputs:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if kind is None:
                with _lock, _deferred_signals():
                    self._put_in_place()
        finally:
            for stage in self._stages.values():
                _drop(stage)

    def write(self, path: str | Path, data: bytes) -> None:
        """One file of the set; written now, put in its place when the block ends."""
        target = os.path.realpath(path)
        with _named(path):
            old = _existing(path)
            if old is not None and _is_written_straight(path, old):
                _write(path, data, sync=False)
                return
            if old is not None and not os.access(path, os.W_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
            try:
                staged = self._place(target)
            except OSError as error:
                # A file that may change in a folder that may not.
                if old is None or error.errno not in _CLOSED:
                    raise
                _overwrite(target, data)
                return
            _write(staged, data, sync=len(self._new) < _MOST_SYNCED)
            if old is not None:
                _take_after(staged, old)
        self._new[target] = staged

    def remove(self, path: str | Path) -> None:
        """A file that goes when the block ends: a member that the new set does not have."""
        if os.path.lexists(path):
            with _named(path):
                # Not of a link's target, which may be of another set.
                folder = os.path.realpath(os.path.dirname(path) or ".")
                place = os.path.join(folder, Path(path).name)
                self._stale[place] = self._place(place)

    def _place(self, target: str) -> str:
        """A free name on the same file system."""
        folder = os.path.dirname(target)
        if folder not in self._stages:
            start = f".{os.path.basename(target)[:40]}."
            _sweep(folder, start)
            with _lock, _deferred_signals():
                self._stages[folder] = _new_stage(folder, start)
        self._names += 1
        return os.path.join(self._stages[folder], str(self._names))

    def _put_in_place(self) -> None:
        if len(self._new) > _MOST_SYNCED:
            os.sync()
        if len(self._new) == 1 and not self._stale:
            ((target, staged),) = self._new.items()
            with _named(target):
                _rename_or_copy(staged, target)
        elif self._new or self._stale:
            self._exchange()
        for folder in self._stages:
            _sync_folder(folder)

    def _exchange(self) -> None:
        """Several files at once; the first goes first and comes last."""
        undo: list[Callable[[], Any]] = []

        def move(source: str, target: str) -> None:
            os.rename(source, target)
            undo.append(lambda: os.rename(target, source))

        try:
            first, *others = self._new or [None]
            gone = {target: self._place(target) for target in self._new if os.path.lexists(target)}
            for target in [first, *self._stale, *others]:
                if target is None:
                    continue
                with _named(target):
                    if target in self._stale:
                        move(target, self._stale[target])
                        continue
                    if target in gone:
                        move(target, gone[target])
                    if target != first:
                        move(self._new[target], target)
            if first is not None:
                with _named(first):
                    move(self._new[first], first)
        except BaseException:
            for step in reversed(undo):
                with contextlib.suppress(OSError):
                    step()
            raise


def write_bytes(path: str | Path, data: bytes) -> None:
    """Writes one file; raises OSError."""
    with Outputs() as outputs:
        outputs.write(path, data)


def is_special(path: str | Path) -> bool:
    """Whether it is a device, a pipe or a stream of ours, whose name says nothing of its kind."""
    try:
        return _is_written_straight(path, os.stat(path))
    except (OSError, ValueError):
        return False


@atexit.register
def clean() -> None:
    """Removes what files under way have left."""
    with _lock:
        for stage, process in list(_stages.items()):
            if process == os.getpid():
                for _ in range(_TRIES):
                    _remove(stage)
                    if not os.path.lexists(stage):  # else another thread wrote into it meanwhile
                        break
                _drop(stage)


@contextlib.contextmanager
def ending() -> Iterator[None]:
    """What files under way have left is removed, and none is begun within the block; for whoever
    ends the process in it while another thread still runs."""
    with _lock:
        clean()
        yield


def _new_stage(folder: str, start: str) -> str:
    """A folder that is marked as in use; the mark ends with the process, however that ends."""
    while True:
        stage = tempfile.mkdtemp(prefix=start, suffix=_SUFFIX, dir=folder)
        _stages[stage] = os.getpid()
        try:
            held = os.path.join(stage, _HELD)
            handle = os.open(held, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        except FileNotFoundError:  # another process swept it before it was marked
            del _stages[stage]
            continue
        except BaseException:
            _drop(stage)
            raise
        _locks[stage] = handle
        with contextlib.suppress(OSError):  # not every file system has locks
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return stage


def _drop(stage: str) -> None:
    _remove(stage)
    with _lock:
        _stages.pop(stage, None)
        if (handle := _locks.pop(stage, None)) is not None:
            os.close(handle)


def _remove(stage: str) -> None:
    """The mark goes last, so that whoever is killed on the way leaves what is swept later."""
    with contextlib.suppress(OSError):
        for name in os.listdir(stage):
            if name != _HELD:
                os.remove(os.path.join(stage, name))
    shutil.rmtree(stage, ignore_errors=True)


def _sweep(folder: str, start: str) -> None:
    """Removes what those have left who were killed while they wrote the same file."""
    with contextlib.suppress(OSError):
        for name in os.listdir(folder):
            if name.startswith(start) and name.endswith(_SUFFIX):
                with contextlib.suppress(OSError):
                    _remove_unheld(os.path.join(folder, name))


def _remove_unheld(stage: str) -> None:
    """Removes a folder that no process holds; raises OSError where one does."""
    if not os.listdir(stage):
        os.rmdir(stage)
        return
    handle = os.open(os.path.join(stage, _HELD), os.O_RDWR | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _remove(stage)
    finally:
        os.close(handle)


@contextlib.contextmanager
def _named(path: str | Path) -> Iterator[None]:
    """Errors name the file that the user knows, not the one beside it."""
    try:
        yield
    except BrokenPipeError:
        raise  # the reader of a pipe went away, which is no error of the file
    except OSError as error:
        error.filename, error.filename2 = str(path), None
        raise


def _existing(path: str | Path) -> os.stat_result | None:
    try:
        return os.stat(path)
    except FileNotFoundError:
        return None


def _is_written_straight(path: str | Path, status: os.stat_result) -> bool:
    """Whether it is no file of its own: a device, a pipe, what a stream of ours goes to."""
    if not stat.S_ISREG(status.st_mode) or os.path.abspath(path).startswith(("/dev/", "/proc/")):
        return True
    for stream in range(3):
        with contextlib.suppress(OSError):
            if os.path.samestat(os.fstat(stream), status):
                return True
    return False


def _write(path: str | Path, data: bytes, *, sync: bool) -> None:
    with open(path, "wb") as file:
        file.write(data)
        file.flush()
        if sync:
            os.fsync(file.fileno())


def _overwrite(path: str, data: bytes) -> None:
    """Writes where nothing can be renamed; out of space, the file stays as it was."""
    with open(path, "r+b") as file:
        size = os.fstat(file.fileno()).st_size
        try:
            if data:
                os.posix_fallocate(file.fileno(), 0, len(data))
        except OSError as error:
            os.ftruncate(file.fileno(), size)
            if error.errno not in (errno.EINVAL, errno.EOPNOTSUPP):
                raise
        file.write(data)
        file.truncate()
        file.flush()
        os.fsync(file.fileno())


def _take_after(staged: str, old: os.stat_result) -> None:
    """Permissions of the file that is replaced, and its owner where we may give it away."""
    with contextlib.suppress(OSError):
        if (old.st_uid, old.st_gid) != (os.geteuid(), os.getegid()):
            os.chown(staged, old.st_uid, old.st_gid)
    os.chmod(staged, stat.S_IMODE(old.st_mode))


def _rename_or_copy(staged: str, target: str) -> None:
    try:
        os.replace(staged, target)
    except OSError as error:
        # A mount point, as a container has for a single file, and what others own in a
        # folder of all can be written, not replaced.
        if error.errno not in (errno.EBUSY, errno.EXDEV, *_CLOSED):
            raise
        _overwrite(target, Path(staged).read_bytes())


def _sync_folder(folder: str) -> None:
    """Makes renamed files last; not every file system can."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


@contextlib.contextmanager
def _deferred_signals() -> Iterator[None]:
    """Ctrl-C and the like wait until the block is through."""
    if threading.current_thread() is not threading.main_thread():
        yield  # handlers run in the main thread
        return
    caught: list[tuple[int, FrameType | None]] = []
    ends = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    handlers = {int(number): signal.getsignal(number) for number in ends}
    before: dict[int, Any] = {n: handler for n, handler in handlers.items() if callable(handler)}
    for number in before:
        signal.signal(number, lambda *told: caught.append(told))
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    for number, frame in caught[:1]:
        before[number](number, frame)
