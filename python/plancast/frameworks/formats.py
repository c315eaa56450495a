"""Which framework an argument file is of, and its reader and writer."""

from __future__ import annotations

import re
from argparse import Namespace
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plancast import arguments, documents, files
from plancast.errors import InputError
from plancast.frameworks import (
    accelerate_deepspeed,
    composer,
    deepspeed,
    fsdp,
    heading,
    megatron,
    megatron_args,
    table,
    torchtitan,
)
from plancast.frameworks.contents import Contents
from plancast.frameworks.known import Known
from plancast.frameworks.plan import Plan

if TYPE_CHECKING:
    from plancast.model import Model
    from plancast.strategy import Strategy

Source = str | Path | Mapping[str, Any] | Namespace | list[str] | tuple[str, ...]


@dataclass(frozen=True)
class Framework:
    """A framework: how its files are written, and whose defaults its profiles have."""

    write: Callable[[Plan, Known], str]
    profiles: tuple[str, ...]
    suffix: str


_TITANS = ("torchtitan", "torchtitan-eager", "torchtitan-rocm", "torchtitan-primus")

FRAMEWORKS: dict[str, Framework] = {
    torchtitan.NAME: Framework(torchtitan.write, _TITANS, ".toml"),
    fsdp.NAME: Framework(fsdp.write, ("fsdp", "ddp", *_TITANS), ".yaml"),
    composer.NAME: Framework(composer.write, ("composer", "composer-fp32-reduce"), ".yaml"),
    deepspeed.NAME: Framework(deepspeed.write, ("deepspeed",), ".json"),
    megatron.NAME: Framework(
        megatron.write, ("megatron-core", "megatron-lm", "megatron-rocm", "primus"), ".sh"
    ),
}
_OTHER_NAMES = {
    "megatron": megatron.NAME, "megatron-lm": megatron.NAME, "accelerate": fsdp.NAME,
    "llm-foundry": composer.NAME,
}  # fmt: skip
# Keys at the top that only one framework has.
_DEEPSPEED = {
    "zero_optimization", "train_micro_batch_size_per_gpu", "train_batch_size", "steps_per_print",
    "zero_allow_untested_optimizer", "wall_clock_breakdown",
}  # fmt: skip
_TORCHTITAN = {"parallelism", "activation_checkpoint", "job", "training", "float8", "lr_scheduler"}
_COMPOSER = {"global_train_batch_size", "device_train_microbatch_size", "max_seq_len", "precision"}
_FSDP = {"fsdp_config", "distributed_type", "fsdp", "parallelism_config", "compute_environment"}
_DEEPEST = 100
_MEGATRON = {
    "tensor_model_parallel_size", "pipeline_model_parallel_size", "context_parallel_size",
    "expert_model_parallel_size", "micro_batch_size", "sequence_parallel", "recompute_granularity",
}  # fmt: skip


def framework_name(name: str) -> str:
    """The canonical name of a framework.

    >>> framework_name("megatron"), framework_name("FSDP")
    ('megatron-core', 'fsdp')
    """
    known = _OTHER_NAMES.get(name.lower(), name.lower())
    if known not in FRAMEWORKS:
        raise InputError(f"no framework `{name}`.{arguments.offer(name, FRAMEWORKS)}")
    return known


def read(
    source: Source,
    framework: str | None = None,
    *,
    gpus: int | None = None,
    gpus_per_host: int | None = None,
    model: Model | None = None,
) -> Contents[str]:
    """What the argument file of a training framework says; see `plancast.launchers.read`."""
    known = Known(gpus=gpus, gpus_per_host=gpus_per_host, model=model)
    return _read(source, None if framework is None else framework_name(framework), known)


