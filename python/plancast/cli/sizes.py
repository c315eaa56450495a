"""Lengths and batches as people type them: `128k`, `4Mtok`."""

from __future__ import annotations

import argparse
import re
from typing import TYPE_CHECKING

from plancast.errors import InputError

if TYPE_CHECKING:
    from plancast.model import Model

_LARGEST = 1_000_000_000
# More tokens in a step no training run has.
_MOST_TOKENS = 1 << 30
# Of lengths and batches K is 1,024, as in the names of models (128K is 131,072 tokens).
_SCALES = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
_LENGTH = re.compile(r"(\d{1,12})([km]?)", re.IGNORECASE)
_TOKENS = re.compile(r"(\d{1,12}(?:\.\d{1,6})?)\s*([kmg]?)\s*(?:tok|toks|token|tokens)", re.I)


class TokenBatch(int):
    """A global batch in tokens, before it is known how long sequences are."""


def seq(text: str) -> int:
    """Tokens of a sequence: 8192, 8k, 128K, 1M; for argparse."""
    match = _LENGTH.fullmatch(text.strip())
    if match is None:
        raise argparse.ArgumentTypeError(f"`{text}` is no length; write 4096, 8k or 128k")
    return _sensible(int(match[1]) * _SCALES[match[2].lower()], text)


def batch(text: str) -> int:
    """Samples of a step, 256, or tokens, 4Mtok; for argparse."""
    match = _TOKENS.fullmatch(text.strip())
    if match is not None:
        tokens = round(float(match[1]) * _SCALES[match[2].lower()])
        if not 1 <= tokens <= _MOST_TOKENS:
            raise argparse.ArgumentTypeError(
                f"`{text}` is not between 1 and {_MOST_TOKENS:,} tokens"
            )
        return TokenBatch(tokens)
    match = _LENGTH.fullmatch(text.strip())
    if match is None:
        raise argparse.ArgumentTypeError(
            f"`{text}` is no batch; write samples, such as 256, or tokens, such as 4Mtok"
        )
    if match[2]:
        samples = int(match[1]) * _SCALES[match[2].lower()]
        raise argparse.ArgumentTypeError(
            f"`{text}` may be samples or tokens; write {samples} for samples or {text}tok for "
            "tokens"
        )
    return _sensible(int(text), text)


def samples(size: int | None, model: Model) -> tuple[int | None, str]:
    """The batch in samples, and what is to be said about it.

    Raises:
      InputError: tokens of a model without sequences, or so many samples that they must be tokens.
    """
    if size is None:
        return None, ""
    if isinstance(size, TokenBatch):
        if model.seq <= 0:
            raise InputError(
                f"`{model.name}` has no sequences, so its batch is of samples: `--batch 256`."
            )
        whole = max(1, round(size / model.seq))
        exact = "" if whole * model.seq == size else f", {whole * model.seq:,} of them"
        return whole, (
            f"a batch of {int(size):,} tokens is {whole:,} samples of {model.seq:,}{exact}"
        )
    if model.seq > 1 and size > _MOST_TOKENS // model.seq:
        raise InputError(
            f"a batch of {size:,} sequences of {model.seq:,} tokens is more in a step than any "
            f"training run has. A batch counts sequences: if {size} tokens were meant, it is "
            f"{max(1, size // model.seq)}; write `--batch {size}tok`."
        )
    return size, ""


def _sensible(number: int, text: str) -> int:
    if not 1 <= number <= _LARGEST:
        raise argparse.ArgumentTypeError(f"{text} is not between 1 and {_LARGEST:,}")
    return number
