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
    from plancast.changes import Sensitivities, WhatIf, sensitivities, what_if
    from plancast.clusters.changes import ClusterChange, cluster_changes
    from plancast.clusters.job import ClusterJob
    from plancast.clusters.lingjun import Assumed as LingjunAssumptions
    from plancast.clusters.lingjun import read_lingjun
    from plancast.clusters.outcome import ClusterOutcome
    from plancast.clusters.run import cluster
    from plancast.communication.algorithms import Algorithm, AlgorithmRun
    from plancast.communication.chrome import ChromeTrace
    from plancast.communication.collective_table import CollectiveRow, CollectiveTable, collective
    from plancast.communication.flow_list import flows
    from plancast.communication.nccl import Topology
    from plancast.communication.synthesis import (
        ParetoFront,
        SynthesizedAlgorithm,
        pareto_front,
        synthesize,
    )
    from plancast.communication.traces import NcclTrace
    from plancast.communication.workloads import TextWorkload
    from plancast.comparison import Comparison, compare
    from plancast.compiled import ExecutionGraph, execution_graph
    from plancast.errors import InputError
    from plancast.fitting import Fit, fits
    from plancast.forecast import Forecast
    from plancast.found_schedule import FoundSchedule, find_schedule
    from plancast.jobs import JobForecast, TrainingJob, predict_jobs
    from plancast.launch_config import LaunchConfig
    from plancast.machine import Machine
    from plancast.model import Model, ModelBuilder
    from plancast.op_rules import Rule, rules
    from plancast.planning import (
        predict,
        profiles,
        rank,
        recompute_sets,
        why_framework_cannot_run,
    )
    from plancast.product_grid import product_grids
    from plancast.randomness import Distribution, Randomness
    from plancast.ranking import Ranking
    from plancast.records import Kernel, Records
    from plancast.session import Session
    from plancast.strategy import Strategy

__version__ = "0.1.0"

__all__ = [
    "Algorithm",
    "AlgorithmRun",
    "ChromeTrace",
    "ClusterChange",
    "ClusterJob",
    "ClusterOutcome",
    "CollectiveRow",
    "CollectiveTable",
    "Comparison",
    "Distribution",
    "ExecutionGraph",
    "Fit",
    "Forecast",
    "FoundSchedule",
    "InputError",
    "JobForecast",
    "Kernel",
    "LaunchConfig",
    "LingjunAssumptions",
    "Machine",
    "Model",
    "ModelBuilder",
    "NcclTrace",
    "ParetoFront",
    "Randomness",
    "Ranking",
    "Records",
    "Rule",
    "Sensitivities",
    "Session",
    "Strategy",
    "SynthesizedAlgorithm",
    "TextWorkload",
    "Topology",
    "TrainingJob",
    "WhatIf",
    "cluster",
    "cluster_changes",
    "collective",
    "compare",
    "execution_graph",
    "find_schedule",
    "fits",
    "flows",
    "pareto_front",
    "predict",
    "predict_jobs",
    "product_grids",
    "profiles",
    "rank",
    "read_lingjun",
    "recompute_sets",
    "rules",
    "sensitivities",
    "synthesize",
    "what_if",
    "why_framework_cannot_run",
]

# Where each name lives; imported on first use, so that `import plancast` costs
# nothing.
_HOME = {
    "Algorithm": "communication.algorithms",
    "AlgorithmRun": "communication.algorithms",
    "ChromeTrace": "communication.chrome",
    "ClusterChange": "clusters.changes",
    "ClusterJob": "clusters.job",
    "ClusterOutcome": "clusters.outcome",
    "CollectiveRow": "communication.collective_table",
    "CollectiveTable": "communication.collective_table",
    "Comparison": "comparison",
    "Distribution": "randomness",
    "ExecutionGraph": "compiled",
    "Fit": "fitting",
    "Forecast": "forecast",
    "FoundSchedule": "found_schedule",
    "InputError": "errors",
    "JobForecast": "jobs",
    "LaunchConfig": "launch_config",
    "Kernel": "records",
    "LingjunAssumptions": "clusters.lingjun",
    "Machine": "machine",
    "Model": "model",
    "ModelBuilder": "model",
    "ParetoFront": "communication.synthesis",
    "NcclTrace": "communication.traces",
    "Randomness": "randomness",
    "Ranking": "ranking",
    "Records": "records",
    "Rule": "op_rules",
    "Sensitivities": "changes",
    "Session": "session",
    "Strategy": "strategy",
    "SynthesizedAlgorithm": "communication.synthesis",
    "TextWorkload": "communication.workloads",
    "Topology": "communication.nccl",
    "TrainingJob": "jobs",
    "WhatIf": "changes",
    "cluster": "clusters.run",
    "cluster_changes": "clusters.changes",
    "collective": "communication.collective_table",
    "compare": "comparison",
    "execution_graph": "compiled",
    "find_schedule": "found_schedule",
    "fits": "fitting",
    "flows": "communication.flow_list",
    "pareto_front": "communication.synthesis",
    "predict": "planning",
    "predict_jobs": "jobs",
    "product_grids": "product_grid",
    "profiles": "planning",
    "rank": "planning",
    "read_lingjun": "clusters.lingjun",
    "recompute_sets": "planning",
    "rules": "op_rules",
    "sensitivities": "changes",
    "synthesize": "communication.synthesis",
    "what_if": "changes",
    "why_framework_cannot_run": "planning",
}

# What its home calls it, where that is another name.
_CALLED = {"LingjunAssumptions": "Assumed"}


def __getattr__(name: str) -> Any:
    if name == "launchers":
        return importlib.import_module("plancast.launchers")
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'plancast' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"plancast.{home}"), _CALLED.get(name, name))
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
