"""Where Proteus's graphs differ from ours, and why.

Each difference says what our facts become when it is taken over from Proteus. With all
that apply to a case the two sides are equal, and without any one of them they are not.
Numbers in brackets are those of the list in data/oracles/proteus/README.md.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatch
from typing import Any

from ours import Gradient, Ours
from theirs import Facts


@dataclass(frozen=True)
class Difference:
    """`change` makes facts of `checks` what they are there, in cases that match one of `cases`."""

    reason: str
    cases: tuple[str, ...]
    checks: tuple[str, ...]
    change: Callable[[Facts, Ours], Facts]

    def applies(self, case: str, check: str) -> bool:
        return check in self.checks and any(fnmatch(case, pattern) for pattern in self.cases)


def _mapped(change: Callable[[Any], Any]) -> Callable[[Facts, Ours], Facts]:
    """Changes facts one by one; None takes a fact away."""

    def apply(facts: Facts, _: Ours) -> Facts:
        found: Facts = Counter()
        for fact, times in facts.items():
            changed = change(fact)
            if changed is not None:
                found[changed] += times
        return found

    return apply


# --- Ops.


def _loss_of_samples(fact: Any) -> Any:
    op, reads, writes, devices = fact
    return (
        (op, reads, tuple((shape[0],) for shape in writes), devices)
        if op == "criterion.seq0"
        else fact
    )


def _identity_pool(facts: Facts, ours: Ours) -> Facts:
    head = next(devices for op, _, _, devices in facts if op == "criterion.seq0")
    width = {"alexnet": (6, 256), "vgg19": (7, 512)}[ours.name]
    samples = ours.sizes["batch"] // ours.graph.axes["dp"]
    part = tuple(sorted((samples, width[0], width[0], width[1])))
    return facts + Counter([("avgpool", (part,), (part,), head)])


def _sigmoid(facts: Facts, ours: Ours) -> Facts:
    part = (ours.sizes["batch"] // ours.graph.axes["dp"],)
    return facts + Counter([("top_l.seq9", (part,), (part,), frozenset(ours.graph.devices({})))])


def _pairs_by_place(fact: Any) -> Any:
    op, reads, writes, devices = fact
    return (op, reads[1:], writes, devices) if op == "seq14" else fact


# --- Collectives.


def _one_sum_of_the_loss(facts: Facts, ours: Ours) -> Facts:
    found: Facts = Counter()
    for fact, times in facts.items():
        phase, kind, groups, size, tensor = fact
        if tensor == "criterion.seq0/logit":
            found[(phase, kind, groups, size // ours.sizes["seq"], "criterion.seq0.out")] += times
        elif not tensor.startswith("criterion.seq0/"):
            found[fact] += times
    return found


def _exchange_of_tied(fact: Any) -> Any:
    phase, kind, groups, size, tensor = fact
    return (phase, "all_reduce" if kind == "send_recv" else kind, groups, size, tensor)


def _gathers_for_exchanges(fact: Any) -> Any:
    phase, kind, groups, size, tensor = fact
    if kind != "all_to_all":
        return fact
    (members,) = groups
    return (phase, "all_gather", groups, size * len(members) ** 2, tensor)


def _gathered_by_each_reader(facts: Facts, _: Ours) -> Facts:
    again = {("backward", *f[1:]): n for f, n in facts.items() if f[4] == "avgpool.out"}
    return facts + Counter(again)


def _gathers_of_parameters(facts: Facts, ours: Ours) -> Facts:
    """A collective for each tensor and reader, of weights alone in backward."""
    found = Counter({fact: n for fact, n in facts.items() if fact[4] not in ("root", "layers")})
    alike = ours.graph.groups(["dp"])
    groups = frozenset(frozenset(group) for group in alike)
    for name, size, _ in ours.layouts():
        if name in ROW_BIASES:
            continue
        for phase in ("forward", "backward"):
            times = 1
            if name == "embedding.word_embeddings.weight" and phase == "forward":
                times = 2  # its two readers
            if phase == "backward" and (name.endswith(".bias") or "position" in name):
                times = 0  # nothing reads it
            if times:
                found[(phase, "all_gather", groups, size, name)] += times
    row_bytes = sum(size for name, size, _ in ours.layouts() if name in ROW_BIASES)
    for group in groups:
        found[("optimizer", "all_gather", frozenset((group,)), row_bytes, "parameters")] += 1
    return found


# --- Gradients and state.

ROW_BIASES = {
    f"{layer}.{name}.bias"
    for layer in range(4)
    for name in ("attention.dense", "mlp.dense_4h_to_h")
}


def _row_biases_everywhere(facts: Facts, _: Ours) -> Facts:
    found: Facts = Counter()
    for one in facts:
        if one.parameter in ROW_BIASES:
            one = dataclasses.replace(one, kind="all_reduce", group=one.devices)
        found[one] = 1
    return found


def _all_reduced(one: Gradient) -> Gradient:
    return dataclasses.replace(one, kind="all_reduce")


def _row_biases_whole(kind: str) -> Callable[[Facts, Ours], Facts]:
    """State of a kind when row-parallel biases are not sharded."""

    def apply(facts: Facts, ours: Ours) -> Facts:
        rows = sum(size for name, size, _ in ours.layouts() if name in ROW_BIASES)
        more = rows - rows // ours.graph.axes["dp"]
        return Counter(
            {(what, at, size + more * (what == kind)): n for (what, at, size), n in facts.items()}
        )

    return apply


def _without_buffers(fact: Any) -> Any:
    return None if fact[0] == "buffer" else fact


def _sharded_layouts(facts: Facts, ours: Ours) -> Facts:
    """Where the shards of parameters are."""
    ranks = ours.graph.groups([axis for axis in ours.graph.axes if axis != "dp"])
    found: Facts = Counter()
    for (name, size, groups), times in facts.items():
        if name in ROW_BIASES:
            found[(name, size, groups)] += times
            continue
        cut = frozenset(group & frozenset(rank) for group in groups for rank in ranks)
        found[(name, size // ours.graph.axes["dp"], cut)] += times
    return found


def _one_over_both_stages(facts: Facts, ours: Ours) -> Facts:
    name = "embedding.word_embeddings.weight"
    size = next(size for one, size, _ in facts if one == name)
    groups = ours.graph.groups([axis for axis in ours.graph.axes if axis != "tp"])
    return facts + Counter([(name, size, frozenset(frozenset(group) for group in groups))])


IMAGES = ("alexnet*", "dlrm*", "inception*", "resnet*", "vgg*")
SHARDED = ("gpt4_*_zero2", "gpt4_*_zero3")
TENSOR_PARALLEL = ("gpt4_tp2", "gpt4_dp2tp2*")

DIFFERENCES = (
    Difference(
        "a loss there is one number for each sample, here for each token: what a mean is taken of",
        ("gpt4*",),
        ("forward",),
        _mapped(_loss_of_samples),
    ),
    Difference(
        "AlexNet and VGG pool 6x6 and 7x7 positions to as many, which the zoo leaves out",
        ("alexnet*", "vgg*"),
        ("forward", "backward"),
        _identity_pool,
    ),
    Difference(
        "DLRM's last sigmoid is part of the loss here",
        ("dlrm*",),
        ("forward", "backward"),
        _sigmoid,
    ),
    Difference(
        "DLRM there takes the first 36 of 81 products for the pairs, here those of a list",
        ("dlrm*",),
        ("forward",),
        _mapped(_pairs_by_place),
    ),
    Difference(
        "[2] a vocabulary-parallel loss there owes one sum of the samples' losses; the maximum, "
        "the sum of exponentials and the target's logit of each token are not exchanged",
        TENSOR_PARALLEL,
        ("collectives",),
        _one_sum_of_the_loss,
    ),
    Difference(
        "[4] two stages that share a parameter all-reduce its gradient in pairs; here that is "
        "one message each way",
        ("gpt4*pp2*",),
        ("collectives",),
        _mapped(_exchange_of_tied),
    ),
    Difference(
        "[4] a shared parameter is listed as a whole besides its copies",
        ("gpt4*pp2*",),
        ("layouts",),
        _one_over_both_stages,
    ),
    Difference(
        "[10] there is no general all-to-all: from columns to samples by way of a gather",
        ("resnet50_fc4",),
        ("collectives",),
        _mapped(_gathers_for_exchanges),
    ),
    Difference(
        "[9] each reader gathers anew; here what forward gathered is kept for backward",
        ("resnet50_fc4",),
        ("collectives",),
        _gathered_by_each_reader,
    ),
    Difference(
        "[1, 5] the gradient of a row-parallel bias is all-reduced over tensor-parallel ranks "
        "too, which have all of it; ZeRO does not scatter it",
        (*TENSOR_PARALLEL, *SHARDED),
        ("buckets",),
        _row_biases_everywhere,
    ),
    Difference(
        "[5] ZeRO-1 all-reduces gradients of which each rank uses its shard",
        ("gpt4_*_zero1",),
        ("buckets",),
        _mapped(_all_reduced),
    ),
    Difference(
        "[5] ZeRO-3 gathers tensor by tensor, again for each reader, in backward without "
        "biases; here whole layers, and the rest of the model once",
        ("gpt4_*_zero3",),
        ("collectives",),
        _gathers_of_parameters,
    ),
    Difference(
        "[5] a row-parallel bias stays whole under ZeRO",
        SHARDED,
        ("state",),
        _row_biases_whole("gradient"),
    ),
    Difference(
        "[5] a row-parallel bias stays whole under ZeRO",
        ("gpt4_*_zero3",),
        ("state",),
        _row_biases_whole("parameter"),
    ),
    Difference(
        "ZeRO-3's shards there are parts of each tensor, here of a layer's parameters in a row",
        ("gpt4_*_zero3",),
        ("layouts",),
        _sharded_layouts,
    ),
    Difference(
        "the examples that are not GPT train with SGD; here every plan has Adam's state",
        IMAGES,
        ("state",),
        _mapped(_without_buffers),
    ),
)


def of(case: str, check: str) -> list[Difference]:
    """The differences of a check of a case, in the order in which they are made."""
    return [one for one in DIFFERENCES if one.applies(case, check)]
