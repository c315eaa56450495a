"""What is fuzzed: a way to make a file from a seed, and what is done with it."""

from __future__ import annotations

import functools
import json
import math
import random
import warnings
import zipfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import plancast as pc
from plancast.communication.nccl_tests import read_log

from tests.fuzz import bounds, mutate

CORPUS = Path(__file__).with_name("corpus")
LAUNCH = Path(__file__).resolve().parents[1] / "fixtures" / "launchers"
LAUNCH_WORDS = (
    "", "-1", "0", "1e999", "nan", "9" * 5000, "$X", "${A[@]}", "$((1/0))", "$((9**9))", "(", ")",
    "A=(", "A=$A", '"', "'", "--", "--x", "--fp16", "#", "[", "]", "= 3", "= []", "true", "auto",
    "Et*9999|(t|)*99999L", "--tensor-model-parallel-size", "([0]*9999+[1]*9)", "x" * 300, "{}",
)  # fmt: skip

CONFIG = {
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 128,
    "max_position_embeddings": 64,
    "hidden_act": "silu",
    "tie_word_embeddings": False,
    "rope_scaling": {"type": "linear", "factor": 2.0},
}

NCCL_TESTS = """\
# nThread 1 nGpus 1 minBytes 8 maxBytes 1024 step: 2(factor) warmup iters: 5 iters: 20
#  Rank  0 Group  0 Pid 1 on host device  0 [0x17] X1
#  Rank  1 Group  0 Pid 2 on host device  1 [0x2a] X1
#       size         count      type   redop    root     time   algbw   busbw #wrong     time
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)
           8             2     float     sum      -1    10.52    0.00    0.00      0    10.31
          16             4     float     sum      -1    10.48    0.00    0.00    N/A    10.40
0:       1024           256     float     sum      -1    11.0    0.09    0.17      0    10.9
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 0.1
"""

SIMAI = """\
HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 2 ep: 2 pp: 2 vpp: 1 ga: 2 all_gpus: 16 \
checkpoints: 0 checkpoint_initiates: 0 pp_comm 4096
3
embedding -1 556000 ALLREDUCE 16777216 1 NONE 0 1 REDUCESCATTER 4096 100
attention -1 1750840 ALLGATHER 50331648 875420 REDUCESCATTER 50331648 875420 NONE 0 100
experts -1 1 ALLTOALL_EP 100663296 1 ALLTOALL_EP 100663296 1 ALLREDUCE_DP_EP 4096 100
"""
SIMAI_WORDS = (
    "", "-1", "0", "1", "7", "9" * 30, "1e9", "999999999999999", "NONE", "ALLREDUCE_EP", "ALLTOALL",
    "GATHER", "ep:", "pp:", "all_gpus:", "1048576", "checkpoints:", "\n", "x" * 300,
)  # fmt: skip

FIELDS = """\
name: small
layers: 2
hidden: 64
heads: 4
ffn: 256
vocab: 1000
seq: 32
mlp: gelu
tied_embeddings: true
"""


@functools.cache
def _corpus(name: str) -> Any:
    return json.loads((CORPUS / name).read_text())


def _changed(rng: random.Random, document: Any) -> str:
    """JSON, which is YAML, of a changed document; too deep a nest where it cannot be written."""
    try:
        return json.dumps(mutate.document(rng, document))
    except RecursionError:
        return "[" * 5000


def write_pt2(rng: random.Random, path: Path) -> None:
    """A `.pt2` archive with a changed graph, or changed bytes."""
    graph, weights = _corpus("block.pt2.json"), _corpus("weights.pt2.json")
    written = [json.dumps(graph), json.dumps(weights)]
    if rng.random() < 0.8:
        written[0] = _changed(rng, graph)
    elif rng.random() < 0.5:
        written[1] = _changed(rng, weights)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("block/models/model.json", written[0])
        archive.writestr("block/data/weights/model_weights_config.json", written[1])
        archive.writestr("block/data/weights/weight_0", b"\0" * 64)
    if rng.random() < 0.3:
        path.write_bytes(mutate.binary(rng, path.read_bytes()))


@functools.cache
def _onnx() -> bytes:
    """The file that is changed."""
    import onnx
    from google.protobuf import text_format

    text = (CORPUS / "block.onnx.txt").read_text()
    return text_format.Parse(text, onnx.ModelProto()).SerializeToString()


def write_onnx(rng: random.Random, path: Path) -> None:
    """An ONNX file with changed bytes."""
    path.write_bytes(mutate.binary(rng, _onnx()))


def write_config(rng: random.Random, path: Path) -> None:
    """A Hugging Face configuration with changed values or bytes."""
    text = _changed(rng, CONFIG).encode()
    path.write_bytes(mutate.binary(rng, text) if rng.random() < 0.3 else text)


def write_yaml(rng: random.Random, path: Path) -> None:
    """Sizes of a transformer in YAML with changed bytes, or a document that grows as it is read."""
    if rng.random() < 0.01:
        width, depth = rng.choice((2, 9)), rng.choice((5, 20, 60))
        lines = [f"a0: &a0 [{', '.join(['1'] * width)}]"]
        for level in range(1, depth):
            inner = ", ".join([f"*a{level - 1}"] * width)
            lines.append(f"a{level}: &a{level} [{inner}]")
        path.write_text("\n".join(lines))
    else:
        path.write_bytes(mutate.binary(rng, FIELDS.encode()))


