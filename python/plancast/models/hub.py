"""Models by the names that they have on the Hugging Face hub: `meta-llama/Llama-3.1-70B`."""

from __future__ import annotations

import importlib
import importlib.util
import re
from pathlib import Path
from typing import Any

from plancast import arguments
from plancast.errors import InputError

# An owner and a name, which is a path only where it exists.
_NAME = re.compile(
    r"[A-Za-z0-9][\w.-]*/[\w.-]+(?<!\.yaml)(?<!\.yml)(?<!\.json)(?<!\.pt2)(?<!\.onnx)"
)
# Ends of names that change no size: what a model was tuned for, and how its file is packed.
_TUNED = re.compile(
    r"[-_](instruct|chat|base|hf|it|pt|thinking|bf16|fp8|uncased|\d+k|v0\.1|\d{4})$",
    re.IGNORECASE,
)
# Series whose sizes are those of an earlier one, by their model cards and config.json files.
_SAME_SIZES = (
    (re.compile(r"^meta-", re.IGNORECASE), ""),
    (re.compile(r"^deepseek-r1$", re.IGNORECASE), "deepseek-v3"),
    (re.compile(r"^bloom$", re.IGNORECASE), "bloom-176b"),
)
# Nobody waits longer for a hub that does not answer, seconds.
_PATIENCE = 3.0


def is_name(text: str) -> bool:
    """Whether it looks like a name on the hub.

    >>> is_name("Qwen/Qwen3-8B"), is_name("models/mine.yaml"), is_name("llama3-8b")
    (True, False, False)
    """
    return _NAME.fullmatch(text) is not None


def preset(name: str) -> str | None:
    """The preset with the sizes of a model on the hub, or None.

    >>> preset("meta-llama/Llama-3.1-70B-Instruct"), preset("mistralai/Mixtral-8x7B-v0.1")
    ('llama3.1-70b', 'mixtral-8x7b')
    >>> preset("deepseek-ai/DeepSeek-R1-Distill-Llama-70B")
    """
    from plancast.models import presets

    bare = name.rstrip("/").rpartition("/")[2]
    while True:
        for series, earlier in _SAME_SIZES:
            bare = series.sub(earlier, bare)
        found = presets.of_plain_name(bare)
        shorter = _TUNED.sub("", bare)
        if found is not None or shorter == bare:
            return found
        bare = shorter


def known_preset(name: str) -> str:
    """The same; raises InputError where there is none."""
    from plancast.models import presets

    found = preset(name)
    if found is None:
        raise InputError(
            f"`{name}` is no file and not in the catalogue, and nothing was downloaded."
            f"{arguments.near(name.partition('/')[2], presets.names())} Of a model on Hugging "
            "Face, give its `config.json`, or install `huggingface_hub` (docs/models.md)."
        )
    return found


def config_file(name: str) -> Path | None:
    """The model's `config.json` as `huggingface_hub` brings it; None where that is not
    installed, does not answer or may not."""
    if importlib.util.find_spec("huggingface_hub") is None:
        return None
    try:
        hub: Any = importlib.import_module("huggingface_hub")
        return Path(hub.hf_hub_download(name, "config.json", etag_timeout=_PATIENCE))
    except Exception:  # a network, a gate, a name, a version: each has exceptions of its own
        return None
