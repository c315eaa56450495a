"""Low-rank adapters in a word, as `--lora` and measured rows say them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from plancast import arguments
from plancast.errors import InputError

if TYPE_CHECKING:
    from plancast.strategy import Strategy

# All products of a layer, beside which adapters stand if nothing else is said.
EVERY_PRODUCT = ("qkv", "proj", "fc1", "fc2")
# What an argument file says of them, and who does.
NOT_IN_FILES = "nothing of adapters, which the training script has"
_OPS = re.compile(r"[A-Za-z_][\w.]*(\+[A-Za-z_][\w.]*)*")


def directive(text: str) -> dict[str, Any]:
    """What `RANK[:OP+OP][:nf4][:DROPOUT]` says, as `lora` of a node (docs/finetuning.md).

    Without ops adapters stand beside all products of the layers. `nf4`: the weights beside them
    rest in four bits; DROPOUT: the share of their input that is dropped.

    >>> directive("16:qkv+proj:nf4:0.05")
    {'rank': 16, 'on': ['qkv', 'proj'], 'base': 'nf4', 'dropout': 0.05}
    >>> directive("8")
    {'rank': 8, 'on': ['qkv', 'proj', 'fc1', 'fc2']}

    Raises:
      InputError: it is no such text.
    """
    rank, *rest = arguments.word(text, "lora").split(":")
    found: dict[str, Any] = {"rank": int(rank) if re.fullmatch(r"[1-9]\d{0,6}", rank) else 0}
    for word in rest:
        if word == "nf4" and "base" not in found:
            found["base"] = word
        elif re.fullmatch(r"0?\.\d+", word) and "dropout" not in found:
            found["dropout"] = float(word)
        elif _OPS.fullmatch(word) and "on" not in found:
            found["on"] = word.split("+")
        else:
            found["rank"] = 0
    if found["rank"] == 0:
        raise InputError(
            f"`lora={text}` is no RANK[:OP+OP][:nf4][:DROPOUT]. Write `16`, or `16:qkv+proj:nf4`."
        )
    return {"rank": found.pop("rank"), "on": found.pop("on", list(EVERY_PRODUCT)), **found}


def fine_tuning_nodes(tree: Strategy) -> Strategy:
    """A copy of a tree of which all plans of a ranking may have the nodes.

    Raises:
      InputError: it has a plan, or says more than what is trained.
    """
    said = tree.to_dict()
    more = [f"`{key}`" for key in said if key not in ("plan", "nodes")]
    more += [f"plan `{said['plan']}`"] if said["plan"] else []
    words = {word for node in said["nodes"].values() for word in node}
    more += [f"`{word}`" for word in sorted(words - {"train", "lora"})]
    if more:
        raise InputError(
            f"`nodes` of a ranking say what is trained (`train`, `lora`), and these {more[0]}. "
            "Put what all plans have in common into `space`."
        )
    return tree.copy()


def word_of(tree: Strategy | None) -> str:
    """What `directive` reads of the adapters at a tree's root; empty: there are none."""
    lora = {} if tree is None else tree.to_dict()["nodes"].get("", {}).get("lora", {})
    if not lora:
        return ""
    words = [str(lora["rank"]), "+".join(lora["on"])]
    words += [lora["base"]] if "base" in lora else []
    words += [f"{lora['dropout']:g}"] if "dropout" in lora else []
    return ":".join(words)
