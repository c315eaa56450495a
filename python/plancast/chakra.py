"""Chakra execution traces: one file for each rank, PREFIX.0.et, PREFIX.1.et, ..."""

from __future__ import annotations

import re
from pathlib import Path

from plancast import _core, files
from plancast.errors import InputError

_MOST_RANKS = 65536
_MOST_BYTES = 256 << 20  # of a file, unpacked; the core bounds the set


def trace_files(prefix: str | Path) -> list[Path]:
    """The files of ranks 0, 1, ... of a trace; `.et` or `.et.gz`.

    Raises:
      InputError: there are none, or a rank in between is missing.
    """
    prefix = Path(prefix)
    pattern = re.compile(re.escape(prefix.name) + r"\.(\d{1,7})\.et(\.gz)?$")
    found: dict[int, Path] = {}
    folder = prefix.parent
    if folder.is_dir():
        for path in folder.iterdir():
            if match := pattern.match(path.name):
                found[int(match[1])] = path
    if not found:
        raise InputError(
            f"there is no trace `{prefix}.0.et`. Give the prefix of files `PREFIX.RANK.et`."
        )
    if len(found) > _MOST_RANKS:
        raise InputError(f"`{prefix}` has {len(found)} ranks; the limit is {_MOST_RANKS}.")
    for rank in range(len(found)):
        if rank not in found:
            raise InputError(
                f"`{prefix}` has files of {len(found)} ranks, but none of rank {rank}; "
                "ranks count from 0."
            )
    return [found[rank] for rank in range(len(found))]


def read(prefix: str | Path) -> _core.ChakraTraces:
    """Reads the traces of all ranks, one file after the other.

    Raises:
      InputError: no trace, or one beyond the limits of a set (docs/traces.md).
    """
    return _core.ChakraTraces.read(
        (f"`{path}`", files.read_bytes(path, most=_MOST_BYTES)) for path in trace_files(prefix)
    )
