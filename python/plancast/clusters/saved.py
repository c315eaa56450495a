"""How a simulation of a cluster stands, in a file, so that it can go on after it was killed."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plancast import _core, files
from plancast.errors import InputError

_MAGIC = b"plancast cluster state 1\n"
_DIGEST = 32


@dataclass(frozen=True)
class Saved:
    """A file that holds the state of one simulation while it runs.

    It is written whole or not at all, says which simulation it is of, and goes when that is over.
    """

    path: Path
    of: bytes

    def load(self) -> bytes | None:
        """The state; None: the file is not there yet."""
        if not files.is_there(self.path):
            return None
        data = files.read_bytes(self.path, most=1 << 32)
        head = len(_MAGIC)
        if not data.startswith(_MAGIC) or len(data) < head + 2 * _DIGEST:
            raise InputError(
                f"`{self.path}` is there and holds no state of a cluster. Name another file."
            )
        of, digest, state = (
            data[head : head + _DIGEST],
            data[head + _DIGEST : head + 2 * _DIGEST],
            data[head + 2 * _DIGEST :],
        )
        if digest != hashlib.sha256(state).digest():
            raise InputError(f"`{self.path}` is damaged. Remove it to begin again.")
        if of != self.of:
            raise InputError(
                f"`{self.path}` holds how other jobs, options, another cluster or version stood. "
                "Remove it to begin again, or name another file."
            )
        return state

    def save(self, state: bytes) -> None:
        """In place of what was there."""
        digest = hashlib.sha256(state).digest()
        files.write_bytes(self.path, _MAGIC + self.of + digest + state)

    def remove(self) -> None:
        """Once the simulation is over."""
        with suppress(FileNotFoundError):
            os.unlink(self.path)


def simulate(
    path: str | Path | None,
    every_s: float,
    fabric: _core.Fabric,
    jobs: list[Any],
    options: dict[str, Any],
) -> tuple[_core.ClusterOutcome, Callable[[], None]]:
    """`_core.simulate_cluster`, from where the file stands; and what to do once all is told."""
    if path is None:
        return _core.simulate_cluster(fabric, jobs, **options), lambda: None
    files.check_writable(path)
    saved = Saved(Path(path), _identity(fabric, jobs, options))
    outcome = _core.simulate_cluster(
        fabric, jobs, **options, state=saved.load(), save_every_s=every_s, save=saved.save
    )
    return outcome, saved.remove


def _identity(fabric: _core.Fabric, jobs: list[Any], options: dict[str, Any]) -> bytes:
    """Of all that the state follows from, the program included."""
    links = [(fabric.link_name(link), fabric.capacity(link)) for link in range(fabric.links)]
    shape = (fabric.hosts, fabric.gpus_per_host, fabric.nics_per_host)
    program = hashlib.sha256(Path(_core.__file__).read_bytes()).hexdigest()
    parts = (program, shape, links, jobs, sorted(options.items()))
    return hashlib.sha256(repr(parts).encode()).digest()
