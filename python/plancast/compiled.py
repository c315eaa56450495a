"""What the compiler makes of a plan, as plain data: structure, no time."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Unpack

from plancast import _core, arguments, precision
from plancast.checked import checked
from plancast.machine import Machine
from plancast.model import Model
from plancast.planning import DEFAULT_PROFILE, check_nouns
from plancast.question import core_of

if TYPE_CHECKING:
    from plancast.precision import Types
    from plancast.strategy import Strategy


@dataclass(frozen=True)
class Task:
    """A kernel or a communication of one device.

    `stream` is the queue it is issued on (`compute`, `model_comm`, `expert_comm`, ...),
    `purpose` what it is for (`forward`, `recompute`, `tp`, ...). A kernel says what runs
    (`gemm fp32 256x384x256 forward`). A communication has a `collective`, its bytes as
    nccl-tests counts them (all_gather: what comes out, reduce_scatter: what goes in,
    all_to_all: all that one rank sends) and the mesh axes that its group runs over,
    outermost first; a `send_recv` joins a device with the one `peer_offset` further. A
    `reshard` joins two stages on unlike meshes; `reshard` is its number in
    `ExecutionGraph.reshards`, -1 of all else, and `bytes` are all that cross.
    """

    label: str
    stream: str
    purpose: str
    kernel: str
    collective: str
    bytes: int
    axes: tuple[str, ...]
    peer_offset: int
    reshard: int = -1


@dataclass(frozen=True)
class Block:
    """Tasks of one module in one phase, in issue order: `layers.F`, `optimizer`."""

    name: str
    tasks: tuple[Task, ...]


@dataclass(frozen=True)
class Instance:
    """A block that runs `repeats` times, for `layers` layers each from `first_layer` on.

    `phase` is `F`, `B`, `W` (weight gradients alone), `opt` or `comm`.
    """

    block: Block
    phase: str
    micro_batch: int
    first_layer: int
    layers: int
    repeats: int


@dataclass(frozen=True)
class Program:
    """What all devices at one place of the pipeline run, in issue order.

    `bytes` are those of a device that live throughout: `parameters`, `gradients`, ... `where` is
    in a mesh of `axes`, the graph's unless stages have meshes of their own; numbers of its devices
    are `shift` higher than those in the mesh.
    """

    name: str
    where: Mapping[str, int]
    bytes: Mapping[str, int]
    instances: tuple[Instance, ...]
    axes: Mapping[str, int]
    shift: int = 0


@dataclass(frozen=True, repr=False)
class ExecutionGraph:
    """The distributed execution graph of a plan; `axes` are those of its mesh, outermost first.

    Where stages have meshes of their own, that is one axis of all devices, and programs have
    axes; `reshards` are the ways in which tensors may go between them, by name: of each the
    messages as (from, to, bytes), of which a machine takes the fastest.
    """

    axes: Mapping[str, int]
    programs: tuple[Program, ...]
    reshards: tuple[Mapping[str, tuple[tuple[int, int, int], ...]], ...] = ()

    def __repr__(self) -> str:
        mesh = ", ".join(f"{axis}={size}" for axis, size in self.axes.items())
        return f"<ExecutionGraph on {mesh}: {len(self.programs)} programs>"

    def groups(
        self,
        axes: Sequence[str],
        where: Mapping[str, int] | None = None,
        *,
        program: Program | None = None,
    ) -> list[list[int]]:
        """The groups of devices that differ only along `axes`, of those at `where` or of all.

        With `program` the axes are those of its mesh, and the devices those that run it.
        """
        if program is not None:
            own = ExecutionGraph(program.axes, ())
            groups = own.groups(axes, where or program.where)
            return [[device + program.shift for device in group] for group in groups]
        found: dict[tuple[int, ...], list[int]] = {}
        for device, place in enumerate(self._places()):
            if any(place[axis] != at for axis, at in (where or {}).items() if axis not in axes):
                continue
            key = tuple(at for axis, at in place.items() if axis not in axes)
            found.setdefault(key, []).append(device)
        return list(found.values())

    def devices(self, where: Mapping[str, int]) -> list[int]:
        """The devices that are at `where` of the mesh, such as those of a program."""
        return [device for group in self.groups([], where) for device in group]

    def _places(self) -> Iterator[dict[str, int]]:
        for place in itertools.product(*(range(size) for size in self.axes.values())):
            yield dict(zip(self.axes, place, strict=True))


@checked
def execution_graph(
    model: Model,
    machine: Machine,
    strategy: Strategy | str,
    *,
    batch: int | None = None,
    dtype: str = "bf16",
    profile: str = DEFAULT_PROFILE,
    **types: Unpack[Types],
) -> ExecutionGraph:
    """Compiles a plan; arguments as for `predict`. Nothing is timed.

    >>> graph = execution_graph(
    ...     Model.preset("llama3-8b"), Machine.preset("dgx-h100:1"), "tp=8,mb=1", batch=1)
    >>> graph.axes
    {'pp': 1, 'dp': 1, 'tp': 8}
    >>> [(i.block.name, i.repeats) for i in graph.programs[0].instances if i.phase == "F"]
    [('embedding.F', 1), ('layer.F', 32), ('head.F', 1)]
    >>> layer = graph.programs[0].instances[1].block
    >>> [(t.collective, t.bytes, graph.groups(t.axes)) for t in layer.tasks if t.collective][0]
    ('all_reduce', 67108864, [[0, 1, 2, 3, 4, 5, 6, 7]])
    """
    check_nouns(model, machine, None)
    made = _core.execution_graph(
        model._core,
        machine._core,
        core_of(strategy),
        batch=arguments.batch(batch),
        dtype=arguments.dtype(dtype),
        profile=arguments.profile(profile, machine.gpu),
        precision=precision.asked(types),
    )
    blocks = [
        Block(block["name"], tuple(Task(**task) for task in block["tasks"]))
        for block in made["blocks"]
    ]
    return ExecutionGraph(
        made["axes"],
        tuple(_program(program, blocks) for program in made["programs"]),
        tuple(made["reshards"]),
    )


def _program(made: dict[str, Any], blocks: list[Block]) -> Program:
    instances = tuple(
        Instance(**{**instance, "block": blocks[instance["block"]]})
        for instance in made["instances"]
    )
    return Program(**{**made, "instances": instances})
