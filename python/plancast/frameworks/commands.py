"""The command that starts a framework with an argument file."""

from __future__ import annotations

from pathlib import Path

from plancast import files
from plancast.errors import InputError
from plancast.frameworks.formats import FRAMEWORKS, framework_name

# Of each framework: what runs on every host. {file}, {gpus}; scripts are the user's.
_COMMANDS = {
    "megatron-core": "source {file} && torchrun {rendezvous} pretrain_gpt.py "
    '"${{MEGATRON_ARGS[@]}}" --data-path DATA --train-iters N',
    "torchtitan": "torchrun {rendezvous} -m torchtitan.train --job.config_file {file}",
    "fsdp": "accelerate launch --config_file {file} TRAIN.py",
    "deepspeed": "deepspeed {nodes}--num_gpus {gpus} TRAIN.py --deepspeed_config {file}",
    "composer": "composer {world} TRAIN.py {file}",
}


def file_name(framework: str) -> str:
    """What a file of a framework is called where nobody says it.

    >>> file_name("torchtitan")
    'plan.toml'
    """
    return f"plan{FRAMEWORKS[framework_name(framework)].suffix}"


def target(framework: str, path: str | Path) -> Path:
    """The file that a path means: itself, or one in the folder that it is.

    >>> str(target("torchtitan", "out/")), str(target("torchtitan", "run.toml"))
    ('out/plan.toml', 'run.toml')
    """
    if not str(path):
        raise InputError("the path of the launch file is empty; give a folder or a file.")
    place = Path(path)
    if place.exists() and not place.is_dir():
        return place
    if str(path).endswith("/") or place.is_dir() or not place.suffix:
        return place / file_name(framework)
    return place


def check(framework: str, path: str | Path) -> None:
    """Raises InputError where `write` could not write into a folder that is there."""
    file = target(framework, path)
    if file.parent.is_dir():
        files.check_writable(file)


def write(framework: str, path: str | Path, text: str) -> Path:
    """Writes an argument file where a path says; gives the file."""
    file = target(framework, path)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"no folder `{file.parent}` can be made: {error.strerror}.") from None
    files.write_text(file, text)
    return file


def command(framework: str, file: str | Path, *, hosts: int, gpus_per_host: int) -> str:
    """What to type on each host; words in capitals are the user's own.

    >>> command("fsdp", "plan.yaml", hosts=2, gpus_per_host=8)
    'accelerate launch --config_file plan.yaml TRAIN.py'
    >>> command("deepspeed", "plan.json", hosts=1, gpus_per_host=8)
    'deepspeed --num_gpus 8 TRAIN.py --deepspeed_config plan.json'
    """
    rendezvous = f"--nproc-per-node {gpus_per_host}"
    world, nodes = f"-n {gpus_per_host}", ""
    if hosts > 1:
        rendezvous = f"--nnodes {hosts} {rendezvous} --rdzv-backend c10d --rdzv-endpoint HEAD:29500"
        nodes = f"--hostfile HOSTS --num_nodes {hosts} "
        world += f" --world_size {hosts * gpus_per_host} --node_rank RANK --master_addr HEAD"
    return _COMMANDS[framework_name(framework)].format(
        file=file, gpus=gpus_per_host, rendezvous=rendezvous, world=world, nodes=nodes
    )


def command_in(text: str, file: str | Path) -> str:
    """The command that an argument file has in a comment, for a file; empty: it has none.

    >>> command_in("# accelerate launch --config_file FILE -n 2 TRAIN.py", "plan.yaml")
    'accelerate launch --config_file plan.yaml -n 2 TRAIN.py'
    """
    for line in text.splitlines():
        if line.startswith("#") and " --config_file FILE " in line:
            return line.lstrip("# ").replace("FILE", str(file), 1)
    return ""
