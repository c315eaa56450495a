"""Argument files behind `-s`: what they say goes before the command line's defaults."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from plancast.launch_config import LaunchConfig
    from plancast.machine import Machine
    from plancast.model import Model
    from plancast.strategy import Strategy


_TYPES = frozenset(
    ("grad_dtype", "main_grad_dtype", "reduce_dtype", "param_dtype", "gather_dtype",
     "state_dtype", "attention_dtype", "master", "optimizer_type")
)  # fmt: skip


class Default(str):
    """The value of an option that was not given."""


def add_from(parser: argparse.ArgumentParser) -> None:
    """--from."""
    parser.add_argument(
        "--from",
        dest="framework",
        metavar="FRAMEWORK",
        help="whose argument file -s is, if it does not show: torchtitan, fsdp, composer, "
        "deepspeed, megatron",
    )


def open_strategy(
    text: str, options: argparse.Namespace, machine: Machine | None, model: Model | None
) -> Strategy:
    """The strategy that one -s names.

    What of an argument file was not taken over goes to `options.remarks`, which are printed
    behind the result.
    """
    from plancast.errors import InputError

    if not text.strip():
        raise InputError(
            "`-s` is empty. Say the plan, such as `-s tp=8,mb=1`; one replica on every GPU is "
            "`-s tp=1`."
        )
    strategy = _opened(text, options, machine, model)
    launch = strategy.launch
    if launch is not None:
        if options.batch is not None or launch.batch is not None:
            strategy = _without_accum(strategy)  # it follows from the batch that is in force
        options.remarks = [
            *getattr(options, "remarks", []),
            f"`{text}` is of {launch.framework}: {strategy or 'nothing that a plan says'}",
            *(f"warning: not in the plan: {line}" for line in launch.unsupported),
            *(f"note: {line}" for line in launch.notes),
        ]
    return strategy


def _opened(
    text: str, options: argparse.Namespace, machine: Machine | None, model: Model | None
) -> Strategy:
    from plancast import recipes
    from plancast.strategy import Strategy

    if recipes.is_recipe(text):
        return recipes.asked(text, model, machine, dtype=_given(options.dtype)).strategy
    known: dict[str, Any] = {"model": model}
    if machine is not None:
        known |= {"gpus": machine.devices, "gpus_per_host": machine.gpus_per_host or None}
    framework = getattr(options, "framework", None)
    return Strategy.open(text, framework=framework, **known)


def _given(value: str) -> str | None:
    return None if isinstance(value, Default) else value


def _without_accum(strategy: Strategy) -> Strategy:
    """The strategy that leaves `accum` open; it remembers the file that it was read from."""
    from plancast.strategy_words import without

    rest = type(strategy).parse(without(strategy.short_form, "accum"))
    rest._launch = strategy.launch
    return rest


def settings(options: argparse.Namespace, launch: LaunchConfig | None) -> dict[str, Any]:
    """batch, dtype, profile, types and cuda_graphs of one run: as given, else as the file says."""
    said: dict[str, Any] = {
        "batch": options.batch,
        "dtype": options.dtype,
        "profile": options.profile,
        "cuda_graphs": getattr(options, "cuda_graphs", False),
        **{name: getattr(options, name) for name in _TYPES if hasattr(options, name)},
    }
    if launch is None:
        return said
    for name in _TYPES & said.keys():
        said[name] = launch.types.get(name) if said[name] is None else said[name]
    if said["batch"] is None:
        said["batch"] = launch.batch
    if isinstance(options.dtype, Default) and launch.dtype is not None:
        said["dtype"] = launch.dtype
    if isinstance(options.profile, Default):
        said["profile"] = launch.profile
    said["cuda_graphs"] = said["cuda_graphs"] or launch.cuda_graphs
    return said