def write(
    strategy: Strategy,
    framework: str,
    *,
    gpus: int | None = None,
    gpus_per_host: int | None = None,
    model: Model | None = None,
    batch: int | None = None,
    seq: int | None = None,
    dtype: str | None = None,
    profile: str | None = None,
    cuda_graphs: bool | str = False,
    **types: str | None,
) -> str:
    """The text of the argument file with which a framework runs a plan.

    Args:
      strategy: the plan. What it leaves open is left to the framework's default. One that
        was read from a file of the framework brings what else that file says.
      framework: `torchtitan`, `fsdp`, `composer`, `deepspeed` or `megatron-core`.
      gpus: number of GPUs.
      gpus_per_host: GPUs of a host, for accelerate's number of machines.
      model: what is trained; Megatron's arguments have its sizes, torchtitan's its name.
      batch: global batch, samples.
      seq: tokens per sequence.
      dtype: type of matrix products, bf16 if absent.
      profile: a software profile that the framework can be switched to.
      cuda_graphs: whether CUDA graphs are captured.
      types: other types, `grad_dtype`, `reduce_dtype`, `gather_dtype`, `state_dtype`.

    Raises:
      InputError: the framework cannot run the plan; names why, and the nearest plan it can.
    """
    name = framework_name(framework)
    launch = strategy.launch
    if launch is not None and launch.framework == name:
        said = launch.settings()
        types = {**said.pop("types"), **types}
        model, dtype = model or said["model"], dtype or said["dtype"]
        batch, seq = batch or said["batch"], seq or said["seq"]
        profile = profile or said["profile"]
        cuda_graphs = cuda_graphs or said["cuda_graphs"]
    known = Known.of(
        gpus=gpus,
        gpus_per_host=gpus_per_host,
        model=model,
        batch=batch,
        seq=seq,
        dtype=dtype,
        profile=profile,
        cuda_graphs=cuda_graphs,
        **types,
    )
    return FRAMEWORKS[name].write(Plan.of(strategy, name), known)


def recognise(source: Source) -> str:
    """The framework of an argument file, by its contents."""
    if isinstance(source, list | tuple | Namespace):
        return megatron.NAME
    if isinstance(source, Mapping):
        return _of_mapping(source, "the mapping")
    text, what, suffix = _text_of(source)
    name = _of_text(text, suffix)
    if name is None:
        name = _of_mapping(documents.mapping(_parse(text, what, suffix, None), what), what)
    return name


def is_launch_mapping(document: Mapping[str, Any]) -> bool:
    """Whether a mapping is an argument file rather than a strategy tree."""
    try:
        _of_mapping(document, "")
    except InputError:
        return False
    return "plan" not in document


def _read(source: Source, name: str | None, known: Known) -> Contents[str]:
    if isinstance(source, Namespace):
        source = vars(source)
    if isinstance(source, list | tuple):
        return _read_words(source, "the arguments", name, known)
    if isinstance(source, Mapping):
        return _read_mapping(dict(source), name or _of_mapping(source, "the mapping"), "", known)
    text, what, suffix = _text_of(source)
    if name == megatron.NAME and suffix not in (".json", ".yaml", ".yml"):
        return _read_words(megatron_args.split_script(text, what), what, name, known)
    name = name or _of_text(text, suffix)
    if name == megatron.NAME:
        return _read_words(megatron_args.split_script(text, what), what, name, known)
    document = _parse(text, what, suffix, name)
    document = documents.mapping(_plain(document), what)
    name = name or _of_mapping(document, what)
    if name == fsdp.NAME:
        document = {**fsdp.command_of(text), **document}
    return _read_mapping(document, name, what, known)


def _text_of(source: str | Path) -> tuple[str, str, str]:
    """The text, its name in errors, and the file's suffix."""
    if isinstance(source, str) and _is_text(source):
        return source, "the text", ""
    return files.read_text(source), f"`{source}`", Path(source).suffix.lower()


def _is_text(source: str) -> bool:
    """Whether it is a document rather than a file's name."""
    return source.lstrip().startswith(("{", "[", "--")) or any(
        mark in source for mark in ("\n", " --", ": ")
    )


