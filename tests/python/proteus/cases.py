"""Every case of data/oracles/proteus: its model, and its strategy in our tree."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from gpt import gpt
from plancast import _core
from plancast.zoo import catalogue


@dataclass(frozen=True)
class Case:
    """`batch` is the global batch: that of all micro-batches, `devices` those of the plan."""

    model: str
    strategy: str
    batch: int
    devices: int = 4


def one_weird_trick(plan: str, dropout: str) -> str:
    """Convolutions by samples, the classifier by features (Krizhevsky 2014, arXiv 1404.5997)."""
    return f"""
plan: {plan}
nodes:
  head.fc1: {{split: {{dp: [hidden1]}}}}       # columns
  head.relu1: {{split: {{dp: [hidden1]}}}}
  head.{dropout}: {{split: {{dp: [hidden1]}}}}
  head.fc2: {{split: {{dp: [hidden1]}}}}       # the same dim is its reduction
  head.fc2.bias: {{split: {{dp: [batch]}}}}    # added to samples
"""


# The last layer by columns, its loss by samples.
LAST_LAYER = """
plan: dp=4,mb=2
nodes:
  head.fc: {split: {dp: [classes]}}
  head.fc.loss: {split: {dp: [batch]}}
"""
# Each table on one device.
TABLES = """
plan: dp=4,mb=64
nodes:
  embedding.table0: {on: {dp: 0}}
  embedding.table1: {on: {dp: 0}}
  embedding.table2: {on: {dp: 1}}
  embedding.table3: {on: {dp: 1}}
  embedding.table4: {on: {dp: 2}}
  embedding.table5: {on: {dp: 2}}
  embedding.table6: {on: {dp: 3}}
  embedding.table7: {on: {dp: 3}}
"""

CASES = {
    "alexnet_dp4": Case("alexnet", "plan: dp=4,mb=8", 32),
    "alexnet_owt4": Case("alexnet", one_weird_trick("dp=4,mb=8", "dropout2"), 32),
    "alexnet_pp2dp2": Case("alexnet", "plan: dp=2,pp=2,mb=16", 64),
    "dlrm_dp4": Case("dlrm", "plan: dp=4,mb=64", 256),
    "dlrm_mp4": Case("dlrm", TABLES, 256),
    "gpt4_dp2": Case("gpt", "plan: dp=2,mb=4", 8, 2),
    "gpt4_dp2tp2": Case("gpt", "plan: dp=2,tp=2,mb=4", 8),
    "gpt4_dp2tp2_recompute": Case("gpt", "plan: dp=2,tp=2,mb=4,recompute=full", 8),
    "gpt4_dp2tp2_zero1": Case("gpt", "plan: dp=2,tp=2,mb=4,zero=1", 8),
    "gpt4_dp2tp2_zero2": Case("gpt", "plan: dp=2,tp=2,mb=4,zero=2", 8),
    "gpt4_dp2tp2_zero3": Case("gpt", "plan: dp=2,tp=2,mb=4,zero=3", 8),
    "gpt4_dp2tp2pp2_mb4": Case("gpt", "plan: dp=2,tp=2,pp=2,mb=2", 16, 8),
    "gpt4_dp2tp2pp2_mb4_recompute": Case("gpt", "plan: dp=2,tp=2,pp=2,mb=2,recompute=full", 16, 8),
    "gpt4_dp4_bucket2": Case("gpt", "plan: dp=4,mb=2,bucket=2MB", 8),
    "gpt4_dp4_zero0": Case("gpt", "plan: dp=4,mb=2", 8),
    "gpt4_dp4_zero1": Case("gpt", "plan: dp=4,mb=2,zero=1", 8),
    "gpt4_dp4_zero2": Case("gpt", "plan: dp=4,mb=2,zero=2", 8),
    "gpt4_dp4_zero3": Case("gpt", "plan: dp=4,mb=2,zero=3", 8),
    "gpt4_pp2_mb4": Case("gpt", "plan: dp=1,pp=2,mb=2", 8, 2),
    "gpt4_tp2": Case("gpt", "plan: dp=1,tp=2,mb=8", 8, 2),
    "inception_v3_dp4": Case("inception_v3", "plan: dp=4,mb=2", 8),
    "resnet50_dp4": Case("resnet50", "plan: dp=4,mb=2", 8),
    "resnet50_fc4": Case("resnet50", LAST_LAYER, 8),
    "vgg19_dp4": Case("vgg19", "plan: dp=4,mb=2", 8),
    "vgg19_owt4": Case("vgg19", one_weird_trick("dp=4,mb=2", "dropout1"), 8),
}


@cache
def graph(model: str) -> dict[str, Any]:
    """A model of the examples, as `pc.Model.from_graph` takes it."""
    made: dict[str, Any] = _BUILDERS[model]().graph()
    if model in ("alexnet", "vgg19"):
        _bias_apart(made, "head", "fc2")
    return made


# DLRM is traced with one id a sample and table.
_BUILDERS = {
    "alexnet": lambda: catalogue.builder("alexnet"),
    "dlrm": lambda: catalogue.family(
        "dlrm",
        "dlrm",
        vocabularies=[10**6] * 8,
        embedding_dim=64,
        dense=128,
        bottom=[512, 512, 512, 64],
        top=[1024] * 4 + [1],
        hot=1,
        sparse=False,
    ),
    "gpt": lambda: gpt(layers=4, seq=64, hidden=256, heads=4, vocab=1024),
    "inception_v3": lambda: catalogue.builder("inception-v3", auxiliary=False, image=224),
    "resnet50": lambda: catalogue.builder("resnet50"),
    "vgg19": lambda: catalogue.builder("vgg19"),
}
# Ops of theirs that have none here.
WITHOUT = {
    "alexnet": ("avgpool",),
    "dlrm": ("top_l.seq9",),
    "vgg19": ("avgpool",),
}


def _bias_apart(graph: dict[str, Any], path: str, name: str) -> None:
    """Makes the bias of a linear layer an op of its own.

    Inside one op the sum over a cut reduction must be whole before the bias is added: an
    all-reduce. As an op of its own the addition runs over samples, behind a reduce-scatter.
    """
    module = next(one for one in graph["modules"] if one["path"] == path)
    tensors = module["tensors"]
    at = next(i for i, op in enumerate(module["ops"]) if op["name"] == name)
    op = module["ops"][at]
    x, weight, bias = op["inputs"]
    (y,) = op["outputs"]
    rows, features = tensors[y]["dims"]
    tensors.append({**tensors[y], "name": f"{name}.a"})
    product = {
        **op,
        "rule": _core.OpRule.find("linear_nd", [2, 2]),
        "inputs": [x, weight],
        "outputs": [len(tensors) - 1],
        "factor_dims": [rows, features, tensors[x]["dims"][1]],
    }
    addition = {
        **op,
        "name": f"{name}.bias",
        "rule": _core.OpRule.find("channel_bias", [2, 1]),
        "inputs": [len(tensors) - 1, bias],
        "outputs": [y],
        "factor_dims": [rows, features],
    }
    module["ops"][at : at + 1] = [product, addition]
