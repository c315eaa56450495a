"""--lora: plans whose model trains low-rank adapters alone."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from plancast.strategy import Strategy


def add_lora(parser: argparse.ArgumentParser) -> None:
    """--lora."""
    parser.add_argument(
        "--lora",
        metavar="RANK",
        help="train low-rank adapters alone: 16, or RANK[:OP+OP][:nf4][:DROPOUT] as in "
        "16:qkv+proj:nf4 (default: beside all products of the layers)",
    )


def adapted(strategy: Strategy, options: argparse.Namespace) -> Strategy:
    """The plan with the adapters of --lora, if any are asked for."""
    word = getattr(options, "lora", None)
    return strategy if word is None else with_adapters(strategy, word)


def with_adapters(strategy: Strategy, word: str) -> Strategy:
    """A plan whose model trains the adapters of --lora alone."""
    from plancast.adapters import directive, word_of
    from plancast.errors import InputError

    if word_of(strategy):
        raise InputError("the strategy has adapters at its root; say them there or with --lora.")
    return strategy.copy().lora(**directive(word))


def nodes_of(options: argparse.Namespace) -> Strategy | None:
    """What --lora says of all plans."""
    from plancast.strategy import Strategy

    return None if options.lora is None else with_adapters(Strategy.parse(""), options.lora)
