"""What ran when."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Slice:
    """One task as it ran on the representative of a device class, seconds."""

    device_class: str
    stream: str
    purpose: str
    name: str
    layer: int
    micro_batch: int
    chunk: int
    start_s: float
    end_s: float
