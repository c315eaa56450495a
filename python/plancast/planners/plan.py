"""What planners give back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from plancast.forecast import Forecast
    from plancast.strategy import Strategy


@dataclass(frozen=True, repr=False)
class Plan:
    """A strategy that a planner found, its own objective, and the forecast of the executor.

    `objective` is what the planner minimised, in `unit` (`s`, `bytes`, or empty for prices without
    one); it leaves out what the executor knows, so compare plans by `forecast`. The forecast is
    None where the planner was given no machine. `details` are figures of the method, `remarks`
    sentences about what the plan leaves out.
    """

    method: str
    strategy: Strategy
    objective: float
    unit: str
    forecast: Forecast | None = None
    details: Mapping[str, Any] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()

    @property
    def iteration_time(self) -> float:
        """Seconds of one optimizer step by the executor; not a number without a machine."""
        return float("nan") if self.forecast is None else self.forecast.iteration_time

    def to_dict(self) -> dict[str, Any]:
        """The fields of `plancast plan --json`."""
        return {
            "method": self.method,
            "strategy": self.strategy.to_dict(),
            "objective": self.objective,
            "unit": self.unit,
            "details": dict(self.details),
            "remarks": list(self.remarks),
            "forecast": None if self.forecast is None else self.forecast.to_dict(),
        }

    def __repr__(self) -> str:
        from plancast.textual import duration

        time = "no forecast" if self.forecast is None else duration(self.iteration_time)
        return f"<Plan by {self.method}: {self.strategy!r}, {time}>"

    def __str__(self) -> str:
        """The tree in YAML, as `Strategy.from_yaml` reads it."""
        import yaml

        tree = {key: value for key, value in self.strategy.to_dict().items() if value}
        text: str = yaml.safe_dump(tree, sort_keys=False, default_flow_style=None)
        return text
