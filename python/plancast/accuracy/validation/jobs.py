"""From a measured row to what can be predicted."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from plancast.accuracy.validation.architecture import (
    UnsupportedError,
    fields_of,
    multi_token_layers,
)
from plancast.accuracy.validation.recompute_modules import selective_of
from plancast.accuracy.validation.rounds import in_rounds
from plancast.accuracy.validation.row_recipe import RowRecipe, recipe_of
from plancast.accuracy.validation.rows import Row
from plancast.accuracy.validation.scaling import dtype_of, types_of
from plancast.accuracy.validation.software import (
    attention_in,
    layout_of,
    one_micro_batch_a_stage,
    overlaps_tp,
    prefetch_of,
    profile_for,
    recipe_layout,
    recompute_of,
    unstated_16bit,
    vpp_of,
)
from plancast.adapters import directive
from plancast.errors import InputError
from plancast.frameworks.megatron_stages import layout_of_string
from plancast.frameworks.plan import layout_text
from plancast.model import Model
from plancast.models import presets
from plancast.precision import Types
from plancast.recipes import SQUAD
from plancast.strategy import Strategy

# Tokens that say aloud that nothing is overlapped.
_NO_OVERLAP = ("overlap=none", "ddp=local_no_overlap", "grad_allreduce_overlap=none")
# How ranks of context parallelism exchange, by the value of `cp_comm=` (Megatron's words).
_CP_TYPES = {"p2p": "ring_zigzag", "all_gather": "allgather", "a2a": "ulysses"}
# Words of `overlap=` for what is the recipe's, and was not looked up.
_ASSUMED = ("assumed", "recipe_default_assumed")
_RECOMPUTES = ("none", "selective", "full")
_LARGEST_MICRO_BATCH = 64
# Samples that are no sequences (images, clicks) come in batches of any size; so many
# micro-batches of them at most.
_MOST_MICRO_BATCHES = 64


@dataclass(frozen=True)
class Candidate:
    """One way to fill in what the row does not say."""

    strategy: Strategy
    micro_batch: int | None  # None: as written
    recompute: str | None


@dataclass(frozen=True)
class RowJob:
    """A row, ready to be predicted."""

    row: Row
    model: Model
    profile: str
    dtype: str
    candidates: tuple[Candidate, ...]
    chosen: dict[str, str] = field(default_factory=dict)
    # What CUDA graphs capture: whole passes, or these parts of layers (`attn+mlp`).
    cuda_graphs: bool | str = False
    types: Types = field(default_factory=Types)


def prepare(row: Row) -> RowJob:
    """Builds model and strategies; raises UnsupportedError with the reason."""
    _refuse(row)
    chosen: dict[str, str] = {}
    shipped = recipe_of(row)
    if shipped is not None and shipped.exact:
        chosen["recipe"] = shipped.recipe.name
    profile, why = profile_for(
        row.software,
        row.assumption("dispatcher") or (shipped.recipe.dispatcher if shipped else None),
        fused=shipped is not None and shipped.exact and shipped.recipe.fused,
        token_drop=row.assumption("token_drop") == "1",
        experts=bool(row.experts),
        model=row.model,
        network=_by_name(row),
        said=" ".join(f"{key}={row.assumption(key)}" for key in ("fp8", "activation_input")),
    )
    chosen["profile"] = f"{profile} ({why})"
    try:
        model = _model(row, chosen)
        candidates = _candidates(row, shipped, chosen)
        candidates[0].strategy.check_supported()
    except InputError as error:
        raise UnsupportedError(str(error)) from None
    types = types_of(row)
    if shipped is not None and shipped.exact and shipped.recipe.attention:
        types.setdefault("attention_dtype", shipped.recipe.attention)
    graphs, dtype = _graphs(row, shipped, chosen), _dtype(row, chosen)
    return RowJob(row, model, profile, dtype, tuple(candidates), chosen, graphs, types)


def _graphs(row: Row, shipped: RowRecipe | None, chosen: dict[str, str]) -> bool | str:
    said = row.assumption("cuda_graphs")
    if said == "none":
        return False
    if said is None:
        captured = shipped.recipe.cuda_graphs if shipped else False
        if captured:
            parts = "whole passes" if captured is True else captured
            chosen["cuda_graphs"] = f"{parts} (unknown: as in the software's recipes)"
        return captured
    if said == "full_iteration":
        return True
    if said == "enabled_scope_not_stated":
        chosen["cuda_graphs"] = "whole passes (their parts are not stated)"
        return True
    return said


def _dtype(row: Row, chosen: dict[str, str]) -> str:
    known = unstated_16bit(row.software)
    if row.assumption("dtype") != "16bit_not_stated" or known is None:
        return dtype_of(row)
    chosen["dtype"] = f"{known} (16 bits, not stated: as the software's scripts)"
    return known


def _by_name(row: Row) -> bool:
    """The row has no dimensions: its model is known by name, as convolutional nets are."""
    return row.layers is None and row.hidden is None


def _refuse(row: Row) -> None:
    if _by_name(row):
        if presets.find(row.model) is None:
            raise UnsupportedError(f"`{row.model}` has no dimensions and is no shipped model")
    elif row.layers is None or row.hidden is None or row.seq_len is None:
        raise UnsupportedError(f"`{row.model}` is a transformer without all of its dimensions")


def _model(row: Row, chosen: dict[str, str]) -> Model:
    if _by_name(row):
        name = presets.find(row.model) or row.model
        chosen["model"] = f"preset `{name}`"
        return Model.preset(name, seq=row.seq_len)
    model = Model.from_config(**fields_of(row, chosen))
    packed = row.assumption("documents")
    if packed is not None:
        return model.with_documents(packed)
    if "sft_packed_sequences" in row.assumptions:
        chosen["documents"] = f"{SQUAD} (packed from SQuAD, as in the software's recipes)"
        return model.with_documents(SQUAD)
    return model


def _chunk_stages(row: Row, keys: dict[str, str], chosen: dict[str, str]) -> None:
    """Sets `vpp` where a row does not print it and its software's recipes have one."""
    usual = vpp_of(row.software, row.model)
    pp = int(keys.get("pp", "1"))
    unknown = row.assumption("vpp") in ("not_printed", "unknown")
    if not unknown or "vpp" in keys or usual is None or pp == 1:
        return
    if (row.layers or 0) % (pp * usual) == 0:
        keys["vpp"], keys["schedule"] = str(usual), "interleaved"
        chosen["vpp"] = f"{usual} (not printed: as in the software's recipes)"


