"""Modules that are no transformers: skips, bags of embeddings, plain layers."""

from __future__ import annotations

from importlib.util import find_spec

import plancast as pc
import pytest

pytestmark = pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")


def imported(module, *inputs):
    model = pc.Model.from_torch(module, inputs)
    assert model.parameters == sum(parameter.numel() for parameter in module.parameters())
    forecast = pc.predict(model, pc.Machine.preset("dgx-h100:1x2"), pc.Strategy.parse("dp=2,mb=2"))
    assert forecast.iteration_time > 0
    return model


def test_skips_of_a_u_net():
    import torch
    from nets import UNet

    model = imported(UNet(), torch.zeros(2, 3, 32, 32))
    assert model.import_report.unknown == ()
    assert str(model).count("concat(") == 2


def test_bags_of_embeddings():
    import torch
    from nets import Recommender

    ids = torch.zeros(2, 4, 3, dtype=torch.long)
    model = imported(Recommender(), torch.zeros(2, 13), ids)
    assert str(model).count("embedding_bag(") == 4
    assert model.dims["batch"] == 0


def test_sparse_gradients_of_tables():
    import torch

    nn = torch.nn
    ids = torch.zeros(2, 3, dtype=torch.long)
    for sparse in (True, False):
        module = nn.Sequential(nn.Embedding(100, 64, sparse=sparse), nn.Linear(64, 10))
        assert ("sparse param" in str(imported(module, ids))) == sparse


def test_transformer_layers_of_torch():
    import torch

    nn = torch.nn
    layer = nn.TransformerEncoderLayer(64, 4, 128, batch_first=True, dropout=0.0)
    module = nn.Sequential(nn.Embedding(100, 64), nn.TransformerEncoder(layer, 3))
    model = imported(module, torch.zeros(2, 16, dtype=torch.long))
    assert model.import_report.unknown == ()
    assert "qkv_linear_bias" in str(model)


def test_rotation_by_complex_numbers():
    import torch
    from nets import ComplexAttention

    model = imported(ComplexAttention(), torch.zeros(2, 32, dtype=torch.long))
    assert model.import_report.unknown == ()
    text = str(model)
    assert "qkv_linear" in text
    assert text.count("rotary_kv(") == 2
    assert "softmax_causal" in text
    assert (model.dims["kv_heads"], model.dims["heads_per_kv"]) == (2, 2)


def test_a_module_that_returns_its_loss():
    import torch

    class Loss(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(8, 4)

        def forward(self, x, y):
            return torch.nn.functional.mse_loss(self.layer(x), y)

    model = imported(Loss(), torch.zeros(2, 8), torch.zeros(2, 4))
    assert model.import_report.unknown == ()
    assert str(model).count(": squared_error(") == 1


def test_what_cannot_be_imported():
    import torch

    with pytest.raises(pc.InputError, match=r"is a int; a torch\.nn\.Module"):
        pc.Model.from_torch(3, (torch.zeros(2),))
    with pytest.raises(pc.InputError, match="holds no tensor with a batch"):
        pc.Model.from_torch(torch.nn.Linear(2, 2), ())

    class Branch(torch.nn.Module):
        def forward(self, x):
            return x if x.sum() > 0 else -x

    with pytest.raises(pc.InputError, match=r"torch\.export cannot trace `Branch`"):
        pc.Model.from_torch(Branch(), (torch.zeros(2, 2),))
