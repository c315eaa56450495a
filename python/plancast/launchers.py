"""Argument files of training frameworks, read into strategies and written from them.

docs/launch.md shows examples.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from plancast.frameworks.formats import FRAMEWORKS, Source, write
from plancast.launch_config import LaunchConfig
from plancast.strategy import Strategy

if TYPE_CHECKING:
    from plancast.model import Model

__all__ = ["FRAMEWORKS", "LaunchConfig", "read", "write"]


def read(
    source: Source,
    framework: str | None = None,
    *,
    gpus: int | None = None,
    gpus_per_host: int | None = None,
    model: Model | None = None,
) -> LaunchConfig:
    """Reads the argument file of a training framework.

    Args:
      source: a file's name, its text, a parsed mapping (for Megatron `vars(args)`), or for
        Megatron a list of words.
      framework: `torchtitan`, `fsdp`, `composer`, `deepspeed` or `megatron-core`; by the
        contents if absent.
      gpus: number of GPUs; some files say what they mean only together with it.
      gpus_per_host: GPUs of a host, for FSDP's HYBRID_SHARD.
      model: what is trained, where the file does not name it: to cut stages, to count what is
        gathered ahead.

    Raises:
      InputError: what cannot be read, with the file, the key and the remedy.

    >>> launch = read('{"train_micro_batch_size_per_gpu": 2, "zero_optimization": {"stage": 3}}')
    >>> launch.framework, launch.strategy.short_form
    ('deepspeed', 'zero=3,mb=2')
    """
    known = {"gpus": gpus, "gpus_per_host": gpus_per_host, "model": model}
    return cast(LaunchConfig, Strategy._from_launch(source, framework, known).launch)
