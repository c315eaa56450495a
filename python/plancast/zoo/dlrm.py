"""Recommenders: DLRM (Naumov et al. 2019) on click logs.

Every categorical feature has a table of its own, `embedding.table0` and so on, whose
rows (`vocab_0`, ...) or columns (`embedding_dim`) strategies may split; everything
after the tables is small and runs over the samples.
"""

from __future__ import annotations

from collections.abc import Sequence

from plancast.builder import GraphBuilder, ModuleBuilder, Tensor

# One kernel in NVIDIA's examples (Recommendation/DLRM, dlrm/cuda_src/dot_based_interact).
_FUSION = "dot_interaction"

# The products of all pairs, in a list without doubles.
_PAIRS = """
pairs(x, id:i64) -> (y) {
  y[b,p] += x[b,f] * [f == id[p]]
  save id
}
"""


def dlrm(
    name: str,
    *,
    vocabularies: Sequence[int],
    embedding_dim: int,
    dense: int,
    bottom: Sequence[int],
    top: Sequence[int],
    hot: int = 1,
    sparse: bool = True,
) -> GraphBuilder:
    """A DLRM with interaction by dot products.

    Args:
      name: the model's name.
      vocabularies: rows of each table.
      embedding_dim: features of a row; the last of `bottom` as well.
      dense: numbers of a sample beside its categories.
      bottom: widths of the layers over these.
      top: widths of the layers over the interaction; the last is 1.
      hot: rows of each table that a sample adds up.
      sparse: gradients of tables are those of the rows that were looked up, as in the authors'
        code (`nn.EmbeddingBag(sparse=True)`); without, of whole tables.
    """
    features = len(vocabularies) + 1
    pairs = features * (features - 1) // 2
    builder = GraphBuilder(
        name, embedding_dim=embedding_dim, dense=dense, one=1, hot=hot, features=features
    )
    builder.dim("features_other", features)
    builder.dim("products", features**2)
    builder.dim("pairs", pairs)
    builder.dim("interaction", pairs + embedding_dim)
    first = builder.module("embedding")
    for number, rows in enumerate(vocabularies):
        builder.dim(f"vocab_{number}", rows)
    first.output(*(_table(first, number, sparse) for number in range(len(vocabularies))))
    second = builder.module("bottom")
    looked_up = _ports(second, len(vocabularies))
    x = second.data("numbers", "batch", "dense")
    widths = [*(builder.dim(f"bottom{width}", width) for width in bottom[:-1]), "embedding_dim"]
    for number, width in enumerate(widths, start=1):
        x = _layer(second, number, x, width)
    second.output(x, *looked_up)
    last = builder.module("top")
    x = last.input("x", "batch", "embedding_dim")
    x = _interact(last, x, _ports(last, len(vocabularies)))
    widths = [*(builder.dim(f"top{width}", width) for width in top[:-1]), "one"]
    for number, width in enumerate(widths, start=1):
        x = _layer(last, number, x, width, relu=number < len(widths))
    clicked = last.data("clicked", "batch", "one", dtype="fp32")
    last.op("loss", "binary_loss", x, clicked)
    return builder


def _table(module: ModuleBuilder, number: int, sparse: bool) -> Tensor:
    ids = module.data(f"ids{number}", "batch", "hot", dtype="int64")
    weight = module.parameter(f"table{number}.w", f"vocab_{number}", "embedding_dim", sparse=sparse)
    looked_up: Tensor = module.op(f"table{number}", "embedding_bag", ids, weight)
    return looked_up


def _ports(module: ModuleBuilder, tables: int) -> list[Tensor]:
    return [module.input(f"row{number}", "batch", "embedding_dim") for number in range(tables)]


def _layer(
    module: ModuleBuilder, number: int, x: Tensor, width: str, *, relu: bool = True
) -> Tensor:
    weight = module.parameter(f"fc{number}.w", width, x.dims[1])
    bias = module.parameter(f"fc{number}.b", width)
    y: Tensor = module.op(f"fc{number}", "linear_bias_nd", x, weight, bias)
    if relu:
        y = module.op(f"relu{number}", "relu_nd", y)
    return y


def _interact(module: ModuleBuilder, x: Tensor, looked_up: Sequence[Tensor]) -> Tensor:
    dims = {"f": "features", "u": "one"}
    rows = module.op("stack", _stack(len(looked_up) + 1), x, *looked_up, dims=dims, fusion=_FUSION)
    other = {"j": "features_other"}
    products = module.op("products", "pairwise_products", rows, rows, dims=other, fusion=_FUSION)
    flat = {"f": "products"}
    products = module.op("merge", "merge_last_dims", products, dims=flat, fusion=_FUSION)
    chosen = module.data("pair", "pairs", dtype="int64")
    pairs = module.op("pairs", _PAIRS, products, chosen, fusion=_FUSION)
    joined = {"h": "interaction"}
    y: Tensor = module.op("concat", "concat2", x, pairs, dims=joined, fusion=_FUSION)
    return y


def _stack(parts: int) -> str:
    """The rule that writes so many vectors side by side."""
    names = [f"x{number}" for number in range(parts)]
    lines = [
        f"  y{number}[b,f,h] = {name}[b,h] where f == u + {number}"
        for number, name in enumerate(names)
    ]
    total = " + ".join(f"y{number}[b,f,h]" for number in range(parts))
    return "\n".join([f"stack({', '.join(names)}) -> (y) {{", *lines, f"  y[b,f,h] = {total}", "}"])
