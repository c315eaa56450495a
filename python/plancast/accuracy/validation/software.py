"""From the software a row names to a software profile."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from functools import cache
from typing import Any

from plancast import _core
from plancast.accuracy.validation.data_files import read_yaml
from plancast.frameworks import plan

DEFAULT = "megatron-core"
# The same of networks that are no transformers.
DEFAULT_OF_NETWORKS = "nvidia-pytorch"


def profile_for(
    software: str, dispatcher: str | None = None, *, said: str = "", **how: Any
) -> tuple[str, str]:
    """The profile of `shipped_profile_for` with what words add to it (additions.yaml), and why.

    `said`: assumptions of a row that add to it, too.

    >>> profile_for("NeMo 24.07")[0], profile_for("DeepSpeed 0.19 + Liger, FA3")[0]
    ('nemo-2024+cudnn-2024', 'deepspeed+liger+flash-attention-3')
    >>> profile_for("NeMo 25.04", said="fp8=delayed")[0]
    'megatron-bridge+cudnn-2025+delayed-scaling'
    """
    profile, why = shipped_profile_for(software, dispatcher, **how)
    return "+".join([profile, *_additions(f"{software} {said}")]), why


def shipped_profile_for(
    software: str,
    dispatcher: str | None = None,
    *,
    fused: bool = False,
    token_drop: bool = False,
    experts: bool = False,
    model: str = "",
    network: bool = False,
) -> tuple[str, str]:
    """The shipped profile, and why.

    Args:
      software: what ran, in a row's words.
      dispatcher: what sends tokens to experts, if known.
      fused: experts' products are one fused kernel.
      token_drop: experts have a fixed capacity.
      experts: the model is a mixture of experts.
      model: its name.
      network: the model is no transformer.

    >>> shipped_profile_for("Megatron-LM commit 6985e58938 (2021)")[0]
    'megatron-sc21'
    >>> shipped_profile_for("Megatron-Bridge 25.11", "deepep")[0]
    'megatron-bridge-flex'
    >>> shipped_profile_for("NeMo 24.07", model="gpt3-20b")[0]
    'nemo-2024-dropout'
    """
    entry = _entry(software)
    if entry is None:
        default = DEFAULT_OF_NETWORKS if network else DEFAULT
        return default, f"nothing known of `{software}`"
    if fused and "fused" in entry:
        return entry["fused"], f"for `{software}` with fused products of experts"
    if token_drop and "token_drop" in entry:
        return entry["token_drop"], f"for `{software}` with token drop"
    by_model: dict[str, str] = entry.get("models", {})
    for pattern, profile in by_model.items():
        if re.match(pattern, model):
            return profile, f"for `{software}` and its models `{pattern}`"
    if experts and "experts" in entry:
        return entry["experts"], f"for `{software}` and mixtures of experts"
    by_dispatcher: dict[str, str] = entry.get("dispatchers", {})
    if dispatcher in by_dispatcher:
        return by_dispatcher[dispatcher], f"for `{software}` with {dispatcher}"
    profile = entry["profile"]
    if profile in _core.profile_names():
        return profile, f"for `{software}`"
    return entry.get("otherwise", DEFAULT), f"nearest to `{software}`"


def release_of(software: str) -> str | None:
    """The release whose recipes a software ships (plancast.recipes); None: none are shipped.

    >>> release_of("Megatron-Bridge 26.04.01 NeMo Container"), release_of("Megatron-LM main")
    ('0.4.0', None)
    """
    releases: dict[str, str] = (_entry(software) or {}).get("releases", {})
    return next((said for word, said in releases.items() if re.search(word, software)), None)


def unknown_software(names: Iterable[str]) -> list[str]:
    """A warning for every software that no rule knows; `names`: one a row.

    >>> len(unknown_software(["Megatron-LM", "Abacus 3", "Abacus 3"]))
    1
    """
    unknown = Counter(name for name in names if _entry(name) is None)
    return [
        f"software {f'`{name}`' if name else 'not stated'} ({count} row{'s' * (count > 1)}): no "
        f"rule knows it, so `{DEFAULT}` stands for it (`{DEFAULT_OF_NETWORKS}` where the model is "
        "no transformer). Name the framework that ran in column `software`, or add a rule to "
        "accuracy/validation/software.yaml."
        for name, count in unknown.items()
    ]


def unstated_16bit(software: str) -> str | None:
    """The type in which this software runs where a row says 16 bits and no more.

    >>> unstated_16bit("Megatron-LM based")
    'fp16'
    """
    return _of(software, "unstated_16bit")


def unprinted_vocab(software: str) -> int | None:
    """Words that this software's models have where a row does not say.

    >>> unprinted_vocab("Megatron-LM based")
    32000
    """
    words = _of(software, "unprinted_vocab")
    return None if words is None else int(words)


def recompute_of(software: str, model: str) -> str | None:
    """What this software's recipes recompute; None: not known.

    >>> recompute_of("NeMo 24.07", "gpt3-20b")
    'selective'
    """
    word: str | None = _by_model(software, "recomputes", model)
    return word


def kept_in(software: str, dtype: str) -> str | None:
    """The type in which parameters of products in `dtype` are kept and gathered; None: the usual.

    >>> kept_in("Megatron-Bridge 26.02", "fp8")
    'fp8'
    """
    keeps: dict[str, str] = (_entry(software) or {}).get("keeps", {})
    return keeps.get(dtype)


def reduces_in(software: str) -> str | None:
    """The type in which this software sums gradients; None: the profile's.

    >>> reduces_in("PyTorch FSDP eager (IBM fms-fsdp Feb 2024)")
    'bf16'
    """
    return _of(software, "reduces")


def master_of(software: str) -> str | None:
    """How this software keeps fp32 copies of parameters, as `--master`; None: the profile's way.

    >>> master_of("torchtune 2024 compile")
    'off'
    """
    return _of(software, "master")


def predictions_of(software: str, seq: int) -> int | None:
    """Positions of a sequence that BERT's head reads in this software; None: all.

    >>> predictions_of("NVIDIA DeepLearningExamples PyTorch", 128)
    20
    """
    masked: dict[int, int] = (_entry(software) or {}).get("predictions", {})
    return masked.get(seq)


def attention_in(software: str, model: str, dtype: str) -> str | None:
    """The attention of a model in this type where a row does not say; None: the profile's.

    >>> attention_in("NVIDIA DeepLearningExamples PaddlePaddle", "bert-large", "fp16")
    'flash'
    """
    by_type: dict[str, str] = _by_model(software, "attention", model) or {}
    return by_type.get(dtype)


def length_of(software: str, seq: int, model: str) -> int:
    """Tokens that a sequence of at most `seq` is computed with on average in this software.

    >>> length_of("NVIDIA DeepLearningExamples PyTorch", 512, "bert-large")
    280
    >>> length_of("NVIDIA DeepLearningExamples PyTorch 20.06", 512, "bert-large")
    512
    """
    by_length: dict[int, int] = _by_model(software, "lengths", model) or {}
    return by_length.get(seq, seq)


def moments_in(software: str, model: str) -> str | None:
    """The type of Adam's moments in this software's recipes for a model; None: the usual.

    >>> moments_in("Megatron-Bridge 26.02", "deepseek-v3")
    'bf16'
    """
    word: str | None = _by_model(software, "moments", model)
    return word


def optimizer_in(software: str, model: str) -> str | None:
    """What updates a model's weights in this software's scripts; None: Adam.

    >>> optimizer_in("DeepLearningExamples PyTorch", "resnet50")
    'sgd-momentum'
    """
    word: str | None = _by_model(software, "optimizers", model)
    return word


def timed_in(software: str) -> str | None:
    """What of an iteration this software's measurements cover (timed.py); None: all of it.

    >>> timed_in("transformers, eager PyTorch 2.1 (NeuSight)")
    'passes'
    """
    return _of(software, "timed")


def epoch_samples_in(software: str) -> str | None:
    """Samples of a run that this software's rates are means of (epoch.py); None: of iterations.

    >>> epoch_samples_in("HF Trainer + DeepSpeed ZeRO 2021")
    '1000'
    """
    samples = _of(software, "epoch_samples")
    return None if samples is None else str(samples)


def _by_model(software: str, key: str, model: str) -> Any:
    said: dict[str, Any] = (_entry(software) or {}).get(key, {})
    return next((value for models, value in said.items() if re.match(models, model)), None)


def prefetch_of(software: str) -> int | None:
    """Units that this software gathers ahead with zero=3; None: as the forecast chooses.

    >>> prefetch_of("HF Trainer + DeepSpeed ZeRO 2021")
    0
    """
    ahead = _of(software, "prefetch")
    return None if ahead is None else int(ahead)


def one_micro_batch_a_stage(software: str) -> bool:
    """Whether this software cuts a rank's batch in as many micro-batches as pp, unless told.

    >>> one_micro_batch_a_stage("torchtitan (Dec 2024) compile")
    True
    """
    return _of(software, "micro_batches") == "one_a_stage"


def vpp_of(software: str, model: str) -> int | None:
    """Chunks of a stage in this software's recipes for a model; None: not known.

    >>> vpp_of("NeMo 24.05-era container", "gpt3-175b")
    6
    """
    said: dict[str, int] = (_entry(software) or {}).get("vpp", {})
    return next((chunks for pattern, chunks in said.items() if re.fullmatch(pattern, model)), None)


def overlaps_tp(software: str, dtype: str) -> bool:
    """Whether this software's recipes overlap tensor parallelism in this type.

    >>> overlaps_tp("Megatron-Bridge 26.02", "nvfp4")
    False
    >>> overlaps_tp("Megatron-Bridge 26.02", "mxfp8")
    True
    """
    return _of(software, "no_tp_overlap") != dtype


def layout_of(software: str, layers: int, stages: int, head: float = 0.0) -> str | None:
    """How this software deals layers to (virtual) stages; None: as the forecast chooses.

    Args:
      software: as the row calls it.
      layers: of the model.
      stages: virtual stages.
      head: weights of the output layer's product, as a multiple of those of a layer's.

    >>> layout_of("Aleph Alpha scaling fork 2023 / kernel flash_attention2", 40, 4)
    '10+11x2+8'
    >>> layout_of("NeMo AutoModel 26.02", 61, 28)
    '3x5+2x23'
    >>> layout_of("nanotron v0.5", 16, 2, head=4.0)
    '11+5'
    """
    how = _of(software, "stages")
    if stages < 2 or how is None:
        return None
    if how == "more_at_front":
        least, more = divmod(layers, stages)
        return plan.layout_text([least + (stage < more) for stage in range(stages)])
    if how == "by_weights":
        return _by_weights(layers, stages, head)
    modules, more = divmod(layers + 3, stages)
    counts = [modules + (stage < more) for stage in range(stages)]
    counts[0] -= 1
    counts[-1] -= 2
    return plan.layout_text(counts)


def _by_weights(layers: int, stages: int, head: float) -> str | None:
    """The next stage begins behind the layer that brings the sum of weights beyond its share."""
    counts = [0] * stages
    stage = 0
    for layer in range(1, layers + 1):
        counts[stage] += 1
        if layer * stages > (layers + head) * (stage + 1) and stage + 1 < stages:
            stage += 1
    # The last has the output layer at least.
    return plan.layout_text(counts) if all(counts[:-1]) else None


def recipe_layout(software: str, model: str, stages: int) -> list[int] | None:
    """How this software's recipes deal the layers of a model to virtual stages; None: evenly.

    >>> recipe_layout("Megatron-Bridge 26.02", "deepseek-v3", 8)
    [8, 8, 8, 8, 8, 8, 8, 5]
    """
    for recipe in (_entry(software) or {}).get("layouts", []):
        if recipe["stages"] == stages and re.fullmatch(recipe["model"], model):
            return plan.layout_of(recipe["layout"])
    return None


def _of(software: str, key: str) -> str | None:
    said: str | None = (_entry(software) or {}).get(key)
    return said


@cache
def _entry(software: str) -> dict[str, Any] | None:
    """The first rule whose `match` is found, whatever the case."""
    found = (e for e in _table() if re.search(e["match"], software, re.IGNORECASE))
    return next(found, None)


@cache
def _additions(words: str) -> list[str]:
    """What they add to a profile."""
    found = (
        next((e["add"] for e in kind if re.search(e["match"], words, re.IGNORECASE)), None)
        for kind in read_yaml("additions.yaml")
    )
    return [addition for addition in found if addition is not None]


@cache
def _table() -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = read_yaml("software.yaml")
    return entries
