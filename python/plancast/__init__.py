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
    from plancast.buckets import Buckets, tune_buckets
    from plancast.changes import Sensitivities, WhatIf, sensitivities, what_if
    from plancast.choice import Choice, plan
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
    from plancast.communication.simai import SimAiWorkload
    from plancast.communication.simai_plan import simai_workload
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
    from plancast.explaining.alone import Explanation
    from plancast.explaining.difference import ExplainedDifference
    from plancast.fitting import Fit, fits
    from plancast.forecast import Forecast
    from plancast.found_schedule import FoundSchedule, find_schedule
    from plancast.framework_limits import why_framework_cannot_run
    from plancast.gradient_traffic.advice import GradientAdvice, gradient_advice
    from plancast.gradient_traffic.forecast import GradientForecast, gradients
    from plancast.jobs import JobForecast, TrainingJob, predict_jobs
    from plancast.launch_config import LaunchConfig
    from plancast.learned import Learned
    from plancast.learning import learn
    from plancast.machine import Machine
    from plancast.model import Model, ModelBuilder
    from plancast.op_rules import Rule, rules
    from plancast.planners.auto_config import auto_config
    from plancast.planners.bisection import recursive_bisection
    from plancast.planners.costs import AlphaBeta
    from plancast.planners.grid import best_of_grid
    from plancast.planners.inter_op import plan_inter_op
    from plancast.planners.intra_op import plan_intra_op
    from plancast.planners.local_search import local_search
    from plancast.planners.memory_budget import plan_memory
    from plancast.planners.plan import Plan
    from plancast.planning import (
        predict,
        profile_additions,
        profiles,
        rank,
        recompute_sets,
    )
    from plancast.product_grid import product_grids
    from plancast.randomness import Distribution, Randomness
    from plancast.ranking import Ranking
    from plancast.recipes.choose import recipe
    from plancast.records import Kernel, Records
    from plancast.run_traces.compare import RunComparison, compare_run
    from plancast.session import Session
    from plancast.strategy import Strategy
    from plancast.training.availability import Availability
    from plancast.training.checkpoints import Checkpoints
    from plancast.training.failures import Failures
    from plancast.training.phases import Phase
    from plancast.training.run import train
    from plancast.training.sizing import size
    from plancast.training.sizing_result import Sizing
    from plancast.training.slow_hosts import SlowHosts
    from plancast.training.spot import SpotRun, spot
    from plancast.training.training_run import TrainingRun

__version__ = "0.1.0"

__all__ = [
    "Algorithm",
    "AlgorithmRun",
    "AlphaBeta",
    "Availability",
    "Buckets",
    "Checkpoints",
    "Choice",
    "ChromeTrace",
    "ClusterChange",
    "ClusterJob",
    "ClusterOutcome",
    "CollectiveRow",
    "CollectiveTable",
    "Comparison",
    "Distribution",
    "ExecutionGraph",
    "ExplainedDifference",
    "Explanation",
    "Failures",
    "Fit",
    "Forecast",
    "FoundSchedule",
    "GradientAdvice",
    "GradientForecast",
    "InputError",
    "JobForecast",
    "Kernel",
    "LaunchConfig",
    "Learned",
    "LingjunAssumptions",
    "Machine",
    "Model",
    "ModelBuilder",
    "NcclTrace",
    "ParetoFront",
    "Phase",
    "Plan",
    "Randomness",
    "Ranking",
    "Records",
    "Rule",
    "RunComparison",
    "Sensitivities",
    "Session",
    "SimAiWorkload",
    "Sizing",
    "SlowHosts",
    "SpotRun",
    "Strategy",
    "SynthesizedAlgorithm",
    "TextWorkload",
    "Topology",
    "TrainingJob",
    "TrainingRun",
    "WhatIf",
    "auto_config",
    "best_of_grid",
    "cluster",
    "cluster_changes",
    "collective",
    "compare",
    "compare_run",
    "execution_graph",
    "find_schedule",
    "fits",
    "flows",
    "gradient_advice",
    "gradients",
    "learn",
    "local_search",
    "pareto_front",
    "plan",
    "plan_inter_op",
    "plan_intra_op",
    "plan_memory",
    "predict",
    "predict_jobs",
    "product_grids",
    "profile_additions",
    "profiles",
    "rank",
    "read_lingjun",
    "recipe",
    "recompute_sets",
    "recursive_bisection",
    "rules",
    "sensitivities",
    "simai_workload",
    "size",
    "spot",
    "synthesize",
    "train",
    "tune_buckets",
    "what_if",
    "why_framework_cannot_run",
]

