"""Plancast forecasts what a parallel training plan will do before anyone owns the hardware.

Describe a model, a machine and a strategy; predict; rank; compare::

    import plancast as pc

    forecast = pc.predict(
        pc.Model.preset("gpt3-175b"),
        pc.Machine.preset("dgx-a100-80g", hosts=8),
        pc.Strategy.parse("tp=8,pp=8,vpp=3,mb=1,recompute=full"),
        batch=64,
    )
    forecast.iteration_time   # seconds

Times are seconds, sizes bytes, rates per second, unless a name says otherwise.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from plancast.builder import ModelBuilder
    from plancast.comparison import Comparison, compare
    from plancast.errors import InputError
    from plancast.forecast import Forecast
    from plancast.machine import Machine
    from plancast.model import Model
    from plancast.op_rules import Rule, rules
    from plancast.planning import predict, profiles, rank
    from plancast.ranking import Ranking
    from plancast.session import Session
    from plancast.strategy import Strategy

__version__ = "0.1.0"

__all__ = [
    "Comparison",
    "Forecast",
    "InputError",
    "Machine",
    "Model",
    "ModelBuilder",
    "Ranking",
    "Rule",
    "Session",
    "Strategy",
    "compare",
    "predict",
    "profiles",
    "rank",
    "rules",
]

# Where each name lives; imported on first use, so that `import plancast` costs
# nothing.
_HOME = {
    "Comparison": "comparison",
    "Forecast": "forecast",
    "InputError": "errors",
    "Machine": "machine",
    "Model": "model",
    "ModelBuilder": "builder",
    "Ranking": "ranking",
    "Rule": "op_rules",
    "Session": "session",
    "Strategy": "strategy",
    "compare": "comparison",
    "predict": "planning",
    "profiles": "planning",
    "rank": "planning",
    "rules": "op_rules",
}


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'plancast' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"plancast.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
