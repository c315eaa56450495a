"""What to type instead of a machine that is called as others call it."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

from plancast import _core
from plancast.textual import counted

# `8xH100`, `64 A100s`, `16*h200`, `H100x8`: so many GPUs of a kind.
_MANY = re.compile(r"(\d{1,7})\s*[x*]?\s*([a-z]{1,3}\d{1,3}[a-z]{0,2}?)s?", re.IGNORECASE)
_TIMES = re.compile(r"([a-z]{1,3}\d{1,3}[a-z]{0,2}?)s?\s*[x*]\s*(\d{1,7})", re.IGNORECASE)
# Where several presets have a GPU: that of its vendor.
_OF_VENDOR = ("dgx-{}", "dgx-{}-80g", "{}-pcie", "{}-oam", "dgx1-{}-32g", "{}-nvl72")


def instead(text: str) -> str:
    """What is wrong with a name, and what to type; empty where nothing better is known.

    >>> instead("p4d.24xlarge:4")
    '`p4d.24xlarge` is called `p4d-a100-40g` here. Write `-c p4d-a100-40g:4`.'
    >>> instead("64xH100")
    '`64xH100` is 8 hosts of 8 GPUs. Write `-c dgx-h100:8`.'
    >>> instead("dgx-h1000:2")
    ''
    """
    name, colon, size = text.strip().partition(":")
    words = _words()
    preset = words["clouds"].get(name.lower())
    if preset is not None:
        return f"`{name}` is called `{preset}` here. Write `-c {preset}:{size or 1}`."
    for other in words["others"]:
        if re.fullmatch(other["pattern"], name, re.IGNORECASE):
            return (
                f"`{text}`: {other['what']} are not simulated, for no kernel of theirs is priced; "
                f"GPUs of NVIDIA and AMD are. Write such a machine, as in `-c "
                f"dgx-h100:{size or 1}`; `plancast list machines` has all."
            )
    return _counted(text) if not colon else ""


def _counted(text: str) -> str:
    match, turned = _MANY.fullmatch(text.strip()), _TIMES.fullmatch(text.strip())
    if turned is not None:
        gpu, number = turned.groups()
    elif match is not None:
        number, gpu = match.groups()
    else:
        return ""
    known = set(_core.Machine.preset_names())
    names = [pattern.format(gpu.lower()) for pattern in _OF_VENDOR]
    preset = next((name for name in names if name in known), None)
    if preset is None:
        return ""
    count = int(number)
    of_host = _core.Machine.preset(f"{preset}:1").gpus_per_host
    hosts, rest = divmod(count, of_host)
    if hosts and not rest:
        shape = f"{counted(hosts, 'host')} of {of_host} GPUs"
        return f"`{text}` is {shape}. Write `-c {preset}:{hosts}`."
    if count < of_host:
        return f"`{text}` is a part of a host. Write `-c {preset}:1x{count}`."
    return (
        f"`{text}` are no whole hosts of {of_host} GPUs. Write `-c {preset}:{hosts + 1}`, or fewer "
        f"of each host: `-c {preset}:HOSTSxGPUS`."
    )


@cache
def _words() -> dict[str, Any]:
    import yaml

    text = (Path(__file__).parent / "machine_names.yaml").read_text(encoding="utf-8")
    words: dict[str, Any] = yaml.safe_load(text)
    return words