def _deal_layers(row: Row, keys: dict[str, str], chosen: dict[str, str]) -> None:
    """Sets `layout` where the row, its recipe or its software says how layers are dealt."""
    pp, vpp = (int(keys.get(key, "1")) for key in ("pp", "vpp"))
    said = row.assumption("pp_layout")
    if "layout" in keys or pp == 1:
        return
    if said is not None:
        keys["layout"] = layout_text(layout_of_string(said, f"{row.row_id}: pp_layout"))
        return
    dealt = recipe_layout(row.software, row.model, pp * vpp)
    if dealt is not None:
        keys["layout"] = layout_text([*dealt[:-1], dealt[-1] + multi_token_layers(row)])
        chosen["layout"] = f"{keys['layout']} (not stated: as in the software's recipes)"
        return
    layout = layout_of(row.software, row.layers or 0, pp * vpp, _head_in_layers(row))
    if layout is not None:
        keys["layout"] = layout
        chosen["layout"] = f"{layout} (not stated: as the software deals)"


def _head_in_layers(row: Row) -> float:
    """Weights of the output layer's product as a multiple of those of a layer's products."""
    hidden, ffn = row.hidden or 0, row.ffn_hidden or 0
    products = 3 if row.mlp == "swiglu" else 2
    return (row.vocab or 0) / (4 * hidden + products * ffn) if hidden else 0.0


def _candidates(row: Row, shipped: RowRecipe | None, chosen: dict[str, str]) -> list[Candidate]:
    """Every filling of an unknown micro-batch and recomputation, least recomputation first."""
    keys = row.strategy_keys()
    _chunk_stages(row, keys, chosen)
    _deal_layers(row, keys, chosen)
    layers = row.assumption("activation_offload_layers")
    if layers is None and shipped and "recompute" not in keys and keys.get("zero") == "3":
        layers = shipped.offloaded
        if layers is not None:
            chosen["activation_offload"] = f"{layers} layers (unknown: as in the recipes)"
    if layers is not None and "offload" not in keys:
        keys["offload"] = f"activations:{layers}"
    ahead = prefetch_of(row.software)
    if ahead is not None and keys.get("zero") == "3" and "prefetch" not in keys:
        keys["prefetch"] = str(ahead)
        chosen["prefetch"] = f"{ahead} (as the software gathers)"
    exchange = row.assumption("cp_comm")
    if exchange is not None and "cp_type" not in keys:
        if exchange not in _CP_TYPES:
            raise UnsupportedError(f"`cp_comm={exchange}` is no exchange of cp ranks that is known")
        keys["cp_type"] = _CP_TYPES[exchange]
    attention = attention_in(row.software, row.model, row.dtype)
    if attention is not None and "attn" not in keys:
        keys["attn"] = attention
        chosen["attn"] = f"{attention} (unknown: as in the software's scripts)"
    _rounds(row, keys, chosen)
    _overlap(row, shipped, keys, chosen)
    sizes: list[int | None] = [None]
    if "mb" not in keys:
        sizes = list(_micro_batches(row, keys))
        usual = _one_a_stage(row, keys)
        if usual in sizes:
            sizes = [usual]
            chosen["mb"] = f"{usual} (unknown: as many micro-batches as stages, the usual there)"
    by_recipe = recompute_of(row.software, row.model)
    if shipped is not None and shipped.exact:
        by_recipe = shipped.recipe.keys.get("recompute", "none")
    if "recompute" not in keys and by_recipe is not None:
        keys["recompute"] = by_recipe
        chosen["recompute"] = f"{by_recipe} (unknown: as in the software's recipes)"
    recomputes: tuple[str | None, ...] = (None,) if "recompute" in keys else _RECOMPUTES
    if _by_name(row) and "recompute" not in keys:
        recomputes = ("none",)
    selective = selective_of(row)
    if selective is not None:
        keys["recompute"] = selective
    nodes = _kept_in_parts(row, keys)
    adapters = row.assumption("lora")
    if adapters is not None:
        nodes[""] = {"lora": directive(adapters)}
    pieces = row.assumption("loss_pieces")
    if pieces is not None:
        nodes["head"] = {"micro_batches": int(pieces), "max_ongoing": 1}
    apart = row.assumption("checkpoint_num_layers")
    if apart not in (None, "1"):
        chosen["checkpoints"] = f"one a layer (the row has one for {apart})"
    said = [f"{key}={value}" if value else key for key, value in keys.items()]
    out = []
    for size in sizes:
        for recompute in recomputes:
            parts = list(said)
            if size is not None:
                parts.append(f"mb={size}")
            if recompute is not None:
                parts.append(f"recompute={recompute}")
            if "overlap" not in keys and any(token in _NO_OVERLAP for token in row.assumptions):
                parts.append("overlap=none")
            if "optimizer" not in keys and "optimizer_post_validation" in row.assumptions:
                parts.append("optimizer=post-validated")
            tree = {"plan": ",".join(parts), "nodes": nodes}
            out.append(Candidate(Strategy.from_dict(tree), size, recompute))
    return out