# Where each name lives; imported on first use, so that `import plancast` costs
# nothing.
_HOME = {
    "Algorithm": "communication.algorithms",
    "AlgorithmRun": "communication.algorithms",
    "Availability": "training.availability",
    "Buckets": "buckets",
    "Checkpoints": "training.checkpoints",
    "AlphaBeta": "planners.costs",
    "Choice": "choice",
    "ChromeTrace": "communication.chrome",
    "ClusterChange": "clusters.changes",
    "ClusterJob": "clusters.job",
    "ClusterOutcome": "clusters.outcome",
    "CollectiveRow": "communication.collective_table",
    "CollectiveTable": "communication.collective_table",
    "Comparison": "comparison",
    "Distribution": "randomness",
    "ExecutionGraph": "compiled",
    "ExplainedDifference": "explaining.difference",
    "Explanation": "explaining.alone",
    "Failures": "training.failures",
    "Fit": "fitting",
    "Forecast": "forecast",
    "FoundSchedule": "found_schedule",
    "GradientAdvice": "gradient_traffic.advice",
    "GradientForecast": "gradient_traffic.forecast",
    "InputError": "errors",
    "JobForecast": "jobs",
    "Kernel": "records",
    "LaunchConfig": "launch_config",
    "Learned": "learned",
    "LingjunAssumptions": "clusters.lingjun",
    "Machine": "machine",
    "Model": "model",
    "ModelBuilder": "model",
    "NcclTrace": "communication.traces",
    "ParetoFront": "communication.synthesis",
    "Phase": "training.phases",
    "Plan": "planners.plan",
    "Randomness": "randomness",
    "Ranking": "ranking",
    "Records": "records",
    "Rule": "op_rules",
    "RunComparison": "run_traces.compare",
    "Sensitivities": "changes",
    "Session": "session",
    "SimAiWorkload": "communication.simai",
    "Sizing": "training.sizing_result",
    "SlowHosts": "training.slow_hosts",
    "SpotRun": "training.spot",
    "Strategy": "strategy",
    "SynthesizedAlgorithm": "communication.synthesis",
    "TextWorkload": "communication.workloads",
    "Topology": "communication.nccl",
    "TrainingJob": "jobs",
    "TrainingRun": "training.training_run",
    "WhatIf": "changes",
    "auto_config": "planners.auto_config",
    "best_of_grid": "planners.grid",
    "cluster": "clusters.run",
    "cluster_changes": "clusters.changes",
    "collective": "communication.collective_table",
    "compare": "comparison",
    "compare_run": "run_traces.compare",
    "execution_graph": "compiled",
    "find_schedule": "found_schedule",
    "fits": "fitting",
    "flows": "communication.flow_list",
    "gradient_advice": "gradient_traffic.advice",
    "gradients": "gradient_traffic.forecast",
    "learn": "learning",
    "local_search": "planners.local_search",
    "pareto_front": "communication.synthesis",
    "plan": "choice",
    "plan_inter_op": "planners.inter_op",
    "plan_intra_op": "planners.intra_op",
    "plan_memory": "planners.memory_budget",
    "predict": "planning",
    "predict_jobs": "jobs",
    "product_grids": "product_grid",
    "profile_additions": "planning",
    "profiles": "planning",
    "rank": "planning",
    "read_lingjun": "clusters.lingjun",
    "recipe": "recipes.choose",
    "recompute_sets": "planning",
    "recursive_bisection": "planners.bisection",
    "rules": "op_rules",
    "sensitivities": "changes",
    "simai_workload": "communication.simai_plan",
    "size": "training.sizing",
    "spot": "training.spot",
    "synthesize": "communication.synthesis",
    "train": "training.run",
    "tune_buckets": "buckets",
    "what_if": "changes",
    "why_framework_cannot_run": "framework_limits",
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
