"""The data files beside these modules."""

from __future__ import annotations

from importlib import resources
from typing import Any


def read_yaml(name: str) -> Any:
    """What a file says; whoever needs it often keeps it."""
    import yaml

    text = resources.files("plancast.accuracy.validation").joinpath(name).read_text("utf-8")
    return yaml.safe_load(text)
