"""Neural collaborative filtering (He et al. 2017): which items a user will like."""

from __future__ import annotations

from collections.abc import Sequence

from plancast.builder import GraphBuilder, Tensor


def ncf(name: str, *, users: int, items: int, factors: int, layers: Sequence[int]) -> GraphBuilder:
    """NeuMF: products of factors beside layers over other factors.

    Args:
      name: the model's name.
      users: rows of the tables of users.
      items: rows of the tables of items.
      factors: features that are multiplied.
      layers: widths of the layers, the first of both tables' features together.
    """
    builder = GraphBuilder(name, vocab_users=users, vocab_items=items, factors=factors, one=1)
    builder.dim("half", layers[0] // 2)
    builder.dim("joined", factors + layers[-1])
    module = builder.module("neumf")
    ids = {which: module.data(which, "batch", dtype="int64") for which in ("users", "items")}

    def looked_up(part: str, which: str, features: str) -> Tensor:
        table = module.parameter(f"{part}.{which}.w", f"vocab_{which}", features)
        row: Tensor = module.op(f"{part}.{which}", "embedding_nd", ids[which], table)
        return row

    product = module.op(
        "mf.product",
        "multiply",
        looked_up("mf", "users", "factors"),
        looked_up("mf", "items", "factors"),
    )
    widths = [builder.dim(f"width{width}", width) for width in layers]
    both = looked_up("mlp", "users", "half"), looked_up("mlp", "items", "half")
    x = module.op("mlp.concat", "concat2", *both, dims={"h": widths[0]})
    for number, width in enumerate(widths[1:], start=1):
        weight = module.parameter(f"mlp.fc{number}.w", width, x.dims[1])
        bias = module.parameter(f"mlp.fc{number}.b", width)
        x = module.op(f"mlp.fc{number}", "linear_bias_nd", x, weight, bias)
        x = module.op(f"mlp.relu{number}", "relu_nd", x)
    x = module.op("concat", "concat2", product, x, dims={"h": "joined"})
    weight, bias = module.parameter("final.w", "one", "joined"), module.parameter("final.b", "one")
    x = module.op("final", "linear_bias_nd", x, weight, bias)
    module.op("loss", "binary_loss", x, module.data("liked", "batch", "one", dtype="fp32"))
    return builder
