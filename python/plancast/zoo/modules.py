"""What the zoo's modules share."""

from __future__ import annotations

from collections.abc import Mapping

from plancast.builder import GraphBuilder, ModuleBuilder, Tensor


class ZooModule:
    """A module of a model, whose layers have one result each."""

    def __init__(
        self, builder: GraphBuilder, path: str, *, repeat: int = 1, in_list: bool = False
    ) -> None:
        self.builder = builder
        self.module: ModuleBuilder = builder.module(path, repeat=repeat, in_list=in_list)

    def op(
        self,
        name: str,
        rule: str,
        *inputs: Tensor,
        dims: Mapping[str, str] | None = None,
        fusion: str = "",
        recompute_group: str = "",
    ) -> Tensor:
        """Applies a rule with one result."""
        result: Tensor = self.module.op(
            name, rule, *inputs, dims=dims, fusion=fusion, recompute_group=recompute_group
        )
        return result
