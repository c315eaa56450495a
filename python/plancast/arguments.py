"""Checks of what is handed to functions, with errors that say what would be right."""

from __future__ import annotations

import numbers
import re
from collections.abc import Iterable
from typing import Any

from plancast.errors import InputError

# Precisions of matrix products.
DTYPES = ("bf16", "fp16", "fp32", "tf32", "fp8", "fp8-row", "fp8-block", "mxfp8", "nvfp4")
# What PyTorch and people call some of them.
_USUAL_DTYPES = {
    "bfloat16": "bf16", "float16": "fp16", "half": "fp16", "float32": "fp32", "float": "fp32",
    "float8": "fp8", "16": "fp16", "32": "fp32",
}  # fmt: skip
# Of collectives: closed forms, or chunk programs.
FIDELITIES = ("closed", "chunks")
# The word that names of a family begin with, and how many names an error has.
_FAMILY = re.compile("[a-z]{3,}")
_FEW = 5
_LARGEST_BATCH = 1_000_000_000
# Of a collective: 2^50 bytes take days; the core lists programs of so many ranks.
MOST_BYTES = 1 << 50
MOST_RANKS = 1 << 16


def batch(value: Any) -> int | None:
    """A global batch that somebody can mean, or None.

    >>> batch(64)
    64
    """
    if value is None:
        return None
    if not is_whole(value):
        raise InputError(f"the batch is `{value!r}`; give a whole number of samples.")
    samples = int(value)
    if not 1 <= samples <= _LARGEST_BATCH:
        raise InputError(
            f"a global batch of {value} samples cannot be trained on. "
            f"Give a number from 1 to {_LARGEST_BATCH:,}."
        )
    return samples


def is_whole(value: Any) -> bool:
    """Whether it is a whole number, NumPy's too.

    >>> is_whole(8), is_whole(8.0), is_whole(True)
    (True, False, False)
    """
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def whole(value: Any, what: str, least: int, most: int) -> int:
    """A whole number between bounds, NumPy's too.

    >>> whole(8, "channels", 1, 1024)
    8
    """
    if not is_whole(value) or not least <= value <= most:
        shown = repr(value)[:40]
        raise InputError(f"`{what}` is `{shown}`; give a whole number from {least:,} to {most:,}.")
    return int(value)


def levels(gpus: Any) -> list[int]:
    """How many ranks, or of each level, innermost first.

    >>> levels(8), levels([8, 4])
    ([8], [8, 4])
    """
    many = gpus if isinstance(gpus, list | tuple) else [gpus]
    return [whole(level, "gpus", 1, MOST_RANKS) for level in many]


def number(value: Any, what: str) -> float:
    """A number, NumPy's too.

    >>> number(2, "arrival")
    2.0
    """
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise InputError(f"`{what}` is `{value!r}`; give a number.")
    return float(value)


def chunk_level(fidelity: Any) -> bool:
    """Whether collectives run chunk by chunk.

    >>> chunk_level("closed")
    False
    """
    if fidelity not in FIDELITIES:
        raise InputError(f"no fidelity `{fidelity}`.{offer(fidelity, FIDELITIES)}")
    return bool(fidelity == "chunks")


def dtype(name: Any) -> str:
    """A precision of matrix products."""
    if name not in DTYPES:
        usual = _USUAL_DTYPES.get(str(name).lower())
        hint = f" Did you mean `{usual}`?" if usual else offer(name, DTYPES)
        raise InputError(f"no dtype `{name}`.{hint}")
    return str(name)


def word(value: Any, what: str) -> str:
    """Text where something else would fail far from its line."""
    if not isinstance(value, str):
        raise InputError(f"`{what}` is `{value!r}`; give text.")
    return value


