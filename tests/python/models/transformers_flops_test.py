"""FLOPs of small models of every architecture, as PyTorch counts them when they run."""

import plancast as pc
import pytest
from plancast.models import hf
from small_models import FAMILIES, SEED, Draw, build

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

BATCH, SEQ = 2, 16
MACHINE = pc.Machine.preset("dgx-h100", hosts=1, gpus_per_host=1)


def measured(model_type, fields):
    """Matrix products of a forward and a backward pass."""
    from torch.utils.flop_counter import FlopCounterMode

    # Forms whose products the counter sees: whole squares of positions, one expert at a time.
    options = {"attn_implementation": "eager"}
    if {"num_experts", "num_local_experts", "n_routed_experts"} & set(fields):
        options["experts_implementation"] = "eager"
    torch.manual_seed(SEED)
    model = build(model_type, fields, **options).float()
    ids = torch.randint(1, fields["vocab_size"], (BATCH, SEQ))
    with FlopCounterMode(display=False) as counter:
        model(input_ids=ids).logits.sum().backward()
    return counter.get_total_flops()


@pytest.mark.parametrize("trial", range(2))
@pytest.mark.parametrize("model_type", FAMILIES)
def test_flops_equal_those_that_pytorch_counts(model_type, trial):
    fields = FAMILIES[model_type](Draw(SEED + trial))
    read = hf.config_from_hf({"model_type": model_type, **fields})
    for key in ("window", "window_pattern"):
        read.pop(key, None)
    model = pc.Model.from_config(**{**read, "seq": SEQ})
    # This profile does not pad the vocabulary.
    forecast = pc.predict(model, MACHINE, "mb=1", batch=BATCH, profile="pytorch-fsdp")
    expected = measured(model_type, fields)
    if read.get("shared_expert_gate"):
        # One column: no matrix product here.
        layers = range(read["dense_layers"], read["layers"])
        routed = sum((layer + 1) % read["moe_every"] == 0 for layer in layers)
        expected -= 6 * BATCH * SEQ * read["hidden"] * routed
    assert forecast._core.model_flops == expected
