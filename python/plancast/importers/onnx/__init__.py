"""Models in ONNX files."""