def _of_text(text: str, suffix: str) -> str | None:
    """The framework of a text that no parser need be tried on, or None."""
    if suffix == ".toml":
        return torchtitan.NAME
    if suffix in (".sh", ".txt", ".args"):
        return megatron.NAME
    if suffix:
        return None
    if re.search(r"(?m)^\[[\w.]+\]\s*(#.*)?$", text):
        return torchtitan.NAME
    if re.search(r"(?m)^\s*(?:#.*\n\s*)*--\w", text) or re.search(r"(?m)^\w*ARGS\+?=", text):
        return megatron.NAME
    return None


def _parse(text: str, what: str, suffix: str, name: str | None) -> Any:
    if name == torchtitan.NAME and suffix != ".json":
        return documents.parse_toml(text, what)
    if suffix == ".json" or (not suffix and text.lstrip().startswith("{")):
        return documents.parse_json(text, what)
    return documents.parse_yaml(text, what)


def _plain(value: Any, depth: int = 0) -> Any:
    """TOML's dates as words, so that the rest of the document can be read."""
    if depth > _DEEPEST:
        return value  # whoever checks the document refuses it
    if isinstance(value, dict):
        return {key: _plain(inner, depth + 1) for key, inner in value.items()}
    if isinstance(value, list):
        return [_plain(inner, depth + 1) for inner in value]
    if value is None or isinstance(value, str | bool | int | float):
        return value
    return str(value)


def _of_mapping(document: Mapping[str, Any], what: str) -> str:
    """The framework whose keys a mapping has."""
    keys = {key for key in document if isinstance(key, str)}
    inner = {key for value in document.values() if isinstance(value, Mapping) for key in value}
    if keys & _DEEPSPEED or accelerate_deepspeed.is_accelerate(document):
        return deepspeed.NAME
    parallelism = document.get("parallelism_config")
    parallel = set(parallelism) if isinstance(parallelism, Mapping) else set()
    if (keys & _FSDP and keys & _COMPOSER) or parallel & {"fsdp", "fsdp2"}:
        return composer.NAME
    if keys & _FSDP or any(key.startswith("fsdp_") for key in keys):
        return fsdp.NAME
    sections = {key for key in keys & _TORCHTITAN if isinstance(document[key], Mapping)}
    if sections and not (keys | {str(key) for key in inner}) & _MEGATRON:
        return torchtitan.NAME
    if (keys | {str(key) for key in inner}) & _MEGATRON:
        return megatron.NAME
    shown = arguments.listed(sorted(keys)[:6]) or "no keys"
    raise InputError(
        f"{what} is not recognised as an argument file of {arguments.listed(FRAMEWORKS)}: it has "
        f"{shown}. If it is one, say which: `--from NAME`, or `framework=`."
    )


def _read_mapping(document: dict[str, Any], name: str, what: str, known: Known) -> Contents[str]:
    what = what or f"the {name} settings"
    if name == megatron.NAME:
        documents.mapping(_plain(document), what)
        flags = megatron_args.flags_of_namespace(document, table.load(megatron.TABLE))
        return megatron.read(flags, [], what, known)
    documents.mapping(document, what)
    if name == fsdp.NAME and not document.keys() & _FSDP:
        document = {"fsdp_config": document}  # the Trainer's fsdp_config by itself
    if name == deepspeed.NAME and accelerate_deepspeed.is_accelerate(document):
        document, gpus = accelerate_deepspeed.translate(document, what)
        known = replace(known, gpus=known.gpus or gpus)
    document.pop(heading.KEY, None)
    readers = {
        torchtitan.NAME: torchtitan.read,
        fsdp.NAME: fsdp.read,
        composer.NAME: composer.read,
        deepspeed.NAME: deepspeed.read,
    }
    return readers[name](document, what, known)


def _read_words(
    words: list[str] | tuple[str, ...], what: str, name: str | None, known: Known
) -> Contents[str]:
    if name not in (None, megatron.NAME):
        raise InputError(f"{what} are words, as Megatron takes them, and {name} reads a file.")
    flags, notes = megatron_args.flags_of(words, table.load(megatron.TABLE), what)
    if not flags:
        raise InputError(f"{what}: there is no `--flag` in it. Megatron's arguments are flags.")
    return megatron.read(flags, notes, what, known)
