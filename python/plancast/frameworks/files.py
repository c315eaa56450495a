"""Telling argument files from strategies, without loading what reads them."""

from __future__ import annotations

import os.path
from typing import Any

_SUFFIXES = (".toml", ".sh", ".txt", ".args")
_DOCUMENTS = (".json", ".yaml", ".yml")


def is_launch_file(text: str) -> bool:
    """Whether the words behind `-s` name an argument file of a framework.

    >>> is_launch_file("train_configs/llama3_8b.toml"), is_launch_file("tp=8,mb=1")
    (True, False)
    """
    if text.endswith(_SUFFIXES):
        return "=" not in text or os.path.isfile(text)
    if not text.endswith(_DOCUMENTS) or not os.path.isfile(text):
        return False
    from plancast import files
    from plancast.errors import InputError
    from plancast.frameworks import formats

    try:
        document = files.read_mapping(text)
    except InputError:
        return False  # whoever reads it as a strategy says what is wrong
    return formats.is_launch_mapping(document)


def fsdp_dialect(source: Any) -> str:
    """Whose FSDP configuration it is: `composer`'s, or accelerate's and the Trainer's."""
    from plancast.errors import InputError
    from plancast.frameworks import composer, formats, fsdp

    try:
        found = formats.recognise(source)
    except InputError:
        return fsdp.NAME
    return composer.NAME if found == composer.NAME else fsdp.NAME
