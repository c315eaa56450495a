"""What updates weights, in argument files, in both directions."""

from __future__ import annotations

from collections.abc import Mapping

from plancast.frameworks import table
from plancast.frameworks.plan import Plan

ADAM = ("adam", "adamw")


def read_optimizer(
    facts: table.Facts, names: Mapping[str, str], momentum: bool = False
) -> dict[str, str]:
    """The optimizer that a file names, as `optimizer_type`; of Adam's nothing is said.

    What is none of `names` is unsupported.

    Args:
      facts: what the file says, with a row `optimizer`.
      names: the framework's names, in lower case, and ours.
      momentum: whether SGD keeps any.
    """
    said = str(facts["optimizer"])
    found = names.get(said.lower())
    if found is None:
        known = ", ".join(names)
        facts.cannot_say(f"{facts.key('optimizer')} = `{said[:40]}`: none of {known}.")
        return {}
    if found in ADAM:
        return {}
    return {"optimizer_type": "sgd-momentum" if found == "sgd" and momentum else found}


def take_optimizer(plan: Plan, types: dict[str, str], names: Mapping[str, str]) -> str | None:
    """Takes `optimizer_type` out of a run's types; None: Adam, or nothing is said.

    Args:
      plan: which refuses what the framework does not have.
      types: of the run.
      names: our names, and the framework's.
    """
    said = types.pop("optimizer_type", "adam")
    if said in ADAM:
        return None
    if said not in names:
        has = ", ".join(dict.fromkeys(("adam", *names)))
        plan.refuse(f"optimizer_type {said}", f"it has {has}.", "adam")
    return names[said]
