"""What to type instead of a plan that is said in other words."""

from __future__ import annotations

import re

from plancast import _core
from plancast.adapters import EVERY_PRODUCT
from plancast.arguments import shipped_profile
from plancast.errors import InputError

# What a software is mostly used for, where its name says so.
_USUAL_PLANS = {
    "fsdp": "zero=3,mb=1",
    "pytorch-fsdp": "zero=3,mb=1",
    "torchtitan": "zero=3,mb=1",
    "deepspeed": "zero=3,mb=1",
    "ddp": "zero=0,mb=1",
}
_PROFILES = {"megatron": "megatron-core", "megatron-lm": "megatron-core"}
_SHORT = {"fsdp1": "fsdp", "fsdp2": "torchtitan"}
# Between two spaces that were ranked together.
BESIDES = " and besides "
# What people put between the items of a space: not a comma.
_BETWEEN = re.compile(r"(?<=[^\s,;|])(?:\s+|\s*;\s*)(?=[a-z_]+=)")
# `tp8`, `zero3`, `tp8pp2`, `zero-3`: sizes without their signs.
_SIZES = re.compile(r"(?:(dp|tp|pp|cp|ep|vpp|mb|zero)[-_ ]?(\d{1,5})(?:[-_ ,]|$|(?=[a-z])))+")
_SIZE = re.compile(r"(dp|tp|pp|cp|ep|vpp|mb|zero)[-_ ]?(\d{1,5})")
_ADAPTERS = ("lora", "qlora", "peft")


def adapter_tree(plan: str, quantised: bool) -> str:
    """A tree that trains adapters alone, in a line; `quantised`: beside weights of four bits."""
    lora = f"rank: 16, on: [{', '.join(EVERY_PRODUCT)}]{', base: nf4' if quantised else ''}"
    return f'{{plan: "{plan}", nodes: {{"": {{lora: {{{lora}}}}}}}}}'


def adapters(word: str, command: str = "predict") -> str:
    """How a plan says adapters; `command`: what was asked, if it takes no plan.

    >>> "base: nf4" in adapters("qlora"), "base: nf4" in adapters("lora")
    (True, False)
    """
    if command == "predict":
        typed = f"-s '{adapter_tree('zero=3,mb=1', 'qlora' in word)}'"
        return f"Adapters are part of the plan. Write `{typed}` (docs/finetuning.md)."
    lora = "16:nf4" if "qlora" in word else "16"
    return (
        f"`plancast {command}` looks at training of all parameters. Write `plancast rank "
        f"-m MODEL -c MACHINE --batch N --lora {lora}` (docs/finetuning.md)."
    )


def instead(text: str) -> str:
    """What is wrong with the words behind `-s`, and what to type; empty: nothing better is known.

    >>> instead("zero3"), instead("tp8pp2"), instead("tp=8,pp=2")
    ('`zero3` has no `=`. Write `zero=3`.', '`tp8pp2` has no `=`. Write `tp=8,pp=2`.', '')
    """
    word = text.strip().lower()
    profile = _PROFILES.get(word, _SHORT.get(word, word))
    if shipped_profile(profile) in _core.profile_names():
        usual = _USUAL_PLANS.get(shipped_profile(profile), "tp=8,mb=1")
        return (
            f"`{text}` is a software profile, and `-s` takes a plan. Write `--profile {profile} "
            f"-s {usual}`, with sizes of your own."
        )
    if word in _ADAPTERS:
        return f"`{text}` is no plan by itself. {adapters(word)}"
    if _SIZES.fullmatch(word):
        plan = ",".join(f"{key}={size}" for key, size in _SIZE.findall(word))
        return f"`{text}` has no `=`. Write `{plan}`."
    return ""


def without(plan: str, key: str) -> str:
    """A short form less one of its keys.

    >>> without("tp=8,accum=4,mb=1", "accum")
    'tp=8,mb=1'
    """
    return ",".join(item for item in plan.split(",") if not item.startswith(f"{key}="))


def check_space(text: str) -> None:
    """Raises InputError where items of a space are not joined by commas, or it is of two.

    >>> check_space("tp=1|2, pp=1")
    >>> check_space("tp=1|2 pp=1; mb=1")
    Traceback (most recent call last):
    plancast.errors.InputError: space: items are joined by commas. Write `tp=1|2,pp=1,mb=1`.
    """
    one, besides, _ = text.partition(BESIDES)
    if besides:  # as rankings of the default space are printed
        raise InputError(f"space: one space at a time. Write `{one.strip()}`.")
    if _BETWEEN.search(text):
        typed = _BETWEEN.sub(",", text.strip())
        raise InputError(f"space: items are joined by commas. Write `{typed}`.")
