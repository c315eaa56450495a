"""Models of PyTorch, by way of torch.export: operators are those of its aten library."""

from plancast.importers.aten import layers, views  # noqa: F401  (they register operators)
