"""A trained network as an ONNX file."""
