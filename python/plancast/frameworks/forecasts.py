"""Argument files of forecasts: the plan with what was chosen for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from plancast.arguments import shipped_profile
from plancast.errors import InputError
from plancast.frameworks.formats import FRAMEWORKS, framework_name
from plancast.frameworks.heading import headed
from plancast.frameworks.known import Known
from plancast.frameworks.plan import Plan, canonical, default_layout, layout_of, layout_text, normal

if TYPE_CHECKING:
    from plancast.forecast import Forecast
    from plancast.strategy import Strategy

# What the software profile decides where the plan does not.
_OF_PROFILE = ("overlap", "attn", "bucket")
# Frameworks that have a setting for it.
_BUCKETS = ("deepspeed", "megatron-core")


def write_forecast(
    forecast: Forecast, framework: str, run: Mapping[str, Any], tree: Strategy | None
) -> str:
    """The argument file of the plan that was predicted.

    Args:
      forecast: what `predict` or `rank` gave.
      framework: whose file.
      run: what `plancast.launchers.write` takes, before what the forecast knows.
      tree: the strategy, if it may have nodes; a file cannot say them.
    """
    name = framework_name(framework)
    if tree is not None:
        Plan.of(tree, name)
    chosen = forecast.chosen
    if "stages" in chosen:
        raise InputError(
            f"{name} deals whole layers to stages, and the stages of this plan are cut inside of "
            f"modules ({chosen['stages']}). Take fewer stages."
        )
    said = dict(_items(normal(forecast.strategy)))
    for key in ("dp", "mb", "accum"):
        said.setdefault(key, chosen[key])
    if shipped_profile(forecast.profile) not in FRAMEWORKS[name].profiles:
        # Another profile's defaults are not those of the framework.
        for key in _OF_PROFILE:
            if key in chosen and (key != "bucket" or name in _BUCKETS):
                said.setdefault(key, chosen[key])
        if name == "deepspeed":
            said["overlap"] = _overlap_comm(said["overlap"].split("+"), int(chosen["zero"]))
    if "layout" in chosen and int(chosen["pp"]) > 1:
        layers = sum(layout_of(chosen["layout"]))
        stages = int(chosen["pp"]) * int(chosen["vpp"])
        even = layers % stages == 0 and chosen["layout"] == layout_text(
            default_layout(layers, stages)
        )
        if not even:
            said.setdefault("layout", chosen["layout"])
    text = ",".join(f"{key}={value}" if value else key for key, value in said.items())
    settings: dict[str, Any] = {
        "gpus": forecast.devices,
        "profile": forecast.profile,
        "seq": forecast._core.seq or None,
        **run,
    }
    plan = Plan.of_short_form(canonical(text), name)
    cut = [f"{key}={plan.keys[key]}" for key in ("pp", "vpp", "schedule") if key in plan.keys]
    plan.run_micro_batches(",".join(cut), int(chosen["accum"]))
    known = Known.of(**settings)
    return headed(FRAMEWORKS[name].write(plan, known), name, forecast, known.gpus_per_host)


def _overlap_comm(words: list[str], zero: int) -> str:
    """What DeepSpeed's one switch makes of a profile's overlap."""
    if zero == 3:
        return "grad+param"  # gathers run ahead, whatever a plan says
    return "grad" if zero and "grad" in words else "none"


def _items(short_form: str) -> list[tuple[str, str]]:
    items = [item.partition("=") for item in short_form.split(",") if item]
    return [(key, value) for key, _, value in items]
