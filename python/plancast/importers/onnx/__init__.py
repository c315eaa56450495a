"""Models in ONNX files."""

from plancast.importers.onnx import layers, movement  # noqa: F401  (they register operators)
