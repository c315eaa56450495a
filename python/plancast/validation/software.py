"""From the software a row names to a software profile."""

from __future__ import annotations

import re
from functools import cache
from importlib import resources
from itertools import groupby
from typing import Any

from plancast import _core

DEFAULT = "megatron-core"


def profile_for(software: str) -> tuple[str, str]:
    """The profile, and why.

    >>> profile_for("Megatron-LM commit 6985e58938 (2021)")[0]
    'megatron-sc21'
    """
    shipped = set(_core.profile_names())
    for entry in _table():
        if not re.search(entry["match"], software):
            continue
        profile = entry["profile"]
        if profile in shipped:
            return profile, f"for `{software}`"
        return entry.get("otherwise", DEFAULT), f"nearest to `{software}`"
    return DEFAULT, f"nothing known of `{software}`"


def unstated_16bit(software: str) -> str | None:
    """The type in which this software runs where a row says 16 bits and no more.

    >>> unstated_16bit("Megatron-LM based")
    'fp16'
    """
    return _of(software, "unstated_16bit")


def layout_of(software: str, layers: int, stages: int) -> str | None:
    """How this software deals layers to stages; None: as the forecast chooses.

    >>> layout_of("Aleph Alpha scaling fork 2023 / kernel flash_attention2", 40, 4)
    '10+11x2+8'
    """
    if stages < 2 or _of(software, "stages") != "equal_modules":
        return None
    modules, more = divmod(layers + 3, stages)
    counts = [modules + (stage < more) for stage in range(stages)]
    counts[0] -= 1
    counts[-1] -= 2
    runs = [(count, len([*same])) for count, same in groupby(counts)]
    return "+".join(f"{count}x{times}" if times > 1 else f"{count}" for count, times in runs)


def _of(software: str, key: str) -> str | None:
    for entry in _table():
        if re.search(entry["match"], software):
            said: str | None = entry.get(key)
            return said
    return None


@cache
def _table() -> list[dict[str, Any]]:
    import yaml

    text = resources.files("plancast.validation").joinpath("software.yaml").read_text("utf-8")
    entries: list[dict[str, Any]] = yaml.safe_load(text)
    return entries
