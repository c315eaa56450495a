"""Writes the small model files that fuzzing starts from (needs torch and onnx).

    .venv/bin/python tests/fuzz/make_corpus.py

They are kept as text: JSON of the one document that is read of a .pt2 file, and
protocol-buffer text of ONNX files, so that changes to them can be read.
"""

from __future__ import annotations

import json
import sys
import zipfile
from pathlib import Path
from typing import Any

CORPUS = Path(__file__).with_name("corpus")


def block(torch: Any) -> Any:
    """A transformer block and a convolution, so that most kinds of fields occur."""
    nn, functional = torch.nn, torch.nn.functional

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = nn.Embedding(32, 16)
            self.norm = nn.LayerNorm(16)
            self.qkv = nn.Linear(16, 48)
            self.layers = nn.ModuleList(nn.Linear(16, 16) for _ in range(2))
            self.mix = nn.Conv1d(16, 16, 3, padding=1)

        def forward(self, ids: Any) -> Any:
            x = self.norm(self.table(ids))
            heads = self.qkv(x).view(x.shape[0], x.shape[1], 3, 2, 8).permute(2, 0, 3, 1, 4)
            y = functional.scaled_dot_product_attention(*heads.unbind(0), is_causal=True)
            x = x + y.transpose(1, 2).reshape(x.shape)
            for layer in self.layers:
                x = x + functional.gelu(layer(x))
            x = self.mix(x.transpose(1, 2)).transpose(1, 2)
            return x @ self.table.weight.t()

    return Block()


def main() -> int:
    import torch

    CORPUS.mkdir(exist_ok=True)
    module, ids = block(torch), torch.zeros(2, 6, dtype=torch.long)
    program = torch.export.export(module, (ids,), strict=False)
    path = CORPUS / "block.pt2"
    torch.export.save(program, path)
    with zipfile.ZipFile(path) as archive:
        for info in archive.infolist():
            for suffix, target in (("model.json", "block"), ("weights_config.json", "weights")):
                if info.filename.endswith(suffix):
                    document = strip(json.loads(archive.read(info)))
                    text = json.dumps(document, separators=(",", ":"), sort_keys=True)
                    (CORPUS / f"{target}.pt2.json").write_text(text + "\n")
    path.unlink()
    write_onnx(torch, module, ids)
    return 0


def strip(value: Any) -> Any:
    """Without traces of the machine that wrote it."""
    if isinstance(value, dict):
        dropped = ("stack_trace", "torch_fn", "from_node", "torch_version")
        return {key: strip(item) for key, item in value.items() if key not in dropped}
    if isinstance(value, list):
        return [strip(item) for item in value]
    return value.replace("__main__.", "") if isinstance(value, str) else value


def write_onnx(torch: Any, module: Any, ids: Any) -> None:
    import onnx
    from google.protobuf import text_format

    program = torch.onnx.export(module, (ids,), dynamo=True)
    model = program.model_proto
    for tensor in model.graph.initializer:
        if tensor.data_type == onnx.TensorProto.FLOAT and len(tensor.raw_data) > 64:
            tensor.ClearField("raw_data")
            tensor.data_location = onnx.TensorProto.EXTERNAL
            entry = tensor.external_data.add()
            entry.key, entry.value = "location", "weights"
    for node in model.graph.node:
        kept = [entry for entry in node.metadata_props if entry.key == "namespace"]
        del node.metadata_props[:]
        node.metadata_props.extend(kept)
    del model.graph.metadata_props[:]
    del model.metadata_props[:]
    for info in [*model.graph.value_info, *model.graph.input, *model.graph.output]:
        del info.metadata_props[:]
    for tensor in model.graph.initializer:
        del tensor.metadata_props[:]
    (CORPUS / "block.onnx.txt").write_text(text_format.MessageToString(model))


if __name__ == "__main__":
    sys.exit(main())
