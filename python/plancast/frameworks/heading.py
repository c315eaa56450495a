"""What an argument file begins with: its forecast, and the command that starts it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from plancast.adapters import word_of
from plancast.frameworks import composer, deepspeed, fsdp, megatron, torchtitan
from plancast.textual import count, duration, gib, percent, shown

if TYPE_CHECKING:
    from plancast.forecast import Forecast

# JSON has no comments; DeepSpeed passes over keys that it does not know.
KEY = "_comment"


def headed(text: str, framework: str, forecast: Forecast, gpus_per_host: int | None) -> str:
    """The text of an argument file below what is forecast of it."""
    lines = [shown(line) for line in said_of(forecast)]
    command = _command(framework, forecast.devices, gpus_per_host or forecast.devices)
    if framework == deepspeed.NAME:
        document = {KEY: [*lines, command], **json.loads(text)}
        return json.dumps(document, indent=2) + "\n"
    lines += [command] if command else []  # accelerate's says it itself, with its batches
    return "".join(f"# {line}\n" for line in lines) + text


def said_of(forecast: Forecast) -> list[str]:
    """A forecast in lines; one says what adapters it is of, which the training script has."""
    low, high = forecast.interval
    fits = "" if forecast.fits else ", which DOES NOT FIT"
    asked = getattr(forecast._question, "strategy", "")
    lora = "" if isinstance(asked, str) else word_of(asked)
    return [
        *([f"the forecast is of training adapters alone, lora {lora}"] if lora else []),
        f"{forecast.model} on {forecast.devices:,} GPUs of {forecast.machine}, "
        f"{forecast.strategy or 'defaults'}, batch {forecast.global_batch:,}, "
        f"profile {forecast.profile}",
        f"forecast: {duration(forecast.iteration_time)} a step (90 %: {duration(low)} to "
        f"{duration(high)}), {count(forecast.units_per_s_per_gpu)} {forecast.unit}/s a GPU, "
        f"MFU {percent(forecast.mfu)}, {gib(forecast.peak_memory)} of "
        f"{gib(forecast.memory_capacity)} GiB{fits}",
    ]


def _command(framework: str, gpus: int, per_host: int) -> str:
    """How a run is started on each host; in capitals what a site knows."""
    hosts = -(-gpus // per_host)
    local = min(gpus, per_host)
    torchrun = f"torchrun --nnodes {hosts} --nproc-per-node {local} "
    if hosts > 1:
        torchrun += "--rdzv-backend c10d --rdzv-endpoint HOST:29500 "
    if framework == megatron.NAME:
        return f'{torchrun}pretrain_gpt.py "${{MEGATRON_ARGS[@]}}" DATA_ARGS'
    if framework == torchtitan.NAME:
        return f"{torchrun}-m torchtitan.train --job.config_file FILE"
    if framework == composer.NAME:
        more = f"--world_size {gpus} --node_rank RANK --master_addr HOST " if hosts > 1 else ""
        return f"composer -n {local} {more}train.py FILE"
    if framework == deepspeed.NAME:
        more = f"--num_nodes {hosts} --hostfile HOSTS " if hosts > 1 else ""
        return f"deepspeed {more}--num_gpus {local} TRAIN.py --deepspeed_config FILE"
    assert framework == fsdp.NAME
    return ""