def write_simai(rng: random.Random, path: Path) -> None:
    """A workload of SimAI with changed words or bytes."""
    words = (SIMAI if rng.random() < 0.9 else "MODEL\n1\n").split(" ")
    for _ in range(rng.choice((0, 1, 3))):
        words[rng.randrange(len(words))] = rng.choice(SIMAI_WORDS)
    text = " ".join(words).encode()
    path.write_bytes(mutate.binary(rng, text) if rng.random() < 0.4 else text)


def write_nccl_tests(rng: random.Random, path: Path) -> None:
    """What all_reduce_perf prints, with changed bytes and numbers."""
    lines = NCCL_TESTS.splitlines()
    for _ in range(rng.choice((0, 1, 3))):
        line = rng.randrange(len(lines))
        fields = lines[line].split(" ")
        fields[rng.randrange(len(fields))] = rng.choice(
            ("", "N/A", "-1", "1e999", "nan", "0", "9" * 5000, "sum", "#", "x" * 100, "1.2.3")
        )
        lines[line] = " ".join(fields)
    text = "\n".join(lines).encode()
    path.write_bytes(mutate.binary(rng, text) if rng.random() < 0.7 else text)


@functools.cache
def _launch_file(name: str) -> str:
    return (LAUNCH / name).read_text()


def _launch_writer(name: str) -> Callable[[random.Random, Path], None]:
    """A framework's argument file with changed values, lines or bytes."""

    def write(rng: random.Random, path: Path) -> None:
        text = _launch_file(name)
        if rng.random() < 0.6 and name.endswith((".json", ".yaml")):
            path.write_text(_changed(rng, mutate.parsed(text.encode())))
            return
        lines = text.splitlines()
        for _ in range(rng.choice((0, 1, 3))):
            line = rng.randrange(len(lines))
            words = lines[line].split(" ")
            words[rng.randrange(len(words))] = rng.choice(LAUNCH_WORDS)
            lines[line] = " ".join(words)
        data = "\n".join(lines).encode()
        path.write_bytes(mutate.binary(rng, data) if rng.random() < 0.4 else data)

    return write


WRITERS: dict[str, tuple[str, Callable[[random.Random, Path], None]]] = {
    "pt2": ("block.pt2", write_pt2),
    "config": ("config.json", write_config),
    "yaml": ("small.yaml", write_yaml),
    "nccl_tests": ("all_reduce.log", write_nccl_tests),
    "simai": ("workload.simai", write_simai),
    "torchtitan": ("train.toml", _launch_writer("llama3_405b.toml")),
    "deepspeed": ("launch_ds.json", _launch_writer("ds_zero2.json")),
    "fsdp": ("launch_fsdp.yaml", _launch_writer("accelerate_fsdp2.yaml")),
    "composer": ("launch_mpt.yaml", _launch_writer("mpt_7b.yaml")),
    "megatron": ("train.sh", _launch_writer("mixtral_8x7b.sh")),
}
LAUNCH_FRAMEWORKS = {
    "train.toml": "torchtitan",
    "launch_ds.json": "deepspeed",
    "launch_fsdp.yaml": "fsdp",
    "launch_mpt.yaml": "composer",
    "train.sh": "megatron-core",
}
_ONNX = find_spec("onnx")
if _ONNX is not None and _ONNX.origin is not None:  # the package, not a folder of that name
    WRITERS["onnx"] = ("block.onnx", write_onnx)


def attempt_simai(path: Path, *, run: bool) -> bool:
    """A workload of SimAI is written as it was read, and runs."""
    workload = pc.SimAiWorkload.open(path)
    assert pc.SimAiWorkload.from_text(workload.to_text()) == workload
    if run and workload.gpus <= 64:
        bounds.of_a_command()
        result = workload.run(pc.Machine.preset("dgx-h100:8"))
        assert 0 <= result.kernels_s <= result.stage_s <= result.time_s < math.inf
    return True


def attempt(path: Path, *, forecast: bool) -> bool:
    """Opens a file as `-m`, `-s` or `--against` does, and forecasts with models.

    True if it was not refused.
    """
    machine = pc.Machine.preset("dgx-h100:1x1")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            if path.name in LAUNCH_FRAMEWORKS:
                return attempt_launch(path)
            if path.suffix == ".log":
                log = read_log(path)
                assert all(0 < row.time_us < math.inf and row.size_bytes > 0 for row in log.rows)
                return True
            if path.suffix == ".simai":
                return attempt_simai(path, run=forecast)
            model = pc.Model.open(str(path))
            str(model)
            if forecast:
                bounds.of_a_command()
                pc.predict(model, machine, pc.Strategy.parse("dp=1,mb=1"))
        except pc.InputError as error:
            message = str(error)
            assert message.strip(), "a refusal without words"
            assert len(message) < 5000, f"a refusal of {len(message)} characters"
            return False
    return True


def attempt_launch(path: Path) -> bool:
    """Reads an argument file; what it says can be written again, or is refused."""
    framework = LAUNCH_FRAMEWORKS[path.name]
    sizes = {"gpus": 128, "gpus_per_host": 8} if framework in ("torchtitan", "composer") else {}
    launch = pc.launchers.read(path, framework, **sizes)
    launch.to_dict()
    assert sum(map(len, (*launch.notes, *launch.unsupported))) < 200_000
    try:
        text = launch.strategy.launch_config(framework)
    except pc.InputError:
        return True
    again = pc.launchers.read(text, framework).strategy
    assert pc.launchers.read(again.launch_config(framework), framework).strategy == again
    return True