# What these profiles are on GPUs of AMD, where software of the same name is another build.
_ON_ROCM = {
    "megatron-core": "megatron-rocm",
    "megatron-lm": "megatron-rocm",
    "torchtitan": "torchtitan-rocm",
}
_OF_AMD = re.compile(r"MI\d")
# Of GPUs that are known by name those that an addition to a profile has kernels for. Version 3 of
# FlashAttention is Hopper's, version 4 Hopper's and Blackwell's; others need Ampere's tensor cores.
_KNOWN = re.compile(r"(A|B|GB|GH|H|L|M|MI|P|T|V)\d|RTX|GTX|Titan|Vega|Intel|Gaudi")
_HOPPER, _BLACKWELL = r"H\d|GH\d", r"G?B\d"
_SINCE_AMPERE = rf"A\d|L4|RTX[34-]|{_HOPPER}|{_BLACKWELL}"
_KERNELS_FOR = {
    "flash-attention-3": _HOPPER,
    "flash-attention-4": f"{_HOPPER}|{_BLACKWELL}",
    **dict.fromkeys(
        ("flash-attention-2", "flex-attention", "cudnn-2024", "cudnn-2025", "cudnn-2026"),
        _SINCE_AMPERE,
    ),
}


def profile(value: Any, gpu: str) -> str:
    """The name of a software profile on a machine's GPUs, several of which are joined by `+`.

    Raises:
      InputError: no text, or an addition that has no kernels for a GPU.

    >>> profile("megatron-core", "MI300X"), profile("megatron-core", "H100-SXM-80GB+MI300X")
    ('megatron-rocm', 'megatron-core')
    >>> profile("torchtitan+liger", "MI300X")
    'torchtitan-rocm+liger'
    """
    name, plus, additions = word(value, "profile").partition("+")
    for addition in additions.split("+") if plus else ():
        _check_kernels(addition, gpu, str(value))
    of_amd = all(_OF_AMD.match(one) for one in gpu.split("+"))
    return (_ON_ROCM.get(name, name) if of_amd else name) + plus + additions


def _check_kernels(addition: str, gpu: str, said: str) -> None:
    has = _KERNELS_FOR.get(addition, "")
    for one in gpu.split("+"):
        if _KNOWN.match(one) and not re.match(has, one):
            raise InputError(
                f"profile `{said}`: `{addition}` has no kernels for {one}. Leave it out, and the "
                "profile's own attention runs."
            )


def shipped_profile(name: str) -> str:
    """A profile's name without what is added to it.

    >>> shipped_profile("deepspeed+liger+flash-attention-3"), shipped_profile("fsdp")
    ('deepspeed', 'fsdp')
    """
    return name.partition("+")[0]


def instance(value: Any, kind: type, what: str, how: str) -> Any:
    """`value` if it is a `kind`; `how` shows how to make one."""
    if not isinstance(value, kind):
        raise InputError(f"`{what}` is `{value!r}`; give a {kind.__name__}, such as `{how}`.")
    return value


def listed(names: Iterable[str]) -> str:
    """The names in backquotes.

    >>> listed(["a", "b"])
    '`a`, `b`'
    """
    return ", ".join(f"`{name}`" for name in names)


def near(name: Any, known: Iterable[str]) -> str:
    """The end of an error about an unknown name.

    >>> near("BF61", ["bf16", "fp16"])
    ' Did you mean `bf16`?'
    """
    from plancast import _core

    found = _core.nearest(str(name), list(known), 1)
    return f" Did you mean `{found[0]}`?" if found else ""


def offer(name: Any, known: Iterable[str]) -> str:
    """What to type instead of an unknown name: the nearest first, at most five.

    Where none is near, of those that begin with the same word the last, which are the newest.

    >>> offer("H100", ["dgx-h100", "p5-h100", "t4", "t5", "t6", "t7"])
    ' Did you mean `dgx-h100`? Like it are `p5-h100`.'
    >>> offer("llama4-maverick", ["gpt2", "bert", "llama-7b", "llama3-8b", "opt", "phi"])
    ' Like it are `llama-7b`, `llama3-8b`.'
    """
    from plancast import _core

    names = list(known)
    text: str = _core.offer(str(name), names)
    word = _FAMILY.match(str(name).lower())
    if word is None or len(names) <= _FEW or not text.startswith(" There are"):
        return text
    alike = [one for one in names if one.lower().startswith(word[0])]
    if not alike:
        return text
    more = f" and {len(alike) - _FEW} more" if len(alike) > _FEW else ""
    return f" Like it are {listed(alike[-_FEW:])}{more}."
