"""Chakra execution traces: one file for each rank, PREFIX.0.et, PREFIX.1.et, ..."""

from __future__ import annotations

import re
from pathlib import Path

from plancast import _core, files
from plancast.errors import InputError

_MOST_RANKS = 65536
_MOST_BYTES = 256 << 20  # of a file, unpacked; the core bounds the set


def rank_file(prefix: Path, rank: int) -> Path:
    """The file of one rank."""
    return prefix.with_name(f"{prefix.name}.{rank}.et")


def groups_file(prefix: Path) -> Path:
    """The file of the groups of ranks."""
    return Path(f"{prefix}.groups.json")


def _members(prefix: Path) -> list[tuple[int, Path]]:
    """Ranks and files of a trace as they lie in the folder."""
    pattern = re.compile(re.escape(prefix.name) + r"\.(\d{1,7})\.et(\.gz)?$")
    if not files.is_folder(prefix.parent):
        return []
    found = ((pattern.match(path.name), path) for path in prefix.parent.iterdir())
    return [(int(match[1]), path) for match, path in found if match]


def stale_files(prefix: Path, ranks: int, *, groups: bool) -> list[Path]:
    """Files of an earlier, larger trace that would be read as part of a new one.

    Args:
      prefix: of both.
      ranks: of the new trace.
      groups: whether it has a file of groups.

    Raises:
      InputError: some of them are compressed, which is not our work.
    """
    members = _members(prefix)
    for _, path in members:
        if path.suffix == ".gz":
            raise InputError(
                f"`{path}` would be read as part of the new trace. Remove the compressed trace "
                f"`{prefix}` first, or give another prefix."
            )
    stale = [path for rank, path in members if path != rank_file(prefix, rank) or rank >= ranks]
    if not groups and files.is_there(groups_file(prefix)):
        stale.append(groups_file(prefix))
    return stale


def trace_files(prefix: str | Path) -> list[Path]:
    """The files of ranks 0, 1, ... of a trace; `.et` or `.et.gz`.

    Raises:
      InputError: there are none, or a rank in between is missing.
    """
    prefix = Path(prefix)
    found: dict[int, Path] = {}
    for rank, path in _members(prefix):
        if rank in found:
            raise InputError(
                f"`{found[rank]}` and `{path}` are both rank {rank} of one trace; remove one."
            )
        found[rank] = path
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
