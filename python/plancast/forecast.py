"""What a prediction says."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast, overload

from plancast import _core, arguments, files
from plancast.cached import cached_property
from plancast.charts.methods import ForecastCharts
from plancast.checked import checked
from plancast.errors import InputError
from plancast.fullness import fullness
from plancast.immutable import Immutable
from plancast.learned_parts import learned_of, learned_parts
from plancast.memory import PeakMemory
from plancast.parts import PARTS
from plancast.question import Facts, Question
from plancast.randomness import Distribution
from plancast.shown import Shown
from plancast.slices import Slice

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import RenderableType

    from plancast.explaining.alone import Explanation
    from plancast.explaining.difference import ExplainedDifference
    from plancast.strategy import Strategy

# Slices that are made without a pause.
_AT_ONCE = 1024


@checked
class Forecast(ForecastCharts, Immutable, Shown):
    """The result of `plancast.predict`, in seconds and bytes."""

    def __init__(
        self,
        core: _core.Forecast | Facts,
        asked: Mapping[str, Any] | None = None,
        tree: Strategy | None = None,
        question: Question | None = None,
        what_if: str = "",
    ) -> None:
        self._core = cast("_core.Forecast", core)
        self._question = question
        self._what_if = what_if
        # Options and strategy of the prediction, which a launch needs again.
        self._asked = dict(asked or {})
        self._tree = tree

    @property
    def plan(self) -> Strategy | str:
        """What `predict` takes for it again: the tree with its nodes, or the short form."""
        return self._tree or self.strategy

    @property
    def model(self) -> str:
        """Name of the model."""
        return self._core.model

    @property
    def machine(self) -> str:
        """Name of the machine."""
        return self._core.machine

    @property
    def gpu(self) -> str:
        """Name of the accelerator; several joined by `+`."""
        machine = getattr(self._question, "machine", None)
        return str(getattr(machine, "gpu", "")) or self.machine

    @property
    def strategy(self) -> str:
        """The plan in canonical short form."""
        return self._core.strategy

    @property
    def profile(self) -> str:
        """The software profile."""
        return self._core.profile

    @property
    def seq(self) -> int:
        """Tokens per sequence; 0 where samples are no sequences."""
        return self._core.seq

    @property
    def dtype(self) -> str:
        """Precision of the matrix products."""
        return str(self._asked.get("dtype", ""))

    @property
    def what_if(self) -> str:
        """The changes with which it was simulated; empty: the plan as it is."""
        return self._what_if

    @property
    def iteration_time(self) -> float:
        """Seconds of one optimizer step."""
        return self._core.iteration_time_s

    @property
    def simulated_time(self) -> float:
        """Seconds of the step as simulated, without what runs take beyond that."""
        return self._core.iteration_time_s / (1 + self.beyond_simulated)

    @property
    def beyond_simulated(self) -> float:
        """What measured runs of the software take beyond what is simulated, as a share of that.

        Part of `iteration_time` and, in proportion, of its parts (docs/uncertainty.md); not of
        the timeline. 0 with `Session(prior=False)`.
        """
        return math.expm1(self._core.software_level[0])

    @property
    def interval(self) -> tuple[float, float]:
        """Central 90 % interval of the iteration time, seconds."""
        return self._core.interval_s

    @property
    def fits(self) -> bool:
        """Whether every device class stays within its memory."""
        return self._core.fits

    @cached_property
    def fit_advice(self) -> str:
        """If the plan does not fit: what it needs and what would fit.

        Made when it is first read: it takes as long as a few forecasts.
        """
        return "" if self.fits or self._question is None else self._question.advise()

    @property
    def peak_memory(self) -> int:
        """Memory used on the fullest device, context and communication included, bytes."""
        return self._core.peak_memory_bytes

    @property
    def memory_capacity(self) -> float:
        """Memory of one device, bytes."""
        return self._core.memory_capacity_bytes

    @property
    def devices(self) -> int:
        """Number of accelerators."""
        return self._core.devices

    @property
    def global_batch(self) -> int:
        """Samples per optimizer step."""
        return self._core.global_batch

    @property
    def chosen(self) -> dict[str, str]:
        """What was left open and how it was decided."""
        return self._core.chosen

    @property
    def notes(self) -> list[str]:
        """Remarks about the plan, one sentence each."""
        return self._core.notes

    @cached_property
    def warnings(self) -> list[str]:
        """Where the forecast goes beyond what was measured or simulated, one sentence each."""
        from plancast.models import presets

        full = fullness(self.peak_memory, self.memory_capacity) if self.fits else []
        return [*self._core.warnings, *presets.trained_otherwise(self.model, self.strategy), *full]

    @property
    def tokens_per_s(self) -> float:
        """Tokens trained on per second, all devices."""
        return self._per_second(self._core.global_batch * self._core.seq)

    @property
    def samples_per_s(self) -> float:
        """Samples per second, all devices."""
        return self._per_second(self._core.global_batch)

    @property
    def unit(self) -> str:
        """What reports count: `tokens`, or `samples` of models without sequences."""
        return "tokens" if self._core.seq > 0 else "samples"

    @property
    def units_per_s_per_gpu(self) -> float:
        """Units trained on per second, one device."""
        total = self.tokens_per_s if self._core.seq > 0 else self.samples_per_s
        return total / self._core.devices

    @property
    def model_flops_per_s_per_gpu(self) -> float:
        """FLOP/s of the model's mathematics, one device, without recomputation."""
        return self._per_second(self._core.model_flops / self._core.devices)

    @property
    def hardware_flops_per_s_per_gpu(self) -> float:
        """FLOP/s executed on one device, with recomputation."""
        return self._per_second(self._core.hardware_flops / self._core.devices)

    @property
    def mfu(self) -> float:
        """Model FLOPs utilisation: a share of the dense peak of the dtype."""
        return self._share_of_peak(self.model_flops_per_s_per_gpu)

    @property
    def hfu(self) -> float:
        """Hardware FLOPs utilisation: a share of the dense peak of the dtype."""
        return self._share_of_peak(self.hardware_flops_per_s_per_gpu)

    @cached_property
    def distribution(self) -> Distribution | None:
        """Iteration times of random iterations; None unless asked for."""
        fields = self._core.distribution
        return None if fields is None else Distribution(**fields)

    @cached_property
    def memory(self) -> PeakMemory:
        """Peak memory of each device class, what is alive then, and memory over time."""
        return PeakMemory(self._core, self._question)

    def breakdown(self) -> dict[str, float]:
        """Seconds of each part of the iteration, mean over devices.

        The parts partition the compute stream's time, so they sum to the
        iteration time.
        """
        return learned_parts(self, dict(zip(PARTS, self._core.breakdown_s(), strict=True)))

    def critical_path(self) -> dict[str, float]:
        """Seconds of each part along the longest chain of tasks across devices."""
        return learned_parts(self, dict(zip(PARTS, self._core.critical_path_s(), strict=True)))

    def knowledge(self) -> dict[str, float]:
        """Shares of the kernel time by how it is known: measured, calibrated, analytic, ..."""
        seconds = self._core.provenance_seconds
        total = sum(seconds.values())
        return {name: value / total for name, value in seconds.items()} if total > 0 else {}

    def factors(self) -> dict[str, tuple[float, float]]:
        """Latent errors shared with other forecasts: seconds that hang on each, relative scale.

        Kernels of a family on a GPU, algorithms on a link, the software profile.
        """
        return self._core.factors

    def extrapolated(self) -> dict[str, float]:
        """Seconds of the critical path by factor, of those that no measurement is of.

        They are priced from measurements of other GPUs or links.
        """
        factors = self._core.factors
        return {name: factors[name][0] for name in self._core.extrapolated_factors}

    def learnable(self) -> dict[str, tuple[float, float]]:
        """What runs can tell of: of each factor its share of the time and its relative scale.

        Factors of `factors()`, and parts of the time that errors of other kinds lengthen:
        `part/exposed` (communication), `part/bubble`, `part/launch` (the host).
        """
        return self._core.learnable

    @property
    def learned_log(self) -> float:
        """Of the time's logarithm, what was learned from runs (`Session(learned=...)`)."""
        return self._core.learned_log

    @property
    def learned_memory(self) -> int:
        """Bytes of each device that were learned from runs (`Session(learned=...)`)."""
        learned = learned_of(self)
        return round(learned.held(self.profile) * self.memory_capacity) if learned else 0

    @property
    def own_variance_s2(self) -> float:
        """Square of the part of the error that no other forecast shares, seconds squared."""
        return self._core.own_variance_s2

    @overload
    def explain(self) -> Explanation: ...
    @overload
    def explain(self, versus: Forecast) -> ExplainedDifference: ...
    def explain(self, versus: Forecast | None = None) -> Explanation | ExplainedDifference:
        """Why the iteration takes as long as it does, or why it is not another's.

        Alone: what binds each stage, what would bind next, what more of a resource is worth, what
        would make it fit. Against another forecast: signed seconds by cause, which sum to the
        difference (docs/explain.md).
        """
        if versus is None:
            from plancast.explaining.alone import Explanation

            return Explanation(self)
        from plancast.explaining.difference import ExplainedDifference

        arguments.instance(versus, Forecast, "versus", "predict(model, machine, strategy)")
        return ExplainedDifference(self, versus)

    def timeline(self) -> list[Slice]:
        """Every task on the representative of each device class, by start.

        Ask for it with `predict(..., timeline=True)`.
        """
        self._need_timeline()
        core, slices = self._core, []
        # A piece at a time: in between, other threads run.
        for begin in range(0, core.slice_count, _AT_ONCE):
            slices += [Slice(*fields) for fields in core.slices(begin, begin + _AT_ONCE)]
        return slices

    def launch_config(self, framework: str, **run: Any) -> str:
        """The text of the argument file with which a framework runs the plan.

        Args:
          framework: `torchtitan`, `fsdp`, `composer`, `deepspeed` or `megatron-core`.
          run: what shall differ from the prediction; see `plancast.launchers.write`.

        Raises:
          InputError: the framework cannot run it; says why, and the nearest plan it can.
        """
        from plancast.frameworks.forecasts import write_forecast

        return write_forecast(self, framework, {**self._asked, **run}, self._tree)

    def without_nodes(self) -> Forecast:
        """The same as of the plan alone, as argument files are written: they say no adapters."""
        return Forecast(self._core, self._asked, None, self._question, self._what_if)

    def to_perfetto(self, path: str | Path) -> None:
        """Writes a Chrome trace that ui.perfetto.dev opens; `.gz` compresses it."""
        self._need_timeline()
        files.write_text(path, self._core.chrome_trace())

    def to_dict(self) -> dict[str, Any]:
        """The fields of `plancast predict --json`."""
        from plancast.forecast_fields import fields_of

        return fields_of(self, self._core)

    def to_frame(self) -> pd.DataFrame:
        """One row: the plan, its knobs and its figures, units in the column names."""
        import pandas as pd

        from plancast.plan_record import run_record

        return pd.DataFrame.from_records([run_record(self)])

    def software(self) -> dict[str, Any]:
        """What is learned of the software from measured runs: level, its scale, and from whom."""
        _, sources, lineage = self._core.software_level
        of = f"software/{arguments.shipped_profile(self.profile)}"
        _, sigma = self._core.factors.get(of, (0.0, 0.0))
        return {
            "times_simulated": 1 + self.beyond_simulated,
            "relative_sigma": sigma,
            "lineage": lineage,
            "sources": sources,
        }

    def _per_second(self, amount: float) -> float:
        time = self._core.iteration_time_s
        return amount / time if time > 0 else 0.0

    def _share_of_peak(self, flops: float) -> float:
        peak = self._core.peak_flops_per_gpu
        return flops / peak if peak > 0 else 0.0

    def _need_timeline(self) -> None:
        if not self._core.has_timeline:
            raise InputError("this forecast has no timeline. Predict with `timeline=True`.")

    def __reduce__(self) -> tuple[Any, ...]:
        # Figures travel; graphs and slices are made again where they are asked for.
        facts = Facts.of(self._core, self._question)
        return Forecast, (facts, self._asked, self._tree, self._question, self._what_if)

    def __rich__(self) -> RenderableType:
        from plancast.report.tables import forecast_tables

        return forecast_tables(self)

    def __repr__(self) -> str:
        from plancast.textual import duration, gib

        fit = "fits" if self.fits else "does not fit"
        plan = self.strategy or "defaults"
        if self.what_if:
            plan += f", what if {self.what_if}"
        return (
            f"<Forecast {self.model} on {self.machine} with {plan}: "
            f"{duration(self.iteration_time)}, {gib(self.peak_memory)} GiB, {fit}>"
        )
