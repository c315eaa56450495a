"""SimAI's workloads: layers with times and collectives of groups, one rank for all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from plancast import arguments, files
from plancast.checked import checked
from plancast.errors import InputError
from plancast.immutable import Immutable

if TYPE_CHECKING:
    from plancast.communication.simai_run import SimAiRun
    from plancast.machine import Machine

# First words of the header; layers of the second are recomputed where it says so.
KINDS = ("HYBRID_TRANSFORMER", "HYBRID_TRANSFORMER_FWD_IN_BCKWD")
_OPS = {
    "ALLREDUCE": "all_reduce",
    "ALLGATHER": "all_gather",
    "REDUCESCATTER": "reduce_scatter",
    "ALLTOALL": "all_to_all",
}
_WORDS = {op: word for word, op in _OPS.items()}
# Keys of the header, and the fields that they fill.
_KEYS = {
    "model_parallel_NPU_group:": "tp",
    "ep:": "ep",
    "pp:": "pp",
    "vpp:": "vpp",
    "ga:": "ga",
    "all_gpus:": "gpus",
    "pp_comm": "pp_bytes",
    "pp_comm:": "pp_bytes",
}
_COLUMNS = 12
_MOST_LAYERS, _MOST_NS, _MOST_GPUS = 100_000, 10**15, 1 << 20


class SimAiWork(NamedTuple):
    """A kernel and the collective behind it.

    `bytes` count as SimAI does: of all_gather what comes out, else what goes in. `group` is `tp`,
    `dp`, `ep` or `dp_ep`; `op` is empty where nothing is sent.
    """

    ns: int
    op: str
    group: str
    bytes: int


class SimAiLayer(NamedTuple):
    """A line: forward, gradient of the input, gradient of the weights, update (nanoseconds)."""

    name: str
    forward: SimAiWork
    input_gradient: SimAiWork
    weight_gradient: SimAiWork
    update_ns: int

    @property
    def works(self) -> tuple[SimAiWork, SimAiWork, SimAiWork]:
        """Its three."""
        return self.forward, self.input_gradient, self.weight_gradient


@checked
@dataclass(frozen=True, repr=False)
class SimAiWorkload(Immutable):
    """What every rank of a pipeline stage does in a step, with all of its micro-batches.

    >>> text = ("HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 8 ep: 1 pp: 1 vpp: 1 "
    ...         "ga: 1 all_gpus: 16 checkpoints: 0 checkpoint_initiates: 0\\n1\\n"
    ...         "embedding -1 556000 ALLREDUCE 16777216 1 NONE 0 1 ALLREDUCE 4096 1\\n")
    >>> workload = SimAiWorkload.from_text(text)
    >>> workload.tp, workload.dp, workload.layers[0].weight_gradient.group
    (8, 2, 'dp')
    >>> SimAiWorkload.from_text(workload.to_text()) == workload
    True
    """

    tp: int
    ep: int
    pp: int
    vpp: int
    ga: int
    gpus: int
    pp_bytes: int
    layers: tuple[SimAiLayer, ...]

    @property
    def dp(self) -> int:
        """Data-parallel ranks, over which experts are spread as well."""
        return self.gpus // (self.tp * self.pp)

    @property
    def ranks(self) -> int:
        """GPUs of a pipeline stage."""
        return self.gpus // self.pp

    @classmethod
    def open(cls, path: str | Path) -> SimAiWorkload:
        """A workload from its file."""
        return cls.from_text(files.read_text(path), what=f"`{path}`")

    @classmethod
    def from_text(cls, text: str, *, what: str = "workload") -> SimAiWorkload:
        """A workload from its text; `what` names the text in errors.

        Raises:
          InputError: names the line and what is wrong with it.
        """
        lines = [(n, line.split()) for n, line in enumerate(text.splitlines(), 1) if line.strip()]
        if len(lines) < 3 or lines[0][1][0] not in KINDS:
            raise InputError(
                f"{what} must begin with {' or '.join(f'`{kind}`' for kind in KINDS)} and its "
                "sizes, a line with the number of layers, and the layers."
            )
        header = _header(lines[0][1], what)
        said = lines[1][1]
        rows = lines[2:]
        if len(said) != 1 or not said[0].isdecimal() or int(said[0]) != len(rows):
            raise InputError(
                f"{what}:{lines[1][0]} says `{' '.join(said)[:40]}` layers, and {len(rows)} follow."
            )
        if len(rows) > _MOST_LAYERS:
            raise InputError(f"{what} has {len(rows):,} layers; the limit is {_MOST_LAYERS:,}.")
        return cls(**header, layers=tuple(_layer(row, f"{what}:{n}") for n, row in rows))

    def to_text(self) -> str:
        """The text that SimAI reads."""
        head = (
            f"{KINDS[1]} model_parallel_NPU_group: {self.tp} ep: {self.ep} pp: {self.pp} "
            f"vpp: {self.vpp} ga: {self.ga} all_gpus: {self.gpus} checkpoints: 0 "
            "checkpoint_initiates: 0"
        )
        if self.pp_bytes:
            head += f" pp_comm {self.pp_bytes}"
        return "\n".join([head, str(len(self.layers)), *map(_line, self.layers), ""])

    def totals(self) -> dict[str, int]:
        """Microseconds of kernels, and bytes of collectives by kind and group."""
        moved: Counter[str] = Counter()
        compute = 0
        for layer in self.layers:
            for work in layer.works:
                compute += work.ns
                if work.op:
                    moved[f"{work.op} {work.group}"] += work.bytes
        return {"compute": compute // 1000, **dict(sorted(moved.items()))}

    def group_of(self, rank: int, group: str) -> tuple[int, ...]:
        """The ranks of a stage that a rank's collectives of a group are over.

        Ranks of tp follow one another, then those of ep, then the rest of dp.
        """
        inner, size = self._strides(group)
        first = self.first_of(rank, group)
        return tuple(first + i * inner for i in range(size))

    def first_of(self, rank: int, group: str) -> int:
        """The first rank of that."""
        inner, size = self._strides(group)
        return rank - rank // inner % size * inner

    def size_of(self, group: str) -> int:
        """Ranks of a group."""
        return self._strides(group)[1]

    def run(self, machine: Machine) -> SimAiRun:
        """Runs a stage on the first devices of a machine, by our executor (docs/traces.md).

        Raises:
          InputError: the machine has too few devices.
        """
        from plancast.communication import simai_run

        return simai_run.run(self, machine)

    def _strides(self, group: str) -> tuple[int, int]:
        """Distance of a group's ranks, and how many they are."""
        return {
            "tp": (1, self.tp),
            "dp": (self.tp, self.dp),
            "ep": (self.tp, self.ep),
            "dp_ep": (self.tp * self.ep, self.dp // self.ep),
        }[group]

    def __repr__(self) -> str:
        mesh = f"tp={self.tp}, dp={self.dp}, pp={self.pp}, ep={self.ep}"
        return f"<SimAiWorkload on {mesh}: {len(self.layers):,} layers>"


def is_simai(text: str) -> bool:
    """Whether a text workload is of SimAI rather than of ASTRA-sim."""
    return text.split(maxsplit=1)[:1] != [] and text.split(maxsplit=1)[0] in KINDS


def _header(words: list[str], what: str) -> dict[str, int]:
    found = {"tp": 1, "ep": 1, "pp": 1, "vpp": 1, "ga": 1, "gpus": 0, "pp_bytes": 0}
    rest = iter(words[1:])
    for word in rest:
        if word in ("checkpoints:", "checkpoint_initiates:"):
            if _whole(rest, word, what, least=0) != 0:
                raise InputError(
                    f"{what}: `{word}` names layers that are recomputed, which is not read. Write "
                    "their recomputation into the times of the input gradients and say 0."
                )
            continue
        field = _KEYS.get(word)
        if field is None:
            near = arguments.offer(word, [*_KEYS, "checkpoints:", "checkpoint_initiates:"])
            raise InputError(f"{what}: no `{word[:40]}` in the first line.{near}")
        least = 0 if field == "pp_bytes" else 1
        found[field] = _whole(rest, word, what, least=least)
    if found["gpus"] == 0:
        raise InputError(f"{what}: the first line needs `all_gpus: N`.")
    stage = found["tp"] * found["pp"]
    if found["gpus"] % stage or found["gpus"] // stage % found["ep"]:
        raise InputError(
            f"{what}: {found['gpus']} GPUs are no multiple of tp={found['tp']} x pp={found['pp']} "
            f"with experts over ep={found['ep']} of the rest."
        )
    return found


def _whole(words: Iterator[str], key: str, what: str, *, least: int) -> int:
    word = next(words, "")
    most = _MOST_GPUS if key == "all_gpus:" else arguments.MOST_BYTES
    if not word.isdecimal() or len(word) > 18 or not least <= int(word) <= most:
        raise InputError(f"{what}: `{key}` is `{word[:40]}`; give a whole number from {least} on.")
    return int(word)


def _layer(columns: list[str], where: str) -> SimAiLayer:
    if len(columns) != _COLUMNS:
        raise InputError(
            f"{where} has {len(columns)} columns; a layer has {_COLUMNS}: name, dependency, three "
            "times a time in ns, a collective and its bytes, and the update in ns."
        )
    return SimAiLayer(
        columns[0],
        _work(columns[2:5], where, "tp"),
        _work(columns[5:8], where, "tp"),
        _work(columns[8:11], where, "dp"),
        _number(columns[11], where, _MOST_NS),
    )


def _work(columns: list[str], where: str, own: str) -> SimAiWork:
    ns = _number(columns[0], where, _MOST_NS)
    size = _number(columns[2], where, arguments.MOST_BYTES)
    word = columns[1]
    if word == "NONE":
        return SimAiWork(ns, "", "", 0)
    name, _, group = word.partition("_")
    if name not in _OPS or group not in ("", "EP", "DP_EP"):
        raise InputError(
            f"{where}: `{word[:40]}` is no collective. Known are NONE, {', '.join(_OPS)}, alone "
            "or with `_EP` or `_DP_EP`."
        )
    if size == 0:
        return SimAiWork(ns, "", "", 0)
    return SimAiWork(ns, _OPS[name], group.lower() or own, size)


def _number(word: str, where: str, most: int) -> int:
    if not word.isdecimal() or len(word) > 18 or int(word) > most:
        raise InputError(f"{where}: `{word[:40]}` is no whole number from 0 to {most:,}.")
    return int(word)


def _line(layer: SimAiLayer) -> str:
    columns = [layer.name, "-1"]
    for work in layer.works:
        word = "NONE"
        if work.op:
            suffix = "" if work.group in ("tp", "dp") else f"_{work.group.upper()}"
            word = f"{_WORDS[work.op]}{suffix}"
        columns += [str(work.ns), word, str(work.bytes)]
    return "\t".join([*columns, str(layer.update_ns)])
