"""The pictures of a forecast, as its methods."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from plancast.checked import checked

if TYPE_CHECKING:
    from plancast.forecast import Forecast


@checked
class ForecastCharts:
    """What a forecast can draw; every method gives a plotly figure."""

    __slots__ = ()

    def plot_breakdown(self) -> Any:
        """Where the time of the iteration goes, and how sure it is."""
        from plancast.charts.breakdown import breakdown

        own = cast("Forecast", self)
        return breakdown([own], [own.strategy or "defaults"], f"{own.model} on {own.machine}")

    def plot_memory(self, device_class: str | None = None) -> Any:
        """What is alive over the iteration, by default on the fullest device class."""
        from plancast.charts.memory import course

        return course(cast("Forecast", self).memory.timeline(device_class))

    def plot_timeline(self) -> Any:
        """What runs when on each device class; predict with `timeline=True`."""
        from plancast.charts.timeline import timeline

        return timeline(cast("Forecast", self).timeline())
