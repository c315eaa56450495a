"""What a search is about: enough to evaluate its plans in any process, and to know it again."""

from __future__ import annotations

import functools
import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plancast import _core

if TYPE_CHECKING:
    from plancast.machine import Machine
    from plancast.model import Model
    from plancast.session import Session
    from plancast.strategy import Strategy


@functools.cache
def core_digest() -> str:
    """Of the compiled core, in which are all rules and shipped prices.

    Cores of equal digests give equal forecasts to the digit.
    """
    return _digest(Path(_core.__file__).read_bytes())


@dataclass(frozen=True)
class SearchJob:
    """The arguments of `plancast.rank` that its plans hang on, checked."""

    model: Model
    machine: Machine
    session: Session
    batch: int
    objective: str
    dtype: str
    profile: str
    precision: dict[str, str]
    cuda_graphs: bool | str = False
    nodes: Strategy | None = None  # a tree without a plan, whose nodes all plans have

    @property
    def core_nodes(self) -> _core.Strategy:
        """The nodes, or none, as the core takes them."""
        return _core.Strategy.parse("") if self.nodes is None else self.nodes._core

    def core(self) -> _core.PlanSearch:
        """What evaluates plans; of one session all share its memo."""
        return _core.PlanSearch(
            self.model._core,
            self.machine._core,
            self.session._core,
            batch=self.batch,
            objective=self.objective,
            dtype=self.dtype,
            profile=self.profile,
            precision=self.precision,
            cuda_graphs=self.cuda_graphs,
            nodes=self.core_nodes,
        )

    def identity(self, space: str, where: str, plans: list[str]) -> dict[str, str]:
        """What a store of this search says of it; `space` is canonical."""
        import plancast

        what = self.model.__reduce__()[1][0]  # the fields, or the graph
        return {
            "model": f"{self.model.name} ({_digest_of(what)})",
            "machine": f"{self.machine.name} ({_digest_of(self.machine.to_dict())})",
            "batch": str(self.batch),
            "objective": self.objective,
            "profile": self.profile,
            "dtype": self.dtype,
            "space": space,
            "where": where,
            "types": json.dumps(self.precision, sort_keys=True),
            "cuda_graphs": str(self.cuda_graphs),
            "nodes": self.core_nodes.to_json(),
            "knowledge": self.session.knowledge(),
            "version": plancast.__version__,
            "core": core_digest(),
            "plans": f"{len(plans)} ({_digest_of(plans)})",
        }


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


def _digest_of(fields: Any) -> str:
    return _digest(json.dumps(fields, sort_keys=True, default=str).encode())
