"""Wide & Deep (Cheng et al. 2016): a linear model of categories beside layers over their rows.

Every category has a table of rows, `embedding.table0` and so on, and in the wide part a weight for
each of its values, `wide.weights0`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from plancast.builder import GraphBuilder, ModuleBuilder, Tensor


def wide_deep(
    name: str,
    *,
    vocabularies: Sequence[int],
    embedding_dims: Sequence[int],
    dense: int,
    layers: Sequence[int],
    hot: int = 1,
) -> GraphBuilder:
    """Both parts, each of which reads all categories and numbers; their sum is the answer.

    Args:
      name: the model's name.
      vocabularies: values of each category.
      embedding_dims: features of a row of each.
      dense: numbers of a sample beside its categories.
      layers: widths of the deep part's hidden layers.
      hot: values of each category that a sample has; their rows are added up.
    """
    count = len(vocabularies)
    builder = GraphBuilder(name, dense=dense, one=1, hot=hot, joined=sum(embedding_dims) + dense)
    for number, values in enumerate(vocabularies):
        builder.dim(f"vocab_{number}", values)
    widths = [builder.dim(f"embedding{width}", width) for width in embedding_dims]
    wide = builder.module("wide")
    weights = [_table(wide, f"weights{number}", number, "one") for number in range(count)]
    numbers = _layer(wide, "numbers", wide.data("numbers", "batch", "dense"), "one")
    wide.output(wide.op("sum", _rule("sum", count + 1, _added), *weights, numbers))
    rows_of = builder.module("embedding")
    answer = rows_of.input("answer", "batch", "one")
    rows = [_table(rows_of, f"table{i}", i, width) for i, width in enumerate(widths)]
    rows_of.output(answer, *rows)
    deep = builder.module("deep")
    answer = deep.input("answer", "batch", "one")
    parts = [deep.input(f"row{i}", "batch", width) for i, width in enumerate(widths)]
    parts.append(deep.data("numbers", "batch", "dense"))
    offsets = [sum(embedding_dims[:i]) for i in range(count + 1)]
    x = deep.op("join", _rule("join", count + 1, _beside(offsets)), *parts, dims={"h": "joined"})
    hidden = [builder.dim(f"width{width}", width) for width in layers]
    for number, width in enumerate(hidden, start=1):
        x = deep.op(f"relu{number}", "relu_nd", _layer(deep, f"fc{number}", x, width))
    x = deep.op("both", _rule("both", 2, _added), _layer(deep, "final", x, "one"), answer)
    deep.op("loss", "binary_loss", x, deep.data("clicked", "batch", "one", dtype="fp32"))
    return builder


def _table(module: ModuleBuilder, name: str, number: int, width: str) -> Tensor:
    ids = module.data(f"ids{number}", "batch", "hot", dtype="int64")
    weight = module.parameter(f"{name}.w", f"vocab_{number}", width)
    looked_up: Tensor = module.op(name, "embedding_bag", ids, weight)
    return looked_up


def _layer(module: ModuleBuilder, name: str, x: Tensor, width: str) -> Tensor:
    weight = module.parameter(f"{name}.w", width, x.dims[1])
    y: Tensor = module.op(name, "linear_bias_nd", x, weight, module.parameter(f"{name}.b", width))
    return y


def _rule(name: str, parts: int, lines: Callable[[int], list[str]]) -> str:
    given = ", ".join(f"x{number}" for number in range(parts))
    return "\n".join([f"{name}({given}) -> (y) {{", *(f"  {line}" for line in lines(parts)), "}"])


def _added(parts: int) -> list[str]:
    """All parts, number by number."""
    return ["y[b,h] = " + " + ".join(f"x{number}[b,h]" for number in range(parts))]


def _beside(offsets: Sequence[int]) -> Callable[[int], list[str]]:
    """Each part behind those before it."""

    def lines(parts: int) -> list[str]:
        placed = [
            f"y{number}[b,h] = x{number}[b,w{number}] where h == w{number} + {offset}"
            for number, offset in enumerate(offsets)
        ]
        return [*placed, "y[b,h] = " + " + ".join(f"y{number}[b,h]" for number in range(parts))]

    return lines
