"""The shipped recipes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from plancast import csv_text, files

_HERE = Path(__file__).parent


@dataclass(frozen=True)
class Recipe:
    """What a framework ships for a model, a GPU and a type."""

    versions: tuple[str, ...]
    """Of the framework, oldest first, such as `("0.3.1", "0.4.0")`."""
    model: str
    """As `plancast list models` has it."""
    task: str
    """`pretrain` or `sft`."""
    gpu: str
    """`h100`, `b200`, `b300`, `gb200` or `gb300`."""
    dtype: str
    variant: str
    """The framework's own word for one of several, such as `v2` or `large-scale`."""
    gpus: int
    """How many GPUs it is written for."""
    batch: int
    """Samples a step on so many GPUs."""
    seq: int
    """Tokens a sequence."""
    plan: str
    """A short form without dp."""
    cuda_graphs: bool | str
    """What CUDA graphs capture: whole passes, or these parts of layers."""
    dispatcher: str
    """What sends tokens to experts: `alltoall`, `deepep`, `hybridep`; empty without experts."""
    fused: bool
    """Whether the products of experts are one fused kernel."""
    attention: str
    """The type of attention; empty: 16 bits."""

    @property
    def name(self) -> str:
        """Such as `deepseek-v3/gb200/mxfp8/256@0.6.0`, of the newest version that has it."""
        task = "" if self.task == "pretrain" else f"/{self.task}"
        variant = f"-{self.variant}" if self.variant else ""
        size = f"{self.gpus}{variant}@{self.versions[-1]}"
        return f"{self.model}/{self.gpu}/{self.dtype}{task}/{size}"

    @property
    def words(self) -> frozenset[str]:
        """What `-s recipe:WORD/WORD` may say to mean it."""
        releases = {version.rpartition(".")[0] for version in self.versions}
        versions = {f"{v}{version}" for version in {*self.versions, *releases} for v in ("", "v")}
        said = {self.task, self.dtype, self.variant, str(self.gpus), self.name} | versions
        return frozenset(said - {""})

    @property
    def keys(self) -> dict[str, str]:
        """The plan's keys and values, flags with an empty one."""
        pairs = (item.partition("=") for item in self.plan.split(","))
        return {key: value for key, _, value in pairs}

    def degree(self, key: str) -> int:
        """tp, pp, vpp, cp or ep; 1 where the plan does not say."""
        return int(self.keys.get(key, 1))

    @property
    def replica(self) -> int:
        """GPUs of one replica: tp x pp x cp."""
        return math.prod(self.degree(key) for key in ("tp", "pp", "cp"))

    def runs_on(self, gpus: int) -> bool:
        """Whether so many GPUs are whole replicas, and whole groups of experts."""
        experts = self.degree("ep") * int(self.keys.get("etp", self.degree("tp")))
        of_stage = gpus // self.degree("pp")
        return gpus % self.replica == 0 and of_stage % experts == 0

    def batch_on(self, gpus: int) -> int:
        """Samples a step on other GPUs: as many for each GPU, as the framework scales them."""
        of_pass = gpus // self.replica * self.degree("mb")
        return max(round(self.batch * gpus / self.gpus / of_pass), 1) * of_pass


@cache
def facts() -> dict[str, Any]:
    """What holds for all recipes of a framework."""
    return files.read_mapping(_HERE / "megatron_bridge.yaml")


def framework() -> str:
    """Whose recipes they are."""
    return str(facts()["framework"])


@cache
def recipes() -> tuple[Recipe, ...]:
    """All of them.

    >>> len({recipe.name for recipe in recipes()}) == len(recipes()) > 100
    True
    """
    path = _HERE / "megatron_bridge.csv"
    lines = csv_text.rows(path.read_text(encoding="utf-8"), path)
    names = next(lines)[1]
    return tuple(_recipe(dict(zip(names, line, strict=True))) for _, line in lines)


def _recipe(cell: dict[str, str]) -> Recipe:
    return Recipe(
        versions=tuple(cell["versions"].split()),
        model=cell["model"],
        task=cell["task"],
        gpu=cell["gpu"],
        dtype=cell["dtype"],
        variant=cell["variant"],
        gpus=int(cell["gpus"]),
        batch=int(cell["batch"]),
        seq=int(cell["seq"]),
        plan=cell["plan"],
        cuda_graphs=cell["cuda_graphs"] == "full-iteration" or cell["cuda_graphs"] or False,
        dispatcher=cell["dispatcher"],
        fused=cell["fused"] == "yes",
        attention=cell["attention"],
    )
