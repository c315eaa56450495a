"""What a space of plans leaves open: one answer for `rank`, `plan` and whoever asks them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from plancast import _core
from plancast.errors import InputError

if TYPE_CHECKING:
    from plancast.machine import Machine
    from plancast.model import Model

# Parameters from which one sample keeps a GPU busy, so that small micro-batches do.
LARGE = 3e9
# Micro-batches of smaller models, of sequences, of others, and of those that are tables for the
# most part (recommenders); of large ones the core's default.
_SEQUENCES, _OTHERS, _TABLES = "1..64", "1..512", "1..16384"
# Keys that say how layers lie on stages; where none is said, unlike stages are tried, too.
_STAGES = {"pp", "vpp", "layout"}
# What a space may say where copies of shards over several domains are tried besides.
_SAID_BESIDE = {"", "tp", "mb", "recompute"}
# So many domains of fast links share a copy; the core tries one, and all ranks.
_DOMAINS = (2, 4)
# A size that is all ranks, or more, is no copy.
_COPIES = "hsdp>1"


@dataclass(frozen=True)
class Space:
    """Plans to look at, and which of them count; `beside`: besides those that were asked for."""

    text: str
    where: str
    beside: bool = False

    @property
    def may_raise(self) -> tuple[type[InputError], ...]:
        """What leaves it out: sizes of what is tried besides may suit no number of ranks."""
        return (InputError,) if self.beside else ()

    def left_out(self, excluded: Mapping[str, int]) -> dict[str, int]:
        """Why plans were left out, but for what makes it a space of its own."""
        if not self.beside:
            return dict(excluded)
        return {why: n for why, n in excluded.items() if why != f"not where {self.where}"}


def spaces(space: str, where: str, model: Model, machine: Machine) -> list[Space]:
    """A space with what it leaves open, beyond the defaults that the core has for its keys.

    Micro-batches of small models are larger. Where nothing is said of stages, layers are also dealt
    so that the first and the last, which have embedding and head, are no fuller than the others.
    Where nothing is said of shards either, copies of them over several domains of fast links are a
    space besides. The core's defaults are those of `planner/search/space.h` (docs/cli.md).

    >>> from plancast import Machine, Model
    >>> host = Machine.preset("dgx-h100", hosts=1)
    >>> [one.text for one in spaces("tp=1|2,pp=1", "", Model.preset("gpt2"), host)]
    ['tp=1|2,pp=1,mb=1..64']
    >>> hosts = Machine.preset("dgx-h100", hosts=4)
    >>> for one in spaces("", "tp<4", Model.preset("llama3-8b"), hosts):
    ...     print(one.text, "where", one.where)
    layout=even|balanced where tp<4
    pp=1,vpp=1,zero=3,hsdp=16 where (tp<4) and hsdp>1
    """
    said = {item.partition("=")[0].strip() for item in space.split(",")}
    more = []
    if "mb" not in said and (micro_batches := _micro_batches(model)):
        more.append(f"mb={micro_batches}")
    stages = [] if said & _STAGES else ["layout=even|balanced"]
    found = [Space(_joined(space, *more, *stages), where)]
    sizes = [machine.gpus_per_domain * n for n in _DOMAINS]
    sizes = [size for size in sizes if size < machine.devices]
    if said <= _SAID_BESIDE and sizes and machine.gpus_per_domain > 1:
        copies = f"pp=1,vpp=1,zero=3,hsdp={'|'.join(map(str, sizes))}"
        condition = f"({where}) and {_COPIES}" if where.strip() else _COPIES
        found.append(Space(_joined(space, *more, copies), condition, beside=True))
    return found


def bounded_first(plans: Sequence[str]) -> int:
    """How many plans a ranking looks at, whatever it finds: those that recompute least.

    >>> bounded_first(["tp=2", "tp=2,recompute=full", "tp=4,recompute=full"])
    2
    """
    return sum(plan == bare for plan, bare in enumerate(_core.without_recompute(list(plans))))


def mostly_tables(model: Model) -> bool:
    """Whether a sample looks up some rows of most of a model's parameters, as in recommenders."""
    return model.seq == 0 and 2 * model.active_parameters < model.parameters


def _joined(*items: str) -> str:
    return ",".join(item for item in items if item.strip())


def _micro_batches(model: Model) -> str:
    if mostly_tables(model):
        return _TABLES
    if model.parameters >= LARGE:
        return ""
    return _SEQUENCES if model.seq > 0 else _OTHERS
