"""Layers of transformers that the transformer family does not have."""

from __future__ import annotations

from plancast.builder import GraphBuilder, Tensor
from plancast.errors import InputError
from plancast.zoo.modules import ZooModule

HEADS = ("kv_heads", "heads_per_kv", "head_dim")
# Ops that selective recomputation drops.
CORE = "core_attention"


class SequenceModule(ZooModule):
    """A module over samples, positions and features; dims as in docs/strategy.md."""

    def linear(self, name: str, x: Tensor, features: str, *, bias: bool = False) -> Tensor:
        """From the features of `x` to others."""
        weight = self.module.parameter(f"{name}.w", features, x.dims[2])
        if not bias:
            return self.op(name, "linear", x, weight)
        return self.op(name, "linear_bias", x, weight, self.module.parameter(f"{name}.b", features))

    def layer_norm(self, name: str, x: Tensor) -> Tensor:
        """Layer norm with scale and shift."""
        gamma, beta = (self.module.parameter(f"{name}.{w}", x.dims[2]) for w in ("gamma", "beta"))
        return self.op(name, "layer_norm", x, gamma, beta)

    def rms_norm(self, name: str, x: Tensor) -> Tensor:
        """RMS norm with a scale."""
        return self.op(name, "rms_norm", x, self.module.parameter(f"{name}.gamma", x.dims[2]))

    def qkv(self, name: str, x: Tensor, *, bias: bool = False) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values from one fused weight."""
        group, each, size = HEADS
        weights = [
            self.module.parameter(f"{name}.wq", group, each, size, x.dims[2]),
            self.module.parameter(f"{name}.wk", group, size, x.dims[2]),
            self.module.parameter(f"{name}.wv", group, size, x.dims[2]),
        ]
        if not bias:
            made: tuple[Tensor, Tensor, Tensor] = self.module.op(name, "qkv_linear", x, *weights)
            return made
        weights.append(self.module.parameter(f"{name}.bq", group, each, size))
        weights += [self.module.parameter(f"{name}.b{which}", group, size) for which in "kv"]
        with_bias: tuple[Tensor, Tensor, Tensor] = self.module.op(
            name, "qkv_linear_bias", x, *weights
        )
        return with_bias

    def project(self, name: str, x: Tensor, *, bias: bool = False) -> Tensor:
        """From the heads back to the features."""
        y = self.op(name, "out_linear", x, self.module.parameter(f"{name}.w", "hidden", *HEADS))
        if not bias:
            return y
        return self.op(f"{name}_bias", "bias_add", y, self.module.parameter(f"{name}.b", "hidden"))


def add_heads(builder: GraphBuilder, heads: int, head_dim: int) -> None:
    """The dims of attention with as many key heads as query heads."""
    for dim, size in zip(HEADS, (heads, 1, head_dim), strict=True):
        builder.dim(dim, size)


def check_heads(name: str, hidden: int, heads: int) -> int:
    """The head size; an error if the heads do not divide the features."""
    if hidden % heads:
        raise InputError(f"`{name}`: hidden size {hidden} is not divisible by {heads} heads.")
    return hidden // heads
