"""Tables of what is shipped by name, and all about one of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from plancast import _core, shipped
from plancast.accuracy.report.fitted_table import FittedTable, WrappedText
from plancast.machine import Machine
from plancast.model import Model
from plancast.recipes import framework, machine_for, named
from plancast.textual import count, percent

_SAID_OF_ZOO = "nets for images and the like: `plancast show NAME` counts their parameters"


def listing(kind: str, facts: Iterable[dict[str, Any]]) -> FittedTable:
    """A row for each."""
    return _TABLES[kind](list(facts))


def story(kind: str, name: str) -> RenderableType:
    """All about one."""
    return _STORIES[kind](name)


def _models(rows: list[dict[str, Any]]) -> FittedTable:
    nets = any(row["parameters"] is None for row in rows)
    table = FittedTable(caption=_SAID_OF_ZOO if nets else "")
    table.words("model", least=20, style="cyan")
    table.numbers("parameters")
    table.numbers("a token meets", leaves=1)
    table.numbers("layers", "tokens a sequence")
    for row in rows:
        if row["parameters"] is None:
            table.row(row["name"])
            continue
        active = "" if row["active"] == row["parameters"] else count(row["active"])
        table.row(
            row["name"], count(row["parameters"]), active, str(row["layers"]), f"{row['seq']:,}"
        )
    return table


def _machines(rows: list[dict[str, Any]]) -> FittedTable:
    table = FittedTable(caption="type it with a number of hosts: -c dgx-h100:16")
    table.words("machine", least=20, style="cyan")
    table.words("GPU", least=20)
    table.numbers("GPUs a host", "GB")
    table.numbers("joined GPUs", leaves=2)
    table.numbers("GB/s inside", leaves=3)
    table.numbers("Gbit/s outside", leaves=1)
    table.numbers("$/GPU-hour", leaves=4)
    for row in rows:
        price = row["usd_per_gpu_hour"]
        table.row(
            row["name"],
            row["gpu"],
            str(row["gpus_per_host"]),
            f"{row['memory_gb']:g}",
            str(row["domain_gpus"]),
            f"{row['intra_gb_per_s']:g}" if row["domain_gpus"] > 1 else "",
            f"{row['network_gbit_per_s']:,g}",
            "" if price is None else f"{price:.2f}",
        )
    return table


def _gpus(rows: list[dict[str, Any]]) -> FittedTable:
    table = FittedTable(
        caption="own kernels: of a transformer's time, what is priced by measurements of this GPU"
    )
    table.words("GPU", least=20, style="cyan")
    table.numbers("GB", "GB/s")
    table.numbers("bf16 TFLOP/s", "own kernels")
    table.numbers("fp8 TFLOP/s", leaves=1)
    table.words("machines", leaves=2, least=24)
    for row in rows:
        eight = row["fp8_tflops"]
        table.row(
            row["name"],
            f"{row['memory_gb']:g}",
            f"{row['memory_gb_per_s']:,g}",
            f"{row['bf16_tflops']:,g}" if row["bf16_tflops"] else "none",
            percent(row["own_kernels"], 0),
            f"{eight:,g}" if eight else "none",
            ", ".join(row["machines"]),
        )
    return table


def _profiles(rows: list[dict[str, Any]]) -> FittedTable:
    table = FittedTable()
    table.words("profile", least=14, style="cyan")
    table.words("what runs", least=30)
    table.words("known from", leaves=1, least=12)
    for row in rows:
        known = "documentation" if row["from_documentation"] else "source"
        table.row(row["name"], row["what"], known)
    return table


def _ops(rows: list[dict[str, Any]]) -> FittedTable:
    table = FittedTable(caption="plancast show NAME prints a rule; docs/op_rules.md explains them")
    table.words("op", least=14, style="cyan")
    table.words("call", least=30, leaves=1)
    for row in rows:
        table.row(row["name"], row["call"])
    return table


def _recipes(rows: list[dict[str, Any]]) -> FittedTable:
    table = FittedTable(caption="plancast predict -s recipe takes the one for a model and machine")
    table.words("recipe", least=max(len(row["name"]) for row in rows), style="cyan")
    table.numbers("batch", leaves=1)
    table.words("plan", least=20)
    for row in rows:
        table.row(row["name"], f"{row['batch']:,}", row["plan"])
    return table


def _model_story(name: str) -> RenderableType:
    model = Model.preset(name)
    table = FittedTable(plain=True)
    table.words("", style="dim")
    table.words("")
    table.row("parameters", f"{model.parameters:,}")
    if model.active_parameters != model.parameters:
        table.row("a token meets", f"{model.active_parameters:,}")
    table.row("layers", str(model.layers))
    if model.seq > 0:
        table.row("sequence", f"{model.seq:,} tokens; --seq takes another")
    for key, value in (model.config or {}).items():
        if key not in ("name", "layers", "seq"):
            table.row(key, f"{value:,}" if isinstance(value, int) and value > 1 else str(value))
    return Group(
        Text(name, style="bold"),
        table,
        WrappedText(f"next: plancast plan {name} dgx-h100:2", style="dim"),
    )


def _machine_story(name: str) -> RenderableType:
    from plancast.training.prices import on_record

    machine = Machine.preset(name, hosts=1)
    fields = machine.to_dict()
    lines: list[RenderableType] = [Text(machine.describe().rstrip())]
    host = fields["host_memory_gb"]
    known = (
        f"{host:,g} GiB of memory" if host else "its memory is unknown; `host_memory_gb` states it"
    )
    lines.append(WrappedText(f"host: {known}"))
    prices = [str(quote) for quote in on_record(machine)]
    lines += [
        WrappedText(f"price: {text}")
        for text in prices or ["no price is on record; give `--price` or `usd_per_hour`"]
    ]
    lines.append(WrappedText(f"source: {fields['source']}", style="dim"))
    lines.append(WrappedText(f"GPU: {fields['gpu']['source']}", style="dim"))
    lines.append(WrappedText(f"next: plancast plan llama3-8b {name}:2", style="dim"))
    return Group(*lines)


def _gpu_story(name: str) -> RenderableType:
    row = shipped.facts("gpus", name)
    fields = Machine.preset(row["machines"][0], hosts=1).to_dict()["gpu"]
    table = FittedTable(plain=True)
    table.words("", style="dim")
    table.words("")
    for key, value in fields.items():
        if key not in ("name", "source") and (value or key != "usd_per_hour"):
            none = key.endswith("_tflops") and not value
            text = f"{value:,g}" if isinstance(value, int | float) else str(value)
            table.row(key, "none" if none else text)
    table.row("own kernels", percent(row["own_kernels"], 0))
    table.row("machines", ", ".join(row["machines"]))
    source = WrappedText(f"source: {fields['source']}", style="dim")
    return Group(Text(name, style="bold"), table, source)


def _profile_story(name: str) -> RenderableType:
    row = shipped.facts("profiles", name)
    known = "documentation" if row["from_documentation"] else "its source"
    table = FittedTable(plain=True)
    table.words("", style="dim")
    table.words("")
    table.row("what runs", row["what"])
    table.row("known from", known)
    if row["lineage"]:
        table.row("measured runs", f"of the {row['lineage']} lineage")
    if name.startswith("+"):
        table.row("added to", f"any profile: deepspeed{name}")
        return Group(Text(name, style="bold"), table)
    asked = [*((plan, None) for plan in _PROBES), *_MICRO_BATCHES]
    lacks = [why for plan in asked if (why := _core.why_framework_cannot_run(name, *plan))]
    words = dict.fromkeys(why.partition(" has no ")[2] or why for why in lacks)
    table.row("has not", ", ".join(words) or "-")
    return Group(Text(name, style="bold"), table)


def _op_story(name: str) -> RenderableType:
    from plancast.op_rules import Rule

    rule = Rule.find(name)
    parts: list[RenderableType] = [Text(str(rule).rstrip())]
    try:
        parts += [Text("backward:", style="dim"), Text(str(rule.backward()).rstrip())]
    except ValueError as error:
        parts += [Text(f"no backward: {error}", style="dim")]
    return Group(*parts)


def _recipe_story(name: str) -> RenderableType:
    recipe = named(name)
    row = shipped.facts("recipes", name)
    graphs: dict[bool | str, str] = {True: "whole passes", False: "none"}
    table = FittedTable(plain=True)
    table.words("", style="dim")
    table.words("")
    table.row("of", f"{framework()} {', '.join(recipe.versions)}")
    table.row("GPUs", f"{recipe.gpus:,} {recipe.gpu.upper()}")
    table.row("a step", f"{recipe.batch:,} samples of {recipe.seq:,} tokens, {recipe.dtype}")
    table.row("plan", recipe.plan)
    table.row("CUDA graphs", graphs.get(recipe.cuda_graphs) or str(recipe.cuda_graphs))
    table.row("tokens to experts", recipe.dispatcher or "-")
    table.row("profile", row["profile"])
    ask = f"plancast predict -m {recipe.model} -c {machine_for(recipe)} -s recipe:{name}"
    return Group(Text(name, style="bold"), table, WrappedText(f"next: {ask}", style="dim"))


# Plans of which a framework may lack one thing each.
_PROBES = (
    "dp=8,zero=1", "dp=8,zero=2", "dp=8,zero=3", "tp=8", "pp=2", "pp=2,vpp=2", "cp=2", "ep=2",
    "recompute=selective", "recompute=full",
)  # fmt: skip
_MICRO_BATCHES = (("pp=4", 2), ("pp=4,vpp=2", 9))

_TABLES = {
    "models": _models,
    "machines": _machines,
    "gpus": _gpus,
    "profiles": _profiles,
    "ops": _ops,
    "recipes": _recipes,
}
_STORIES = {
    "models": _model_story,
    "machines": _machine_story,
    "gpus": _gpu_story,
    "profiles": _profile_story,
    "ops": _op_story,
    "recipes": _recipe_story,
}