def _one_a_stage(row: Row, keys: dict[str, str]) -> int | None:
    """Samples of a micro-batch where software cuts batches in as many as it has pipeline ranks."""
    dp, pp = (int(keys.get(key, "1")) for key in ("dp", "pp"))
    if pp == 1 or row.global_batch % (dp * pp) or not one_micro_batch_a_stage(row.software):
        return None
    return row.global_batch // (dp * pp)


def _rounds(row: Row, keys: dict[str, str], chosen: dict[str, str]) -> None:
    """Sets `schedule` where a row's pipeline is drained more than once an iteration.

    Each call of the schedule takes `local_batch` samples of a rank there, fewer than it has.
    """
    pp, vpp, dp, mb = (int(keys.get(key, "1")) for key in ("pp", "vpp", "dp", "mb"))
    said = row.assumption("local_batch")
    if said is None or pp == 1 or "mb" not in keys:
        return
    of_rank, a_round = row.global_batch // (dp * mb), int(said) // mb
    if 0 < a_round < of_rank and (vpp == 1 or a_round % pp == 0):
        keys["schedule"] = in_rounds(pp, vpp, of_rank, a_round)
        chosen["rounds"] = f"drained after {a_round} micro-batches each (local_batch={said})"


def _overlap(
    row: Row, shipped: RowRecipe | None, keys: dict[str, str], chosen: dict[str, str]
) -> None:
    """Takes out of a row's `overlap` what it assumes and its recipe has switched off."""
    words = keys.get("overlap", "").split("+")
    off = ["tp"] if not overlaps_tp(row.software, row.dtype) else []
    if shipped is not None and shipped.exact and row.assumption("overlap") in _ASSUMED:
        off += shipped.lacks(words)
    left = [word for word in words if word not in off]
    if left != words:
        keys["overlap"] = "+".join(left) or "none"
        without = "+".join(word for word in words if word not in left)
        chosen["overlap"] = (
            f"{keys['overlap']} (assumed with {without}: not in the software's recipes)"
        )


def _kept_in_parts(row: Row, keys: dict[str, str]) -> dict[str, Any]:
    """Nodes of layers whose kept activations ranks of tp share out (`partition_activations=1`).

    Takes activations out of `offload`: the nodes then say that the parts are on the host.
    """
    if row.assumption("partition_activations") != "1" or keys.get("tp", "1") == "1":
        return {}
    words = keys.pop("offload", "").split("+")
    if others := "+".join(word for word in words if word != "activations"):
        keys["offload"] = others
    home = "shard(tp)+host" if "activations" in words else "shard(tp)"
    return {"layers.*": {"home": {"activations": home}}}


def _micro_batches(row: Row, keys: dict[str, str]) -> list[int]:
    try:
        dp = int(keys.get("dp", "1"))
    except ValueError:
        raise UnsupportedError(f"`dp={keys['dp']}` is not a number") from None
    if row.global_batch % dp:
        raise UnsupportedError(f"the batch of {row.global_batch} is not divisible by dp={dp}")
    share = row.global_batch // dp
    if "accum" in keys:
        return [share // int(keys["accum"])]
    if _by_name(row):
        counts = range(min(share, _MOST_MICRO_BATCHES), 0, -1)
        return [share // count for count in counts if share % count == 0]
    return [size for size in range(1, min(share, _LARGEST_MICRO_BATCH) + 1) if share % size == 0]
